//! What only 9P2000.L has.

use proto::{Dialect, Refusal, Rmessage, Tmessage};

use crate::rig::Rig;

fn rig() -> Rig {
    let mut rig = Rig::new(Dialect::Linux);
    rig.walk(0, 1, "hello");
    rig.walk(0, 2, "dir");
    rig
}

#[test]
fn flags_of_an_open_that_mean_nothing_here_are_passed_over() {
    for (fid, flags) in [(1, 0o100_000), (2, 0o304_000), (1, 0o504_400), (2, 0o704_400)] {
        let mut rig = rig();
        let reply = rig.call(&Tmessage::Lopen { fid, flags });
        assert!(matches!(reply.message(), Rmessage::Lopen { .. }), "{flags:o}");
    }
    let mut rig = rig();
    let directory = Tmessage::Lopen { fid: 1, flags: proto::O_DIRECTORY };
    assert!(rig.call(&directory).is_refusal(Refusal::NOT_A_DIRECTORY));
    assert!(rig.call(&Tmessage::Lopen { fid: 1, flags: proto::O_ACCMODE }).is_refusal(Refusal::INVALID));
    let reply = rig.call(&Tmessage::Lopen { fid: 2, flags: proto::O_DIRECTORY });
    assert!(matches!(reply.message(), Rmessage::Lopen { .. }));
}

#[test]
fn attributes_come_in_153_bytes_whatever_is_asked() {
    for mask in [0, 0x7ff, 0x17ff, 0x3fff, u64::MAX] {
        let reply = rig().call(&Tmessage::Getattr { fid: 1, mask });
        assert_eq!(reply.frame.len(), 7 + 153);
        let Rmessage::Getattr { attr } = reply.message() else { panic!("{:?}", reply.message()) };
        assert_eq!(attr.valid, proto::GETATTR_BASIC);
    }
}

#[test]
fn there_are_no_extended_attributes() {
    let mut rig = rig();
    for name in [&b"security.selinux"[..], b"system.posix_acl_access"] {
        let walk = Tmessage::Xattrwalk { fid: 1, newfid: 7, name };
        assert!(rig.call(&walk).is_refusal(Refusal::NO_DATA));
    }
    let all = Tmessage::Xattrwalk { fid: 1, newfid: 7, name: b"" };
    assert!(rig.call(&all).is_refusal(Refusal::NOT_SUPPORTED));
    assert!(rig.call(&Tmessage::Clunk { fid: 7 }).is_refusal(Refusal::UNKNOWN_FID));
}

#[test]
fn the_rest_is_answered_from_a_table() {
    let mut rig = rig();
    assert!(matches!(rig.call(&Tmessage::Statfs { fid: 1 }).message(), Rmessage::Statfs { .. }));
    assert_eq!(rig.call(&Tmessage::Fsync { fid: 1, datasync: 0 }).message(), Rmessage::Fsync);
    assert!(rig.call(&Tmessage::Readlink { fid: 1 }).is_refusal(Refusal::INVALID));
    let (name, gid, mode) = (&b"x"[..], 0, 0o644);
    for message in [
        Tmessage::Lcreate { fid: 2, name, flags: 0, mode, gid },
        Tmessage::Symlink { fid: 2, name, target: b"y", gid },
        Tmessage::Mknod { dfid: 2, name, mode, major: 0, minor: 0, gid },
        Tmessage::Rename { fid: 1, dfid: 2, name },
        Tmessage::Xattrcreate { fid: 1, name, size: 1, flags: 0 },
        Tmessage::Lock { fid: 1, kind: 0, flags: 0, start: 0, length: 0, proc_id: 1, client_id: b"c" },
        Tmessage::Getlock { fid: 1, kind: 0, start: 0, length: 0, proc_id: 1, client_id: b"c" },
        Tmessage::Link { dfid: 2, fid: 1, name },
        Tmessage::Mkdir { dfid: 2, name, mode, gid },
        Tmessage::Renameat { olddirfid: 2, oldname: name, newdirfid: 2, newname: b"y" },
        Tmessage::Unlinkat { dfid: 2, name, flags: 0 },
    ] {
        let reply = rig.call(&message);
        assert_eq!(reply.message(), Rmessage::Lerror { ecode: 1 }, "{message:?}");
    }
}

#[test]
fn setting_times_is_the_backends_and_nothing_is_nothing() {
    let mut rig = rig();
    rig.walk(0, 3, "ctl");
    let set = |fid, valid| Tmessage::Setattr {
        fid,
        valid,
        mode: 0,
        uid: 0,
        gid: 0,
        size: 0,
        atime_sec: 0,
        atime_nsec: 0,
        mtime_sec: 0,
        mtime_nsec: 0,
    };
    let times = proto::SETATTR_MTIME | proto::SETATTR_CTIME;
    assert_eq!(rig.call(&set(1, 0)).message(), Rmessage::Setattr);
    assert_eq!(rig.call(&set(3, times | proto::SETATTR_SIZE)).message(), Rmessage::Setattr);
    assert!(rig.call(&set(1, times)).is_refusal(Refusal::VIEW));
    assert!(rig.call(&set(3, times | proto::SETATTR_MODE)).is_refusal(Refusal::VIEW));
}
