//! walk(5), clunk(5), remove(5).

use engine::{Budget, Limits};
use proto::{Dialect, Names, Refusal, Rmessage, Tmessage};

use crate::rig::{Rig, open, read, stat, walk};

/// How many qids a walk gets, or the refusal's words by equality.
fn qids(rig: &mut Rig, fid: u32, newfid: u32, path: &str) -> usize {
    let mut space = [0; 4096];
    match rig.call(&walk(fid, newfid, path, &mut space)).message() {
        Rmessage::Walk { qids } => qids.len(),
        other => panic!("{path}: {other:?}"),
    }
}

fn refused(rig: &mut Rig, fid: u32, newfid: u32, path: &str, refusal: Refusal) {
    let mut space = [0; 4096];
    let reply = rig.call(&walk(fid, newfid, path, &mut space));
    assert!(reply.is_refusal(refusal), "{path}: {:?}", reply.message());
}

fn is_bound(rig: &mut Rig, fid: u32) -> bool {
    let message = stat(rig.dialect, fid);
    !rig.call(&message).is_refusal(Refusal::UNKNOWN_FID)
}

#[test]
fn a_walk_of_no_names_clones_even_a_file() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        assert_eq!(qids(&mut rig, 1, 2, ""), 0);
        assert_eq!(qids(&mut rig, 1, 1, ""), 0);
        rig.open(2);
        assert!(is_bound(&mut rig, 1) && is_bound(&mut rig, 2));
    }
}

#[test]
fn a_partial_walk_binds_nothing_and_moves_nothing() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        assert_eq!(qids(&mut rig, 0, 1, "dir/nope/x"), 1);
        assert!(!is_bound(&mut rig, 1));
        assert!(rig.call(&Tmessage::Clunk { fid: 1 }).is_refusal(Refusal::UNKNOWN_FID));
        refused(&mut rig, 0, 1, "nope/dir", Refusal::NOT_FOUND);
        assert_eq!(qids(&mut rig, 0, 0, "dir/nope"), 1);
        rig.walk(0, 0, "dir");
        rig.walk(0, 1, "sub");
        assert_eq!(rig.session.fids(), 2);
    }
}

#[test]
fn a_walk_needs_a_known_fid_and_a_free_one() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        refused(&mut rig, 0, 1, "dir", Refusal::FID_IN_USE);
        refused(&mut rig, 9, 2, "dir", Refusal::UNKNOWN_FID);
        refused(&mut rig, 9, 9, "", Refusal::UNKNOWN_FID);
        refused(&mut rig, 1, 2, "..", Refusal::NOT_A_DIRECTORY);
        assert_eq!(rig.session.fids(), 2);
    }
}

#[test]
fn a_walk_has_sixteen_names_at_most() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        let names = |count| vec![".."; count].join("/");
        assert_eq!(qids(&mut rig, 0, 1, &names(16)), 16);
        refused(&mut rig, 0, 2, &names(17), Refusal::TOO_MANY_NAMES);
        let mut space = [0; 4096];
        let names = Names::pack(vec![&b""[..]; 2000], &mut space).expect("room");
        assert!(rig.call(&Tmessage::Walk { fid: 0, newfid: 2, names }).is_refusal(Refusal::TOO_MANY_NAMES));
        assert_eq!(rig.session.fids(), 2);
    }
}

#[test]
fn an_open_fid_walks_to_another_but_not_onto_itself() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "dir");
        rig.open(1);
        rig.walk(1, 2, "sub");
        rig.walk(1, 3, "");
        refused(&mut rig, 1, 1, "sub", Refusal::BAD_FID_USE);
        rig.open(3);
    }
}

#[test]
fn a_clunked_fid_is_free_at_once() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        for _ in 0..3 {
            rig.walk(0, 1, "hello");
            rig.open(1);
            assert_eq!(rig.tree.opens(), 1);
            assert_eq!(rig.call(&Tmessage::Clunk { fid: 1 }).message(), Rmessage::Clunk);
            assert_eq!((rig.session.fids(), rig.tree.opens()), (1, 0));
        }
        assert!(rig.call(&Tmessage::Clunk { fid: 1 }).is_refusal(Refusal::UNKNOWN_FID));
    }
}

#[test]
fn a_remove_is_refused_and_clunks() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        assert!(rig.call(&Tmessage::Remove { fid: 1 }).is_refusal(Refusal::VIEW));
        assert!(rig.call(&Tmessage::Clunk { fid: 1 }).is_refusal(Refusal::UNKNOWN_FID));
        assert_eq!(rig.session.fids(), 1);
    }
}

#[test]
fn fids_are_limited_for_each_connection_and_for_all() {
    for dialect in Dialect::ALL {
        let budget = Budget::new(5, 1 << 20);
        let limits = Limits { fids: 3, ..Limits::DEFAULT };
        let mut one = Rig::with(dialect, 8192, limits, budget.clone());
        let mut two = Rig::with(dialect, 8192, limits, budget.clone());
        one.walk(0, 1, "dir");
        one.walk(0, 2, "dir");
        refused(&mut one, 0, 3, "dir", Refusal::CONNECTION_FIDS);
        assert_eq!(one.session.limit_met(), Some(Refusal::CONNECTION_FIDS));
        assert_eq!(one.session.limit_met(), None);
        two.walk(0, 1, "dir");
        refused(&mut two, 0, 2, "dir", Refusal::DAEMON_FIDS);
        refused(&mut two, 0, 2, "nope", Refusal::DAEMON_FIDS);
        drop(one);
        two.walk(0, 2, "dir");
        assert_eq!(budget.taken().0, 3);
        two.disconnect();
        assert_eq!(budget.taken().0, 0);
    }
}

/// A fid number that a walk is about to bind may be named by requests behind it, and what they find is what the walk left.
#[test]
fn requests_behind_a_walk_find_what_it_left() {
    for dialect in Dialect::ALL {
        let budget = Budget::default();
        let mut rig = Rig::with(dialect, 8192, Limits::DEFAULT, budget.clone());
        let mut space = [0; 64];
        rig.hold = true;
        rig.send(1, &walk(0, 1, "nope", &mut space));
        assert_eq!(budget.taken().0, 2);
        rig.send(2, &open(dialect, 1, proto::OREAD));
        rig.send(3, &read(1, 0, 1));
        rig.send(4, &Tmessage::Clunk { fid: 1 });
        rig.send(5, &walk(0, 1, "hello", &mut space));
        assert_eq!(rig.held.len(), 1);
        rig.answer(0);
        rig.answer(0);
        let replies = rig.replies();
        assert_eq!(replies.iter().map(crate::rig::Reply::tag).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(replies[0].is_refusal(Refusal::NOT_FOUND));
        assert!(replies[1..4].iter().all(|reply| reply.is_refusal(Refusal::UNKNOWN_FID)));
        rig.send(6, &walk(0, 2, "nope", &mut space));
        rig.answer(0);
        assert_eq!((rig.session.fids(), budget.taken().0), (2, 2));
    }
}
