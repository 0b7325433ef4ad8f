//! What a session may take of the memory that all sessions share, and what it does without.

use engine::{Budget, Limits};
use proto::{Dialect, Refusal, Tmessage};

use crate::rig::{Rig, read, stat};

/// A write of so many bytes to a fid that cannot be written: its data counts until it is refused.
fn large(rig: &Rig, tag: u16, size: usize) -> Vec<u8> {
    rig.frame(tag, &Tmessage::Write { fid: 0, offset: 0, data: &vec![b'x'; size] })
}

#[test]
fn a_request_that_there_is_no_memory_for_is_refused_and_passed_over_wherever_it_is_cut() {
    for dialect in Dialect::ALL {
        for cut in [1, 6, 7, 8, 700, 8216, 8217, 20_000] {
            let mut rig = Rig::with(dialect, 1 << 20, Limits::DEFAULT, Budget::new(1000, 0));
            let frame = large(&rig, 5, 40_000);
            let bytes = [&frame[..], &frame, &rig.frame(6, &stat(dialect, 0))].concat();
            for piece in bytes.chunks(cut) {
                assert!(rig.session.wants_input(), "{cut}");
                rig.send_bytes(piece);
            }
            let replies = rig.replies();
            assert_eq!(replies.iter().map(|reply| reply.tag()).collect::<Vec<_>>(), [5, 5, 6], "{cut}");
            assert!(replies[..2].iter().all(|reply| reply.is_refusal(Refusal::INPUT_MEMORY)), "{cut}");
            assert_eq!(rig.session.limit_met(), Some(Refusal::INPUT_MEMORY));
            assert_eq!(rig.session.unfinished(), None);
        }
    }
}

#[test]
fn what_peers_have_sent_takes_half_of_the_budget_at_most() {
    for dialect in Dialect::ALL {
        let budget = Budget::new(1000, 2 << 20);
        let at_rest = |_| {
            let mut rig = Rig::with(dialect, 1 << 18, Limits::DEFAULT, budget.clone());
            rig.session.shed();
            rig
        };
        let mut rigs: Vec<_> = (0..20).map(at_rest).collect();
        let mut refused = 0;
        for rig in &mut rigs {
            let frame = large(rig, 5, 150_000);
            rig.send_bytes(&frame[..frame.len() - 1]);
            refused += rig.replies().len();
        }
        assert!(budget.taken().1 <= 1 << 20, "{}", budget.taken().1);
        assert_eq!(refused, 20 - (1 << 20) / (3 * 64 * 1024));
        for rig in &mut rigs {
            // Whole, and refused for what it is; or the rest of what was refused.
            rig.send_bytes(b"x");
            assert!(rig.replies().iter().all(|reply| reply.is_refusal(Refusal::VIEW)));
            assert!(rig.session.wants_input());
            rig.session.shed();
        }
        assert_eq!(budget.taken().1, 0);
    }
}

#[test]
fn an_unfinished_request_is_told_from_the_one_before() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        assert_eq!(rig.session.unfinished(), None);
        let frame = rig.frame(1, &stat(dialect, 0));
        let mut numbers = Vec::new();
        for _ in 0..3 {
            rig.send_bytes(&frame[..1]);
            numbers.push(rig.session.unfinished().expect("a request has begun"));
            rig.send_bytes(&frame[1..frame.len() - 1]);
            assert_eq!(rig.session.unfinished(), numbers.last().copied(), "it is the same one");
            rig.send_bytes(&frame[frame.len() - 1..]);
            assert_eq!(rig.session.unfinished(), None);
        }
        numbers.dedup();
        assert_eq!(numbers.len(), 3);
        // One that follows at once is another one, too.
        rig.send_bytes(&[&frame[..], &frame[..3]].concat());
        assert!(rig.session.unfinished().is_some_and(|number| !numbers.contains(&number)));
    }
}

/// A peer cannot finish what is not read.
#[test]
fn nobody_is_waited_for_who_is_not_read() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "big");
        rig.open(1);
        rig.hold = true;
        let mut bytes: Vec<u8> = (0..64).flat_map(|tag| rig.frame(tag, &read(1, 0, 10))).collect();
        bytes.extend([23, 0]);
        rig.send_bytes(&bytes);
        assert!(!rig.session.wants_input());
        assert_eq!(rig.session.unfinished(), None);
        rig.answer(0);
        assert!(rig.session.wants_input());
        assert!(rig.session.unfinished().is_some());
    }
}

/// However little there is, everybody gets one thing at a time, and so it is to take little.
#[test]
fn the_one_thing_that_is_answered_without_a_budget_takes_little() {
    for dialect in Dialect::ALL {
        for apart in [false, true] {
            let mut rig = Rig::with(dialect, 1 << 20, Limits::DEFAULT, Budget::new(1000, 0));
            rig.walk(0, 1, "big");
            rig.open(1);
            rig.apart = apart;
            rig.blocked = true;
            rig.send(1, &read(1, 0, u32::MAX));
            rig.send(2, &read(1, 0, u32::MAX));
            let queued = rig.session.queued();
            let buf = rig.session.take().expect("one reply");
            assert!(buf.as_slice().len() > 1000 && rig.session.queued() <= 40 * 1024, "{queued}");
            assert!(rig.session.take().is_none(), "and no other");
            rig.session.sent(buf);
            rig.blocked = false;
            rig.run();
            assert_eq!(rig.tags(), [2]);
        }
    }
}
