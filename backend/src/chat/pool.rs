//! The indexes of all chats: who shares which, and how much they may take.
//!
//! Owns: one index for each transcript, by the identity of its file; the budget; and the order in which requests work on
//! one. Must not know: the tree, or jobs.
//!
//! An index is worked on by whoever needs it, a step at a time, and rests here between two steps: two clients that ask for
//! one chat share one scan, either goes on where the other left off, and when all of them are gone nobody does. No lock
//! is held while a file is read: the index is taken out, and who finds it gone waits for the bell ([`Chats::epoch`]).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::build::LIMIT;
use super::source::{Chain, Library};
use super::{Builder, Error, Format, Index, Source};
use crate::harness::codex::bases::chain;
use crate::host::{Meta, Time};
use crate::qid;

/// All chats that have been asked for lately.
#[derive(Debug)]
pub struct Chats {
    shelf: Mutex<Shelf>,
    epoch: AtomicU64,
    limit: usize,
}

#[derive(Debug, Default)]
struct Shelf {
    slots: BTreeMap<u64, Slot>,
    /// Counts requests: the time of use, and of birth.
    clock: u64,
    bytes: usize,
}

/// The place of one index.
#[derive(Debug)]
struct Slot {
    state: State,
    /// How many requests are not done with it.
    waiting: u32,
    used: u64,
    born: u64,
    bytes: usize,
}

#[derive(Debug)]
enum State {
    /// It rests here, if it has been begun.
    Here(Option<Box<Kept>>),
    /// Somebody works on it.
    Taken,
    /// It cannot be told, and will not be while the file is not smaller than this.
    Refused(Error, u64),
}

#[derive(Debug)]
struct Kept {
    builder: Builder,
    /// The files, while the scan is not at its end: a decoder in them is where the scan is.
    chain: Option<Chain>,
    /// What the file was when all of it was in the index.
    stamp: Option<Stamp>,
}

/// What tells whether a file is as it was.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
struct Stamp {
    size: u64,
    mtime: Time,
    ctime: Time,
    /// Whether it was so old that a change in the same tick of the file system's clock is ruled out.
    is_settled: bool,
}

/// A transcript that somebody asks for.
pub struct Asked<'a> {
    /// What its file is, now.
    pub meta: &'a Meta,
    /// Whose records it holds.
    pub format: Format,
    /// Opens its file.
    pub open: &'a dyn Fn() -> Result<Box<dyn Source>, Error>,
    /// Where the files are that it may continue.
    pub library: &'a dyn Library,
    /// The time, in nanoseconds since 1970.
    pub now_ns: i64,
}

/// How far a request came.
#[derive(Debug)]
pub enum Turn<T> {
    /// To its end.
    Done(T),
    /// A step further: take another.
    Again,
    /// Somebody else is at it: take another step once [`Chats::epoch`] differs from this.
    WhenRung(u64),
}

/// A request that is not done with a chat. Dropping it gives the chat up; what is done by then stays for others.
#[derive(Debug)]
pub struct Visit {
    chats: Arc<Chats>,
    key: u64,
}

impl Chats {
    /// None yet, in the budget of the contract.
    pub fn new() -> Self {
        Self::with_limit(LIMIT)
    }

    /// None yet, in a budget of so many bytes: for tests of what happens when it is used up.
    pub fn with_limit(limit: usize) -> Self {
        Self { shelf: Mutex::default(), epoch: AtomicU64::new(0), limit }
    }

    /// Moves whenever a chat that was taken is here again.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Bytes that all indexes take.
    pub fn memory(&self) -> usize {
        self.shelf().bytes
    }

    /// Looks into the index of a transcript, if it is known to tell all there is; else gives `look` back. It asks the host
    /// nothing.
    ///
    /// # Errors
    /// `look`, where the index must be worked on first: with [`Chats::visit`].
    pub fn peek<T, F: FnOnce(&Index) -> T>(&self, meta: &Meta, look: F) -> Result<T, F> {
        let mut shelf = self.shelf();
        shelf.clock += 1;
        let clock = shelf.clock;
        let Some(slot) = shelf.slots.get_mut(&qid::path(meta)) else { return Err(look) };
        let State::Here(Some(kept)) = &slot.state else { return Err(look) };
        if kept.stamp != Some(Stamp { is_settled: true, ..Stamp::of(meta) }) {
            return Err(look);
        }
        slot.used = clock;
        Ok(look(kept.builder.index()))
    }

