//! The thread's loop: wait, take in all that has ended, give everybody concerned a turn, wait again.
//!
//! Owns: which connections there are and which of them have something to do, accepting, the one timeout of the wait, and
//! an orderly stop. Must not know: what a turn is (`connection`).

use std::io;
use std::mem;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::port::{Backend, Kinds};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::buffers::Buffers;
use super::connection::{After, Connection, Desk, Who};
use super::ring::{Completion, Kind, Ring, Source};
use super::slots::{Id, Slots};
use crate::clock;
use crate::listen::{Accepted, Gate, Listener, Stream};
use crate::log::Seldom;
use crate::offload::Mailbox;
use crate::pump::Finished;
use crate::server::{Options, Shared, Stopping, log_left_behind, log_refused};
use crate::signals::Stop;

/// The server of one thread.
pub(super) struct Reactor<'s, K: Kinds> {
    // First, so that the ring goes before anything it might use.
    desk: Desk<'s>,
    shared: Shared<K>,
    connections: Slots<Box<Connection<K>>>,
    /// Those whose turn comes next.
    line: Vec<Id>,
    letters: Arc<Letters<K>>,
    /// The same eventfd that the letters write to.
    bell: Source<'s>,
    gate: Gate,
    listeners: &'s [Listener],
    /// Those that are not being waited for, and when accepting is to be tried again.
    resting: Vec<usize>,
    rested_ns: Option<u64>,
    stop: &'s Stop,
    /// There, once a stop was asked for.
    stopping: Option<Stopping>,
    /// When the connections' own times are to be looked at.
    sweep_ns: Option<u64>,
    refused: Seldom,
}

impl<'s, K: Kinds> Reactor<'s, K> {
    pub(super) fn new(
        ring: Ring<'s, Who>,
        backend: &Arc<dyn Backend<K>>,
        listeners: &'s [Listener],
        stop: &'s Stop,
        options: &Options,
    ) -> io::Result<Self> {
        // One that waits: the ring does that for us.
        let wake = eventfd(0, EventfdFlags::CLOEXEC)?;
        let bell = Source::Shared(Rc::new(wake.try_clone()?));
        Ok(Self {
            desk: Desk { ring, buffers: Buffers::default(), scratch: Vec::new(), now: clock::now() },
            shared: Shared::new(backend, options),
            connections: Slots::new(),
            line: Vec::new(),
            letters: Arc::new(Letters { finished: Mutex::default(), wake }),
            bell,
            gate: Gate::new()?,
            listeners,
            resting: (0..listeners.len()).collect(),
            rested_ns: Some(0),
            stop,
            stopping: None,
            sweep_ns: None,
            refused: Seldom::default(),
        })
    }

    /// Serves until asked to stop; without a listener, until the last connection ends.
    pub(super) fn run(mut self, streams: Vec<Stream>) -> io::Result<()> {
        self.desk.ring.poll(Who::Stop, &Source::Borrowed(self.stop.as_fd()), PollFlags::IN);
        self.await_letters(vec![0; 8]);
        for stream in streams {
            self.connect(stream);
        }
        loop {
            self.keep_time();
            self.take_turns();
            if self.is_over() {
                return Ok(());
            }
            let timeout = self.timeout();
            self.desk.ring.wait(timeout)?;
            self.desk.now = clock::now();
            while let Some(completion) = self.desk.ring.next() {
                self.take_in(completion);
            }
        }
    }

    fn take_in(&mut self, completion: Completion<Who>) {
        match completion {
            Completion::Read { tag: Who::Reading(id), result, space } => {
                if let Some(connection) = self.connections.get_mut(id) {
                    connection.has_read(result, space, &mut self.desk);
                    self.queue(id);
                }
            }
            Completion::Written { tag: Who::Writing(id), result, buf, from } => {
                if let Some(connection) = self.connections.get_mut(id) {
                    connection.has_written(result, buf, from, &mut self.desk);
                    self.queue(id);
                }
            }
            Completion::Polled { tag: Who::Watching(id), result } => {
                if let Some(connection) = self.connections.get_mut(id) {
                    connection.has_watched(result);
                    self.queue(id);
                }
            }
            Completion::Polled { tag: Who::Listener(at), result } => self.accept(at, result),
            Completion::Polled { tag: Who::Stop, .. } => self.begin_stop(),
            Completion::Read { tag: Who::Letters, space, .. } => {
                self.open_letters();
                self.await_letters(space);
            }
            // Every tag is given to one kind of operation only.
            Completion::Read { .. } | Completion::Written { .. } | Completion::Polled { .. } => {}
        }
    }

    /// Puts a connection in line, once.
    fn queue(&mut self, id: Id) {
        if let Some(connection) = self.connections.get_mut(id)
            && !mem::replace(&mut connection.in_line, true)
        {
            self.line.push(id);
        }
    }

