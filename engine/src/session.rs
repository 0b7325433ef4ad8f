//! One connection's 9P session.
//!
//! Owns: the order of things. Bytes come in ([`Session::receive`]), actions come out ([`Session::poll`]), answers come
//! back ([`Session::complete`]), replies go out ([`Session::take`]). Must not know: what a message means (`dispatch`),
//! how bytes travel, or when. No clock, no input or output, no randomness but the seed it is given.
//!
//! # Rules
//! - Every [`Action::Perform`] is completed exactly once, by whoever polled it.
//! - The state of a fid changes only when its request is completed, so an abandoned ask leaves no trace.
//! - A request gets one reply, or is flushed; nothing is said of a tag after its Rflush.
//! - Whatever a peer does, a Tflush and a Tversion are read in the end: what is in flight ends by itself, or is a job; and
//!   where only jobs are left to wait for, a request that finds no place is refused instead of being left unread.
//! - Panics mean bugs here: no byte of a peer leads to one.

use alloc::vec::Vec;

use proto::frame::{self, Next};
use proto::{DecodeError, Dialect, NOTAG, Refusal, Rmessage, Tmessage};

use crate::dispatch::Start;
use crate::fid::{Fids, Full, Sharing};
use crate::inbox::Inbox;
use crate::limits::{Budget, Limits, MIN_MSIZE, MIN_MSIZE_PLAIN, Share, UNVERSIONED_MSIZE};
use crate::outbox::{Apart, Buf, Outbox};
use crate::pending::{Ended, Key, Pending, State};
use crate::port::{Ask, Kinds, Outcome, Room, Ticket};

/// What a driver is to do next.
#[derive(Debug)]
pub enum Action<K: Kinds> {
    /// Ask the backend, and complete the ticket.
    Perform(Ticket, Ask<K>),
    /// Nobody waits for this ticket any more: complete it soon, with `None` if nothing was done. A ticket that is already
    /// completed needs nothing. Said at most once of a ticket.
    Abandon(Ticket),
    /// Send what [`Session::take`] still has, and close.
    Hangup(Hangup),
}

/// Why a session ends from our side.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Hangup {
    /// A frame's size was impossible: nothing that follows can be trusted.
    Framing,
    /// The first request was not a Tversion.
    NoVersion,
}

/// One connection.
#[derive(Debug)]
pub struct Session<K: Kinds> {
    pub(crate) limits: Limits,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) msize: u32,
    pub(crate) fids: Fids<K>,
    pub(crate) outbox: Outbox,
    pub(crate) pending: Pending,
    pub(crate) share: Share,
    pub(crate) inbox: Inbox,
    /// The budget has what the inbox takes.
    pub(crate) inbox_covered: bool,
    /// Bytes of frames kept for requests that wait.
    pub(crate) kept: usize,
    /// What attaches say of the connection.
    pub(crate) local: bool,
    abandons: Vec<Ticket>,
    /// A fid was released since waiting requests were last looked at.
    stirred: bool,
    closed: bool,
    pub(crate) limit_met: Option<Refusal>,
}

impl<K: Kinds> Session<K> {
    /// A fresh session. `seed` should differ from one to the next and not be known to the peer.
    ///
    /// Limits that contradict each other are brought into line: at most [`MAX_REQUESTS`](crate::limits::MAX_REQUESTS)
    /// requests, fewer of them jobs, an msize from 4096 to half of what may be queued.
    pub fn new(limits: Limits, budget: Budget, seed: u64) -> Self {
        let limits = limits.sane();
        Self {
            limits,
            dialect: None,
            msize: UNVERSIONED_MSIZE,
            fids: Fids::new(seed, limits.fids, budget.clone()),
            outbox: Outbox::new(),
            pending: Pending::new(limits.requests),
            share: Share::new(budget),
            inbox: Inbox::default(),
            inbox_covered: true,
            kept: 0,
            local: false,
            abandons: Vec::new(),
            stirred: false,
            closed: false,
            limit_met: None,
        }
    }

    /// The same, for a connection that came by a way on which requests may change something. It is for the backend to know what.
    #[must_use]
    pub fn local(self) -> Self {
        Self { local: true, ..self }
    }