    /// Begins a request that may take several steps.
    pub fn visit(self: &Arc<Self>, meta: &Meta) -> Visit {
        let key = qid::path(meta);
        let mut shelf = self.shelf();
        shelf.clock += 1;
        let clock = shelf.clock;
        let slot = shelf.slots.entry(key).or_insert_with(|| Slot::new(clock));
        slot.waiting += 1;
        Visit { chats: Arc::clone(self), key }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Chats {
    fn default() -> Self {
        Self::new()
    }
}

impl Visit {
    /// Works on the index for a step of `budget` bytes at most, and looks into it once it tells all there is.
    ///
    /// # Errors
    /// Those of the host, and those of a transcript that is too large.
    pub fn step<T>(
        &self,
        asked: &Asked<'_>,
        budget: usize,
        look: impl FnOnce(&Index) -> T,
    ) -> Result<Turn<T>, Error> {
        let kept = match self.take(asked)? {
            Ok(kept) => kept,
            Err(epoch) => return Ok(Turn::WhenRung(epoch)),
        };
        // Whatever happens from here on, it is put back.
        let mut taken = Taken { visit: self, state: Some(State::Here(None)) };
        let (kept, outcome) = work(kept, asked, budget);
        let said = match (&kept, outcome) {
            (Some(kept), Ok(true)) => Ok(Turn::Done(look(kept.builder.index()))),
            (_, Ok(_)) => Ok(Turn::Again),
            (_, Err(error)) => Err(error),
        };
        taken.state = Some(match &said {
            Err(error @ (Error::TooLarge | Error::TooManyTools)) => State::Refused(*error, asked.meta.size),
            _ => State::Here(kept),
        });
        drop(taken);
        said
    }

    /// Takes the index out, or answers for which bell to wait.
    fn take(&self, asked: &Asked<'_>) -> Result<Result<Option<Box<Kept>>, u64>, Error> {
        let mut shelf = self.chats.shelf();
        let epoch = self.chats.epoch();
        shelf.clock += 1;
        let clock = shelf.clock;
        let born = shelf.slots.entry(self.key).or_insert_with(|| Slot::new(clock)).born;
        if shelf.bytes > self.chats.limit
            && shelf.slots.values().any(|slot| slot.born < born && slot.is_begun())
        {
            // The room is used up by scans that began before this one: the oldest is always let on.
            return Ok(Err(epoch));
        }
        let Some(slot) = shelf.slots.get_mut(&self.key) else { return Ok(Err(epoch)) };
        slot.used = clock;
        match std::mem::replace(&mut slot.state, State::Taken) {
            State::Here(kept) => Ok(Ok(kept)),
            State::Taken => Ok(Err(epoch)),
            State::Refused(error, size) if asked.meta.size >= size => {
                slot.state = State::Refused(error, size);
                Err(error)
            }
            State::Refused(..) => Ok(Ok(None)),
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut shelf = self.chats.shelf();
        let Some(slot) = shelf.slots.get_mut(&self.key) else { return };
        slot.waiting -= 1;
        if slot.waiting > 0 {
            // Who waited for a step of this one takes it now.
            self.chats.epoch.fetch_add(1, Ordering::Release);
        } else if let State::Here(Some(kept)) = &mut slot.state {
            // Nobody goes on. The files that were held open for it are closed when the lock is free again.
            let files = kept.chain.take();
            drop(shelf);
            drop(files);
        }
    }
}

/// An index that is not in its place.
struct Taken<'v> {
    visit: &'v Visit,
    state: Option<State>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let chats = &self.visit.chats;
        let mut shelf = chats.shelf();
        if let Some(state) = self.state.take() {
            shelf.put(self.visit.key, state);
            shelf.make_room(self.visit.key, chats.limit);
        }
        chats.epoch.fetch_add(1, Ordering::Release);
    }
}

impl Shelf {
    fn put(&mut self, key: u64, state: State) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let bytes =
            size_of::<Slot>() + if let State::Here(Some(kept)) = &state { kept.builder.memory() } else { 0 };
        self.bytes = self.bytes + bytes - slot.bytes;
        slot.bytes = bytes;
        slot.state = state;
    }

