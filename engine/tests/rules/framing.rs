//! Where frames end, and what is not one.

use engine::{Budget, Hangup, Limits};
use proto::{Dialect, Refusal, Rmessage, Tmessage};

use crate::rig::{Rig, attach, read, stat};

#[test]
fn an_impossible_size_ends_the_session_at_once() {
    for dialect in Dialect::ALL {
        for size in [0, 6, 8193, 1 << 30, u32::MAX] {
            let mut rig = Rig::new(dialect);
            rig.walk(0, 1, "slow");
            rig.open(1);
            rig.send(1, &read(1, 0, 10));
            rig.send(2, &stat(dialect, 0));
            rig.send_bytes(&size.to_le_bytes());
            assert_eq!(rig.hangup, Some(Hangup::Framing), "{size}");
            assert_eq!(rig.tags(), [2]);
            assert!(rig.session.is_drained() && rig.jobs.is_empty());
            assert_eq!((rig.session.fids(), rig.tree.opens()), (0, 0));
            assert!(!rig.session.wants_input());
            rig.send_bytes(&[0; 100]);
            assert_eq!(rig.tags(), []);
        }
    }
}

#[test]
fn a_frame_of_exactly_msize_is_taken() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "ctl");
        rig.open_as(1, proto::OWRITE);
        let data = vec![b'x'; 8192 - 23];
        let reply = rig.call(&Tmessage::Write { fid: 1, offset: 0, data: &data });
        assert_eq!(reply.message(), Rmessage::Write { count: data.len() as u32 });
    }
}

#[test]
fn what_does_not_decode_is_refused_and_the_next_frame_is_read() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        let valid = rig.frame(7, &attach(1, b"/dir"));
        for end in 7..valid.len() {
            let mut frame = valid[..end].to_vec();
            frame[..4].copy_from_slice(&(end as u32).to_le_bytes());
            rig.send_bytes(&frame);
            let replies = rig.replies();
            assert!(replies.len() == 1 && replies[0].is_refusal(Refusal::MALFORMED));
            assert_eq!(replies[0].tag(), 7);
        }
        let mut long = valid;
        long.push(0);
        long[0] += 1;
        rig.send_bytes(&long);
        assert!(rig.replies()[0].is_refusal(Refusal::MALFORMED));
        for kind in 0..=u8::MAX {
            if Tmessage::KINDS.iter().any(|(known, by)| *known == kind && by.contains(&dialect)) {
                continue;
            }
            rig.send_bytes(&[7, 0, 0, 0, kind, 5, 0]);
            let replies = rig.replies();
            assert!(replies.len() == 1 && replies[0].is_refusal(Refusal::UNKNOWN_MESSAGE), "{kind}");
        }
        assert_eq!(rig.hangup, None);
        assert_eq!(rig.session.fids(), 1);
    }
}

#[test]
fn a_peer_that_goes_in_the_middle_of_anything_leaves_nothing() {
    for dialect in Dialect::ALL {
        let budget = Budget::default();
        let mut rig = Rig::with(dialect, 8192, Limits::DEFAULT, budget.clone());
        rig.walk(0, 1, "slow");
        rig.open(1);
        rig.walk(0, 2, "dir");
        rig.open(2);
        rig.blocked = true;
        rig.send(1, &read(1, 0, 10));
        rig.send(2, &Tmessage::Clunk { fid: 1 });
        rig.hold = true;
        rig.deaf = true;
        rig.send(3, &stat(dialect, 2));
        rig.send_bytes(&[50, 0, 0, 0, 1]);
        assert!(!rig.session.is_drained());
        rig.disconnect();
        assert!(rig.jobs.is_empty() && !rig.session.is_drained());
        assert_eq!((rig.session.fids(), rig.session.has_output()), (0, false));
        rig.answer(0);
        assert!(rig.session.is_drained());
        assert_eq!((rig.session.queued(), rig.tree.opens(), rig.tree.state().jobs), (0, 0, 0));
        drop(rig);
        assert_eq!(budget.taken(), (0, 0));
    }
}

/// A driver that stops to send when much is queued must still hear of what is to be abandoned.
#[test]
fn a_peer_that_goes_with_much_unread_does_not_keep_the_session() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "big");
        rig.open(1);
        rig.walk(0, 2, "slow");
        rig.open(2);
        rig.blocked = true;
        rig.apart = true;
        rig.send(1, &read(2, 0, 10));
        rig.send(2, &read(1, 0, 8000));
        assert!(rig.session.is_worth_sending());
        let taken = rig.session.take().expect("replies");
        rig.send(3, &read(1, 0, 8000));
        rig.session.disconnect();
        assert!(!rig.session.is_worth_sending() && !rig.session.has_output());
        rig.run();
        assert!(rig.session.is_drained() && rig.jobs.is_empty());
        rig.session.sent(taken);
        assert_eq!(rig.session.queued(), 0);
    }
}
