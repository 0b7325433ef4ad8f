//! What a limit counts, and where it stands to the byte.

use engine::port::Ask;
use engine::{Budget, Limits};
use proto::{Dialect, Rmessage, Tmessage};

use crate::rig::{Rig, attach, read, stat};

#[test]
fn flushes_take_no_place_of_requests() {
    for dialect in Dialect::ALL {
        let limits = Limits { requests: 4, parked: 1, ..Limits::DEFAULT };
        let mut rig = Rig::with(dialect, 8192, limits, Budget::default());
        rig.walk(0, 1, "hello");
        rig.open(1);
        (rig.hold, rig.deaf) = (true, true);
        rig.send(1, &read(1, 0, 10));
        for tag in 2..5 {
            rig.send(tag, &Tmessage::Flush { oldtag: 1 });
        }
        for tag in 5..9 {
            rig.send(tag, &stat(dialect, 0));
        }
        assert_eq!(rig.held.len(), 4, "one is flushed three times, three run beside it, one waits");
        rig.answer(0);
        assert_eq!((rig.held.len(), rig.tags()), (4, vec![1, 2, 3, 4]));
    }
}

#[test]
fn only_a_connection_that_may_change_something_attaches_as_one() {
    for is_local in [false, true] {
        let mut rig = Rig::silent(Dialect::Linux, Limits::DEFAULT, Budget::default());
        if is_local {
            rig.session = rig.session.local();
        }
        rig.version(8192);
        rig.hold = true;
        rig.send(1, &attach(0, b""));
        let (_, ask) = rig.held.pop_front().expect("an ask");
        assert!(matches!(ask, Ask::Attach { local, .. } if local == is_local));
    }
}

/// Where no memory is left for all sessions, each has little room for one thing at a time, and less beside a job.
#[test]
fn what_is_read_without_memory_is_read_in_little_pieces() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::with(dialect, 64 << 10, Limits::DEFAULT, Budget::new(100, 0));
        for (fid, path) in [(1, "big"), (2, "slow")] {
            rig.walk(0, fid, path);
            rig.open(fid);
        }
        assert_eq!(rig.call(&read(1, 0, 60_000)).data().len(), 16 * 1024 - 24);
        rig.send(9, &read(2, 0, 100));
        assert_eq!(rig.jobs.len(), 1);
        assert_eq!(rig.call(&read(1, 0, 60_000)).data().len(), 4096 - 24);
    }
}

/// Before it is said how long frames may be, they may be as long as those of the oldest clients.
#[test]
fn a_first_frame_may_be_8216_bytes_long() {
    for (size, is_taken) in [(8216_usize, true), (8217, false)] {
        let mut rig = Rig::silent(Dialect::Plain, Limits::DEFAULT, Budget::default());
        let mut frame = vec![b'x'; size];
        frame[..4].copy_from_slice(&(size as u32).to_le_bytes());
        frame[4..7].copy_from_slice(&[proto::message::TVERSION, 0xff, 0xff]);
        frame[7..11].copy_from_slice(&8192_u32.to_le_bytes());
        frame[11..13].copy_from_slice(&((size - 13) as u16).to_le_bytes());
        rig.send_bytes(&frame);
        assert_eq!(rig.hangup.is_none(), is_taken, "{size}");
        let replies = rig.replies();
        let unknown = Rmessage::Version { msize: 8192, version: b"unknown" };
        assert_eq!(replies.first().map(|reply| reply.message()), is_taken.then_some(unknown));
    }
}

#[test]
fn a_buffer_that_is_lent_is_given_back() {
    let mut rig = Rig::new(Dialect::Plain);
    drop(rig.session.reclaim());
    let size = rig.session.gather_bytes();
    rig.session.adopt(vec![0; size - 1]);
    assert!(rig.session.reclaim().is_empty(), "one that is too short is not kept");
    rig.session.adopt(vec![0; size]);
    assert_eq!(rig.session.reclaim().len(), size);
    rig.session.adopt(vec![0; size]);
    rig.blocked = true;
    rig.send(1, &stat(Dialect::Plain, 0));
    assert!(rig.session.reclaim().is_empty(), "something in it is still to be sent");
}

#[test]
fn whether_anybody_waits_is_told_of_each_ticket() {
    let mut rig = Rig::new(Dialect::Plain);
    (rig.hold, rig.deaf) = (true, true);
    rig.send(1, &stat(Dialect::Plain, 0));
    rig.send(2, &stat(Dialect::Plain, 0));
    let tickets: Vec<_> = rig.held.iter().map(|(ticket, _)| *ticket).collect();
    let told = |rig: &Rig| {
        tickets
            .iter()
            .map(|ticket| (rig.session.awaits(*ticket), rig.session.is_given_up(*ticket)))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&rig), [(true, false), (true, false)]);
    rig.send(3, &Tmessage::Flush { oldtag: 1 });
    assert_eq!(told(&rig), [(true, true), (true, false)]);
    rig.answer(0);
    assert_eq!(told(&rig), [(false, false), (true, false)]);
    rig.disconnect();
    assert_eq!(told(&rig), [(false, false), (true, true)]);
    rig.answer(0);
    assert_eq!(told(&rig), [(false, false), (false, false)]);
    assert!(rig.session.is_drained());
}
