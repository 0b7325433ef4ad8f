//! Frames of 9P2000.

use proto::*;

pub(crate) const REQUESTS: &[(&[u8], Tmessage<'_>)] = &[
    (
        b"\x13\0\0\0\x64\xff\xff\
          \0\x20\0\0\
          \x06\09P2000",
        Tmessage::Version { msize: 8192, version: b"9P2000" },
    ),
    (
        b"\x15\0\0\0\x66\x01\0\
          \x05\0\0\0\
          \x06\0glenda\0\0",
        Tmessage::Auth { afid: 5, uname: b"glenda", aname: b"", n_uname: None },
    ),
    (
        b"\x20\0\0\0\x68\x02\0\
          \0\0\0\0\xff\xff\xff\xff\
          \x06\0glenda\x07\0/active",
        Tmessage::Attach { fid: 0, afid: NOFID, uname: b"glenda", aname: b"/active", n_uname: None },
    ),
    (
        b"\x09\0\0\0\x6c\x04\x03\
          \x02\x01",
        Tmessage::Flush { oldtag: 0x0102 },
    ),
    (
        b"\x0c\0\0\0\x70\x04\0\
          \x01\0\0\0\x11",
        Tmessage::Open { fid: 1, mode: OWRITE | OTRUNC },
    ),
    (
        b"\x15\0\0\0\x72\x05\0\
          \x01\0\0\0\
          \x03\0new\
          \xa4\x01\0\0\x01",
        Tmessage::Create { fid: 1, name: b"new", perm: 0o644, mode: OWRITE, extension: None },
    ),
    (
        b"\x17\0\0\0\x74\x06\0\
          \x01\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\xe8\x1f\0\0",
        Tmessage::Read { fid: 1, offset: 0x0102030405060708, count: 8168 },
    ),
    (
        b"\x19\0\0\0\x76\x07\0\
          \x01\0\0\0\x03\0\0\0\0\0\0\0\x02\0\0\0\
          hi",
        Tmessage::Write { fid: 1, offset: 3, data: b"hi" },
    ),
    (
        b"\x0b\0\0\0\x78\x08\0\
          \x04\x03\x02\x01",
        Tmessage::Clunk { fid: 0x01020304 },
    ),
    (
        b"\x0b\0\0\0\x7a\x09\0\
          \x01\0\0\0",
        Tmessage::Remove { fid: 1 },
    ),
    (
        b"\x0b\0\0\0\x7c\x0a\0\
          \x01\0\0\0",
        Tmessage::Stat { fid: 1 },
    ),
    (
        b"\x3e\0\0\0\x7e\x0b\0\
          \x01\0\0\0\
          \x31\0\x2f\0\
          \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
          \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
          \xff\xff\xff\xff\xff\xff\xff\xff\
          \0\0\0\0\0\0\0\0",
        Tmessage::Wstat { fid: 1, stat: Stat::UNTOUCHED },
    ),
];

pub(crate) const ANSWERS: &[(&[u8], Rmessage<'_>)] = &[
    (
        b"\x14\0\0\0\x65\xff\xff\
          \0\x20\0\0\
          \x07\0unknown",
        Rmessage::Version { msize: 8192, version: b"unknown" },
    ),
    (
        b"\x24\0\0\0\x6b\x01\0\
          \x1b\0authentication\x20not\x20required",
        Rmessage::Error { ename: b"authentication not required", errno: None },
    ),
    (
        b"\x14\0\0\0\x67\x01\0\
          \x08\0\0\0\0\x07\0\0\0\0\0\0\0",
        Rmessage::Auth { aqid: Qid { kind: 8, version: 0, path: 7 } },
    ),
    (
        b"\x14\0\0\0\x69\x02\0\
          \x80\x01\0\0\0\x02\0\0\0\0\0\0\0",
        Rmessage::Attach { qid: Qid { kind: 0x80, version: 1, path: 2 } },
    ),
    (b"\x07\0\0\0\x6d\x04\x03", Rmessage::Flush),
    (
        b"\x09\0\0\0\x6f\x03\0\
          \0\0",
        Rmessage::Walk { qids: Qids::new(&[]) },
    ),
    (
        b"\x18\0\0\0\x71\x04\0\
          \0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\
          \0\0\0\0",
        Rmessage::Open { qid: Qid { kind: 0, version: 0x01020304, path: 0x1112131415161718 }, iounit: 0 },
    ),
    (
        b"\x18\0\0\0\x73\x05\0\
          \0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\
          \0\x10\0\0",
        Rmessage::Create {
            qid: Qid { kind: 0, version: 0x01020304, path: 0x1112131415161718 },
            iounit: 4096,
        },
    ),
    (
        b"\x10\0\0\0\x75\x06\0\
          \x05\0\0\0\
          hello",
        Rmessage::Read { data: b"hello" },
    ),
    (
        b"\x0b\0\0\0\x77\x07\0\
          \x02\0\0\0",
        Rmessage::Write { count: 2 },
    ),
    (b"\x07\0\0\0\x79\x08\0", Rmessage::Clunk),
    (b"\x07\0\0\0\x7b\x09\0", Rmessage::Remove),
    (
        b"\x4c\0\0\0\x7d\x0a\0\
          \x43\0\x41\0\
          \0\0\0\0\0\0\0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\
          \x24\x01\0\0\0\xe1\x0b\x5e\x01\xe1\x0b\x5e\
          \xd2\x04\0\0\0\0\0\0\
          \x06\0README\x06\0glenda\x03\0sys\x03\0bob",
        Rmessage::Stat {
            stat: Stat {
                kind: 0,
                dev: 0,
                qid: Qid { kind: 0, version: 0x01020304, path: 0x1112131415161718 },
                mode: 0o444,
                atime: 0x5e0be100,
                mtime: 0x5e0be101,
                length: 1234,
                name: b"README",
                uid: b"glenda",
                gid: b"sys",
                muid: b"bob",
                ..Stat::UNTOUCHED
            },
        },
    ),
    (b"\x07\0\0\0\x7f\x0b\0", Rmessage::Wstat),
];
