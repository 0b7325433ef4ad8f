//! The bodies of the fuzz targets of sessions: bytes in pieces ([`frame`]), and bytes that are a script ([`session`]) for a
//! client that may send anything, and for a driver that may answer anything in any order. The latter panics if a session
//! breaks one of its laws.
//!
//! - Each request gets one reply, or is flushed; nothing comes under a tag after its Rflush.
//! - The fid table is what the replies say it is.
//! - What is queued, kept and in flight stays within the limits, and nothing ever stalls.
//! - After a disconnect a session lets go of everything, and the shared budget gets all of it back.

mod client;
mod script;
mod split;

use alloc::vec::Vec;

use proto::{QTDIR, Qid, Refusal};

use crate::limits::{Budget, Limits, UNVERSIONED_MSIZE};
use crate::outbox::Buf;
use crate::port::{Answer, Ask, Kinds, Outcome, Qids, Room, Stat, Ticket};
use crate::session::{Action, Session};

pub use client::Client;
pub use script::Script;
pub use split::frame;

/// Runs a script.
///
/// # Panics
/// If the session breaks a law.
pub fn session(script: &[u8]) {
    let mut script = Script::new(script);
    let limits = Limits {
        msize: script.pick(&[8192, 32 * 1024]),
        fids: 1 + script.below(6),
        requests: 2 + script.below(15),
        parked: 1 + script.below(8),
        queued_bytes: (16 * 1024) << script.below(6),
    };
    let budget = Budget::new(1 + script.below(8), 64 * 1024 * script.below(4));
    let mut run = Run::new(limits, budget.clone());
    run.client.begin(&mut script);
    while !script.is_empty() {
        run.act(&mut script);
        run.turn();
    }
    run.settle(&mut script);
    run.leave(&mut script);
    assert_eq!(budget.taken(), (0, 0), "the budget did not get everything back");
}

/// Nodes and open handles are bytes: it does not matter which.
#[derive(Debug)]
struct Bytes;

impl Kinds for Bytes {
    type Node = u8;
    type Open = u8;
}

/// An ask that the driver has.
#[derive(Debug)]
struct Out {
    ticket: Ticket,
    ask: Ask<Bytes>,
    abandoned: bool,
}

/// A session between a client and a driver.
struct Run {
    limits: Limits,
    session: Session<Bytes>,
    client: Client,
    out: Vec<Out>,
    /// Taken from the session and not yet sent.
    bufs: Vec<Buf>,
    hung_up: bool,
    stale: Option<Ticket>,
}

impl Run {
    fn new(limits: Limits, budget: Budget) -> Self {
        let session = Session::new(limits, budget, 1);
        let limits = session.limits;
        Self {
            limits,
            session,
            client: Client::default(),
            out: Vec::new(),
            bufs: Vec::new(),
            hung_up: false,
            stale: None,
        }
    }

    /// One thing that client or driver do.
    fn act(&mut self, script: &mut Script<'_>) {
        match script.below(20) {
            0..=7 => self.client.send(script),
            8 => self.client.send_mutated(script),
            9 | 10 => self.client.send_flush(script),
            11 if script.below(8) == 0 => self.client.send_version(script),
            12..=15 => self.complete(script),
            16 => self.park(script),
            17 => self.deliver(script.below(4)),
            18 => self.bufs.extend(self.session.take()),
            _ => self.rest(script),
        }
    }

    /// What a driver does until the session waits.
    fn turn(&mut self) {
        loop {
            while let Some(action) = self.session.poll() {
                match action {
                    Action::Perform(ticket, ask) => self.out.push(Out { ticket, ask, abandoned: false }),
                    Action::Abandon(ticket) => self.abandon(ticket),
                    Action::Hangup(_) => self.hung_up = true,
                }
            }
            self.check();
            if !self.session.wants_input() || self.client.wire.is_empty() {
                return;
            }
            let count = self.client.wire.len().min(PIECE);
            let piece: Vec<u8> = self.client.wire.drain(..count).collect();
            self.session.receive(&piece);
        }
    }

