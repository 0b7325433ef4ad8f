//! Frames of 9P2000.u, where they differ from those of 9P2000 or the kernel sends them.

use proto::*;

pub(crate) const REQUESTS: &[(&[u8], Tmessage<'_>)] = &[
    (
        b"\x15\0\0\0\x64\xff\xff\
          \x18\0\x02\0\
          \x08\09P2000.u",
        Tmessage::Version { msize: 131_096, version: b"9P2000.u" },
    ),
    (
        b"\x14\0\0\0\x66\x01\0\
          \x05\0\0\0\
          \0\0\x01\0/\
          \xe8\x03\0\0",
        Tmessage::Auth { afid: 5, uname: b"", aname: b"/", n_uname: Some(1000) },
    ),
    (
        b"\x1d\0\0\0\x68\x02\0\
          \0\0\0\0\xff\xff\xff\xff\
          \x06\0nobody\0\0\
          \xff\xff\xff\xff",
        Tmessage::Attach { fid: 0, afid: NOFID, uname: b"nobody", aname: b"", n_uname: Some(NONUNAME) },
    ),
    (
        b"\x11\0\0\0\x6e\x04\0\
          \0\0\0\0\x01\0\0\0\0\0",
        Tmessage::Walk { fid: 0, newfid: 1, names: Names::EMPTY },
    ),
    (
        b"\x0c\0\0\0\x70\x05\0\
          \x01\0\0\0\0",
        Tmessage::Open { fid: 1, mode: OREAD },
    ),
    (
        b"\x18\0\0\0\x72\x06\0\
          \x01\0\0\0\
          \x02\0ln\
          \xff\x01\0\x02\0\
          \x02\0to",
        Tmessage::Create {
            fid: 1,
            name: b"ln",
            perm: DMSYMLINK | 0o777,
            mode: OREAD,
            extension: Some(b"to"),
        },
    ),
    (
        b"\x17\0\0\0\x74\x07\0\
          \x01\0\0\0\0\0\0\0\0\0\0\0\xe8\xff\0\0",
        Tmessage::Read { fid: 1, offset: 0, count: 65_512 },
    ),
    (
        b"\x4c\0\0\0\x7e\x09\0\
          \x01\0\0\0\
          \x3f\0\x3d\0\
          \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
          \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
          \xff\xff\xff\xff\xff\xff\xff\xff\
          \0\0\0\0\0\0\0\0\
          \0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        Tmessage::Wstat { fid: 1, stat: Stat::UNTOUCHED },
    ),
];

pub(crate) const ANSWERS: &[(&[u8], Rmessage<'_>)] = &[
    (
        b"\x15\0\0\0\x65\xff\xff\
          \0\0\x01\0\
          \x08\09P2000.u",
        Rmessage::Version { msize: 65_536, version: b"9P2000.u" },
    ),
    (
        b"\x14\0\0\0\x69\x02\0\
          \x80\x01\0\0\0\x02\0\0\0\0\0\0\0",
        Rmessage::Attach { qid: Qid { kind: 0x80, version: 1, path: 2 } },
    ),
    (
        b"\x20\0\0\0\x6b\x03\0\
          \x13\0file\x20does\x20not\x20exist\
          \x02\0\0\0",
        Rmessage::Error { ename: b"file does not exist", errno: Some(2) },
    ),
    (
        b"\x0b\0\0\0\x75\x07\0\
          \0\0\0\0",
        Rmessage::Read { data: b"" },
    ),
    (
        b"\x5a\0\0\0\x7d\x08\0\
          \x51\0\x4f\0\
          \0\0\0\0\0\0\0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\
          \x24\x01\0\0\0\xe1\x0b\x5e\x01\xe1\x0b\x5e\
          \xd2\x04\0\0\0\0\0\0\
          \x06\0README\x06\0glenda\x03\0sys\x03\0bob\
          \0\0\xe8\x03\0\0\x64\0\0\0\xe9\x03\0\0",
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
                extension: b"",
                n_uid: 1000,
                n_gid: 100,
                n_muid: 1001,
            },
        },
    ),
    (b"\x07\0\0\0\x7f\x09\0", Rmessage::Wstat),
];
