//! Requests that end later.

use engine::{Budget, Limits};
use proto::{Dialect, Refusal, Rmessage, Tmessage};

use crate::rig::{Reply, Rig, read, stat};

/// A rig with `/slow` open as fid 1 and `/late` as fid 2.
fn rig(dialect: Dialect) -> Rig {
    let mut rig = Rig::new(dialect);
    rig.walk(0, 1, "slow");
    rig.open(1);
    rig.walk(0, 2, "late");
    rig.open_as(2, proto::OWRITE);
    rig
}

fn write(data: &[u8]) -> Tmessage<'_> {
    Tmessage::Write { fid: 2, offset: 0, data }
}

#[test]
fn a_read_ends_when_it_can_and_holds_nobody_up() {
    for dialect in Dialect::ALL {
        for apart in [false, true] {
            let mut rig = rig(dialect);
            rig.apart = apart;
            rig.send(1, &read(1, 0, 100));
            rig.send(2, &read(1, 0, 2));
            rig.send(3, &stat(dialect, 1));
            rig.step();
            assert_eq!(rig.tags(), [3]);
            rig.tree.state().reads = 2;
            rig.step();
            let replies = rig.replies();
            assert_eq!(replies.iter().map(Reply::tag).collect::<Vec<_>>(), [1, 2]);
            assert_eq!((replies[0].data(), replies[1].data()), (&b"at last\n"[..], &b"at"[..]));
            assert_eq!((rig.session.queued(), rig.tree.state().jobs), (0, 0));
        }
    }
}

#[test]
fn a_flushed_read_ends_without_a_word() {
    for dialect in Dialect::ALL {
        let mut rig = rig(dialect);
        rig.send(1, &read(1, 0, 100));
        rig.send(2, &Tmessage::Flush { oldtag: 1 });
        assert_eq!(rig.tags(), [2]);
        assert_eq!(rig.tree.state().jobs, 0);
        assert_eq!(rig.tree.state().abandoned, 1);
        assert_eq!(rig.call(&Tmessage::Clunk { fid: 1 }).message(), Rmessage::Clunk);
    }
}

#[test]
fn a_write_flushed_before_its_point_of_no_return_has_not_happened() {
    for dialect in Dialect::ALL {
        let mut rig = rig(dialect);
        rig.send(1, &write(b"x"));
        rig.step();
        rig.send(2, &Tmessage::Flush { oldtag: 1 });
        rig.tree.state().commits = 1;
        rig.step();
        assert_eq!(rig.tags(), [2]);
        assert!(rig.tree.state().committed.is_empty() && rig.jobs.is_empty());
    }
}

