//! The ring: operations the kernel does for us, each with a buffer that is its own until it has ended.
//!
//! Owns: the io_uring, the table of what is in flight, and all unsafe code of the project. Must not know: connections,
//! sessions, or why an operation is asked for (a tag comes back with it).
//!
//! # Why this is sound
//! The kernel writes to and reads from memory whose address it was given, until it says that the operation has ended. So:
//! - A buffer is moved into the table before the kernel is told of it, and out of it when the terminal completion has been
//!   seen; in between nobody can reach it. Only the bytes' address is given away, and it does not change when the `Vec`
//!   moves.
//! - A descriptor is kept open, by reference count or by lifetime, until the same moment.
//! - The number that travels through the kernel (`user_data`) is a place in the table and its generation. It is looked up,
//!   never dereferenced.
//! - Dropping the ring cancels what is in flight and waits for every terminal completion. What has not ended by then is
//!   leaked, buffers and all.
//! - A ring stays on its thread: it is neither `Send` nor `Sync`. Its setup may have told the kernel so.

#![allow(
    unsafe_code,
    reason = "a ring shares memory with the kernel; no safe interface to one keeps buffers alive"
)]

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use engine::Buf;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::slots::{Id, Slots};
use super::unavailable::Unavailable;

/// A ring whose operations are told apart by tags of type `T` and use descriptors that outlive `'fd`.
pub(super) struct Ring<'fd, T> {
    // Declared, and so dropped, before the buffers that the kernel may know of.
    ring: IoUring,
    ops: Slots<Op<'fd, T>>,
    /// Completions copied out of the ring and not yet looked at.
    ended: VecDeque<(u64, i32)>,
    /// Operations that the ring had no place for.
    refused: VecDeque<Completion<T>>,
    /// Cancellations whose own completion is still to come.
    cancels: usize,
    mode: Mode,
    /// Neither `Send` nor `Sync`.
    _thread: PhantomData<*const ()>,
}

/// An operation in flight.
struct Op<'fd, T> {
    tag: T,
    held: Held,
    /// Keeps the descriptor open.
    _source: Source<'fd>,
}

/// What the kernel may use.
enum Held {
    Nothing,
    Space(Vec<u8>),
    Replies { buf: Buf, from: usize },
}

/// Where an operation reads, writes or looks.
#[derive(Clone, Debug)]
pub(super) enum Source<'fd> {
    /// A descriptor that the ring helps to keep open.
    Shared(Rc<OwnedFd>),
    /// One that stays open for longer than there is a ring.
    Borrowed(BorrowedFd<'fd>),
}

/// How an operation ended.
#[derive(Debug)]
pub(super) enum Completion<T> {
    /// [`Ring::read`].
    Read {
        /// As it was given.
        tag: T,
        /// How many of the first bytes of `space` were read; 0 at the end of the input.
        result: Result<usize, Errno>,
        /// The buffer.
        space: Vec<u8>,
    },
    /// [`Ring::write`].
    Written {
        /// As it was given.
        tag: T,
        /// How many bytes were written.
        result: Result<usize, Errno>,
        /// The buffer.
        buf: Buf,
        /// Where in it the writing began.
        from: usize,
    },
    /// [`Ring::poll`].
    Polled {
        /// As it was given.
        tag: T,
        /// What happened.
        result: Result<PollFlags, Errno>,
    },
}

/// Whether a descriptor is a socket. For one, recv and send do; for others, read and write.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// A stream socket.
    Socket,
    /// A pipe or an eventfd.
    Other,
}

/// How the kernel was asked to run the ring, best first.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    /// One thread submits, and completions are worked out when it asks for them (Linux 6.1).
    Deferred,
    /// Completions never interrupt the thread (Linux 5.19).
    Cooperative,
    /// As it comes.
    Plain,
}

impl<'fd, T> Ring<'fd, T> {
    /// A ring for so many operations at once, tried by sending a no-operation through it.
    ///
    /// # Errors
    /// What the kernel, its version, or a filter in front of it has against it.
    pub(super) fn open(operations: u32) -> Result<Self, Unavailable> {
        let mut refused = Errno::INVAL;
        for mode in [Mode::Deferred, Mode::Cooperative, Mode::Plain] {
            match build(mode, operations) {
                Ok(ring) => return Self::try_out(ring, mode),
                Err(Errno::INVAL) => {}
                Err(errno) => {
                    refused = errno;
                    break;
                }
            }
        }
        Err(Unavailable::setup(refused))
    }

    /// How the kernel runs the ring.
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// How many operations may be in flight. One more ends at once with ENOBUFS.
    pub(super) fn capacity(&self) -> usize {
        // Every operation has one completion, so that many can never overflow the queue of completions.
        self.ring.params().cq_entries() as usize
    }

