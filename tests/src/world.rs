//! What is on the disk of a test: a declaration that each rig realises in its own way.
//!
//! Owns: the declaration, the edits a case makes while the server runs, and the pattern of large files. Must not know:
//! where a world is realised, or what the server makes of it.
//!
//! A path begins with the name of a root (`hermes/notes.txt`) and is what the tree serves it under; `claude` and `codex`
//! serve some of their directories only. Directories on the way are made as needed. Paths are bytes: a file's name need
//! not be UTF-8.

/// The files of a test.
#[derive(Clone, Debug, Default)]
pub struct WorldSpec {
    entries: Vec<(Vec<u8>, Entry)>,
    descriptors: Option<u64>,
    in_memory: bool,
}

/// What stands at a path.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A directory.
    Dir,
    /// A regular file.
    File(Content),
    /// A symbolic link that says this.
    Link(Vec<u8>),
    /// A second name of an earlier entry.
    HardLink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

/// What a file holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many bytes of [`fill`].
    Pattern {
        /// Which pattern.
        seed: u64,
        /// How many bytes.
        len: u64,
    },
    /// Nothing but zeros, and then an end.
    Sparse {
        /// How many zeros, which take no space.
        hole: u64,
        /// What follows them.
        end: Vec<u8>,
    },
}

/// A change while the server runs.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Makes something where nothing is.
    Make(Vec<u8>, Entry),
    /// Replaces a file's content in place: the file stays the same file.
    Write(Vec<u8>, Vec<u8>),
    /// Adds to the end of a file.
    Append(Vec<u8>, Vec<u8>),
    /// Moves one path to another, over whatever is there.
    Rename(Vec<u8>, Vec<u8>),
    /// Removes a file, or a directory with all that is in it.
    Remove(Vec<u8>),
    /// Sets the time of the last change, in seconds since 1970.
    Touch(Vec<u8>, u32),
}

impl WorldSpec {
    /// A world of empty roots.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a directory.
    #[must_use]
    pub fn dir(self, path: impl AsRef<[u8]>) -> Self {
        self.with(path, Entry::Dir)
    }

    /// With a file.
    #[must_use]
    pub fn file(self, path: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Self {
        self.with(path, Entry::File(Content::Bytes(bytes.as_ref().to_vec())))
    }

    /// With a file of a pattern.
    #[must_use]
    pub fn pattern(self, path: impl AsRef<[u8]>, seed: u64, len: u64) -> Self {
        self.with(path, Entry::File(Content::Pattern { seed, len }))
    }

    /// With a file that is nearly all hole.
    #[must_use]
    pub fn sparse(self, path: impl AsRef<[u8]>, hole: u64, end: impl AsRef<[u8]>) -> Self {
        self.with(path, Entry::File(Content::Sparse { hole, end: end.as_ref().to_vec() }))
    }

    /// Served by a process that may have so many descriptors. Only for cases that declare
    /// [`Need::Process`](crate::rig::Need::Process).
    #[must_use]
    pub fn descriptors(self, limit: u64) -> Self {
        Self { descriptors: Some(limit), ..self }
    }

    /// On a filesystem in memory, if there is one: for thousands of files about whose filesystem a case does not care.
    #[must_use]
    pub fn in_memory(self) -> Self {
        Self { in_memory: true, ..self }
    }

    /// With anything.
    #[must_use]
    pub fn with(mut self, path: impl AsRef<[u8]>, entry: Entry) -> Self {
        self.entries.push((path.as_ref().to_vec(), entry));
        self
    }

    /// The entries, in the order in which they are to be made.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.entries.iter().map(|(path, entry)| (&path[..], entry))
    }

    /// Whether a filesystem in memory is as good as any.
    pub fn may_be_in_memory(&self) -> bool {
        self.in_memory
    }

    /// How many descriptors the server may have, if it is to be a process of its own.
    pub fn descriptor_limit(&self) -> Option<u64> {
        self.descriptors
    }
}

impl Content {
    /// How many bytes it is.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Pattern { len, .. } => *len,
            Self::Sparse { hole, end } => hole + end.len() as u64,
        }
    }

    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies what there is from `offset` on; yields how many bytes.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(offset).min(out.len() as u64) as usize;
        let out = &mut out[..count];
        match self {
            Self::Bytes(bytes) if count > 0 => out.copy_from_slice(&bytes[offset as usize..][..count]),
            Self::Bytes(_) => {}
            Self::Pattern { seed, .. } => fill(*seed, offset, out),
            Self::Sparse { hole, end } => {
                for (place, byte) in (offset..).zip(out) {
                    *byte = place.checked_sub(*hole).map_or(0, |at| end[at as usize]);
                }
            }
        }
        count
    }

    /// All of it. For contents that fit memory comfortably.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len() as usize];
        self.read_at(0, &mut bytes);
        bytes
    }
}

impl Edit {
    /// Makes a file where nothing is.
    pub fn file(path: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Make(path.as_ref().to_vec(), Entry::File(Content::Bytes(bytes.as_ref().to_vec())))
    }

    /// Makes anything where nothing is.
    pub fn make(path: impl AsRef<[u8]>, entry: Entry) -> Self {
        Self::Make(path.as_ref().to_vec(), entry)
    }

    /// Replaces a file's content in place.
    pub fn write(path: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Write(path.as_ref().to_vec(), bytes.as_ref().to_vec())
    }

    /// Adds to the end of a file.
    pub fn append(path: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Append(path.as_ref().to_vec(), bytes.as_ref().to_vec())
    }

    /// Moves one path to another.
    pub fn rename(from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Self {
        Self::Rename(from.as_ref().to_vec(), to.as_ref().to_vec())
    }

    /// Removes a file or a whole directory.
    pub fn remove(path: impl AsRef<[u8]>) -> Self {
        Self::Remove(path.as_ref().to_vec())
    }

    /// Sets the time of the last change.
    pub fn touch(path: impl AsRef<[u8]>, seconds: u32) -> Self {
        Self::Touch(path.as_ref().to_vec(), seconds)
    }
}

/// Fills `out` with what pattern `seed` holds from `offset` on. Every eight bytes depend on their place, so a byte that
/// comes from somewhere else is seen.
pub fn fill(seed: u64, offset: u64, out: &mut [u8]) {
    let mut at = 0;
    while at < out.len() {
        let place = offset + at as u64;
        let word = mix(seed ^ (place / 8)).to_le_bytes();
        let within = (place % 8) as usize;
        let count = (8 - within).min(out.len() - at);
        out[at..at + count].copy_from_slice(&word[within..within + count]);
        at += count;
    }
}

/// A number that looks like chance and is none (the finaliser of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn a_pattern_is_the_same_however_it_is_cut() {
        let mut whole = [0; 100];
        fill(7, 0, &mut whole);
        for start in 0..50 {
            for len in 0..50 {
                let mut part = vec![0; len];
                fill(7, start as u64, &mut part);
                assert_eq!(part, whole[start..start + len]);
            }
        }
        let mut other = [0; 100];
        fill(8, 0, &mut other);
        assert_ne!(whole, other);
    }
}