    /// Takes bytes from the peer, cut anywhere. Only to be called while [`Session::wants_input`].
    pub fn receive(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.inbox.push(bytes);
            self.inbox_covered = self.covers_inbox(self.inbox.memory());
        }
    }

    /// Whether more bytes should be read from the peer. Changes with [`Session::poll`], [`Session::complete`] and
    /// [`Session::sent`].
    pub fn wants_input(&self) -> bool {
        !self.closed
            && self.inbox_covered
            && self.inbox.len() < self.msize as usize
            && self.outbox.queued() < self.limits.queued_bytes
            && self.has_place()
    }

    /// The next thing to do. Call until `None`, after [`Session::receive`], [`Session::complete`] and [`Session::sent`];
    /// nothing else changes the answer.
    pub fn poll(&mut self) -> Option<Action<K>> {
        if let Some(ticket) = self.abandons.pop() {
            return Some(Action::Abandon(ticket));
        }
        while !self.closed {
            if let Some(ticket) = self.startable() {
                if let Some(action) = self.resume(ticket) {
                    return Some(action);
                }
                continue;
            }
            match frame::next(self.inbox.unread(), self.msize) {
                Next::More(missing) => {
                    self.make_room(missing);
                    return None;
                }
                // Asked of whole frames alone: the answer takes what a request would.
                _ if !self.may_read() => return None,
                Next::Broken => return Some(self.hang_up(Hangup::Framing)),
                Next::Frame(size) => {
                    // The frame is read where it lies while the session changes: the inbox steps aside for that long.
                    let mut inbox = core::mem::take(&mut self.inbox);
                    let action = self.accept(&inbox.unread()[..size]);
                    inbox.consume(size);
                    if !self.closed {
                        self.inbox = inbox;
                        self.inbox_covered |= self.inbox_is_small();
                    }
                    if action.is_some() {
                        return action;
                    }
                }
            }
        }
        None
    }

    /// The room for a ticket's payload, at the tail of what is gathered. Whoever takes it completes that ticket before
    /// anything else happens to the session, or takes it again.
    pub fn room(&mut self, ticket: Ticket) -> Room<'_> {
        let dialect = self.dialect.unwrap_or(Dialect::Plain);
        let spec = self.pending.spec(ticket);
        self.outbox.room(ticket, spec, dialect)
    }

    /// A room of its own for a ticket, to be filled elsewhere and handed to [`Session::complete`].
    pub fn apart(&mut self, ticket: Ticket) -> Apart {
        Apart::new(self.pending.spec(ticket), self.dialect.unwrap_or(Dialect::Plain))
    }

    /// Whether a ticket is still to be completed. What comes back for one that is not, because it was given up meanwhile, is
    /// late: it must have no effect.
    pub fn awaits(&self, ticket: Ticket) -> bool {
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::JobRevived) {
            return true;
        }
        self.pending.is_running(ticket)
    }

    /// Whether nobody waits any more for a ticket that is still to be completed: [`Action::Abandon`] was said of it. What has
    /// not begun by then should not.
    pub fn is_given_up(&self, ticket: Ticket) -> bool {
        self.pending.is_given_up(ticket)
    }

    /// Counts a ticket as a job. Its room may be smaller from here on, so one got before is not to be lent to it.
    ///
    /// # Errors
    /// So many of the connection's requests are jobs already that one more could keep a flush from being read: the
    /// ticket is to be completed with this refusal, and its job abandoned.
    pub fn park(&mut self, ticket: Ticket) -> Result<(), Refusal> {
        if self.pending.parked() >= self.limits.parked {
            self.limit_met = Some(Refusal::TOO_MANY_PARKED);
            return Err(Refusal::TOO_MANY_PARKED);
        }
        if let Some((before, after)) = self.pending.park(ticket, self.limits.parked_room()) {
            self.outbox.park(before, after);
        }
        Ok(())
    }

    /// Completes a ticket: with an outcome, or with `None` as though the request had never been sent. `apart` is where
    /// the payload is, if not in [`Session::room`]. Answers `false`, and does nothing, for a ticket that is not running.
    ///
    /// An answer that is not one to its ask, or claims more than its room holds, is told as an i/o error; and so is
    /// `None`, as an interruption, to a client that has not flushed the request and so waits for a reply.
    pub fn complete(&mut self, ticket: Ticket, outcome: Option<Outcome<K>>, apart: Option<Apart>) -> bool {
        let Some(ended) = self.pending.end_running(ticket) else { return false };
        let Ended { tag, keys, spec, parked, purpose } = ended;
        self.outbox.release(spec, parked);
        let Some(purpose) = purpose else { return true };
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::ReplyLost) && apart.is_some() && self.is_busy() {
            self.release(keys);
            self.ended(ticket);
            return true;
        }
        let flushed = self.pending.flush_of(ticket).is_some();
        let told = match outcome {
            Some(outcome) => {
                outcome.and_then(|answer| self.conclude(ticket, tag, purpose, spec, answer, apart))
            }
            None if flushed => Ok(()),
            None => Err(Refusal::INTERRUPTED),
        };
        if let Err(refusal) = told {
            self.refuse(tag, refusal);
        }
        self.release(keys);
        self.ended(ticket);
        true
    }

    /// Replies to be sent, in order. Each is given back with [`Session::sent`].
    pub fn take(&mut self) -> Option<Buf> {
        self.outbox.take()
    }

    /// A buffer of [`Session::take`] has been sent, or never will be.
    pub fn sent(&mut self, buf: Buf) {
        self.outbox.sent(buf);
        self.spare();
    }

    /// Whether so much is gathered that it should be sent before more is polled.
    pub fn is_worth_sending(&self) -> bool {
        self.outbox.is_worth_sending()
    }

    /// Whether there is anything to send.
    pub fn has_output(&self) -> bool {
        self.outbox.has_bytes()
    }

    /// Whether the peer has agreed on a version.
    pub fn is_established(&self) -> bool {
        self.dialect.is_some()
    }

    /// The request that has begun to come and is not whole, by a number that no other one of this session has; `None` while
    /// there is none, or while the peer could not finish it because it is not read. Changes with whatever changes
    /// [`Session::wants_input`].
    pub fn unfinished(&self) -> Option<u64> {
        if self.wants_input() { self.inbox.unfinished(self.msize) } else { None }
    }

    /// Whether the backend has asks of this session, orphans included.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Bytes of memory that replies take, or may come to take: gathered, handed out by [`Session::take`], and the rooms of
    /// what runs.
    pub fn queued(&self) -> usize {
        self.outbox.queued()
    }

    /// How many fids are bound or held.
    pub fn fids(&self) -> usize {
        self.fids.len()
    }

    /// The last limit that was met since this was last called, for the log.
    pub fn limit_met(&mut self) -> Option<Refusal> {
        self.limit_met.take()
    }

    /// The connection is gone. Every fid is dropped, so is what was still to be sent, and the asks the backend still has
    /// are abandoned: poll for that, and complete them.
    pub fn disconnect(&mut self) {
        self.close();
        self.outbox.clear();
    }

    /// Whether a disconnected session has nothing left with the backend, and may be dropped.
    pub fn is_drained(&self) -> bool {
        self.closed && self.pending.is_empty() && self.abandons.is_empty()
    }

    /// How long the buffer is that replies are gathered in. Changes only with the msize that is agreed on.
    pub fn gather_bytes(&self) -> usize {
        self.outbox.gather_bytes()
    }

    /// Lends a buffer for replies to be gathered in; see [`Session::reclaim`]. One that is shorter than
    /// [`Session::gather_bytes`], or not needed, is dropped.
    pub fn adopt(&mut self, bytes: Vec<u8>) {
        self.outbox.adopt(bytes);
    }

    /// Gives the buffer of [`Session::adopt`] to its lender; empty if there is none, or something in it is still to be sent.
    /// Cheap: a thread can lend one buffer to whichever session has its turn.
    pub fn reclaim(&mut self) -> Vec<u8> {
        self.outbox.shed()
    }

    /// Gives memory back before an idle spell, and what [`Session::reclaim`] would.
    pub fn shed(&mut self) -> Vec<u8> {
        self.inbox.trim();
        self.pending.trim();
        if self.abandons.is_empty() {
            self.abandons = Vec::new();
        }
        self.fids.trim();
        let bytes = self.outbox.shed();
        self.share.shrink(self.memory());
        bytes
    }

    /// Bytes received and not yet done with.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn buffered(&self) -> usize {
        self.inbox.len() + self.kept
    }

    /// Whether one more frame may be acted on.
    fn may_read(&mut self) -> bool {
        self.has_place() && self.may_start()
    }

    /// Whether the slots have a place for one more frame. Where only jobs run the answer is yes: there is no telling when
    /// they end, and the frame may be the flush of one. (If it is not, it is refused.)
    fn has_place(&self) -> bool {
        let has_room = self.pending.has_room() && self.kept < self.limits.queued_bytes;
        self.pending.has_flush_room() && (has_room || self.pending.has_only_jobs())
    }

    /// Ends the session from our side: what has been answered may still be sent.
    fn hang_up(&mut self, why: Hangup) -> Action<K> {
        self.close();
        Action::Hangup(why)
    }

    fn close(&mut self) {
        self.closed = true;
        self.forget();
        self.inbox = Inbox::default();
    }

    /// Acts on one frame.
    fn accept(&mut self, frame: &[u8]) -> Option<Action<K>> {
        let tag = frame::tag(frame).unwrap_or(NOTAG);
        let Some(dialect) = self.dialect else { return self.accept_first(frame, tag) };
        let message = match Tmessage::decode(frame, dialect) {
            Ok((_, message)) => message,
            Err(error) => {
                self.refuse(tag, undecoded(error));
                return None;
            }
        };
        match message {
            Tmessage::Version { msize, version } => self.version(tag, msize, version),
            // Never refused, not even under the very tag it flushes.
            Tmessage::Flush { oldtag } if oldtag == tag => return self.flush(tag, oldtag),
            _ if tag == NOTAG => self.refuse(tag, Refusal::DUPLICATE_TAG),
            _ if self.pending.tagged(tag).is_some() => self.refuse(tag, Refusal::DUPLICATE_TAG),
            Tmessage::Flush { oldtag } => return self.flush(tag, oldtag),
            message => return self.admit(tag, &message, frame),
        }
        None
    }

    /// Before a version is agreed on, only Tversion is understood.
    fn accept_first(&mut self, frame: &[u8], tag: u16) -> Option<Action<K>> {
        if let Ok((_, Tmessage::Version { msize, version })) = Tmessage::decode(frame, Dialect::Plain) {
            self.version(tag, msize, version);
            return None;
        }
        self.refuse(tag, Refusal::NO_VERSION);
        Some(self.hang_up(Hangup::NoVersion))
    }

    /// version(5): whatever was going on is over.
    fn version(&mut self, tag: u16, msize: u32, version: &[u8]) {
        self.forget();
        let negotiated = Dialect::negotiate(version);
        let dialect = negotiated.unwrap_or(Dialect::Plain);
        let floor = if dialect == Dialect::Plain { MIN_MSIZE_PLAIN } else { MIN_MSIZE };
        let agreed = msize.min(self.limits.msize);
        self.dialect = None;
        self.msize = UNVERSIONED_MSIZE;
        if negotiated.is_some() && agreed < floor {
            self.outbox.push(&Rmessage::refusal(Refusal::SMALL_MSIZE, dialect), tag, dialect);
            return;
        }
        if negotiated.is_some() {
            self.dialect = negotiated;
            self.msize = agreed;
            self.outbox.resize(agreed);
        }
        let name = negotiated.map_or("unknown", Dialect::name);
        self.outbox.push(&Rmessage::Version { msize: agreed, version: name.as_bytes() }, tag, dialect);
    }

    /// flush(5): never refused. Of a request the backend has, the answer waits until that request has ended.
    fn flush(&mut self, tag: u16, oldtag: u16) -> Option<Action<K>> {
        let Some(target) = self.pending.tagged(oldtag) else {
            self.reply(tag, &Rmessage::Flush);
            return None;
        };
        if let Some(waiting) = self.pending.remove_waiting(target) {
            self.kept -= waiting.frame.len();
            self.release(waiting.keys);
            self.reply(tag, &Rmessage::Flush);
            return None;
        }
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::FlushEarly) {
            self.reply(tag, &Rmessage::Flush);
            return None;
        }
        self.pending.add(tag, [None; 2], State::Flushing(target));
        self.pending.abandon(target).then_some(Action::Abandon(target))
    }

    /// Starts a request, or keeps it until no earlier one stands in its way.
    fn admit(&mut self, tag: u16, message: &Tmessage<'_>, frame: &[u8]) -> Option<Action<K>> {
        let (keys, waits) = match self.claim(message, frame.len()) {
            Ok(claimed) => claimed,
            Err(refusal) => {
                self.refuse(tag, refusal);
                return None;
            }
        };
        if waits {
            self.kept += frame.len();
            self.pending.add(tag, keys, State::Waiting(frame.into()));
            return None;
        }
        match self.start(tag, message) {
            Ok(Start::Ask { ask, purpose, spec, shareable }) => {
                self.outbox.promise(spec);
                let state = State::Running { purpose, spec, parked: false, abandoned: false };
                let ticket = self.pending.add(tag, keys, state);
                if shareable {
                    self.downgrade(ticket);
                }
                Some(Action::Perform(ticket, ask))
            }
            done => {
                if let Err(refusal) = done {
                    self.refuse(tag, refusal);
                }
                self.release(keys);
                None
            }
        }
    }

    /// Takes the fids a request names; yields them, and whether the request must wait for an earlier one.
    fn claim(&mut self, message: &Tmessage<'_>, size: usize) -> Result<([Option<Key>; 2], bool), Refusal> {
        let keys = self.keys(message)?;
        let conflicts = |key: &Key| self.fids.find(key.fid).is_some_and(|fid| fid.conflicts(key.sharing));
        let waits = keys.iter().flatten().any(conflicts);
        let claimed = if self.pending.has_room() && (!waits || self.may_keep(size)) {
            self.hold(keys)
        } else {
            Err(Refusal::TOO_MANY_PARKED)
        };
        if let Err(refusal) = claimed {
            self.limit_met = Some(refusal);
            return Err(refusal);
        }
        Ok((keys, waits))
    }

    /// Whether a frame may be kept for a request that waits. As long as anything but jobs runs it may: that was seen to
    /// when the frame was read.
    fn may_keep(&mut self, size: usize) -> bool {
        !self.pending.has_only_jobs()
            || self.kept == 0
            || (self.kept < self.limits.queued_bytes && self.covers(size))
    }

    /// Starts a request that has waited.
    fn resume(&mut self, ticket: Ticket) -> Option<Action<K>> {
        let (tag, frame) = self.pending.wake(ticket)?;
        self.kept -= frame.len();
        let dialect = self.dialect.unwrap_or(Dialect::Plain);
        // It decoded when it came, in the same dialect.
        let started = match Tmessage::decode(&frame, dialect) {
            Ok((_, message)) => self.start(tag, &message),
            Err(error) => Err(undecoded(error)),
        };
        match started {
            Ok(Start::Ask { ask, purpose, spec, shareable }) => {
                self.outbox.promise(spec);
                self.pending.run(ticket, purpose, spec);
                if shareable {
                    self.downgrade(ticket);
                }
                Some(Action::Perform(ticket, ask))
            }
            done => {
                if let Err(refusal) = done {
                    self.refuse(tag, refusal);
                }
                if let Some(waited) = self.pending.remove_waiting(ticket) {
                    self.release(waited.keys);
                }
                self.ended(ticket);
                None
            }
        }
    }

    fn startable(&mut self) -> Option<Ticket> {
        if !self.stirred || !self.may_start() {
            return None;
        }
        let found = self.pending.startable();
        self.stirred = found.is_some();
        found
    }

    /// A read turned out to be of a file, not of a directory: others may read it beside this one.
    fn downgrade(&mut self, ticket: Ticket) {
        if let Some(fid) = self.pending.downgrade(ticket) {
            self.fids.downgrade(fid);
            self.stirred = self.pending.has_waiting();
        }
    }

    fn hold(&mut self, keys: [Option<Key>; 2]) -> Result<(), Refusal> {
        for (at, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            if let Err(full) = self.fids.hold(key.fid, key.sharing) {
                keys[..at].iter().flatten().for_each(|held| self.fids.release(held.fid, held.sharing));
                return Err(match full {
                    Full::Session => Refusal::CONNECTION_FIDS,
                    Full::Daemon => Refusal::DAEMON_FIDS,
                });
            }
        }
        Ok(())
    }

    fn release(&mut self, keys: [Option<Key>; 2]) {
        for key in keys.into_iter().flatten() {
            self.fids.release(key.fid, key.sharing);
        }
        self.stirred = self.pending.has_waiting();
    }

    /// Answers the flushes that waited for a request, in their order; and those that waited for them.
    fn ended(&mut self, ticket: Ticket) {
        while let Some((flush, tag)) = self.pending.end_flush_of(ticket) {
            self.reply(tag, &Rmessage::Flush);
            self.ended(flush);
        }
    }

    /// Forgets every request and fid; what the backend has is abandoned.
    fn forget(&mut self) {
        let abandons = &mut self.abandons;
        self.pending.orphan_all(|ticket| abandons.push(ticket));
        self.fids.clear();
        self.kept = 0;
        self.stirred = false;
    }

    pub(crate) fn reply(&mut self, tag: u16, message: &Rmessage<'_>) {
        self.outbox.push(message, tag, self.dialect.unwrap_or(Dialect::Plain));
    }

    pub(crate) fn refuse(&mut self, tag: u16, refusal: Refusal) {
        self.reply(tag, &Rmessage::refusal(refusal, self.dialect.unwrap_or(Dialect::Plain)));
    }
}

impl Key {
    pub(crate) fn alone(fid: u32) -> Self {
        Self { fid, sharing: Sharing::Alone }
    }

    pub(crate) fn shared(fid: u32) -> Self {
        Self { fid, sharing: Sharing::Shared }
    }
}

fn undecoded(error: DecodeError) -> Refusal {
    match error {
        DecodeError::Unknown { .. } => Refusal::UNKNOWN_MESSAGE,
        _ => Refusal::MALFORMED,
    }
}