    /// Reads some bytes into `space`, at most all of it, as soon as there are any.
    pub(super) fn read(&mut self, tag: T, source: &Source<'fd>, kind: Kind, space: Vec<u8>) {
        let (fd, held) = (source.fd(), Held::Space(space));
        self.start(tag, source, held, |held| {
            let Held::Space(space) = held else { return opcode::Nop::new().build() };
            let (start, len) = (space.as_mut_ptr(), u32::try_from(space.len()).unwrap_or(u32::MAX));
            match kind {
                Kind::Socket => opcode::Recv::new(fd, start, len).build(),
                // At the current position, as read(2).
                Kind::Other => opcode::Read::new(fd, start, len).offset(u64::MAX).build(),
            }
        });
    }

    /// Writes some of the bytes of `buf` behind the first `from`.
    pub(super) fn write(&mut self, tag: T, source: &Source<'fd>, kind: Kind, buf: Buf, from: usize) {
        let (fd, held) = (source.fd(), Held::Replies { buf, from });
        self.start(tag, source, held, |held| {
            let Held::Replies { buf, from } = held else { return opcode::Nop::new().build() };
            let rest = buf.as_slice().get(*from..).unwrap_or_default();
            let (start, len) = (rest.as_ptr(), u32::try_from(rest.len()).unwrap_or(u32::MAX));
            let flags = SendFlags::NOSIGNAL.bits().cast_signed();
            match kind {
                Kind::Socket => opcode::Send::new(fd, start, len).flags(flags).build(),
                Kind::Other => opcode::Write::new(fd, start, len).offset(u64::MAX).build(),
            }
        });
    }

    /// Waits for one of these events; errors and hang-ups are always among them (poll(2)).
    pub(super) fn poll(&mut self, tag: T, source: &Source<'fd>, events: PollFlags) {
        let (fd, events) = (source.fd(), u32::from(events.bits()));
        self.start(tag, source, Held::Nothing, |_| opcode::PollAdd::new(fd, events).build());
    }

    /// Asks for the end of the operations whose tags are such. They end all the same with a completion, be it ECANCELED or
    /// another.
    pub(super) fn cancel(&mut self, which: impl Fn(&T) -> bool) {
        let ids: Vec<Id> = self.ops.iter_mut().filter(|(_, op)| which(&op.tag)).map(|(id, _)| id).collect();
        for id in ids {
            if self.push(&opcode::AsyncCancel::new(id.to_bits()).build().user_data(CANCEL)) {
                self.cancels += 1;
            }
        }
    }

    /// Tells the kernel of everything that was asked for, and waits until something has ended, or for so long.
    ///
    /// # Errors
    /// The ring does not work any more.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let nothing_to_look_at = self.ended.is_empty() && self.refused.is_empty();
        let timeout = if nothing_to_look_at { timeout } else { Some(Duration::ZERO) };
        let entered = match timeout.map(Timespec::from) {
            None => self.ring.submit_and_wait(1),
            Some(time) => self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time)),
        };
        match entered.map_err(|error| errno(&error)) {
            Ok(_) | Err(Errno::TIME | Errno::INTR) => {}
            // The kernel has no memory for what was asked, or too many completions wait to be fetched. Those are fetched
            // below; memory will not be there for being asked for at once.
            Err(Errno::AGAIN | Errno::BUSY) => thread::sleep(BREATH),
            Err(errno) => return Err(errno.into()),
        }
        self.fetch();
        Ok(())
    }

    /// The next operation that has ended. Call until `None` after [`Ring::wait`].
    pub(super) fn next(&mut self) -> Option<Completion<T>> {
        if let Some(refused) = self.refused.pop_front() {
            return Some(refused);
        }
        while let Some((user_data, result)) = self.ended.pop_front() {
            if user_data == CANCEL {
                self.cancels = self.cancels.saturating_sub(1);
            } else if let Some(op) = self.ops.remove(Id::from_bits(user_data)) {
                let result = u32::try_from(result)
                    .map(|count| count as usize)
                    .map_err(|_| Errno::from_raw_os_error(-result));
                return Some(op.end(result));
            }
        }
        None
    }

    /// Copies the completions out, so that their places are free before any is handled.
    fn fetch(&mut self) {
        self.ended
            .extend(self.ring.completion().map(|entry: cqueue::Entry| (entry.user_data(), entry.result())));
    }

    /// Puts an operation into the table and tells the kernel. One that finds no place ends at once.
    fn start(
        &mut self,
        tag: T,
        source: &Source<'fd>,
        held: Held,
        entry: impl FnOnce(&mut Held) -> squeue::Entry,
    ) {
        let has_place = self.ops.len() + self.cancels < self.capacity();
        let id = self.ops.insert(Op { tag, held, _source: source.clone() });
        let Some(op) = self.ops.get_mut(id) else { return };
        // From here on the buffer is where it stays.
        let entry = entry(&mut op.held).user_data(id.to_bits());
        if (!has_place || !self.push(&entry))
            && let Some(op) = self.ops.remove(id)
        {
            self.refused.push_back(op.end(Err(Errno::NOBUFS)));
        }
    }

    /// Queues an entry, handing the queue to the kernel first if it is full.
    fn push(&mut self, entry: &squeue::Entry) -> bool {
        for _ in 0..2 {
            // SAFETY: the memory that an entry names belongs to an operation in the table, which keeps it, and the
            // descriptor, until the entry's completion has been seen or the ring is closed: see the module's head. A
            // cancellation names no memory.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return true;
            }
            if self.ring.submit().is_err() {
                return false;
            }
        }
        false
    }

    /// Sees whether the kernel has all that is needed.
    fn try_out(ring: IoUring, mode: Mode) -> Result<Self, Unavailable> {
        let (parameters, mut probe) = (ring.params(), Probe::new());
        if !(parameters.is_feature_nodrop()
            && parameters.is_feature_ext_arg()
            && parameters.is_feature_fast_poll())
        {
            return Err(Unavailable::Old);
        }
        ring.submitter().register_probe(&mut probe).map_err(|error| Unavailable::Register(errno(&error)))?;
        if !OPCODES.iter().all(|code| probe.is_supported(*code)) {
            return Err(Unavailable::Old);
        }
        let mut ring = Self {
            ring,
            ops: Slots::new(),
            ended: VecDeque::new(),
            refused: VecDeque::new(),
            cancels: 0,
            mode,
            _thread: PhantomData,
        };
        ring.push(&opcode::Nop::new().build().user_data(CANCEL));
        ring.wait(Some(TRIAL)).map_err(|error| Unavailable::Enter(errno(&error)))?;
        if ring.ended.drain(..).next().is_none() {
            return Err(Unavailable::Enter(Errno::TIME));
        }
        Ok(ring)
    }

    /// Cancels what is in flight and waits for its end, within bounds.
    fn quiesce(&mut self) {
        let deadline = Instant::now() + QUIESCE;
        let mut again = Instant::now();
        loop {
            while self.next().is_some() {}
            let now = Instant::now();
            if self.ops.is_empty() || now >= deadline {
                return;
            }
            if self.cancels == 0 && now >= again {
                self.cancel(|_| true);
                again = now + BREATH;
            }
            if self.wait(Some(BREATH)).is_err() {
                return;
            }
        }
    }
}

