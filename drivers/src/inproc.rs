//! A session without a socket: the command line's own client talks to the tree in its own process.
//!
//! Owns: carrying frames between a client and a [`Session`] on one thread. Must not know: the tree, or the client.
//! Everything is done with [`Effort::Full`] where it is asked, and jobs are stepped until they end: there is nobody else
//! to serve meanwhile.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::port::{Ask, Backend, Effort, Job, Kinds, Progress, Step, Ticket};
use engine::{Apart, Budget, Limits, Session};

use crate::clock;
use crate::pump::{End, Finished, Hand, Turn, finish, pump};

/// One connection to a backend in this process.
pub struct Inproc<K: Kinds> {
    session: Session<K>,
    backend: Arc<dyn Backend<K>>,
    waiting: Waiting<K>,
    replies: Vec<u8>,
    closed: bool,
}

impl<K: Kinds> Inproc<K> {
    /// Connects.
    pub fn new(backend: Arc<dyn Backend<K>>, limits: Limits) -> Self {
        Self {
            session: Session::new(limits, Budget::default(), 0),
            waiting: Waiting { backend: Arc::clone(&backend), asks: VecDeque::new() },
            backend,
            replies: Vec::new(),
            closed: false,
        }
    }

    /// Sends bytes of requests.
    ///
    /// # Errors
    /// `BrokenPipe` once the session has hung up.
    pub fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.closed {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK));
            self.session.receive(now);
            self.turn();
            while !self.session.wants_input() && self.step() {}
            bytes = later;
        }
        Ok(())
    }

    /// Appends replies to `into`, once there are any; yields how many bytes. 0 means that the session has hung up, or that
    /// no request is left to be answered.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> usize {
        while self.replies.is_empty() && self.step() {}
        let count = self.replies.len();
        into.append(&mut self.replies);
        count
    }

    /// Whether the session has hung up.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Does one piece of the work that a turn left. `false` when there is none.
    fn step(&mut self) -> bool {
        match self.waiting.step() {
            Worked::Nothing => return false,
            Worked::Some => {}
            Worked::Done(finished) => finish(&mut self.session, *finished, &mut self.waiting),
        }
        self.turn();
        true
    }

    fn turn(&mut self) {
        loop {
            let turn = pump(&mut self.session, &*self.backend, Effort::Full, clock::now(), &mut self.waiting);
            while let Some(buf) = self.session.take() {
                self.replies.extend_from_slice(buf.as_slice());
                self.session.sent(buf);
            }
            match turn {
                Turn::Flush => {}
                Turn::Idle => return,
                Turn::Hangup(_) => {
                    self.closed = true;
                    return;
                }
            }
        }
    }
}

/// Asks that are not finished, in the order of their next step.
struct Waiting<K: Kinds> {
    backend: Arc<dyn Backend<K>>,
    asks: VecDeque<(Ticket, Unfinished<K>, Apart)>,
}

enum Unfinished<K: Kinds> {
    Ask(Ask<K>),
    Job(Box<dyn Job<K>>, When),
}

#[derive(Copy, Clone)]
enum When {
    Now,
    At(u64),
    Rung(u64),
}

/// What a step did.
enum Worked<K: Kinds> {
    /// There is nothing to do.
    Nothing,
    /// Something.
    Some,
    /// An ask came to its end.
    Done(Box<Finished<K>>),
}

impl<K: Kinds> Worked<K> {
    fn done(ticket: Ticket, end: End<K>, apart: Apart) -> Self {
        Self::Done(Box::new(Finished { ticket, end, apart: Some(apart) }))
    }
}

impl<K: Kinds> Waiting<K> {
    /// Does the first piece of work that can be done, or sleeps until the first that could.
    fn step(&mut self) -> Worked<K> {
        let now = clock::now();
        let epoch = self.backend.epoch();
        let ready = self.asks.iter().position(|(_, unfinished, _)| match unfinished {
            Unfinished::Ask(_) | Unfinished::Job(_, When::Now) => true,
            Unfinished::Job(_, When::At(at)) => *at <= now.mono_ns,
            Unfinished::Job(_, When::Rung(seen)) => *seen != epoch,
        });
        let Some((ticket, unfinished, mut apart)) = ready.and_then(|at| self.asks.remove(at)) else {
            if self.asks.is_empty() {
                return Worked::Nothing;
            }
            thread::sleep(self.pause(now.mono_ns));
            return Worked::Some;
        };
        let unfinished = match unfinished {
            Unfinished::Ask(ask) => match self.backend.perform(ask, apart.room(), Effort::Full, now) {
                Progress::Done(outcome) => return Worked::done(ticket, End::Outcome(Some(outcome)), apart),
                Progress::Later(job) => return Worked::done(ticket, End::Job(job), apart),
                Progress::Cold(ask) => Unfinished::Ask(ask),
            },
            Unfinished::Job(mut job, _) => match job.step(apart.room(), now) {
                Step::Done(outcome) => return Worked::done(ticket, End::Outcome(Some(outcome)), apart),
                Step::Again => Unfinished::Job(job, When::Now),
                Step::At(at) => Unfinished::Job(job, When::At(at)),
                Step::WhenRung(epoch) => Unfinished::Job(job, When::Rung(epoch)),
            },
        };
        self.asks.push_back((ticket, unfinished, apart));
        Worked::Some
    }

    /// How long nothing can be done.
    fn pause(&self, mono_ns: u64) -> Duration {
        let deadlines = self.asks.iter().filter_map(|(_, unfinished, _)| match unfinished {
            Unfinished::Job(_, When::At(at)) => Some(at.saturating_sub(mono_ns)),
            _ => None,
        });
        Duration::from_nanos(deadlines.min().unwrap_or(clock::NS / 100))
    }
}

impl<K: Kinds> Hand<K> for Waiting<K> {
    fn cold(&mut self, ticket: Ticket, ask: Ask<K>, apart: Apart) {
        self.asks.push_back((ticket, Unfinished::Ask(ask), apart));
    }

    fn job(&mut self, ticket: Ticket, job: Box<dyn Job<K>>, apart: Apart) {
        self.asks.push_back((ticket, Unfinished::Job(job, When::Now), apart));
    }

    fn abandon(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.asks.iter().position(|(waiting, ..)| *waiting == ticket) else { return true };
        let gone = match &mut self.asks[at].1 {
            Unfinished::Ask(_) => true,
            Unfinished::Job(job, _) => job.abandon(),
        };
        if gone {
            self.asks.remove(at);
        }
        gone
    }
}

/// Bytes handed to the session at a time.
const CHUNK: usize = 64 * 1024;
