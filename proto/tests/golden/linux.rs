//! Frames of 9P2000.L.

use proto::*;

pub(crate) const REQUESTS: &[(&[u8], Tmessage<'_>)] = &[
    (
        b"\x15\0\0\0\x64\xff\xff\
          \x18\0\x02\0\
          \x08\09P2000.L",
        Tmessage::Version { msize: 131_096, version: b"9P2000.L" },
    ),
    (
        b"\x18\0\0\0\x68\x01\0\
          \0\0\0\0\xff\xff\xff\xff\
          \0\0\x01\0/\
          \0\0\0\0",
        Tmessage::Attach { fid: 0, afid: NOFID, uname: b"", aname: b"/", n_uname: Some(0) },
    ),
    (
        b"\x0b\0\0\0\x08\x02\0\
          \x03\0\0\0",
        Tmessage::Statfs { fid: 3 },
    ),
    (
        b"\x0f\0\0\0\x0c\x03\0\
          \x03\0\0\0\0\x80\0\0",
        Tmessage::Lopen { fid: 3, flags: O_LARGEFILE | O_RDONLY },
    ),
    (
        b"\x1c\0\0\0\x0e\x04\0\
          \x03\0\0\0\
          \x03\0new\
          \x41\0\0\0\xa4\x01\0\0\x64\0\0\0",
        Tmessage::Lcreate { fid: 3, name: b"new", flags: O_CREAT | O_WRONLY, mode: 0o644, gid: 100 },
    ),
    (
        b"\x17\0\0\0\x10\x05\0\
          \x03\0\0\0\
          \x02\0ln\x02\0to\
          \x64\0\0\0",
        Tmessage::Symlink { fid: 3, name: b"ln", target: b"to", gid: 100 },
    ),
    (
        b"\x1e\0\0\0\x12\x06\0\
          \x03\0\0\0\
          \x01\0p\
          \xa4\x11\0\0\x08\0\0\0\x01\0\0\0\x64\0\0\0",
        Tmessage::Mknod { dfid: 3, name: b"p", mode: 0o010_644, major: 8, minor: 1, gid: 100 },
    ),
    (
        b"\x14\0\0\0\x14\x07\0\
          \x03\0\0\0\x04\0\0\0\
          \x03\0new",
        Tmessage::Rename { fid: 3, dfid: 4, name: b"new" },
    ),
    (
        b"\x0b\0\0\0\x16\x08\0\
          \x03\0\0\0",
        Tmessage::Readlink { fid: 3 },
    ),
    (
        b"\x13\0\0\0\x18\x09\0\
          \x03\0\0\0\xff\x17\0\0\0\0\0\0",
        Tmessage::Getattr { fid: 3, mask: GETATTR_BASIC | GETATTR_GEN },
    ),
    (
        b"\x43\0\0\0\x1a\x0a\0\
          \x03\0\0\0\x28\0\0\0\
          \x80\x01\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0\
          \x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0",
        Tmessage::Setattr {
            fid: 3,
            valid: SETATTR_SIZE | SETATTR_MTIME,
            mode: 0o600,
            uid: 1,
            gid: 2,
            size: 3,
            atime_sec: 4,
            atime_nsec: 5,
            mtime_sec: 6,
            mtime_nsec: 7,
        },
    ),
    (
        b"\x21\0\0\0\x1e\x0b\0\
          \x03\0\0\0\x04\0\0\0\
          \x10\0security.selinux",
        Tmessage::Xattrwalk { fid: 3, newfid: 4, name: b"security.selinux" },
    ),
    (
        b"\x1f\0\0\0\x20\x0c\0\
          \x03\0\0\0\
          \x06\0user.x\
          \x09\0\0\0\0\0\0\0\x01\0\0\0",
        Tmessage::Xattrcreate { fid: 3, name: b"user.x", size: 9, flags: 1 },
    ),
    (
        b"\x17\0\0\0\x28\x0d\0\
          \x03\0\0\0\x07\0\0\0\0\0\0\0\0\x02\0\0",
        Tmessage::Readdir { fid: 3, offset: 7, count: 512 },
    ),
    (
        b"\x0f\0\0\0\x32\x0e\0\
          \x03\0\0\0\x01\0\0\0",
        Tmessage::Fsync { fid: 3, datasync: 1 },
    ),
    (
        b"\x2a\0\0\0\x34\x0f\0\
          \x03\0\0\0\x01\x01\0\0\0\
          \x0a\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0\
          \x4d\0\0\0\
          \x04\0host",
        Tmessage::Lock { fid: 3, kind: 1, flags: 1, start: 10, length: 20, proc_id: 77, client_id: b"host" },
    ),
    (
        b"\x26\0\0\0\x36\x10\0\
          \x03\0\0\0\x01\
          \x0a\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0\
          \x4d\0\0\0\
          \x04\0host",
        Tmessage::Getlock { fid: 3, kind: 1, start: 10, length: 20, proc_id: 77, client_id: b"host" },
    ),
    (
        b"\x14\0\0\0\x46\x11\0\
          \x03\0\0\0\x04\0\0\0\
          \x03\0new",
        Tmessage::Link { dfid: 3, fid: 4, name: b"new" },
    ),
    (
        b"\x18\0\0\0\x48\x12\0\
          \x03\0\0\0\
          \x03\0dir\
          \xed\x01\0\0\x64\0\0\0",
        Tmessage::Mkdir { dfid: 3, name: b"dir", mode: 0o755, gid: 100 },
    ),
    (
        b"\x19\0\0\0\x4a\x13\0\
          \x03\0\0\0\
          \x03\0old\
          \x04\0\0\0\
          \x03\0new",
        Tmessage::Renameat { olddirfid: 3, oldname: b"old", newdirfid: 4, newname: b"new" },
    ),
    (
        b"\x14\0\0\0\x4c\x14\0\
          \x03\0\0\0\
          \x03\0dir\
          \0\x02\0\0",
        Tmessage::Unlinkat { dfid: 3, name: b"dir", flags: 0x200 },
    ),
];

pub(crate) const ANSWERS: &[(&[u8], Rmessage<'_>)] = &[
    (
        b"\x0b\0\0\0\x07\x01\0\
          \x02\0\0\0",
        Rmessage::Lerror { ecode: 2 },
    ),
    (
        b"\x43\0\0\0\x09\x02\0\
          \x97\x19\x02\x01\0\x10\0\0\
          \x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\
          \x06\0\0\0\0\0\0\0\xff\0\0\0",
        Rmessage::Statfs {
            statfs: Statfs {
                kind: V9FS_MAGIC,
                bsize: 4096,
                blocks: 1,
                bfree: 2,
                bavail: 3,
                files: 4,
                ffree: 5,
                fsid: 6,
                namelen: 255,
            },
        },
    ),
    (
        b"\x18\0\0\0\x0d\x03\0\
          \0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\
          \0\0\0\0",
        Rmessage::Lopen { qid: Qid { kind: 0, version: 0x01020304, path: 0x1112131415161718 }, iounit: 0 },
    ),
    (
        b"\x18\0\0\0\x0f\x04\0\
          \0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\
          \0\0\0\0",
        Rmessage::Lcreate { qid: Qid { kind: 0, version: 0x01020304, path: 0x1112131415161718 }, iounit: 0 },
    ),
    (
        b"\x14\0\0\0\x11\x05\0\
          \x02\0\0\0\0\x09\0\0\0\0\0\0\0",
        Rmessage::Symlink { qid: Qid { kind: QTSYMLINK, version: 0, path: 9 } },
    ),
    (
        b"\x14\0\0\0\x13\x06\0\
          \0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11",
        Rmessage::Mknod { qid: Qid { kind: 0, version: 0x01020304, path: 0x1112131415161718 } },
    ),
    (b"\x07\0\0\0\x15\x07\0", Rmessage::Rename),
    (
        b"\x0b\0\0\0\x17\x08\0\
          \x02\0to",
        Rmessage::Readlink { target: b"to" },
    ),
    (
        b"\xa0\0\0\0\x19\x09\0\
          \xff\x07\0\0\0\0\0\0\
          \0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\
          \x24\x81\0\0\xe8\x03\0\0\x64\0\0\0\
          \x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\
          \x06\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\
          \x0b\0\0\0\0\0\0\0\x0c\0\0\0\0\0\0\0\x0d\0\0\0\0\0\0\0\x0e\0\0\0\0\0\0\0\x0f\0\0\0\0\0\0\0",
        Rmessage::Getattr {
            attr: Attr {
                valid: GETATTR_BASIC,
                qid: Qid { kind: 0, version: 0x01020304, path: 0x1112131415161718 },
                mode: S_IFREG | 0o444,
                uid: 1000,
                gid: 100,
                nlink: 1,
                rdev: 2,
                size: 3,
                blksize: 4,
                blocks: 5,
                atime_sec: 6,
                atime_nsec: 7,
                mtime_sec: 8,
                mtime_nsec: 9,
                ctime_sec: 10,
                ctime_nsec: 11,
                btime_sec: 12,
                btime_nsec: 13,
                generation: 14,
                data_version: 15,
            },
        },
    ),
    (b"\x07\0\0\0\x1b\x0a\0", Rmessage::Setattr),
    (
        b"\x0f\0\0\0\x1f\x0b\0\
          \x09\0\0\0\0\0\0\0",
        Rmessage::Xattrwalk { size: 9 },
    ),
    (b"\x07\0\0\0\x21\x0c\0", Rmessage::Xattrcreate),
    (
        b"\x28\0\0\0\x29\x0d\0\
          \x1d\0\0\0\
          \x80\x01\0\0\0\x02\0\0\0\0\0\0\0\
          \x01\0\0\0\0\0\0\0\x04\
          \x05\0codex",
        Rmessage::Readdir { data: b"\x80\x01\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x04\x05\0codex" },
    ),
    (b"\x07\0\0\0\x33\x0e\0", Rmessage::Fsync),
    (
        b"\x08\0\0\0\x35\x0f\0\
          \x02",
        Rmessage::Lock { status: LOCK_ERROR },
    ),
    (
        b"\x22\0\0\0\x37\x10\0\
          \x02\
          \x0a\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0\
          \x4d\0\0\0\
          \x04\0host",
        Rmessage::Getlock { kind: 2, start: 10, length: 20, proc_id: 77, client_id: b"host" },
    ),
    (b"\x07\0\0\0\x47\x11\0", Rmessage::Link),
    (
        b"\x14\0\0\0\x49\x12\0\
          \x80\x01\0\0\0\x02\0\0\0\0\0\0\0",
        Rmessage::Mkdir { qid: Qid { kind: 0x80, version: 1, path: 2 } },
    ),
    (b"\x07\0\0\0\x4b\x13\0", Rmessage::Renameat),
    (b"\x07\0\0\0\x4d\x14\0", Rmessage::Unlinkat),
];
