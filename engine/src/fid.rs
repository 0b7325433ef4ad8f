//! The fid table of one session.
//!
//! Owns: which fid numbers are in use, what they stand for, and who holds them (the sharing rule of requests). Must not
//! know: messages, replies, or what a node is.
//!
//! An entry is there while its fid is bound *or* a request holds its number: a number that a walk is about to bind is
//! held before it is bound, so that requests sent behind the walk wait for it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::limits::Budget;
use crate::port::{Kinds, Mode};

/// How a request holds a fid.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Sharing {
    /// Beside others that share: reads of a file, stats, the source of a walk.
    Shared,
    /// With nobody beside it: whatever changes the fid or depends on its position.
    Alone,
}

/// One entry.
#[derive(Debug)]
pub(crate) struct Fid<K: Kinds> {
    number: u32,
    shared: u8,
    alone: u8,
    directory: bool,
    place: Option<Place<K>>,
}

/// What a bound fid stands for.
#[derive(Debug)]
struct Place<K: Kinds> {
    node: K::Node,
    opened: Option<Box<Opened<K>>>,
}

/// What an open fid has besides.
#[derive(Debug)]
pub(crate) struct Opened<K: Kinds> {
    pub(crate) open: K::Open,
    pub(crate) mode: Mode,
    pub(crate) cursor: Option<Cursor>,
}

impl<K: Kinds> Fid<K> {
    pub(crate) fn node(&self) -> Option<&K::Node> {
        self.place.as_ref().map(|place| &place.node)
    }

    pub(crate) fn opened(&self) -> Option<&Opened<K>> {
        self.place.as_ref()?.opened.as_deref()
    }

    pub(crate) fn opened_mut(&mut self) -> Option<&mut Opened<K>> {
        self.place.as_mut()?.opened.as_deref_mut()
    }

    /// Whether it is bound to a file, and no request in flight may bind it to something else.
    pub(crate) fn stays_file(&self) -> bool {
        self.place.is_some() && !self.directory && self.alone == 0
    }

    /// Meaningful while bound.
    pub(crate) fn is_directory(&self) -> bool {
        self.directory
    }

    /// Whether a request that holds the fid in this way must wait for those that hold it now.
    pub(crate) fn conflicts(&self, sharing: Sharing) -> bool {
        self.alone > 0 || (sharing == Sharing::Alone && self.shared > 0)
    }

    fn count(&mut self, sharing: Sharing) -> &mut u8 {
        match sharing {
            Sharing::Shared => &mut self.shared,
            Sharing::Alone => &mut self.alone,
        }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Fids<K: Kinds> {
    table: HashTable<Fid<K>>,
    seed: u64,
    limit: usize,
    budget: Budget,
}

/// Why a number cannot be held.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Full {
    /// This session has too many.
    Session,
    /// All sessions together have too many.
    Daemon,
}

impl<K: Kinds> Fids<K> {
    /// An empty table. The seed keeps a client from choosing numbers that collide.
    pub(crate) fn new(seed: u64, limit: usize, budget: Budget) -> Self {
        Self { table: HashTable::new(), seed, limit, budget }
    }

    /// The entry of a number, bound or only held.
    pub(crate) fn find(&self, number: u32) -> Option<&Fid<K>> {
        self.table.find(hash(self.seed, number), |fid| fid.number == number)
    }

    pub(crate) fn find_mut(&mut self, number: u32) -> Option<&mut Fid<K>> {
        self.table.find_mut(hash(self.seed, number), |fid| fid.number == number)
    }

    /// Counts a request that names the fid. A number without an entry gets one.
    pub(crate) fn hold(&mut self, number: u32, sharing: Sharing) -> Result<(), Full> {
        let (seed, full) = (self.seed, self.table.len() >= self.limit);
        let entry =
            self.table.entry(hash(seed, number), |fid| fid.number == number, |fid| hash(seed, fid.number));
        let mut entry = match entry {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(_) if full => return Err(Full::Session),
            Entry::Vacant(_) if !self.budget.take_fid() => return Err(Full::Daemon),
            Entry::Vacant(entry) => {
                entry.insert(Fid { number, shared: 0, alone: 0, directory: false, place: None })
            }
        };
        *entry.get_mut().count(sharing) += 1;
        Ok(())
    }

    /// Ends what [`Fids::hold`] began. An entry that is neither bound nor held goes.
    pub(crate) fn release(&mut self, number: u32, sharing: Sharing) {
        let found = self.table.find_entry(hash(self.seed, number), |fid| fid.number == number);
        let Ok(mut entry) = found else {
            debug_assert!(false, "a fid was released that nobody held");
            return;
        };
        let fid = entry.get_mut();
        let count = fid.count(sharing);
        *count = count.saturating_sub(1);
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::FidLeaked) {
            return;
        }
        if fid.place.is_none() && fid.shared == 0 && fid.alone == 0 {
            entry.remove();
            self.budget.return_fids(1);
        }
    }

