//! The index of a transcript, made and kept up with what is appended.
//!
//! Owns: lines, how far a transcript has been read, and the check that what was read is still there. Must not know:
//! where a transcript comes from, or who waits for it.
//!
//! Only complete lines count. They are found in blocks and handed to the scanner where they lie; a line longer than a
//! block is handed over in pieces, so that one of any length takes the memory of a block.

use super::out::Out;
use super::scan::Scanner;
use super::tape::Tape;
use super::{Error, Format, Index, Source};
use crate::harness::{claude, codex};
use crate::qid::Hash;

/// An index being made or extended.
#[derive(Clone, Debug)]
pub struct Builder {
    records: Records,
    scanner: Scanner,
    out: Out,
    /// The end of the last complete line.
    covered: u64,
    /// The next byte to be read. It is past `covered` inside a line longer than a block, or behind half a line.
    at: u64,
    /// Whether `at` is behind half a line: there is no newline between `covered` and it.
    halted: bool,
    seal: Seal,
}

/// What a harness makes of its records.
#[derive(Clone, Debug, PartialEq)]
enum Records {
    Claude,
    Codex(codex::records::Thread),
}

/// Digests of bytes that were read: they tell a file that only grew from one that was written anew.
#[derive(Copy, Clone, Debug, Default)]
struct Seal {
    head: Stretch,
    tail: Stretch,
}

#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Stretch {
    start: u64,
    length: usize,
    digest: u64,
}

impl Builder {
    /// Before the first byte of a transcript. `bases` are the lengths of the files it continues, if it is a fork of
    /// others: they come before it in its source.
    pub fn new(format: Format, bases: &[u64]) -> Self {
        let (records, fields) = match format {
            Format::Claude => (Records::Claude, claude::records::fields()),
            Format::Codex => (Records::Codex(codex::records::Thread::default()), codex::records::fields()),
        };
        Self {
            records,
            scanner: Scanner::new(fields),
            out: Out::new(bases),
            covered: 0,
            at: 0,
            halted: false,
            seal: Seal::default(),
        }
    }

    /// Reads on, up to `end` at most and until `budget` bytes are used up (it is passed by less than a block). Answers
    /// whether everything up to `end` is in the index.
    ///
    /// # Errors
    /// Those of the source, after which it can be called again, and those of a transcript that is too large, after which
    /// it cannot.
    pub fn step(&mut self, source: &dyn Source, end: u64, budget: usize) -> Result<bool, Error> {
        // Large enough for the line that `at` may be in: half a line is read again from its beginning.
        let rest = usize::try_from(end.saturating_sub(self.covered)).unwrap_or(BLOCK);
        let mut block = vec![0; BLOCK.min(rest)];
        let mut left = budget;
        while self.at < end {
            if left == 0 {
                self.seal(source)?;
                return Ok(false);
            }
            let bound = self.bound();
            let limit = bound.unwrap_or(end);
            let want = block.len().min(usize::try_from(limit - self.at).unwrap_or(BLOCK));
            let got = source.read_at(&mut block[..want], self.at)?;
            let ends = got < want || self.at + got as u64 == limit;
            self.block(&block[..got], ends)?;
            left = left.saturating_sub(got);
            if self.memory() > LIMIT {
                return Err(Error::TooLarge);
            }
            match bound {
                // What a base's last line lacks is not in the next file.
                Some(bound) if ends && (got < want || self.at == limit) => self.next_file(bound),
                None if got < want => break,
                _ => {}
            }
        }
        self.seal(source)?;
        Ok(true)
    }

    /// The messages so far.
    pub fn index(&self) -> &Index {
        self.out.index()
    }

    /// How far the transcript has been looked at; a shorter one is another one.
    pub fn reach(&self) -> u64 {
        self.at
    }

    /// The lengths of the files the transcript continues, the oldest first.
    pub fn bases(&self) -> &[u64] {
        self.index().bases()
    }

    /// Where the transcript's own file begins.
    pub fn own_start(&self) -> u64 {
        self.bases().iter().sum()
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.out.memory() + self.scanner.memory()
    }