    /// Gives everybody in line a turn.
    fn take_turns(&mut self) {
        let alone = self.line.len() == 1;
        let mut line = mem::take(&mut self.line);
        for id in line.drain(..) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.in_line = false;
            match connection.attend(&mut self.desk, alone) {
                After::Ended => drop(self.connections.remove(id)),
                After::Stays => {
                    let next = connection.warm_up(&self.shared, self.desk.now.mono_ns);
                    self.sweep_ns = sooner(self.sweep_ns, next);
                }
            }
        }
        // Nobody got in line meanwhile: that takes a completion.
        self.line = line;
    }

    /// Does what is due.
    fn keep_time(&mut self) {
        let now_ns = self.desk.now.mono_ns;
        if self.stopping.is_none() && self.rested_ns.is_some_and(|at| at <= now_ns) {
            self.rested_ns = None;
            for at in mem::take(&mut self.resting) {
                self.await_connection(at);
            }
        }
        if self.sweep_ns.is_none_or(|at| at > now_ns) {
            return;
        }
        self.sweep_ns = None;
        for (id, connection) in self.connections.iter_mut() {
            let next = connection.keep_time(&self.shared, now_ns);
            self.sweep_ns = sooner(self.sweep_ns, next);
            if connection.is_overdue() && !mem::replace(&mut connection.in_line, true) {
                self.line.push(id);
            }
        }
        if self.sweep_ns.is_none() {
            // Nobody has said anything for a while.
            self.desk.buffers.trim();
            self.desk.scratch = Vec::new();
        }
    }

    /// How long nothing is to be done unless something ends.
    fn timeout(&self) -> Option<Duration> {
        let rested = self.rested_ns.filter(|_| self.stopping.is_none());
        let next = sooner(sooner(self.sweep_ns, rested), self.stopping.map(Stopping::look_ns))?;
        Some(Duration::from_nanos(next.saturating_sub(self.desk.now.mono_ns)))
    }

    fn is_over(&mut self) -> bool {
        if self.connections.is_empty() {
            return self.stopping.is_some() || self.listeners.is_empty();
        }
        let shared = &self.shared;
        let is_over =
            |stopping: &mut Stopping| stopping.is_over(self.desk.now.mono_ns, || shared.must_finish());
        let is_over = self.stopping.as_mut().is_some_and(is_over);
        if is_over {
            log_left_behind(self.connections.len());
        }
        is_over
    }

    /// Takes no more connections and no more requests; what is in flight is answered, within bounds.
    fn begin_stop(&mut self) {
        self.stopping = Some(Stopping::new(self.desk.now.mono_ns, &self.shared.options));
        let ids: Vec<Id> = self.connections.iter_mut().map(|(id, _)| id).collect();
        for id in ids {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.stop_reading(&mut self.desk.ring);
            }
            self.queue(id);
        }
    }

    fn await_letters(&mut self, space: Vec<u8>) {
        self.desk.ring.read(Who::Letters, &self.bell, Kind::Other, space);
    }

    fn open_letters(&mut self) {
        for (id, finished) in self.letters.take() {
            // What comes for a connection that has ended is late, and was given up.
            if let Some(connection) = self.connections.get_mut(id) {
                connection.has_finished(finished);
                self.queue(id);
            }
        }
    }

    /// Waits until a listener has a connection. Not with an accept: that takes its descriptor before it waits, and fails at
    /// once while none is free, with nobody there to be told.
    fn await_connection(&mut self, at: usize) {
        let source = Source::Borrowed(self.listeners[at].as_fd());
        self.desk.ring.poll(Who::Listener(at), &source, PollFlags::IN);
    }

    fn accept(&mut self, at: usize, announced: Result<PollFlags, Errno>) {
        if self.stopping.is_some() {
            return;
        }
        let listener = &self.listeners[at];
        let accepted = match announced {
            Ok(_) => self.gate.accept(listener),
            Err(errno) => self.gate.failed(listener, errno),
        };
        match accepted {
            Accepted::Stream(stream) => self.connect(stream),
            Accepted::Nothing => {}
            Accepted::Pause(time) => {
                let now_ns = self.desk.now.mono_ns;
                self.rested_ns = Some(now_ns.saturating_add(time.as_nanos() as u64));
                self.resting.push(at);
                return;
            }
        }
        self.await_connection(at);
    }

    /// Takes a connection in, or closes it if there are too many.
    fn connect(&mut self, stream: Stream) {
        let limit = self.shared.options.connections;
        if self.connections.len() >= limit {
            log_refused(&mut self.refused, limit);
            return;
        }
        let (shared, letters, now) = (&self.shared, &self.letters, self.desk.now);
        let id = self.connections.insert_with(|id| {
            let mailbox = Arc::new(Letterbox { id, letters: Arc::clone(letters) });
            Box::new(Connection::new(id, shared, stream, mailbox, now))
        });
        let handshake = u64::try_from(self.shared.options.handshake.as_nanos()).unwrap_or(u64::MAX);
        self.sweep_ns = sooner(self.sweep_ns, Some(now.mono_ns.saturating_add(handshake)));
        self.queue(id);
    }
}

/// Where the workers leave what they finished.
struct Letters<K: Kinds> {
    finished: Mutex<Vec<(Id, Finished<K>)>>,
    wake: OwnedFd,
}

impl<K: Kinds> Letters<K> {
    fn take(&self) -> Vec<(Id, Finished<K>)> {
        mem::take(&mut self.finished.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a connection's asks take with them.
struct Letterbox<K: Kinds> {
    id: Id,
    letters: Arc<Letters<K>>,
}

impl<K: Kinds> Mailbox<K> for Letterbox<K> {
    fn deliver(&self, finished: Finished<K>) {
        let mut letters = self.letters.finished.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push((self.id, finished));
        if letters.len() == 1 {
            // Whoever takes the letters has read the eventfd before, so it is rung for every first one. It takes 2^64 - 2
            // of these before it waits.
            let _ = rustix::io::write(&self.letters.wake, &1_u64.to_ne_bytes());
        }
    }
}

/// The sooner of two times, each of which may be never.
fn sooner(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}
