//! The limits of a session, and the budget that all sessions of a daemon share.
//!
//! Owns: the numbers, the relations between them, and the two shared counters. Must not know: what is counted.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What one connection may use.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    /// Largest msize agreed to, in bytes.
    pub msize: u32,
    /// Fids at once.
    pub fids: usize,
    /// Requests in flight, flushes not counted; at that many the connection is not read, unless only jobs run. At most
    /// [`MAX_REQUESTS`].
    pub requests: usize,
    /// How many of them may be jobs. Fewer than `requests`.
    pub parked: usize,
    /// Bytes of memory that replies queued or promised take; from there on the connection is not read.
    pub queued_bytes: usize,
}

impl Limits {
    /// The defaults (contract 7).
    pub const DEFAULT: Self = Self {
        msize: 1024 * 1024,
        fids: 32_768,
        requests: MAX_REQUESTS,
        parked: MAX_REQUESTS / 2,
        queued_bytes: 4 * 1024 * 1024,
    };

    /// The same, each number brought to where the others make sense of it: whoever sets one need not know the rest.
    pub(crate) fn sane(self) -> Self {
        let requests = self.requests.clamp(2, MAX_REQUESTS);
        let parked = self.parked.clamp(1, requests - 1);
        let queued_bytes = self.queued_bytes.max(2 * parked * MIN_PARKED_ROOM as usize);
        let most = u32::try_from(queued_bytes / 2).unwrap_or(u32::MAX);
        Self { msize: self.msize.clamp(MIN_MSIZE, most), requests, parked, queued_bytes, ..self }
    }

    /// The largest room of a job, in bytes. All jobs together are promised half of what may be queued, so that however
    /// many there are, the other half still serves the requests beside them.
    pub(crate) fn parked_room(&self) -> u32 {
        u32::try_from(self.queued_bytes / 2 / self.parked).unwrap_or(u32::MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What all connections of a daemon may use together. Cloning is a reference.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    fids: AtomicUsize,
    fids_limit: usize,
    bytes: AtomicUsize,
    bytes_limit: usize,
}

impl Budget {
    /// A budget of so many fids and so many bytes of requests, replies and rooms.
    pub fn new(fids: usize, bytes: usize) -> Self {
        Self(Arc::new(Shared {
            fids: AtomicUsize::new(0),
            fids_limit: fids,
            bytes: AtomicUsize::new(0),
            bytes_limit: bytes,
        }))
    }

    /// Fids and bytes taken at this moment.
    pub fn taken(&self) -> (usize, usize) {
        (self.0.fids.load(Ordering::Relaxed), self.0.bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn take_fid(&self) -> bool {
        take(&self.0.fids, 1, self.0.fids_limit)
    }

    pub(crate) fn return_fids(&self, count: usize) {
        self.0.fids.fetch_sub(count, Ordering::Relaxed);
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(DAEMON_FIDS, DAEMON_BYTES)
    }
}

/// A session's share of the byte budget, taken in steps so that a request costs no shared counter.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    held: usize,
}

impl Share {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, held: 0 }
    }

    /// Whether `bytes` in all are covered, after taking what is missing.
    pub(crate) fn covers(&mut self, bytes: usize) -> bool {
        self.covers_below(bytes, self.budget.0.bytes_limit)
    }

    /// The same, for what peers send: that may take half of the budget, so that those who send much and finish nothing leave
    /// the other half to replies.
    pub(crate) fn covers_input(&mut self, bytes: usize) -> bool {
        self.covers_below(bytes, self.budget.0.bytes_limit / 2)
    }

    /// Whether so much of the budget is taken that what is not needed should be given back at once.
    pub(crate) fn is_scarce(&self) -> bool {
        let shared = &self.budget.0;
        shared.bytes.load(Ordering::Relaxed) > shared.bytes_limit / 2
    }

    fn covers_below(&mut self, bytes: usize, limit: usize) -> bool {
        if bytes <= self.held {
            return true;
        }
        let more = (bytes - self.held).next_multiple_of(SHARE_STEP);
        let taken = take(&self.budget.0.bytes, more, limit);
        if taken {
            self.held += more;
        }
        taken
    }

    /// Gives back what is not needed to cover `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let excess = self.held.saturating_sub(bytes.next_multiple_of(SHARE_STEP));
        if excess > 0 {
            self.budget.0.bytes.fetch_sub(excess, Ordering::Relaxed);
            self.held -= excess;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

fn take(counter: &AtomicUsize, count: usize, limit: usize) -> bool {
    counter
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            now.checked_add(count).filter(|sum| *sum <= limit)
        })
        .is_ok()
}

/// Requests in flight per connection, and as many flushes: slot numbers fit a byte, and tags are searched in a line.
pub const MAX_REQUESTS: usize = 64;
/// Fids per daemon.
pub const DAEMON_FIDS: usize = 262_144;
/// Bytes of requests, rooms and replies per daemon.
pub const DAEMON_BYTES: usize = 64 * 1024 * 1024;
/// Smallest msize in which every Rstat or Rgetattr of ours fits, 9P2000.u and 9P2000.L.
pub const MIN_MSIZE: u32 = 4096;
/// The same for 9P2000, where small embedded clients exist.
pub const MIN_MSIZE_PLAIN: u32 = 512;
/// Largest frame taken before a version is agreed on.
pub const UNVERSIONED_MSIZE: u32 = 8192 + 24;

/// The least room of a job: a record or an entry always fits.
pub(crate) const MIN_PARKED_ROOM: u32 = MIN_MSIZE;

/// Bytes received of one connection that nobody counts: a first Tversion fits, and so do the requests of a busy client.
pub(crate) const INBOX_FREE: usize = UNVERSIONED_MSIZE as usize;

/// The largest room of a request that is answered though the budget has nothing left.
pub(crate) const SAVING_ROOM: u32 = 16 * 1024;

/// What is kept of msize for headers.
pub(crate) const IO_HEADER_ROOM: u32 = 24;

const SHARE_STEP: usize = 64 * 1024;

const _: () = {
    let limits = Limits::DEFAULT;
    assert!(limits.requests <= MAX_REQUESTS && 2 * MAX_REQUESTS <= u8::MAX as usize);
    assert!(limits.parked < limits.requests);
    assert!(limits.queued_bytes >= 2 * limits.msize as usize);
    assert!(limits.queued_bytes / 2 / limits.parked >= MIN_PARKED_ROOM as usize);
    assert!(DAEMON_BYTES >= limits.queued_bytes + limits.msize as usize);
    // As a refusal says.
    assert!(DAEMON_BYTES / 2 == 32 * 1024 * 1024);
    assert!(IO_HEADER_ROOM < MIN_PARKED_ROOM && MIN_PARKED_ROOM < SAVING_ROOM);
    assert!(MIN_MSIZE_PLAIN < MIN_MSIZE && MIN_MSIZE < limits.msize);
};
