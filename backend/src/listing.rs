//! Listings of real directories: a snapshot of the names, and the entries' records as they are asked for.
//!
//! Owns: the names of an open directory, what they may cost, and how entries are packed. Must not know: where the
//! directory stands in the tree.
//!
//! The names are read at once and kept, because a directory that changes under a reader must not shift: an index into
//! the snapshot stays what it was. The records are taken when they are packed, and what is gone by then is left out. A
//! snapshot is complete or an error, because nobody can tell a short listing from a small directory.
//!
//! All of it waits: reading names waits for the disk, and so does the first stat of a file. It runs with full effort.

use std::sync::Arc;

use engine::port::{Effort, Room};
use proto::Refusal;

use crate::budget::{Budget, Charge};
use crate::host::{Dir, Errno, Host};
use crate::mirror::Mirrored;
use crate::name::{Name, Root};
use crate::qid;
use crate::tree::facts::{self, Facts};
use crate::tree::halt::Halt;

/// An open directory and its names.
pub(crate) struct Listing {
    /// Where it is, to begin anew.
    pub(crate) at: Mirrored,
    names: Names,
    /// `None` when the process holds as many descriptors as it may: each entry is then looked up by its whole path.
    dir: Option<Held>,
}

/// A descriptor, its share of the bound, and what it leads to.
struct Held {
    dir: Box<dyn Dir>,
    path: u64,
    _slot: Charge,
}

/// Takes listings.
pub(crate) struct Listings {
    host: Arc<dyn Host>,
    /// Descriptors.
    pins: Arc<Budget>,
    /// Bytes of names.
    names: Arc<Budget>,
}

impl Listings {
    /// Of one machine; as many descriptors are kept as `pins` has units, and as many bytes of names as `names` has.
    pub(crate) fn new(host: Arc<dyn Host>, pins: Arc<Budget>, names: Arc<Budget>) -> Self {
        Self { host, pins, names }
    }

    /// Reads the names of a directory.
    pub(crate) fn take(&self, at: &Mirrored) -> Result<Listing, Halt> {
        let none = || Names::new(at.root(), &self.names);
        let (names, dir) = match self.host.open_dir(at.root(), at.rel()) {
            Ok((dir, meta)) => {
                let names = Names::read(&*dir, none()?, DIRECTORY_NAMES_BYTES)?;
                let slot = self.pins.take(1);
                (names, slot.map(|slot| Held { dir, path: qid::path(&meta), _slot: slot }))
            }
            // An entry that is there without a target is empty.
            Err(Errno::NOENT | Errno::NOTDIR) if at.is_lasting() => (none()?, None),
            // It was a directory when it was walked to: that one is gone.
            Err(Errno::NOTDIR) => return Err(Refusal::NOT_FOUND.into()),
            Err(errno) => return Err(errno.into()),
        };
        Ok(Listing { at: at.clone(), names, dir })
    }

    /// Packs entries from index `from` on, as many as fit. Answers the index of the first that was not packed.
    pub(crate) fn pack(&self, listing: &Listing, from: u32, room: &mut Room<'_>) -> Result<u32, Halt> {
        let Listing { at, names, dir } = listing;
        // The descriptor saves looking the path up for each entry; what counts is the path. One that leads elsewhere
        // by now (the directory was renamed, to a hidden name for all anyone knows) is of no use.
        let dir = match dir {
            Some(held) if from == 0 || self.leads_to(at, held.path)? => Some(&held.dir),
            _ => None,
        };
        facts::pack(room, &*self.host, from, names.len(), |index| {
            // What could not be walked to is not listed either.
            let Some(name) = names.get(index).filter(|name| at.reaches(*name)) else {
                return Ok(None);
            };
            let meta = match dir {
                Some(dir) => dir.stat(name),
                None => self.host.stat(at.root(), &at.rel().join(name), Effort::Full),
            };
            match meta {
                Ok(meta) => Ok(Facts::of_file(&meta).map(|facts| (name.as_str().into(), facts))),
                Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
                Err(errno) => Err(errno.into()),
            }
        })
    }

