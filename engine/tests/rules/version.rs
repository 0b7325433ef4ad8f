//! version(5), attach(5), auth.

use engine::limits::UNVERSIONED_MSIZE;
use engine::{Budget, Hangup, Limits};
use proto::{Dialect, NOTAG, QTDIR, Refusal, Rmessage, Tmessage};

use crate::rig::{Rig, attach, read, stat, walk};
use crate::toy;

fn silent(dialect: Dialect) -> Rig {
    Rig::silent(dialect, Limits::DEFAULT, Budget::default())
}

#[test]
fn msize_is_never_more_than_either_side_takes() {
    for dialect in Dialect::ALL {
        for (asked, agreed) in [(4096, 4096), (65_536, 65_536), (u32::MAX, 1 << 20)] {
            let mut rig = silent(dialect);
            let version = dialect.name().as_bytes();
            let reply = rig.call_as(NOTAG, &Tmessage::Version { msize: asked, version });
            assert_eq!(reply.message(), Rmessage::Version { msize: agreed, version });
            assert!(rig.session.is_established());
        }
    }
}

#[test]
fn an_unknown_version_is_told_so_and_never_refused() {
    for version in [&b"XP2000"[..], b"", b"9P2000\0", b"9P3000.L"] {
        for msize in [0, 7, 8192] {
            let mut rig = silent(Dialect::Plain);
            let reply = rig.call_as(NOTAG, &Tmessage::Version { msize, version });
            assert_eq!(reply.message(), Rmessage::Version { msize, version: b"unknown" });
            assert!(!rig.session.is_established());
            rig.version(8192);
        }
    }
}

#[test]
fn an_msize_that_no_record_fits_is_refused() {
    for dialect in Dialect::ALL {
        let least = if dialect == Dialect::Plain { 512 } else { 4096 };
        let version = dialect.name().as_bytes();
        for msize in [0, 23, 24, least - 1] {
            let mut rig = silent(dialect);
            let reply = rig.call_as(NOTAG, &Tmessage::Version { msize, version });
            assert!(reply.is_refusal(Refusal::SMALL_MSIZE), "{msize}");
            assert!(!rig.session.is_established());
        }
        silent(dialect).version(least);
    }
}

#[test]
fn every_reply_fits_the_least_msize() {
    for dialect in Dialect::ALL {
        let least = if dialect == Dialect::Plain { 512 } else { 4096 };
        let mut rig = Rig::with(dialect, least, Limits::DEFAULT, Budget::default());
        rig.walk(0, 1, "dir");
        rig.walk(0, 2, "big");
        rig.open(2);
        let mut space = [0; 256];
        let long = ["dir", ".."].repeat(8).join("/");
        for message in [stat(dialect, 1), read(2, 0, u32::MAX), walk(0, 3, &long, &mut space)] {
            let reply = rig.call(&message);
            assert!(reply.frame.len() < least as usize, "{:?}", reply.message());
        }
        assert_eq!(rig.call(&read(2, 0, u32::MAX)).data().len(), least as usize - 24);
    }
}

#[test]
fn nothing_is_understood_before_a_version() {
    let mut rig = silent(Dialect::Plain);
    rig.send(5, &attach(0, b""));
    assert_eq!(rig.hangup, Some(Hangup::NoVersion));
    let replies = rig.replies();
    assert!(replies.len() == 1 && replies[0].is_refusal(Refusal::NO_VERSION));
    assert!(!rig.session.wants_input() && rig.session.is_drained());
}

#[test]
fn a_frame_before_the_version_is_bounded() {
    let mut rig = silent(Dialect::Plain);
    rig.send_bytes(&(UNVERSIONED_MSIZE + 1).to_le_bytes());
    assert_eq!(rig.hangup, Some(Hangup::Framing));
}

#[test]
fn a_second_version_forgets_fids_and_requests() {
    for dialect in Dialect::ALL {
        let budget = Budget::default();
        let mut rig = Rig::with(dialect, 8192, Limits::DEFAULT, budget.clone());
        rig.walk(0, 1, "big");
        rig.open(1);
        rig.hold = true;
        rig.deaf = true;
        rig.send(1, &read(1, 0, 100));
        rig.send(2, &Tmessage::Clunk { fid: 1 });
        rig.send(3, &Tmessage::Flush { oldtag: 1 });
        rig.send(4, &stat(dialect, 0));
        rig.hold = false;
        rig.version(4096);
        assert_eq!((rig.session.fids(), budget.taken().0), (0, 0));
        // What the backend still has is late, and its answer meets nobody: not even the same tag.
        rig.attach(0);
        rig.walk(0, 1, "hello");
        rig.open(1);
        rig.hold = true;
        rig.send(4, &read(1, 0, 100));
        rig.answer(0);
        rig.answer(0);
        assert_eq!(rig.tags(), []);
        rig.answer(0);
        let replies = rig.replies();
        assert_eq!((replies.len(), replies[0].data()), (1, &b"hello, world\n"[..]));
        assert!(!rig.session.is_busy());
    }
}

#[test]
fn authentication_is_not_required() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        let auth = Tmessage::Auth { afid: 9, uname: b"glenda", aname: b"", n_uname: None };
        assert!(rig.call(&auth).is_refusal(Refusal::NO_AUTH));
        let afid = Tmessage::Attach { fid: 1, afid: 9, uname: b"glenda", aname: b"", n_uname: None };
        assert!(rig.call(&afid).is_refusal(Refusal::NO_AUTH));
        rig.attach(1);
    }
}

#[test]
fn an_attach_binds_a_free_fid_to_a_tree_that_exists() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        assert!(rig.call(&attach(0, b"")).is_refusal(Refusal::FID_IN_USE));
        assert!(rig.call(&attach(1, b"/nowhere")).is_refusal(Refusal::NOT_FOUND));
        assert_eq!(rig.session.fids(), 1);
        let reply = rig.call(&attach(1, b"/dir"));
        assert_eq!(reply.message(), Rmessage::Attach { qid: toy::qid(4) });
        assert_eq!(toy::qid(4).kind, QTDIR);
        rig.walk(1, 2, "sub/deep");
    }
}
