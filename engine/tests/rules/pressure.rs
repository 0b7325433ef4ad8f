//! What a session keeps when the peer sends more than it reads.

use engine::{Budget, Limits};
use proto::{Dialect, Tmessage};

use crate::rig::{Rig, read, stat};

/// A batch of replies: what may be queued beyond the limit.
fn batch(msize: usize) -> usize {
    (2 * msize).clamp(16 * 1024, 256 * 1024) + msize + 4096
}

#[test]
fn two_thousand_reads_of_one_fid_are_all_answered() {
    for dialect in Dialect::ALL {
        for apart in [false, true] {
            let budget = Budget::default();
            let mut rig = Rig::with(dialect, 8192, Limits::DEFAULT, budget.clone());
            rig.walk(0, 1, "big");
            rig.open(1);
            rig.hold = true;
            rig.apart = apart;
            let mut bytes: &[u8] =
                &(0..2000).flat_map(|tag| rig.frame(tag, &read(1, u64::from(tag), 8000))).collect::<Vec<_>>();
            let (mut peak, mut held) = (0, 0);
            while !bytes.is_empty() || !rig.held.is_empty() {
                if rig.session.wants_input() && !bytes.is_empty() {
                    let (piece, rest) = bytes.split_at(bytes.len().min(4096));
                    bytes = rest;
                    rig.send_bytes(piece);
                } else {
                    rig.answer(rig.held.len() / 2);
                }
                peak = peak.max(rig.session.queued());
                held = held.max(rig.held.len());
            }
            assert_eq!(held, 64);
            assert!(peak <= 64 * 8192 + batch(8192), "{peak}");
            let mut tags = rig.tags();
            tags.sort_unstable();
            assert_eq!(tags, (0..2000).collect::<Vec<_>>());
            assert_eq!(rig.session.queued(), 0);
            rig.session.shed();
            assert_eq!(budget.taken().1, 0);
        }
    }
}

#[test]
fn a_peer_that_does_not_read_is_not_read_beyond_a_bound() {
    for dialect in Dialect::ALL {
        for (msize, limit, apart) in [
            (8192, 512 << 10, false),
            (8192, 512 << 10, true),
            (1 << 20, 4 << 20, false),
            (1 << 20, 4 << 20, true),
        ] {
            for count in [300, 5000, u32::MAX] {
                let limits = Limits { queued_bytes: limit, ..Limits::DEFAULT };
                let mut rig = Rig::with(dialect, msize, limits, Budget::default());
                rig.walk(0, 1, "big");
                rig.open(1);
                rig.blocked = true;
                rig.apart = apart;
                let mut sent = 0;
                while rig.session.wants_input() {
                    assert!(sent < 100_000, "read without end");
                    rig.send(sent as u16, &read(1, 0, count));
                    sent += 1;
                    assert!(rig.session.queued() <= limit + batch(msize as usize));
                    // As a driver does whose socket takes nothing more.
                    if rig.session.is_worth_sending() && sent == 40 {
                        std::mem::forget(rig.session.take());
                    }
                }
            }
        }
    }
}

/// A tiny answer may have had a large room: what counts is the memory, not the answer.
#[test]
fn small_answers_to_large_reads_do_not_pile_up_memory() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::with(dialect, 1 << 20, Limits::DEFAULT, Budget::default());
        rig.walk(0, 1, "hello");
        rig.open(1);
        rig.blocked = true;
        for tag in 0..2000 {
            rig.send(tag, &read(1, 0, u32::MAX));
        }
        assert!(rig.session.queued() <= batch(1 << 20), "one batch holds them all");
        rig.blocked = false;
        rig.run();
        assert_eq!(rig.tags().len(), 2000);
    }
}

/// Large and small answers by turns, none of them sent: a few bytes do not hold a batch each.
#[test]
fn small_answers_between_large_ones_do_not_pile_up_memory() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::with(dialect, 1 << 18, Limits::DEFAULT, Budget::default());
        rig.walk(0, 1, "big");
        rig.open(1);
        rig.hold = true;
        rig.apart = true;
        rig.blocked = true;
        for tag in 0..30 {
            rig.send(2 * tag, &stat(dialect, 0));
            rig.send(2 * tag + 1, &read(1, 0, 100_000));
        }
        let promised = rig.session.queued();
        let mut taken = Vec::new();
        while !rig.held.is_empty() {
            rig.answer(0);
            if rig.held.len().is_multiple_of(10) {
                taken.extend(rig.session.take());
            }
        }
        assert!(rig.session.queued() <= promised + 2 * batch(1 << 18), "{}", rig.session.queued());
    }
}

#[test]
fn sessions_that_share_too_small_a_budget_all_go_on() {
    for dialect in Dialect::ALL {
        let budget = Budget::new(1000, 100 * 1024);
        let mut rigs: Vec<_> =
            (0..8).map(|_| Rig::with(dialect, 8192, Limits::DEFAULT, budget.clone())).collect();
        for rig in &mut rigs {
            rig.walk(0, 1, "big");
            rig.open(1);
            rig.hold = true;
            for tag in 0..20 {
                rig.send(tag, &read(1, 0, 8000));
            }
            assert!(!rig.held.is_empty());
        }
        assert!(budget.taken().1 <= 100 * 1024);
        for rig in rigs.iter_mut().rev() {
            while !rig.held.is_empty() {
                rig.answer(0);
            }
            assert_eq!(rig.tags().len(), 20);
        }
        drop(rigs);
        assert_eq!(budget.taken(), (0, 0));
    }
}

#[test]
fn a_session_that_rests_gives_back_what_it_does_not_need() {
    for dialect in Dialect::ALL {
        let budget = Budget::default();
        let mut rig = Rig::with(dialect, 1 << 20, Limits::DEFAULT, budget.clone());
        rig.walk(0, 1, "big");
        rig.open(1);
        rig.walk(0, 2, "slow");
        rig.open(2);
        rig.send(1, &read(2, 0, 100));
        for tag in 2..10 {
            rig.send(tag, &read(1, 0, u32::MAX));
        }
        assert!(budget.taken().1 > 1 << 20);
        let lent = rig.session.shed();
        assert!(!lent.is_empty());
        assert!(budget.taken().1 <= 64 * 1024);
        // A buffer lent again is gathered in.
        let place = lent.as_ptr();
        rig.session.adopt(lent);
        rig.blocked = true;
        rig.send(20, &stat(dialect, 0));
        assert_eq!(rig.session.take().expect("a reply").as_slice().as_ptr(), place);
    }
}

#[test]
fn limits_that_contradict_each_other_are_brought_into_line() {
    for dialect in Dialect::ALL {
        let limits =
            Limits { msize: u32::MAX, fids: 10, requests: 100_000, parked: 100_000, queued_bytes: 0 };
        let mut rig = Rig::with(dialect, 8192, limits, Budget::default());
        rig.walk(0, 1, "hello");
        rig.hold = true;
        rig.deaf = true;
        for tag in 0..200 {
            rig.send(tag, &stat(dialect, 1));
        }
        assert_eq!(rig.held.len(), 64);
        for tag in 200..220 {
            rig.send(tag, &Tmessage::Flush { oldtag: 0 });
        }
        while !rig.held.is_empty() {
            rig.answer(0);
        }
        assert_eq!(rig.tags().len(), 220);
    }
}