impl<T> Drop for Ring<'_, T> {
    fn drop(&mut self) {
        self.quiesce();
        if !self.ops.is_empty() {
            // The kernel may still write there, and nothing will tell when it no longer does.
            tracing::warn!("{} operations did not end: their buffers are lost", self.ops.len());
            mem::forget(mem::replace(&mut self.ops, Slots::new()));
        }
    }
}

impl<T> Op<'_, T> {
    fn end(self, result: Result<usize, Errno>) -> Completion<T> {
        let Self { tag, held, .. } = self;
        match held {
            Held::Space(space) => Completion::Read { tag, result, space },
            Held::Replies { buf, from } => Completion::Written { tag, result, buf, from },
            Held::Nothing => {
                let events = result.map(|bits| PollFlags::from_bits_retain(bits as u16));
                Completion::Polled { tag, result: events }
            }
        }
    }
}

impl Source<'_> {
    fn fd(&self) -> Fd {
        Fd(match self {
            Self::Shared(descriptor) => descriptor.as_raw_fd(),
            Self::Borrowed(descriptor) => descriptor.as_raw_fd(),
        })
    }
}

fn build(mode: Mode, operations: u32) -> Result<IoUring, Errno> {
    let mut builder = IoUring::builder();
    // A child has no use for the memory, and none for the descriptor, which is close-on-exec.
    builder.dontfork().setup_clamp().setup_cqsize(operations.next_power_of_two().max(SUBMISSIONS));
    match mode {
        Mode::Deferred => builder.setup_single_issuer().setup_defer_taskrun(),
        Mode::Cooperative => builder.setup_coop_taskrun(),
        Mode::Plain => &mut builder,
    };
    builder.build(SUBMISSIONS).map_err(|error| errno(&error))
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

const OPCODES: [u8; 7] = [
    opcode::Nop::CODE,
    opcode::Recv::CODE,
    opcode::Send::CODE,
    opcode::Read::CODE,
    opcode::Write::CODE,
    opcode::PollAdd::CODE,
    opcode::AsyncCancel::CODE,
];
/// Entries handed to the kernel at once. More are handed over in several goes.
const SUBMISSIONS: u32 = 256;
/// The number of a cancellation, which is no operation's: a place in the table is below 2^31.
const CANCEL: u64 = u64::MAX;
/// How long a no-operation may take.
const TRIAL: Duration = Duration::from_secs(1);
/// How long a ring that is dropped waits for what it has cancelled.
const QUIESCE: Duration = Duration::from_secs(5);
/// How long to wait before what failed for want of memory, or was too busy to be cancelled, is tried again.
const BREATH: Duration = Duration::from_millis(1);
