//! One connection of the ring.
//!
//! Owns: the session with its socket and what is in flight between them; the steps that `lifecycle` asks for are taken
//! here. Must not know: other connections.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::Buf;
use engine::port::{Kinds, Now};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::buffers::Buffers;
use super::lifecycle::{Life, Step, Wants, Wrote};
use super::ring::{Kind, Ring, Source};
use super::slots::Id;
use crate::listen::{Stream, Transport};
use crate::offload::Mailbox;
use crate::pump::{Finished, Turn};
use crate::server::{Conversation, Ending, QUIET, Shared, after};

/// Whose operation it is.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Who {
    /// Somebody asks for a stop.
    Stop,
    /// The workers have finished something.
    Letters,
    /// A listener has a connection to accept.
    Listener(usize),
    /// A connection reads.
    Reading(Id),
    /// A connection writes.
    Writing(Id),
    /// A connection waits for its peer to go.
    Watching(Id),
}

/// What a connection needs for its turn, and shares with all others of the thread.
pub(super) struct Desk<'s> {
    pub(super) ring: Ring<'s, Who>,
    pub(super) buffers: Buffers,
    /// For what one small read leaves over.
    pub(super) scratch: Vec<u8>,
    pub(super) now: Now,
}

/// One connection.
pub(super) struct Connection<K: Kinds> {
    id: Id,
    conversation: Conversation<K>,
    life: Life,
    input: Rc<OwnedFd>,
    output: Rc<OwnedFd>,
    kind: Kind,
    /// The buffer of the next read; empty while one is in flight.
    space: Vec<u8>,
    /// When something came last, and when a write began last.
    heard_ns: u64,
    writing_ns: u64,
    /// When the peer was looked at last.
    looked_ns: u64,
    /// It has memory that it would not need if it were quiet.
    warm: bool,
    /// It is among those whose turn comes next.
    pub(super) in_line: bool,
}

/// What a turn came to.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum After {
    /// It goes on.
    Stays,
    /// Nothing is left of it.
    Ended,
}

impl<K: Kinds> Connection<K> {
    pub(super) fn new(
        id: Id,
        shared: &Shared<K>,
        stream: Stream,
        mailbox: Arc<dyn Mailbox<K>>,
        now: Now,
    ) -> Self {
        let transport = stream.transport();
        tracing::debug!("a connection came: {transport}");
        if transport == Transport::Inherited {
            // The ring waits by itself. A descriptor that never waits would only ever tell it to try again.
            for descriptor in [stream.input(), stream.output()] {
                let _ = rustix::io::ioctl_fionbio(descriptor, false);
            }
        }
        let kind = if stream.is_socket() { Kind::Socket } else { Kind::Other };
        let (input, output) = stream.into_descriptors();
        let input = Rc::new(input);
        Self {
            id,
            conversation: Conversation::new(shared, id.to_bits(), mailbox, transport, now),
            life: Life::default(),
            output: output.map_or_else(|| Rc::clone(&input), Rc::new),
            input,
            kind,
            space: Vec::new(),
            heard_ns: now.mono_ns,
            writing_ns: 0,
            looked_ns: now.mono_ns,
            warm: false,
            in_line: false,
        }
    }

    /// Does what the connection has to do now. `alone`: nobody else has to do anything, so a reply may be sent at once
    /// instead of with those of others.
    pub(super) fn attend(&mut self, desk: &mut Desk<'_>, alone: bool) -> After {
        desk.buffers.lend(&mut self.conversation.session);
        let after = self.take_turns(desk, alone);
        desk.buffers.reclaim(&mut self.conversation.session);
        after
    }

    fn take_turns(&mut self, desk: &mut Desk<'_>, alone: bool) -> After {
        loop {
            let turn = self.conversation.turn(desk.now);
            if let Turn::Hangup(why) = turn {
                self.life.hang_up(why);
            }
            let mut again = false;
            while let Some(step) = self.life.next(self.wants(turn)) {
                match step {
                    Step::Read => self.read(desk),
                    // What is written makes place, and may have been all that the session waited for.
                    Step::Write => again |= self.write(desk, alone),
                    Step::Watch => {
                        let source = Source::Shared(Rc::clone(&self.input));
                        desk.ring.poll(Who::Watching(self.id), &source, PollFlags::empty());
                    }
                    Step::Close(why) => {
                        self.close(why, desk);
                        again = true;
                    }
                    Step::Free => return After::Ended,
                }
            }
            if !again {
                return After::Stays;
            }
        }
    }