    /// Whether the first and the last bytes that were read are still what they were.
    ///
    /// # Errors
    /// Those of the source.
    pub fn holds(&self, source: &dyn Source) -> Result<bool, Error> {
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::ChatStale) {
            return Ok(true);
        }
        for stretch in [self.seal.head, self.seal.tail] {
            if Stretch::of(source, stretch.start, stretch.length)? != stretch {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether another builder says the same and will go on the same way: what is so for all ways of reading one file.
    pub fn equals(&self, other: &Self) -> bool {
        self.out.equals(&other.out)
            && self.records == other.records
            && (self.covered, self.at, self.halted) == (other.covered, other.at, other.halted)
    }

    /// Takes in a block that stands at `self.at`. `ends`: nothing follows it, now.
    fn block(&mut self, bytes: &[u8], ends: bool) -> Result<(), Error> {
        let base = self.at;
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::LineCut) {
            self.halted = false;
        }
        if self.halted {
            match memchr::memchr(b'\n', bytes) {
                None => self.at += bytes.len() as u64,
                Some(_) => {
                    #[cfg(feature = "planted")]
                    if engine::planted::is(engine::planted::Bug::LineTorn) {
                        self.covered = self.at;
                    }
                    self.at = self.covered;
                    self.halted = false;
                }
            }
            return Ok(());
        }
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', bytes) {
            self.piece(&bytes[start..newline], base + start as u64, true)?;
            start = newline + 1;
            self.covered = base + start as u64;
        }
        let rest = &bytes[start..];
        if ends && !(rest.is_empty() && self.covered == base + bytes.len() as u64) {
            #[cfg(feature = "planted")]
            if engine::planted::is(engine::planted::Bug::HalfLineTold) {
                self.piece(rest, base + start as u64, true)?;
            }
            self.scanner.reset();
            self.halted = true;
            self.at = base + bytes.len() as u64;
        } else if start == 0 {
            self.at = base + self.piece(rest, base, false)? as u64;
        } else {
            self.at = self.covered;
        }
        Ok(())
    }

    /// Takes in a line, or a piece of one. Answers how much of it was read.
    fn piece(&mut self, bytes: &[u8], base: u64, last: bool) -> Result<usize, Error> {
        let records = &self.records;
        let wanted = |tape: &Tape| match records {
            Records::Claude => claude::records::wanted(tape),
            Records::Codex(thread) => thread.wanted(tape),
        };
        let read = self.scanner.feed(bytes, base, last, &wanted)?;
        if last {
            if let Some(record) = self.scanner.record().and_then(Tape::record) {
                match &mut self.records {
                    Records::Claude => claude::records::read(record, &mut self.out)?,
                    Records::Codex(thread) => thread.read(record, &mut self.out)?,
                }
            }
            self.scanner.reset();
        }
        Ok(read)
    }

    /// Where the base ends that is being read, if it is one.
    fn bound(&self) -> Option<u64> {
        let mut end = 0;
        let mut ends = self.bases().iter().map(|length| {
            end += length;
            end
        });
        ends.find(|end| *end > self.at)
    }

    /// Goes on with the file behind a base.
    fn next_file(&mut self, bound: u64) {
        self.scanner.reset();
        self.halted = false;
        self.covered = bound;
        self.at = bound;
        if let Records::Codex(thread) = &mut self.records {
            thread.next_file();
        }
    }

    /// Keeps what [`Builder::holds`] compares: bytes of the transcript's own file.
    fn seal(&mut self, source: &dyn Source) -> Result<(), Error> {
        let own = self.own_start();
        let read = self.at.saturating_sub(own);
        let length = SEAL.min(usize::try_from(read).unwrap_or(SEAL));
        if self.seal.head.length < length {
            self.seal.head = Stretch::of(source, own, length)?;
        }
        self.seal.tail = Stretch::of(source, own + read - length as u64, length)?;
        Ok(())
    }
}

impl Stretch {
    fn of(source: &dyn Source, start: u64, length: usize) -> Result<Self, Error> {
        if length == 0 {
            return Ok(Self::default());
        }
        let mut bytes = [0; SEAL];
        let got = source.read_at(&mut bytes[..length], start)?;
        Ok(Self { start, length, digest: Hash::new().bytes(&bytes[..got]).finish() })
    }
}

/// The most bytes an index may take, and all indexes together.
pub const LIMIT: usize = super::scan::LIMIT;
/// Bytes read at once: they stay in the second-level cache between the search for newlines and the scan.
const BLOCK: usize = 256 * 1024;
/// Bytes of a stretch.
const SEAL: usize = 256;
const _: () = assert!(BLOCK > 2 * super::scan::TAIL);