#[test]
fn a_write_flushed_after_its_point_of_no_return_is_answered_first() {
    for dialect in Dialect::ALL {
        let mut rig = rig(dialect);
        rig.send(1, &write(b"x"));
        rig.tree.state().commits = 1;
        rig.step();
        rig.send(2, &Tmessage::Flush { oldtag: 1 });
        rig.send(3, &Tmessage::Flush { oldtag: 1 });
        rig.step();
        assert_eq!((rig.tags(), rig.tree.state().abandoned), (vec![], 1));
        rig.tree.state().ends = 1;
        rig.step();
        let replies = rig.replies();
        assert_eq!(replies.iter().map(Reply::tag).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(replies[0].message(), Rmessage::Write { count: 1 });
    }
}

#[test]
fn a_write_past_its_point_of_no_return_outlives_the_client() {
    for dialect in Dialect::ALL {
        let budget = Budget::default();
        let mut rig = Rig::with(dialect, 8192, Limits::DEFAULT, budget.clone());
        rig.walk(0, 2, "late");
        rig.open_as(2, proto::OWRITE);
        rig.send(1, &write(b"x"));
        rig.tree.state().commits = 1;
        rig.step();
        rig.disconnect();
        assert!(!rig.session.is_drained());
        rig.tree.state().ends = 1;
        rig.step();
        assert!(rig.session.is_drained());
        assert_eq!((rig.tags(), rig.tree.opens()), (vec![], 0));
        assert_eq!(rig.tree.state().committed, [b"x"]);
        drop(rig);
        assert_eq!(budget.taken(), (0, 0));
    }
}

#[test]
fn a_version_abandons_what_can_be_and_outlives_the_rest() {
    for dialect in Dialect::ALL {
        let mut rig = rig(dialect);
        rig.send(1, &read(1, 0, 100));
        rig.send(2, &write(b"x"));
        rig.send(3, &Tmessage::Flush { oldtag: 2 });
        assert_eq!(rig.tags(), [3]);
        rig.send(2, &write(b"y"));
        rig.tree.state().commits = 1;
        rig.step();
        rig.send(4, &Tmessage::Flush { oldtag: 2 });
        rig.version(8192);
        assert_eq!((rig.tree.state().jobs, rig.session.fids()), (1, 0));
        // The same tag and fid again, while the orphan still runs.
        rig.attach(0);
        rig.walk(0, 2, "late");
        rig.open_as(2, proto::OWRITE);
        rig.send(2, &write(b"z"));
        rig.tree.state().ends = 1;
        rig.step();
        assert_eq!(rig.tags(), []);
        rig.tree.state().commits = 1;
        rig.tree.state().ends = 1;
        rig.step();
        assert_eq!(rig.tags(), [2]);
        assert_eq!(rig.tree.state().committed, [b"y", b"z"]);
        assert!(!rig.session.is_busy());
    }
}

#[test]
fn thirty_two_may_wait_and_the_next_is_refused_in_words() {
    for dialect in Dialect::ALL {
        let mut rig = rig(dialect);
        for tag in 1..=32 {
            rig.send(tag, &read(1, 0, u32::MAX));
        }
        assert_eq!(rig.tags(), []);
        assert_eq!(rig.session.limit_met(), None);
        rig.send(33, &read(1, 0, 10));
        let replies = rig.replies();
        assert!(replies.len() == 1 && replies[0].is_refusal(Refusal::TOO_MANY_PARKED));
        assert_eq!(rig.session.limit_met(), Some(Refusal::TOO_MANY_PARKED));
        // What does not wait is served, and one that ends makes place for another.
        rig.send(34, &stat(dialect, 0));
        rig.send(35, &Tmessage::Flush { oldtag: 7 });
        assert_eq!(rig.tags(), [34, 35]);
        rig.send(36, &read(1, 0, 10));
        assert_eq!((rig.tags(), rig.jobs.len()), (vec![], 32));
    }
}

/// With the largest msize 32 rooms would be 32 MiB, and four of them all that may be queued.
#[test]
fn waiting_reads_of_any_size_leave_room_for_a_flush() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::with(dialect, 1 << 20, Limits::DEFAULT, Budget::default());
        rig.walk(0, 1, "slow");
        rig.open(1);
        for tag in 1..=32 {
            rig.send(tag, &read(1, 0, u32::MAX));
        }
        assert_eq!((rig.tags(), rig.jobs.len()), (vec![], 32));
        assert!(rig.session.queued() <= Limits::DEFAULT.queued_bytes / 2);
        assert!(rig.session.wants_input());
        rig.send(40, &Tmessage::Flush { oldtag: 9 });
        rig.send(41, &stat(dialect, 0));
        assert_eq!(rig.tags(), [40, 41]);
    }
}

