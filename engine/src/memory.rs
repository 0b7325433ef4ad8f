//! What a session takes of the memory that all sessions share.
//!
//! Owns: what counts, what is free, and what becomes of a request that there is no memory for. Must not know: how the budget
//! is kept (`limits`).

use proto::{Refusal, frame};

use crate::limits::{INBOX_FREE, IO_HEADER_ROOM, MIN_PARKED_ROOM, SAVING_ROOM};
use crate::port::Kinds;
use crate::session::Session;

impl<K: Kinds> Session<K> {
    /// Whether the bytes of one more request are covered. With nothing on its way the answer is yes: whatever else the
    /// daemon does, a session can do one thing at a time, and a session that is told no will be woken.
    ///
    /// The one thing is then given little room: there are as many of it as there are connections.
    pub(crate) fn may_start(&mut self) -> bool {
        if self.outbox.queued() >= self.limits.queued_bytes {
            return false;
        }
        let covered = self.covers(self.msize as usize);
        self.outbox.save(!covered);
        covered || (self.outbox.is_quiet() && self.pending.has_only_jobs())
    }

    /// The most bytes that the payload of the next request may have.
    pub(crate) fn room_bytes(&self) -> u32 {
        // IOHDRSZ of fcall(3): what both sides leave for headers. The reply stays below msize, as Linux demands.
        let most = match (self.outbox.saves(), self.pending.parked()) {
            (false, _) => self.msize,
            (true, 0) => self.msize.min(SAVING_ROOM),
            (true, _) => self.msize.min(MIN_PARKED_ROOM),
        };
        most - IO_HEADER_ROOM
    }

    /// Bytes of the daemon's budget that this session needs for what it holds.
    pub(crate) fn memory(&self) -> usize {
        let inbox = if self.inbox_is_small() { 0 } else { self.inbox.memory() };
        self.outbox.queued() + self.kept + inbox
    }

    /// Whether what is received takes so little that nobody counts it.
    pub(crate) fn inbox_is_small(&self) -> bool {
        self.inbox.memory() <= INBOX_FREE
    }

    /// Gives back what is only kept for what may come, if others can use it.
    pub(crate) fn spare(&mut self) {
        if self.share.is_scarce() && self.pending.is_empty() && !self.outbox.has_bytes() {
            drop(self.outbox.shed());
            self.share.shrink(self.memory());
        }
    }

    /// Whether the daemon's budget has so many bytes for this session, beside what it holds.
    pub(crate) fn covers(&mut self, bytes: usize) -> bool {
        self.share.covers(self.memory() + bytes)
    }

    /// Whether the daemon's budget has so many bytes for what is received. A little is free: every session can receive
    /// what most requests take, whatever else the daemon does.
    pub(crate) fn covers_inbox(&mut self, bytes: usize) -> bool {
        bytes <= INBOX_FREE || self.share.covers_input(self.outbox.queued() + self.kept + bytes)
    }

    /// Sees to the memory of a frame whose rest is still to come: a frame that there is none for is refused by its head, and
    /// its rest is passed over. To leave it unread instead would be to wait for what others do.
    pub(crate) fn make_room(&mut self, missing: usize) {
        self.inbox_covered = true;
        if self.covers_inbox(self.inbox.len() + missing) {
            self.inbox.reserve(missing);
        } else if let Some(tag) = frame::tag(self.inbox.unread()) {
            self.refuse(tag, Refusal::INPUT_MEMORY);
            self.limit_met = Some(Refusal::INPUT_MEMORY);
            self.inbox.pass_over(missing);
        }
    }
}