    fn check(&self) {
        let msize = self.limits.msize as usize;
        // Beyond the limit: the room that met it, a batch being filled and one being sent, and small answers.
        let beyond = msize + 2 * (2 * msize + msize + SMALL) + self.limits.requests * SMALL;
        assert!(self.session.queued() <= self.limits.queued_bytes + beyond, "too much is queued");
        let buffered =
            self.limits.queued_bytes + 2 * self.limits.msize.max(UNVERSIONED_MSIZE) as usize + PIECE;
        assert!(self.session.buffered() <= buffered, "too much is kept");
        assert!(self.out.len() <= self.limits.requests, "too much is in flight");
        assert!(self.session.fids() <= self.limits.fids);
    }

    fn abandon(&mut self, ticket: Ticket) {
        if let Some(out) = self.out.iter_mut().find(|out| out.ticket == ticket) {
            assert!(!out.abandoned, "abandoned twice");
            out.abandoned = true;
        }
    }

    fn park(&mut self, script: &mut Script<'_>) {
        if self.out.is_empty() {
            return;
        }
        let at = script.below(self.out.len());
        let ticket = self.out[at].ticket;
        if let Err(refusal) = self.session.park(ticket) {
            self.out.remove(at);
            assert!(self.session.complete(ticket, Some(Err(refusal)), None));
        }
    }

    /// Completes any ask with anything.
    fn complete(&mut self, script: &mut Script<'_>) {
        if let Some(stale) = self.stale {
            assert!(!self.session.complete(stale, None, None), "completed twice");
        }
        if self.out.is_empty() {
            return;
        }
        let Out { ticket, ask, .. } = self.out.remove(script.below(self.out.len()));
        let (outcome, apart) = match script.below(8) {
            0 => (None, None),
            1 => (Some(Err(Refusal::NOT_FOUND)), None),
            2 => (Some(Ok(anything(script))), None),
            3 | 4 => {
                let mut apart = self.session.apart(ticket);
                (Some(answer(&ask, apart.room(), script)), Some(apart))
            }
            _ => (Some(answer(&ask, self.session.room(ticket), script)), None),
        };
        assert!(self.session.complete(ticket, outcome, apart), "an ask was not there to be completed");
        self.stale = Some(ticket);
    }

    /// Sends so many buffers.
    fn deliver(&mut self, count: usize) {
        for _ in 0..=count {
            let buf = if self.bufs.is_empty() { self.session.take() } else { Some(self.bufs.remove(0)) };
            let Some(buf) = buf else { return };
            self.client.receive(buf.as_slice());
            self.session.sent(buf);
        }
    }

    /// A driver has nothing to do.
    fn rest(&mut self, script: &mut Script<'_>) {
        let buffer = self.session.shed();
        if script.below(2) == 0 {
            self.session.adopt(buffer);
        }
    }

    /// The client sends nothing more, and the driver does what is left: everything comes to an end.
    fn settle(&mut self, script: &mut Script<'_>) {
        self.turn();
        while !self.out.is_empty() || !self.bufs.is_empty() || self.session.has_output() {
            self.complete(script);
            self.deliver(usize::MAX - 1);
            self.turn();
        }
        if self.hung_up {
            return;
        }
        assert!(self.client.wire.is_empty(), "the session has stalled");
        self.client.check_all_answered();
        assert!(!self.session.is_busy());
        assert_eq!((self.session.queued(), self.session.buffered()), (0, 0));
        assert_eq!(self.session.fids(), self.client.fids.len(), "a fid leaked or went missing");
        for (&fid, &opened) in &self.client.fids {
            let entry = self.session.fids.find(fid).expect("a fid went missing");
            assert!(
                entry.node().is_some() && entry.opened().is_some() == opened,
                "a fid is in another state"
            );
        }
    }

