//! What every server does, however it moves bytes.
//!
//! Owns: what a server may use, how a session's turn is taken and its asks handed on, and what is logged of a connection.
//! Must not know: sockets, threads, or rings.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use engine::port::{Ask, Backend, Effort, Job, Kinds, Now, Ticket};
use engine::{Apart, Budget, Hangup, Limits, Session};
use rustix::io::Errno;

use crate::listen::Transport;
use crate::log::Seldom;
use crate::offload::{Key, Mailbox, Pool};
use crate::pump::{self, Finished, Hand, Turn};

/// What a server may use.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of each connection.
    pub limits: Limits,
    /// Of all connections.
    pub budget: Budget,
    /// Connections at once; further ones are closed.
    pub connections: usize,
    /// How long a peer may take to agree on a version.
    pub handshake: Duration,
    /// How long a peer may leave its replies unread, and how long it may take from the first byte of a request to its last.
    pub unread: Duration,
    /// How long a worker may be in one call of the backend before it is written off.
    pub stuck_after: Duration,
    /// How long a stop waits for what is in flight.
    pub drain: Duration,
    /// How long a stop waits for what must not be left half done ([`Backend::must_finish`]).
    pub finish: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::DEFAULT,
            budget: Budget::default(),
            connections: 256,
            handshake: Duration::from_secs(10),
            unread: Duration::from_secs(30),
            stuck_after: Duration::from_secs(5),
            drain: Duration::from_secs(2),
            finish: Duration::from_secs(25),
        }
    }
}

/// How long a connection keeps its buffers when nothing comes.
pub(crate) const QUIET: Duration = Duration::from_secs(1);
/// How often a stop asks whether what must not be left half done has ended.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// How long a client has to take the answer to that.
const TAKE: Duration = Duration::from_secs(1);

/// What the connections of one server share.
pub(crate) struct Shared<K: Kinds> {
    pub(crate) options: Options,
    backend: Arc<dyn Backend<K>>,
    pool: Arc<Pool<K>>,
}

impl<K: Kinds> Shared<K> {
    pub(crate) fn new(backend: &Arc<dyn Backend<K>>, options: &Options) -> Self {
        let pool = Pool::new(Arc::clone(backend), options.stuck_after);
        Self { options: options.clone(), backend: Arc::clone(backend), pool: Arc::new(pool) }
    }

    /// Whether a job is past its point of no return.
    pub(crate) fn must_finish(&self) -> bool {
        self.backend.must_finish()
    }
}

/// How long a stop waits for the connections there are.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Stopping {
    /// When to look again whether to wait any longer.
    look_ns: u64,
    /// When nothing is waited for any more.
    end_ns: u64,
    /// Something that must not be left half done was not finished when it was looked at last: its answer is still to be sent.
    owes: bool,
}

impl Stopping {
    /// It has been asked for now.
    pub(crate) fn new(now_ns: u64, options: &Options) -> Self {
        let end_ns = after(now_ns, options.finish.max(options.drain));
        Self { look_ns: after(now_ns, options.drain), end_ns, owes: false }
    }

    /// When to look again.
    pub(crate) fn look_ns(self) -> u64 {
        self.look_ns
    }

    /// Whether it waits no longer.
    pub(crate) fn is_over(&mut self, now_ns: u64, must_finish: impl FnOnce() -> bool) -> bool {
        if now_ns < self.look_ns {
            return false;
        }
        if now_ns < self.end_ns && must_finish() {
            self.owes = true;
            self.look_ns = after(now_ns, ASK_AGAIN).min(self.end_ns);
            return false;
        }
        if std::mem::take(&mut self.owes) {
            self.look_ns = after(now_ns, TAKE);
            return false;
        }
        true
    }
}

/// A session, and where its asks go.
pub(crate) struct Conversation<K: Kinds> {
    pub(crate) session: Session<K>,
    backend: Arc<dyn Backend<K>>,
    handed: Handed<K>,
    epoch: u64,
    limits_met: Seldom,
    /// When a version must have been agreed on, until it has been.
    handshake_ns: Option<u64>,
    /// Which request has begun and is not whole, and when the rest of it must have come.
    request: Option<(u64, u64)>,
    handshake: Duration,
    unread: Duration,
}

impl<K: Kinds> Conversation<K> {
    /// A conversation with a peer that has not said anything yet, and that came by this way. `number` is never used twice.
    pub(crate) fn new(
        shared: &Shared<K>,
        number: u64,
        mailbox: Arc<dyn Mailbox<K>>,
        transport: Transport,
        now: Now,
    ) -> Self {
        let options = &shared.options;
        let session = Session::new(options.limits, options.budget.clone(), seed());
        Self {
            session: if transport.is_local() { session.local() } else { session },
            backend: Arc::clone(&shared.backend),
            handed: Handed { pool: Arc::clone(&shared.pool), number, mailbox },
            epoch: 0,
            limits_met: Seldom::default(),
            handshake_ns: Some(after(now.mono_ns, options.handshake)),
            request: None,
            handshake: options.handshake,
            unread: options.unread,
        }
    }

    /// Does what can be done now without waiting.
    pub(crate) fn turn(&mut self, now: Now) -> Turn {
        let turn = pump::pump(&mut self.session, &*self.backend, Effort::Cached, now, &mut self.handed);
        let epoch = self.backend.epoch();
        if epoch != self.epoch {
            self.epoch = epoch;
            self.handed.pool.ring();
        }
        if let Some(refusal) = self.session.limit_met() {
            self.limits_met.log(|more| tracing::warn!(more, "refused a request: {refusal}"));
        }
        self.keep_deadlines(now.mono_ns);
        turn
    }

