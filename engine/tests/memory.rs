//! What sessions cost in memory, measured by the allocator.

use engine::port::{Answer, Ask, Kinds, Outcome, Qids, Room};
use engine::{Action, Budget, Limits, Session};
use peak_alloc::PeakAlloc;
use proto::{Dialect, NOFID, NOTAG, Names, QTDIR, Qid, Tmessage};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// A tree of nothing but directories and files without end, with nodes of three words.
#[derive(Debug)]
struct Words;

impl Kinds for Words {
    type Node = [usize; 3];
    type Open = ();
}

fn answer(ask: &Ask<Words>, mut room: Room<'_>) -> Outcome<Words> {
    let qid = Qid { kind: QTDIR, ..Qid::default() };
    Ok(match ask {
        Ask::Attach { .. } => Answer::Attached { qid, root: [0; 3] },
        Ask::Walk { names, .. } => {
            let mut qids = Qids::new();
            (0..names.len()).for_each(|_| qids.push(qid));
            Answer::Walked { qids, end: Some([1; 3]) }
        }
        Ask::Open { .. } => Answer::Opened { qid, open: (), list: false },
        Ask::Read { .. } => Answer::Bytes(room.bytes().len() as u32),
        other => panic!("not asked here: {other:?}"),
    })
}

/// Answers what there is, and sends if the peer reads.
fn turn(session: &mut Session<Words>, reads: bool) {
    while let Some(action) = session.poll() {
        let Action::Perform(ticket, ask) = action else { panic!("{action:?}") };
        let outcome = answer(&ask, session.room(ticket));
        assert!(session.complete(ticket, Some(outcome), None));
        if reads {
            send(session);
        }
    }
    if reads {
        send(session);
    }
}

fn send(session: &mut Session<Words>) {
    while let Some(buf) = session.take() {
        session.sent(buf);
    }
}

fn session(msize: u32, budget: Budget) -> Session<Words> {
    let mut session = Session::new(Limits::DEFAULT, budget, 42);
    let mut frame = [0; 256];
    let version = Tmessage::Version { msize, version: b"9P2000" };
    let attach = Tmessage::Attach { fid: 0, afid: NOFID, uname: b"u", aname: b"", n_uname: None };
    for (tag, message) in [(NOTAG, version), (1, attach)] {
        session.receive(encoded(&message, tag, &mut frame));
        turn(&mut session, true);
    }
    session
}

fn encoded<'f>(message: &Tmessage<'_>, tag: u16, frame: &'f mut [u8]) -> &'f [u8] {
    let size = message.encode(tag, Dialect::Plain, frame).expect("room");
    &frame[..size]
}

/// One test, because the allocator counts for all threads: where there are others, their threads are started meanwhile.
#[test]
fn what_sessions_cost() {
    ten_thousand_walked_fids_cost_at_most_128_bytes_each();
    a_session_at_rest_costs_little();
    a_peer_that_does_not_read_costs_no_more_than_the_limit();
}

fn ten_thousand_walked_fids_cost_at_most_128_bytes_each() {
    let mut session = session(8192, Budget::default());
    let (mut frame, mut space) = ([0; 64], [0; 16]);
    let names = Names::pack([&b"name"[..]], &mut space).expect("room");
    drop(session.shed());
    let before = ALLOCATOR.current_usage();
    for newfid in 1..=FIDS as u32 {
        session.receive(encoded(&Tmessage::Walk { fid: 0, newfid, names }, 1, &mut frame));
        turn(&mut session, true);
    }
    assert_eq!(session.fids(), 1 + FIDS);
    drop(session.shed());
    let cost = ALLOCATOR.current_usage() - before;
    assert!(cost <= 128 * FIDS, "{} bytes for each fid", cost / FIDS);
    for fid in 1..=FIDS as u32 {
        session.receive(encoded(&Tmessage::Clunk { fid }, 1, &mut frame));
        turn(&mut session, true);
    }
    drop(session.shed());
    assert!(ALLOCATOR.current_usage() <= before + 1024, "clunked fids are still paid for");
}

fn a_session_at_rest_costs_little() {
    let budget = Budget::default();
    let before = ALLOCATOR.current_usage();
    let mut session = session(1 << 20, budget);
    let mut frame = [0; 64];
    session.receive(encoded(&Tmessage::Open { fid: 0, mode: 0 }, 1, &mut frame));
    for tag in 0..100 {
        session.receive(encoded(&Tmessage::Read { fid: 0, offset: 0, count: 1 << 20 }, tag, &mut frame));
        turn(&mut session, true);
    }
    // The front of a frame.
    session.receive(&[200, 0, 0, 0, 1]);
    turn(&mut session, true);
    drop(session.shed());
    let cost = ALLOCATOR.current_usage() - before;
    assert!(cost <= 2048, "{cost} bytes");
}

/// Reads are sent as fast as the session takes them, and nothing is sent back.
fn a_peer_that_does_not_read_costs_no_more_than_the_limit() {
    for msize in [8192, 1 << 17, 1 << 20] {
        let mut session = session(msize, Budget::default());
        let mut frame = [0; 64];
        session.receive(encoded(&Tmessage::Open { fid: 0, mode: 0 }, 1, &mut frame));
        turn(&mut session, true);
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let mut frames = 0;
        while session.wants_input() {
            let count = if frames % 2 == 0 { 100 } else { 1 << 20 };
            session.receive(encoded(&Tmessage::Read { fid: 0, offset: 0, count }, frames as u16, &mut frame));
            turn(&mut session, false);
            frames += 1;
        }
        let peak = ALLOCATOR.peak_usage() - before;
        let most = Limits::DEFAULT.queued_bytes + 2 * (3 * msize as usize + 4096);
        assert!(frames > 1 && peak <= most, "{peak} bytes for {frames} requests of {msize}");
    }
}

const FIDS: usize = 10_000;