    /// Whether a path still leads to the file of this identity.
    fn leads_to(&self, at: &Mirrored, path: u64) -> Result<bool, Errno> {
        match self.host.stat(at.root(), at.rel(), Effort::Full) {
            Ok(meta) => Ok(qid::path(&meta) == path),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// Names that may be served, sorted bytewise, each once.
///
/// One block of bytes holds them all, each behind its length in one byte, and one block of numbers says where they
/// begin: five bytes a name beside the name itself.
struct Names {
    root: Root,
    bytes: Vec<u8>,
    starts: Vec<u32>,
    /// For the capacity of both blocks.
    charge: Charge,
}

impl Names {
    fn new(root: Root, budget: &Arc<Budget>) -> Result<Self, Halt> {
        let charge = budget.take(0).ok_or(Refusal::LISTINGS_TOO_LARGE)?;
        Ok(Self { root, bytes: Vec::new(), starts: Vec::new(), charge })
    }

    /// Fills `names` from a directory, unless they take more than `limit` bytes.
    fn read(dir: &dyn Dir, mut names: Self, limit: usize) -> Result<Self, Halt> {
        let mut full = None;
        let listed = dir.names(&mut |bytes| match vetted(bytes, names.root) {
            Some(name) => {
                full = names.push(name, limit).err();
                full.is_none()
            }
            None => true,
        });
        #[cfg(feature = "planted")]
        let listed = if engine::planted::is(engine::planted::Bug::ListingTorn) { Ok(()) } else { listed };
        listed?;
        match full {
            Some(refusal) => Err(refusal.into()),
            None => {
                names.settle();
                Ok(names)
            }
        }
    }

    /// Adds a name, if what all names take stays within `limit` and within the budget.
    fn push(&mut self, name: Name<'_>, limit: usize) -> Result<(), Refusal> {
        let name = name.as_bytes();
        let used = self.bytes.len() + self.starts.len() * START_BYTES;
        if used + 1 + name.len() + START_BYTES > limit {
            return Err(Refusal::LISTING_TOO_LARGE);
        }
        if self.bytes.capacity() - self.bytes.len() < 1 + name.len() {
            let more = self.bytes.capacity().clamp(LEAST_STEP_BYTES, MOST_STEP_BYTES);
            self.pay(more)?;
            self.bytes.reserve_exact(more);
        }
        if self.starts.len() == self.starts.capacity() {
            let more = (self.starts.capacity() * START_BYTES).clamp(LEAST_STEP_BYTES, MOST_STEP_BYTES);
            self.pay(more)?;
            self.starts.reserve_exact(more / START_BYTES);
        }
        self.starts.push(self.bytes.len() as u32);
        self.bytes.push(name.len() as u8);
        self.bytes.extend_from_slice(name);
        Ok(())
    }

    /// Sorts what was pushed, drops what a directory that changed meanwhile gave twice, and gives back spare room.
    fn settle(&mut self) {
        let Self { bytes, starts, charge, .. } = self;
        starts.sort_unstable_by(|a, b| at(bytes, *a).cmp(at(bytes, *b)));
        starts.dedup_by(|a, b| at(bytes, *a) == at(bytes, *b));
        bytes.shrink_to_fit();
        starts.shrink_to_fit();
        charge.shrink_to(bytes.capacity() + starts.capacity() * START_BYTES);
    }

    /// The name at an index. It is vetted once more: that is what makes bytes a name, wherever they were kept.
    fn get(&self, index: usize) -> Option<Name<'_>> {
        let start = self.starts.get(index)?;
        vetted(at(&self.bytes, *start), self.root)
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn pay(&mut self, bytes: usize) -> Result<(), Refusal> {
        if self.charge.grow(bytes) { Ok(()) } else { Err(Refusal::LISTINGS_TOO_LARGE) }
    }
}

/// The name that these bytes spell, if it may be served.
fn vetted(bytes: &[u8], root: Root) -> Option<Name<'_>> {
    #[cfg(feature = "planted")]
    if engine::planted::is(engine::planted::Bug::HiddenListed) {
        return str::from_utf8(bytes).ok().and_then(Name::of_harness);
    }
    Name::vet(bytes, root)
}

/// The name that begins at `start` with its length.
fn at(bytes: &[u8], start: u32) -> &[u8] {
    match &bytes[start as usize..] {
        [length, rest @ ..] => &rest[..usize::from(*length)],
        [] => &[],
    }
}

/// What one open directory's names may take (contract 9). Every start fits 32 bits.
const DIRECTORY_NAMES_BYTES: usize = 16 << 20;
/// What the names of all open directories may take.
pub(crate) const ALL_NAMES_BYTES: usize = 64 << 20;
/// What an index into the names takes.
const START_BYTES: usize = size_of::<u32>();
/// Room for names is taken in steps that double what is there, between these. They stay small beside the bounds, so
/// that a listing is not refused for room that it does not use.
const LEAST_STEP_BYTES: usize = 1 << 10;
const MOST_STEP_BYTES: usize = 1 << 18;

// A name's length is kept in one byte.
const _: () = assert!(Name::MAX_BYTES <= u8::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Meta;

    /// A directory of names only.
    struct Words(Vec<Vec<u8>>);

    impl Dir for Words {
        fn names(&self, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Errno> {
            self.0.iter().all(|name| each(name));
            Ok(())
        }

        fn stat(&self, _: Name<'_>) -> Result<Meta, Errno> {
            Err(Errno::NOENT)
        }
    }

    fn words(count: usize) -> Words {
        Words((0..count).rev().map(|n| format!("name-{n:08}").into_bytes()).collect())
    }

    fn read(dir: &Words, budget: &Arc<Budget>, limit: usize) -> Result<Names, Halt> {
        Names::read(dir, Names::new(Root::Claude, budget)?, limit)
    }

    fn spelt(names: &Names) -> Vec<&str> {
        (0..names.len()).map(|n| names.get(n).unwrap().as_str()).collect()
    }

    #[test]
    fn names_are_sorted_bytewise_each_once_and_hidden_ones_are_not_kept() {
        let dir = ["b", "a", "Z", "b", ".hidden.swp", "secret", "é", "a.b", "a-b"];
        let dir = Words(dir.map(|name| name.as_bytes().to_vec()).into());
        let names = read(&dir, &Budget::new(1 << 20), 1 << 20).unwrap();
        assert_eq!(spelt(&names), ["Z", "a", "a-b", "a.b", "b", "é"]);
        assert!(names.get(6).is_none());
    }

    #[test]
    fn the_longest_name_is_kept_whole() {
        let long = "x".repeat(Name::MAX_BYTES);
        let names = read(&Words(vec![long.clone().into()]), &Budget::new(1 << 20), 1 << 20).unwrap();
        assert_eq!(spelt(&names), [long]);
    }

    #[test]
    fn one_name_past_the_limit_of_a_directory_is_refused() {
        // Each of these takes 1 + 13 + 4 bytes.
        let budget = Budget::new(1 << 20);
        assert_eq!(read(&words(100), &budget, 1800).unwrap().len(), 100);
        let Err(Halt::Refused(refusal)) = read(&words(101), &budget, 1800) else {
            panic!("101 names fitted");
        };
        assert_eq!(refusal, Refusal::LISTING_TOO_LARGE);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn names_past_the_limit_of_all_are_refused_and_given_back() {
        let budget = Budget::new(40_000);
        let first = read(&words(1000), &budget, 1 << 20).unwrap();
        assert_eq!(budget.used(), 1000 * 18);
        let Err(Halt::Refused(refusal)) = read(&words(2000), &budget, 1 << 20) else {
            panic!("2000 names fitted");
        };
        assert_eq!(refusal, Refusal::LISTINGS_TOO_LARGE);
        assert_eq!(budget.used(), 1000 * 18);
        drop(first);
        assert_eq!(budget.used(), 0);
    }
}