    /// A read has ended.
    pub(super) fn has_read(&mut self, result: Result<usize, Errno>, space: Vec<u8>, desk: &mut Desk<'_>) {
        let count = self.life.read(result);
        if count > 0 {
            self.heard_ns = desk.now.mono_ns;
            self.conversation.session.receive(&space[..count]);
            if count == space.len() && self.kind == Kind::Socket {
                self.read_on(&mut desk.scratch);
            }
        }
        self.space = space;
    }

    /// A write has ended.
    pub(super) fn has_written(
        &mut self,
        result: Result<usize, Errno>,
        buf: Buf,
        from: usize,
        desk: &mut Desk<'_>,
    ) {
        match self.life.wrote(buf.as_slice().len() - from, result) {
            Wrote::Part(count) => self.hand_over(buf, from + count, desk),
            Wrote::All => {
                self.conversation.session.sent(buf);
                desk.buffers.reclaim(&mut self.conversation.session);
            }
        }
    }

    /// A watch has ended. The kernel ends one, asked or not, as soon as nothing more will be read (`EPOLLRDHUP`), though the
    /// peer may still wait for answers.
    pub(super) fn has_watched(&mut self, result: Result<PollFlags, Errno>) {
        self.life.watched(result.map(|told| told.intersects(GONE)));
    }

    /// A worker has finished something.
    pub(super) fn has_finished(&mut self, finished: Finished<K>) {
        self.conversation.finish(finished);
    }

    /// Takes no more requests than have been sent already.
    pub(super) fn stop_reading(&mut self, ring: &mut Ring<'_, Who>) {
        match self.kind {
            // A peer that is gone already needs no telling.
            Kind::Socket => drop(shutdown(&self.input, Shutdown::Read)),
            Kind::Other => {
                self.life.stop_reading();
                ring.cancel(|who| *who == Who::Reading(self.id));
            }
        }
    }

    /// Looks whether something has taken too long, or whether memory can be given back. Yields when to look again.
    pub(super) fn keep_time(&mut self, shared: &Shared<K>, now_ns: u64) -> Option<u64> {
        if self.life.is_closed() {
            return None;
        }
        let unread = self.life.is_writing().then(|| after(self.writing_ns, shared.options.unread));
        let owed = self.conversation.due();
        for (_, ending) in [owed, unread.map(|at| (at, Ending::Unread))]
            .into_iter()
            .flatten()
            .filter(|(at, _)| *at <= now_ns)
        {
            self.life.end(ending);
        }
        let mut look = self.look_after(now_ns);
        if look.is_some_and(|at| at <= now_ns) {
            if poll(&mut [PollFd::new(&*self.input, PollFlags::empty())], Some(&Timespec::default())) == Ok(1)
            {
                self.life.has_gone();
                self.life.end(Ending::Over);
            }
            self.looked_ns = now_ns;
            look = self.look_after(now_ns);
        }
        let mut quiet = self.warm.then(|| after(self.heard_ns, QUIET));
        if quiet.is_some_and(|at| at <= now_ns) {
            drop(self.conversation.session.shed());
            self.warm = false;
            quiet = None;
        }
        let owed = owed.map(|(at, _)| at);
        [owed, unread, quiet, look].into_iter().flatten().filter(|at| *at > now_ns).min()
    }

    /// Whether it has to end before its turn.
    pub(super) fn is_overdue(&self) -> bool {
        self.life.is_ending()
    }

    /// When to look whether the peer is still there, if nothing else would tell.
    fn look_after(&self, now_ns: u64) -> Option<u64> {
        let is_needed = self.life.is_half_closed() && self.conversation.session.is_busy();
        is_needed.then(|| after(self.looked_ns.min(now_ns), LOOK_AGAIN))
    }