/// The same while other connections hold all that the daemon has.
#[test]
fn a_flush_is_read_though_the_daemon_has_no_bytes_left() {
    for dialect in Dialect::ALL {
        let budget = Budget::new(100, 64 * 1024);
        let mut rig = Rig::with(dialect, 8192, Limits::DEFAULT, budget.clone());
        rig.walk(0, 1, "slow");
        rig.open(1);
        rig.walk(0, 2, "late");
        rig.open_as(2, proto::OWRITE);
        rig.session.shed();
        let mut other = Rig::with(dialect, 8192, Limits::DEFAULT, budget.clone());
        other.blocked = true;
        other.send(1, &stat(dialect, 0));
        other.send(2, &stat(dialect, 0));
        assert_eq!(budget.taken().1, 64 * 1024);
        rig.send(1, &read(1, 0, 8000));
        rig.send(2, &write(b"x"));
        // Kept behind the write: one frame always may be, and no more than the budget has.
        rig.send(3, &write(b"y"));
        rig.send(4, &write(b"z"));
        rig.send(5, &stat(dialect, 0));
        rig.send(6, &Tmessage::Flush { oldtag: 1 });
        let replies = rig.replies();
        assert_eq!(replies.iter().map(Reply::tag).collect::<Vec<_>>(), [4, 5, 6]);
        assert!(replies[0].is_refusal(Refusal::TOO_MANY_PARKED));
        drop(other);
        rig.send(7, &write(b"z"));
        assert_eq!((rig.tags(), budget.taken().1), (vec![], 64 * 1024));
    }
}

/// One job, and every other slot waits behind it: nothing is sure to end, so a flush must be read.
#[test]
fn a_job_with_a_full_line_behind_it_can_be_flushed() {
    for dialect in Dialect::ALL {
        let mut rig = rig(dialect);
        for tag in 1..=64 {
            rig.send(tag, &write(b"x"));
        }
        assert_eq!((rig.tags(), rig.jobs.len()), (vec![], 1));
        assert!(rig.session.wants_input());
        rig.send(65, &write(b"x"));
        rig.send(66, &stat(dialect, 0));
        let replies = rig.replies();
        assert_eq!(replies.iter().map(Reply::tag).collect::<Vec<_>>(), [65, 66]);
        assert!(replies.iter().all(|reply| reply.is_refusal(Refusal::TOO_MANY_PARKED)));
        rig.send(67, &Tmessage::Flush { oldtag: 1 });
        assert_eq!((rig.tags(), rig.jobs.len()), (vec![67], 1));
        rig.send(68, &Tmessage::Flush { oldtag: 64 });
        assert_eq!(rig.tags(), [68]);
    }
}

/// Frames that wait are memory, too.
#[test]
fn large_writes_behind_a_job_are_bounded_and_the_job_can_be_flushed() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::with(dialect, 1 << 20, Limits::DEFAULT, Budget::default());
        rig.walk(0, 2, "late");
        rig.open_as(2, proto::OWRITE);
        let data = vec![0; 1_000_000];
        let frames: Vec<_> = (1..=20).map(|tag| rig.frame(tag, &write(&data))).collect();
        for frame in &frames {
            assert!(rig.session.wants_input());
            rig.send_bytes(frame);
        }
        let replies = rig.replies();
        assert_eq!(replies.len(), 20 - 6, "the job, and five that wait");
        assert!(replies.iter().all(|reply| reply.is_refusal(Refusal::TOO_MANY_PARKED)));
        rig.send(21, &Tmessage::Flush { oldtag: 1 });
        assert_eq!(rig.tags(), [21]);
    }
}

#[test]
fn flushes_of_what_cannot_be_undone_are_bounded() {
    for dialect in Dialect::ALL {
        let mut rig = rig(dialect);
        rig.send(1, &write(b"x"));
        rig.tree.state().commits = 1;
        rig.step();
        for tag in 2..1000 {
            rig.send(tag, &Tmessage::Flush { oldtag: 1 });
        }
        assert!(!rig.session.wants_input());
        assert_eq!(rig.tags(), []);
        rig.tree.state().ends = 1;
        rig.step();
        assert_eq!(rig.tags(), (1..1000).collect::<Vec<_>>());
        assert_eq!(rig.tree.state().abandoned, 1);
    }
}
