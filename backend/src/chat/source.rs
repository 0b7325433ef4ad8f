//! Where the bytes of a transcript come from.
//!
//! Owns: the seam to files, and a fork's files as one. Must not know: which files.

use rustix::io::Errno;

/// A transcript's bytes, by offset.
pub trait Source: Send + Sync {
    /// Reads until `buf` is full or the transcript ends: fewer bytes mean its end.
    ///
    /// # Errors
    /// Those of the host. `AGAIN`: it would take too long at once, and a part of it is done; ask for the same again.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno>;
}

/// Bytes in memory.
impl Source for &[u8] {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buf.len());
        buf[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// Finds the files that a transcript may continue.
pub trait Library {
    /// The file with this id of its harness; `None` if there is none.
    ///
    /// # Errors
    /// Those of the host.
    fn find(&self, id: &str) -> Result<Option<Found>, Errno>;
}

/// A file that was found.
pub struct Found {
    /// Its text, decompressed.
    pub source: Box<dyn Source>,
    /// Its identity (contract 4).
    pub identity: u64,
}

/// Files that continue each other: a part from the front of each, and the whole of the last.
pub struct Chain {
    bases: Vec<Part>,
    own: Box<dyn Source>,
}

/// The front of a file that another one continues.
pub struct Part {
    /// The file.
    pub source: Box<dyn Source>,
    /// How many of its bytes count.
    pub length: u64,
}

impl Chain {
    /// The oldest base first.
    pub fn new(bases: Vec<Part>, own: Box<dyn Source>) -> Self {
        Self { bases, own }
    }

    /// A chain whose bases are not open: they read as [`Errno::NOENT`].
    pub fn behind(bases: &[u64], own: Box<dyn Source>) -> Self {
        let missing = |length: &u64| Part { source: Box::new(Missing), length: *length };
        Self { bases: bases.iter().map(missing).collect(), own }
    }

    /// How many bytes of each base count, the oldest first: what [`Builder::new`](super::Builder::new) takes.
    pub fn lengths(&self) -> Vec<u64> {
        self.bases.iter().map(|base| base.length).collect()
    }

    /// Where the last file begins.
    pub fn own_start(&self) -> u64 {
        self.bases.iter().map(|base| base.length).sum()
    }
}

struct Missing;

impl Source for Missing {
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize, Errno> {
        Err(Errno::NOENT)
    }
}

impl Source for Chain {
    /// A read does not go on from one file to the next.
    fn read_at(&self, buf: &mut [u8], mut offset: u64) -> Result<usize, Errno> {
        for base in &self.bases {
            if offset < base.length {
                let rest = usize::try_from(base.length - offset).unwrap_or(usize::MAX);
                let length = buf.len().min(rest);
                return base.source.read_at(&mut buf[..length], offset);
            }
            offset -= base.length;
        }
        self.own.read_at(buf, offset)
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("bases", &self.lengths()).finish_non_exhaustive()
    }
}
