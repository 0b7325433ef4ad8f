//! Open files on disk: a read is of the file the path names now.
//!
//! Owns: the descriptor an open fid keeps, and when it is trusted. Must not know: where the file stands in the tree.
//!
//! A descriptor that is kept makes a read one system call, but a path can lead to another file meanwhile. So the pin is
//! *checked*. When the path was last resolved longer than [`FRESH_NS`] ago it is resolved again: nothing of the file
//! itself tells that a directory above it was renamed. In between, a read that came up short asks the open file for its
//! ctime and link count before it is answered, because its end may not be the end of the file the path names, and
//! resolves the path if either moved: a rename or an unlink moves one of them. Where that cannot be relied on
//! ([`File::tells_replacement`], or a ctime so young that the next change could bear the same) the path is resolved
//! then too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::{Qid, Refusal};

use crate::budget::{Budget, Charge};
use crate::host::{Errno, File, Host, Meta, Time};
use crate::name::{DATABASE_HEAD_BYTES, Name, Rel, Root, is_database};
use crate::qid;
use crate::tree::Turn;
use crate::tree::halt::Halt;

/// One open file: where it is, and what is known of it.
pub(crate) struct Pin {
    root: Root,
    rel: Rel,
    /// Whether it may be a database: its name is on the root's short list.
    served_database: bool,
    /// Monotonic time up to which the path holds as it was last resolved; 0 once that has failed.
    fresh_until_ns: AtomicU64,
    /// Replaced as a whole; the lock is never held across a call of the host.
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    /// `None` when the process holds as many descriptors as it may: each read then opens, reads and closes.
    held: Option<Arc<Held>>,
    seen: Seen,
}

/// A descriptor and its share of the bound.
struct Held {
    file: Box<dyn File>,
    _slot: Charge,
}

/// What the last check saw.
#[derive(Copy, Clone)]
struct Seen {
    path: u64,
    version: u32,
    ctime: Time,
    /// Whether any later change is bound to bear another ctime.
    settled: bool,
}

impl Seen {
    fn new(meta: &Meta, turn: Turn) -> Self {
        let settled = meta.ctime.ns().saturating_add(TICK_NS) < turn.now.wall_ns;
        Self { path: qid::path(meta), version: qid::version(meta), ctime: meta.ctime, settled }
    }
}

/// What a check came to.
#[derive(Eq, PartialEq)]
enum Check {
    /// The path still leads to this file.
    Same,
    /// It leads to another.
    Replaced,
}

/// Opens and reads files.
pub(crate) struct Pins {
    host: Arc<dyn Host>,
    budget: Arc<Budget>,
}

impl Pins {
    /// On one machine; as many descriptors are kept as `budget` has units.
    pub(crate) fn new(host: Arc<dyn Host>, budget: Arc<Budget>) -> Self {
        Self { host, budget }
    }

    /// Opens a plain file. `PERM` stands for what is neither file nor directory.
    pub(crate) fn open(&self, root: Root, rel: Rel, turn: Turn) -> Result<(Pin, Qid), Halt> {
        let served_database =
            rel.name().and_then(Name::of_harness).is_some_and(|name| name.is_served_database(root));
        let (file, meta) = self.host.open(root, &rel, turn.effort).map_err(|errno| match errno {
            Errno::PERM => Refusal::NOT_REGULAR.into(),
            // It was a file when it was walked to: that one is gone.
            Errno::ISDIR => Refusal::NOT_FOUND.into(),
            other => Halt::from(other),
        })?;
        if !served_database {
            refuse_database(&*file, turn)?;
        }
        let state = State { held: self.hold(file), seen: Seen::new(&meta, turn) };
        let pin =
            Pin { root, rel, served_database, fresh_until_ns: AtomicU64::new(0), state: Mutex::new(state) };
        pin.mark_fresh(turn);
        Ok((pin, qid::of_file(&meta)))
    }

    /// Reads at an offset until `buf` is full or the file ends.
    pub(crate) fn read(&self, pin: &Pin, buf: &mut [u8], offset: u64, turn: Turn) -> Result<usize, Halt> {
        let State { held, seen } = pin.lock().clone();
        let Some(held) = held else {
            return self.read_anew(pin, seen, buf, offset, turn);
        };
        if !pin.is_fresh(turn) && self.resolve(pin, &held, seen, turn)? == Check::Replaced {
            return self.read_anew(pin, seen, buf, offset, turn);
        }
        let read = held.file.read_at(buf, offset, turn.effort)?;
        if read == buf.len() {
            return Ok(read);
        }
        match self.check(pin, &held, seen, turn)? {
            Check::Same => Ok(read),
            Check::Replaced => self.read_anew(pin, seen, buf, offset, turn),
        }
    }