    /// When the peer must have said something that it owes us, and what becomes of it otherwise. Changes with turns alone.
    pub(crate) fn due(&self) -> Option<(u64, Ending)> {
        let handshake = self.handshake_ns.map(|at| (at, Ending::Handshake));
        let request = self.request.map(|(_, at)| (at, Ending::Unfinished));
        handshake.into_iter().chain(request).min_by_key(|(at, _)| *at)
    }

    /// Says in the log why the connection ends, with the limit that was met.
    pub(crate) fn log_end(&self, why: Ending) {
        let (handshake, unread) = (self.handshake.as_secs_f64(), self.unread.as_secs_f64());
        match why {
            Ending::Over => tracing::debug!("a connection ended"),
            Ending::Hangup(why) => tracing::debug!("hung up on a peer: {why:?}"),
            Ending::Handshake => {
                tracing::info!("closed a connection that agreed on no version: the limit is {handshake} s");
            }
            Ending::Unread => {
                tracing::info!("closed a connection that left its replies unread: the limit is {unread} s");
            }
            Ending::Unfinished => {
                tracing::info!("closed a connection whose request had no end: the limit is {unread} s");
            }
            Ending::Failed(errno) => tracing::debug!("a connection ended: {errno}"),
        }
    }

    /// From the first byte of a request, not from the last that came: who sends a byte now and then would otherwise hold what a
    /// request takes for ever. Anybody who is not stopped by that sends a few hundred bytes, which is a request, in time.
    fn keep_deadlines(&mut self, now_ns: u64) {
        if self.session.is_established() {
            self.handshake_ns = None;
        }
        self.request = self.session.unfinished().map(|number| match self.request {
            Some(same) if same.0 == number => same,
            _ => (number, after(now_ns, self.unread)),
        });
    }

    /// Lets the session go: what it has with the workers is abandoned by the next turns, and what it still had to say is
    /// dropped, because as long as there is enough of that a turn does nothing.
    pub(crate) fn disconnect(&mut self) {
        self.session.disconnect();
        while let Some(buf) = self.session.take() {
            self.session.sent(buf);
        }
    }

    /// Takes back what a worker finished.
    pub(crate) fn finish(&mut self, finished: Finished<K>) {
        pump::finish(&mut self.session, finished, &mut self.handed);
    }
}

/// The hand of one connection: the pool, with a mailbox.
struct Handed<K: Kinds> {
    pool: Arc<Pool<K>>,
    number: u64,
    mailbox: Arc<dyn Mailbox<K>>,
}

impl<K: Kinds> Handed<K> {
    fn key(&self, ticket: Ticket) -> Key {
        Key { connection: self.number, ticket }
    }
}

impl<K: Kinds> Hand<K> for Handed<K> {
    fn cold(&mut self, ticket: Ticket, ask: Ask<K>, apart: Apart) {
        self.pool.ask(self.key(ticket), ask, apart, &self.mailbox);
    }

    fn job(&mut self, ticket: Ticket, job: Box<dyn Job<K>>, apart: Apart) {
        self.pool.job(self.key(ticket), job, apart, &self.mailbox);
    }

    fn abandon(&mut self, ticket: Ticket) -> bool {
        self.pool.abandon(self.key(ticket))
    }
}

/// Why a connection ends.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// The peer is gone, or has all it will get.
    Over,
    /// The session hung up.
    Hangup(Hangup),
    /// No version was agreed on in time.
    Handshake,
    /// The peer left its replies unread.
    Unread,
    /// The peer did not finish a request.
    Unfinished,
    /// The transport failed.
    Failed(Errno),
}

impl From<Errno> for Ending {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

/// Says that a connection was closed because there are as many as there may be.
pub(crate) fn log_refused(refused: &mut Seldom, limit: usize) {
    refused.log(|more| tracing::warn!(more, "refused a connection: the limit is {limit} connections"));
}

/// Says that a stop did not wait for the end of so many connections.
pub(crate) fn log_left_behind(connections: usize) {
    tracing::warn!("{connections} connections did not end in time");
}

/// A time after another, in nanoseconds.
pub(crate) fn after(start_ns: u64, time: Duration) -> u64 {
    start_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// A number that no peer can guess.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_waits_for_what_must_be_finished_and_for_its_answer_and_no_longer() {
        let s = |seconds: f64| (seconds * 1e9) as u64;
        let options = Options::default();
        let mut idle = Stopping::new(0, &options);
        assert!(!idle.is_over(s(1.9), || panic!("nobody asks before it is time")));
        assert!(idle.is_over(s(2.0), || false));

        let mut busy = Stopping::new(0, &options);
        assert!(!busy.is_over(s(2.0), || true));
        assert_eq!(busy.look_ns(), s(2.2));
        assert!(!busy.is_over(s(7.0), || true));
        // It has just ended: there is time for the answer.
        assert!(!busy.is_over(s(7.3), || false));
        assert!(!busy.is_over(s(8.2), || false));
        assert!(busy.is_over(s(8.3), || false));

        let mut endless = Stopping::new(0, &options);
        let mut now_ns = 0;
        while !endless.is_over(now_ns, || true) {
            now_ns = endless.look_ns();
        }
        assert_eq!(now_ns, s(26.0));
    }
}