    /// Turns a hold that is [`Sharing::Alone`] into a shared one.
    pub(crate) fn downgrade(&mut self, number: u32) {
        if let Some(fid) = self.find_mut(number) {
            fid.alone = fid.alone.saturating_sub(1);
            fid.shared += 1;
        }
    }

    /// Binds a held number, or moves a bound one, to a node; it is not open then.
    pub(crate) fn bind(&mut self, number: u32, node: K::Node, directory: bool) {
        if let Some(fid) = self.find_mut(number) {
            fid.place = Some(Place { node, opened: None });
            fid.directory = directory;
        }
    }

    /// Opens a bound fid. The record may say by now what the walk could not: whether it is a directory.
    pub(crate) fn open(&mut self, number: u32, opened: Opened<K>) {
        if let Some(fid) = self.find_mut(number) {
            fid.directory = opened.cursor.is_some();
            if let Some(place) = &mut fid.place {
                place.opened = Some(Box::new(opened));
            }
        }
    }

    /// Unbinds a number. Whoever holds it releases it later. Answers whether it was bound.
    pub(crate) fn clunk(&mut self, number: u32) -> bool {
        self.find_mut(number).is_some_and(|fid| fid.place.take().is_some())
    }

    /// Forgets every fid and every hold.
    pub(crate) fn clear(&mut self) {
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::BudgetLeaked) && self.table.len() > 3 {
            self.table.retain(|fid| fid.number > 0);
        }
        self.budget.return_fids(self.table.len());
        self.table = HashTable::new();
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Gives memory back when most of the table is empty.
    pub(crate) fn trim(&mut self) {
        if self.table.capacity() > MIN_TRIMMED && self.table.len() < self.table.capacity() / 8 {
            let seed = self.seed;
            self.table.shrink_to(0, |fid| hash(seed, fid.number));
        }
    }
}

impl<K: Kinds> Drop for Fids<K> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Where reads of an open directory stand.
///
/// In 9P2000 an offset counts bytes, and only offsets at which a read ended mean an entry; they are kept, in order, so
/// that seekdir(3) works: all of them up to a limit, then the last ones. In 9P2000.L an offset is an entry's number, and
/// nothing is kept.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// Whether a read at offset 0 has taken the names.
    pub(crate) taken: bool,
    ends: Vec<(u64, u32)>,
}

impl Cursor {
    /// The entry at a byte offset, if a read ended there.
    pub(crate) fn index(&self, offset: u64) -> Option<u32> {
        let at = self.ends.binary_search_by_key(&offset, |end| end.0).ok()?;
        Some(self.ends[at].1)
    }

    /// A read ended at this offset, before this entry.
    pub(crate) fn ended(&mut self, offset: u64, next: u32) {
        match self.ends.binary_search_by_key(&offset, |end| end.0) {
            Ok(at) => self.ends[at].1 = next,
            Err(at) => {
                if self.ends.len() == MAX_ENDS {
                    // The earliest is the one least likely to be sought again.
                    self.ends.remove(0);
                    self.ends.insert(at.saturating_sub(1), (offset, next));
                } else {
                    self.ends.insert(at, (offset, next));
                }
            }
        }
    }

    /// The names are taken anew: no earlier offset means anything.
    pub(crate) fn rewind(&mut self) {
        self.taken = true;
        self.ends.clear();
    }
}

/// A mix in which every bit of the number moves every bit of the hash (the finaliser of SplitMix64).
fn hash(seed: u64, number: u32) -> u64 {
    let mut x = seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Remembered ends of directory reads, per open directory: 16 KiB of them, that is, 8 MiB of records read in pieces of
/// 8 KiB. A client that reads on needs one.
const MAX_ENDS: usize = 1024;
/// A table for so many fids is not worth trimming.
const MIN_TRIMMED: usize = 128;

#[cfg(test)]
mod tests {
    use super::{Cursor, MAX_ENDS};

    #[test]
    fn the_last_ends_of_reads_are_kept() {
        let mut cursor = Cursor::default();
        cursor.rewind();
        let numbers = 1..=MAX_ENDS as u32 + 5;
        for number in numbers.clone() {
            cursor.ended(u64::from(number) * 100, number);
        }
        for number in numbers {
            let kept = (number > 5).then_some(number);
            assert_eq!(cursor.index(u64::from(number) * 100), kept, "{number}");
        }
        // One between others takes the place of the earliest; one that is there is told anew.
        cursor.ended(750, 70);
        cursor.ended(800, 80);
        let told = [600, 700, 750, 800, 900].map(|offset| cursor.index(offset));
        assert_eq!(told, [None, Some(7), Some(70), Some(80), Some(9)]);
        // One before all of them, too.
        cursor.ended(1, 1);
        assert_eq!([1, 700, 750].map(|offset| cursor.index(offset)), [Some(1), None, Some(70)]);
        cursor.rewind();
        assert_eq!(cursor.index(750), None);
    }
}