    /// Opens what the path leads to now, reads, and keeps it if there is room for a descriptor. A read that comes up
    /// short is checked already: the path led to this file while the request was being answered.
    fn read_anew(
        &self,
        pin: &Pin,
        seen: Seen,
        buf: &mut [u8],
        offset: u64,
        turn: Turn,
    ) -> Result<usize, Halt> {
        let (file, meta) = self.host.open(pin.root, &pin.rel, turn.effort).map_err(gone)?;
        let now = Seen::new(&meta, turn);
        pin.refuse_database(&*file, seen, now, turn)?;
        let read = file.read_at(buf, offset, turn.effort)?;
        let held = self.hold(file);
        pin.turn_into(held, now, turn);
        Ok(read)
    }

    /// Whether `held` is still what the path leads to, as it was resolved less than [`FRESH_NS`] ago, when that check saw
    /// `seen`.
    fn check(&self, pin: &Pin, held: &Arc<Held>, seen: Seen, turn: Turn) -> Result<Check, Halt> {
        // Whatever a check that fails saw, the next read is not to be answered on the strength of an older one.
        let fresh_until_ns = pin.fresh_until_ns.swap(0, Ordering::Relaxed);
        if held.file.tells_replacement() && seen.settled {
            let meta = held.file.meta()?;
            if meta.ctime == seen.ctime && meta.nlink > 0 {
                pin.fresh_until_ns.store(fresh_until_ns, Ordering::Relaxed);
                return Ok(Check::Same);
            }
        }
        self.resolve(pin, held, seen, turn)
    }

    /// Whether the path leads to `held` now, when the last check saw `seen`.
    fn resolve(&self, pin: &Pin, held: &Arc<Held>, seen: Seen, turn: Turn) -> Result<Check, Halt> {
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::PinStale) {
            return Ok(Check::Same);
        }
        let meta = self.host.stat(pin.root, &pin.rel, turn.effort).map_err(gone)?;
        let now = Seen::new(&meta, turn);
        if now.path != seen.path {
            return Ok(Check::Replaced);
        }
        pin.refuse_database(&*held.file, seen, now, turn)?;
        pin.still(held, now, turn);
        Ok(Check::Same)
    }

    fn hold(&self, file: Box<dyn File>) -> Option<Arc<Held>> {
        let slot = self.budget.take(1)?;
        Some(Arc::new(Held { file, _slot: slot }))
    }
}

impl Pin {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fresh(&self, turn: Turn) -> bool {
        turn.now.mono_ns < self.fresh_until_ns.load(Ordering::Relaxed)
    }

    fn mark_fresh(&self, turn: Turn) {
        self.fresh_until_ns.store(turn.now.mono_ns.saturating_add(FRESH_NS), Ordering::Relaxed);
    }

    /// Records that the path still leads to `held`, unless another read has found a newer one meanwhile.
    fn still(&self, held: &Arc<Held>, seen: Seen, turn: Turn) {
        let mut state = self.lock();
        if state.held.as_ref().is_some_and(|latest| Arc::ptr_eq(latest, held)) {
            state.seen = seen;
            self.mark_fresh(turn);
        }
    }

    /// Records what the path leads to now.
    fn turn_into(&self, held: Option<Arc<Held>>, seen: Seen, turn: Turn) {
        let replaced = std::mem::replace(&mut *self.lock(), State { held, seen });
        self.mark_fresh(turn);
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::FileLeaked) {
            std::mem::forget(replaced);
            return;
        }
        // Closed only here, when the lock is free again.
        drop(replaced);
    }

    /// Looks at the head of a file that is, or may be, another than was seen or another version of it.
    fn refuse_database(&self, file: &dyn File, seen: Seen, now: Seen, turn: Turn) -> Result<(), Halt> {
        let known = now.path == seen.path && now.version == seen.version && seen.settled;
        #[cfg(feature = "planted")]
        let known = known || engine::planted::is(engine::planted::Bug::DatabaseServed);
        if self.served_database || known { Ok(()) } else { refuse_database(file, turn) }
    }
}

/// Refuses a file whose content is a database. An innocent name does not make it one that may be served.
fn refuse_database(file: &dyn File, turn: Turn) -> Result<(), Halt> {
    let mut head = [0; DATABASE_HEAD_BYTES];
    let read = file.read_at(&mut head, 0, turn.effort)?;
    if is_database(&head[..read]) { Err(Refusal::HIDDEN_DATABASE.into()) } else { Ok(()) }
}

/// The path of an open file leads to no file any more: that is the same whatever stands in its way.
pub(crate) fn gone(errno: Errno) -> Halt {
    match errno {
        Errno::NOTDIR | Errno::ISDIR | Errno::PERM => Refusal::NOT_FOUND.into(),
        other => other.into(),
    }
}

/// How long a check holds (contract 9).
const FRESH_NS: u64 = 100_000_000;
/// Two changes within one tick of the kernel's coarse clock bear one ctime. Ticks last at most 10 ms (CONFIG_HZ=100);
/// the rest is for filesystems that round.
const TICK_NS: i64 = 2_000_000_000;