    /// Drops indexes until the budget is kept: those nobody needs now first, the least recently used of them, then scans
    /// that began later than this one.
    fn make_room(&mut self, key: u64, limit: usize) {
        let born = self.slots.get(&key).map_or(0, |slot| slot.born);
        while self.bytes > limit {
            let others = self
                .slots
                .iter()
                .filter(|(other, slot)| **other != key && !matches!(slot.state, State::Taken));
            let droppable =
                others.filter(|(_, slot)| !slot.is_begun() || slot.waiting == 0 || slot.born > born);
            let last = droppable.min_by_key(|(_, slot)| (slot.is_begun() && slot.waiting > 0, slot.used));
            let Some((&victim, _)) = last else { return };
            if let Some(slot) = self.slots.get_mut(&victim) {
                self.bytes -= slot.bytes;
                slot.bytes = 0;
                slot.state = State::Here(None);
                if slot.waiting == 0 {
                    self.slots.remove(&victim);
                }
            }
        }
    }
}

impl Slot {
    fn new(clock: u64) -> Self {
        Self { state: State::Here(None), waiting: 0, used: clock, born: clock, bytes: 0 }
    }

    /// Whether it holds, or is about to hold, a scan that is not at its end.
    fn is_begun(&self) -> bool {
        match &self.state {
            State::Here(Some(kept)) => kept.stamp.is_none(),
            State::Taken => true,
            State::Here(None) | State::Refused(..) => false,
        }
    }
}

impl Stamp {
    fn of(meta: &Meta) -> Self {
        Self { size: meta.size, mtime: meta.mtime, ctime: meta.ctime, is_settled: false }
    }

    fn at(meta: &Meta, now_ns: i64) -> Self {
        let is_settled = now_ns.saturating_sub(meta.ctime.ns()) > SETTLED_NS;
        Self { is_settled, ..Self::of(meta) }
    }
}

/// Takes a step. Answers what there is to keep, and whether it is all.
fn work(
    kept: Option<Box<Kept>>,
    asked: &Asked<'_>,
    budget: usize,
) -> (Option<Box<Kept>>, Result<bool, Error>) {
    let mut kept = match ready(kept, asked) {
        Ok(kept) => kept,
        Err((kept, error)) => return (kept, Err(error)),
    };
    let Some(chain) = &kept.chain else { return (Some(kept), Ok(false)) };
    let end = chain.own_start() + asked.meta.size;
    let outcome = match kept.builder.step(chain, end, budget) {
        // A file in the chain wants to be asked again.
        Err(Error::Host(rustix::io::Errno::AGAIN)) => Ok(false),
        outcome => outcome,
    };
    kept.stamp = matches!(outcome, Ok(true)).then(|| Stamp::at(asked.meta, asked.now_ns));
    if kept.stamp.is_some() {
        kept.chain = None;
    }
    (Some(kept), outcome)
}

/// An index that may be gone on with, its files open.
fn ready(kept: Option<Box<Kept>>, asked: &Asked<'_>) -> Result<Box<Kept>, (Option<Box<Kept>>, Error)> {
    if let Some(mut kept) = kept {
        let resumed = match resume(&mut kept, asked) {
            Ok(resumed) => resumed,
            Err(error) => return Err((Some(kept), error)),
        };
        if resumed {
            return Ok(kept);
        }
    }
    let chain = open(asked).map_err(|error| (None, error))?;
    let builder = Builder::new(asked.format, &chain.lengths());
    Ok(Box::new(Kept { builder, chain: Some(chain), stamp: None }))
}

/// Opens what is missing for the next step. Answers whether the index still tells the front of the file.
fn resume(kept: &mut Kept, asked: &Asked<'_>) -> Result<bool, Error> {
    let own_start = kept.builder.own_start();
    if asked.meta.size < kept.builder.reach().saturating_sub(own_start) {
        return Ok(false);
    }
    if kept.chain.is_none() {
        let chain = if kept.builder.reach() < own_start {
            open(asked)?
        } else {
            Chain::behind(kept.builder.bases(), (asked.open)()?)
        };
        if chain.lengths() != kept.builder.bases() {
            return Ok(false);
        }
        kept.chain = Some(chain);
    }
    kept.chain.as_ref().map_or(Ok(false), |chain| kept.builder.holds(chain))
}

fn open(asked: &Asked<'_>) -> Result<Chain, Error> {
    let own = (asked.open)()?;
    match asked.format {
        Format::Claude => Ok(Chain::new(Vec::new(), own)),
        Format::Codex => chain(own, qid::path(asked.meta), asked.library),
    }
}

/// Clocks of file systems tick every 10 ms at the slowest (a jiffy), and 2 s on the oldest.
const SETTLED_NS: i64 = 2_000_000_000;

#[cfg(test)]
mod tests;