    /// The client goes, perhaps in the middle of something.
    fn leave(mut self, script: &mut Script<'_>) {
        for _ in 0..4 {
            self.client.send(script);
        }
        self.turn();
        self.session.disconnect();
        self.turn();
        assert!(self.out.iter().all(|out| out.abandoned), "an ask was not abandoned");
        while !self.out.is_empty() {
            assert!(!self.session.is_drained());
            self.complete(script);
            self.turn();
        }
        assert!(self.session.is_drained());
        assert_eq!((self.session.queued(), self.session.fids()), (0, 0));
    }
}

/// An answer of the right kind, but for its size.
fn answer(ask: &Ask<Bytes>, mut room: Room<'_>, script: &mut Script<'_>) -> Outcome<Bytes> {
    Ok(match ask {
        Ask::Attach { .. } => Answer::Attached { qid: qid(script), root: 0 },
        Ask::Walk { names, .. } => {
            let count = if script.below(4) == 0 { script.below(names.len() + 2) } else { names.len() };
            let end = (count >= names.len()).then_some(0);
            Answer::Walked { qids: qids(count, script), end }
        }
        Ask::Stat { .. } => {
            assert!(room.stat(&stat("name")), "a record has room");
            Answer::Stat { bytes: room.used() }
        }
        Ask::Change { .. } => Answer::Changed,
        Ask::Open { .. } => Answer::Opened { qid: qid(script), open: 0, list: script.below(2) == 0 },
        Ask::Read { .. } => Answer::Bytes(script.below(room.bytes().len() + 1) as u32),
        Ask::List { from, .. } => {
            let mut next = *from;
            while next < 20 && room.pack(&stat("entry"), next) {
                next += 1;
            }
            let open = (*from == 0).then_some(1);
            Answer::Listed { bytes: room.used(), next, open }
        }
        Ask::Write { data, .. } => Answer::Wrote(data.len() as u32),
    })
}

/// An answer to another ask, or one that claims too much.
fn anything(script: &mut Script<'_>) -> Answer<Bytes> {
    match script.below(8) {
        0 => Answer::Attached { qid: qid(script), root: 0 },
        1 => Answer::Walked {
            qids: qids(script.pick(&[0, 1, 1, 2, 3, 20]), script),
            end: (script.below(2) == 0).then_some(0),
        },
        2 => Answer::Stat { bytes: script.below(5000) as u32 },
        3 => Answer::Changed,
        4 => Answer::Opened { qid: qid(script), open: 0, list: false },
        5 => Answer::Bytes(script.below(10_000) as u32),
        6 => Answer::Listed { bytes: script.below(10_000) as u32, next: 3, open: None },
        _ => Answer::Wrote(script.below(10_000) as u32),
    }
}

fn qids(count: usize, script: &mut Script<'_>) -> Qids {
    let mut qids = Qids::new();
    (0..count).for_each(|_| qids.push(qid(script)));
    qids
}

fn qid(script: &mut Script<'_>) -> Qid {
    let kind = if script.below(3) == 0 { 0 } else { QTDIR };
    Qid { kind, version: 0, path: 1 }
}

fn stat(name: &str) -> Stat<'_> {
    Stat {
        qid: Qid::default(),
        name,
        perm: 0o444,
        length: 0,
        mtime_ns: 0,
        atime_ns: 0,
        ctime_ns: 0,
        btime_ns: None,
        uid: 0,
        gid: 0,
        user: "u",
        group: "g",
    }
}

/// What an answer made apart is copied up to.
const SMALL: usize = 4096;
/// Bytes received at a time.
const PIECE: usize = 700;

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_session_keeps_its_laws(script in proptest::collection::vec(any::<u8>(), 0..1500)) {
            super::session(&script);
        }
    }

    /// A script of few different bytes meets states that evenly mixed ones do not: much of one kind, one after another.
    #[test]
    fn a_session_keeps_its_laws_in_monotonous_lives() {
        let bytes = proptest::sample::subsequence((0..=255).collect::<Vec<u8>>(), 1..8);
        let script =
            bytes.prop_flat_map(|few| proptest::collection::vec(proptest::sample::select(few), 0..1500));
        let config = ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(script in script)| super::session(&script));
    }
}