    /// When something has to be looked after that was not to be looked after before: asked after each turn.
    pub(super) fn warm_up(&mut self, shared: &Shared<K>, now_ns: u64) -> Option<u64> {
        let writes = self.life.is_writing().then(|| after(now_ns, shared.options.unread));
        let cools = (!self.warm).then(|| after(now_ns, QUIET));
        self.warm = true;
        let owed = self.conversation.due().map(|(at, _)| at);
        [writes, cools, owed, self.look_after(now_ns)].into_iter().flatten().min()
    }

    fn wants(&self, turn: Turn) -> Wants {
        let session = &self.conversation.session;
        Wants {
            input: session.wants_input(),
            output: session.has_output(),
            busy: if self.life.is_closed() { !session.is_drained() } else { session.is_busy() },
            more: turn == Turn::Flush,
        }
    }

    fn read(&mut self, desk: &mut Desk<'_>) {
        let mut space = std::mem::take(&mut self.space);
        if space.is_empty() {
            space = vec![0; SPACE];
        }
        let source = Source::Shared(Rc::clone(&self.input));
        desk.ring.read(Who::Reading(self.id), &source, self.kind, space);
    }

    /// Reads what the peer has sent beyond what one small buffer holds.
    fn read_on(&mut self, scratch: &mut Vec<u8>) {
        if !self.conversation.session.wants_input() {
            return;
        }
        if scratch.is_empty() {
            *scratch = vec![0; SCRATCH];
        }
        // The end of the input, or an error, will be there for the next read of the ring.
        if let Ok((count, _)) = recv(&self.input, &mut scratch[..], RecvFlags::DONTWAIT) {
            self.conversation.session.receive(&scratch[..count]);
        }
    }

    /// Writes the next replies. Whether they are written already, and not just on their way.
    fn write(&mut self, desk: &mut Desk<'_>, alone: bool) -> bool {
        let Some(buf) = self.conversation.session.take() else {
            // Said to have output, it has none: there is nothing to wait for.
            self.life.wrote(0, Ok(0));
            return false;
        };
        self.writing_ns = desk.now.mono_ns;
        if !alone || self.kind != Kind::Socket {
            self.hand_over(buf, 0, desk);
            return false;
        }
        let mut from = 0;
        loop {
            let rest = &buf.as_slice()[from..];
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let result = send(&self.output, rest, flags);
            if result == Err(Errno::AGAIN) {
                self.hand_over(buf, from, desk);
                return false;
            }
            match self.life.wrote(rest.len(), result) {
                Wrote::Part(count) => from += count,
                Wrote::All => {
                    self.conversation.session.sent(buf);
                    return true;
                }
            }
        }
    }

    /// Leaves the rest of a write to the ring.
    fn hand_over(&mut self, buf: Buf, from: usize, desk: &mut Desk<'_>) {
        self.writing_ns = desk.now.mono_ns;
        let source = Source::Shared(Rc::clone(&self.output));
        desk.ring.write(Who::Writing(self.id), &source, self.kind, buf, from);
    }

    fn close(&mut self, why: Ending, desk: &mut Desk<'_>) {
        self.conversation.log_end(why);
        self.conversation.disconnect();
        match self.kind {
            // Whatever is in flight ends by that.
            Kind::Socket => drop(shutdown(self.input.as_fd(), Shutdown::Both)),
            Kind::Other => {
                let id = self.id;
                let ours = [Who::Reading(id), Who::Writing(id), Who::Watching(id)];
                desk.ring.cancel(|who| ours.contains(who));
            }
        }
    }
}

/// What poll(2) tells of a peer that has gone.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);
/// How often a peer that says no more is looked at, while something is done for it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Bytes of a connection's own buffer: 64 requests of 23 to 32 bytes, which is what a Tread, a Tclunk and most Twalks take. It
/// is all that a quiet connection holds.
const SPACE: usize = 2 * 1024;
/// Bytes asked of the recv(2) that follows when that was too small: some thousand requests.
const SCRATCH: usize = 64 * 1024;
