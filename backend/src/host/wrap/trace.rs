//! Writing calls down.
//!
//! Owns: the hash over all calls and answers, and how a line looks.

use std::sync::{Arc, Mutex};

use engine::port::Effort;

use super::{Call, Fault, Said, Traced, Verb, Watch, lock};
use crate::host::{Host, Meta};

impl Traced {
    /// Only a hash is kept: of every call and every answer, in their order.
    #[must_use]
    pub fn new(inner: Arc<dyn Host>) -> Self {
        Self::with(inner, Trace { log: Mutex::new(Log { hash: HASH_SEED, calls: 0, lines: None }) })
    }

    /// Each call and the end of its answer are kept as a line too.
    #[must_use]
    pub fn with_lines(inner: Arc<dyn Host>) -> Self {
        let traced = Self::new(inner);
        lock(&traced.watch.log).lines = Some(Vec::new());
        traced
    }

    /// A hash of all so far. It is the same wherever the same calls got the same answers.
    #[must_use]
    pub fn hash(&self) -> u64 {
        lock(&self.watch.log).hash
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> u64 {
        lock(&self.watch.log).calls
    }

    /// Takes the lines that were kept.
    #[must_use]
    pub fn take_lines(&self) -> Vec<String> {
        lock(&self.watch.log).lines.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// What [`Traced`] keeps.
#[derive(Debug)]
pub struct Trace {
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    hash: u64,
    calls: u64,
    lines: Option<Vec<String>>,
}

impl Watch for Trace {
    fn before(&self, call: &Call<'_>) -> Option<Fault> {
        let mut log = lock(&self.log);
        log.calls += 1;
        let (number, one, other) = match call.verb {
            Verb::Stat => (1, 0, 0),
            Verb::Walk { from } => (2, from as u64, 0),
            Verb::Open => (3, 0, 0),
            Verb::OpenDir => (4, 0, 0),
            Verb::ReadLink => (5, 0, 0),
            Verb::StatLink => (6, 0, 0),
            Verb::User { uid } => (7, u64::from(uid), 0),
            Verb::Group { gid } => (8, u64::from(gid), 0),
            Verb::IsBase => (9, 0, 0),
            Verb::MachineId => (10, 0, 0),
            Verb::Read { offset, bytes } => (11, offset, bytes as u64),
            Verb::FileMeta => (12, 0, 0),
            Verb::Names => (13, 0, 0),
            Verb::EntryStat => (14, 0, 0),
            Verb::LookUp => (15, 0, 0),
            Verb::MayRun => (16, 0, 0),
            Verb::IsLive => (17, 0, 0),
            Verb::Hold { pid } => (18, u64::from(pid), 0),
            Verb::Spawn => (19, 0, 0),
            Verb::Signal { pid, what } => (20, u64::from(pid), what as u64),
            Verb::HasEnded { pid } => (21, u64::from(pid), 0),
        };
        let root = call.root.map_or(0, |root| root as u64 + 1);
        let effort = u64::from(call.effort == Effort::Full);
        log.words(&[number << 8 | root << 1 | effort, one, other]);
        log.bytes(call.path.as_bytes());
        None
    }

    fn said(&self, call: &Call<'_>, said: Said<'_>) {
        let mut log = lock(&self.log);
        match said {
            Said::Meta(meta) => log.meta(meta),
            Said::Bytes(bytes) => log.bytes(bytes),
            Said::Flag(flag) => log.words(&[u64::from(flag)]),
            Said::Done => log.words(&[DONE]),
            Said::Failed(error) => log.words(&[FAILED, u64::from(error.raw_os_error().unsigned_abs())]),
        }
        let end = match said {
            Said::Done => "done".to_owned(),
            Said::Failed(error) => format!("{error}"),
            Said::Meta(_) | Said::Bytes(_) | Said::Flag(_) => return,
        };
        if let Some(lines) = &mut log.lines {
            lines.push(format!("{call}: {end}"));
        }
    }
}

impl Log {
    fn words(&mut self, words: &[u64]) {
        for word in words {
            self.hash = (self.hash ^ word).wrapping_mul(HASH_FACTOR).rotate_left(29);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.words(&[bytes.len() as u64]);
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.words(&[u64::from_le_bytes(word)]);
        }
    }

    fn meta(&mut self, meta: &Meta) {
        let Meta { kind, dev, ino, btime, handle, mtime, ctime, atime, size, uid, gid, nlink } = *meta;
        self.words(&[kind as u64, dev, ino, handle, size, u64::from(uid), u64::from(gid), u64::from(nlink)]);
        self.words(&[u64::from(btime.is_some())]);
        for time in btime.into_iter().chain([mtime, ctime, atime]) {
            self.words(&[time.sec.cast_unsigned(), u64::from(time.nsec)]);
        }
    }
}

const HASH_SEED: u64 = 0x9ae1_6a3b_2f90_404f;
/// Odd, so that no bit is lost.
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Words that end an answer.
const DONE: u64 = 0xd07e;
const FAILED: u64 = 0xfa11;
