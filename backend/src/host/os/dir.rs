//! An open directory.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::filesystem::Names;
use super::names;
use super::resolve::{Kernel, Place, in_words, in_words_of_open};
use crate::host::{Dir, Meta};
use crate::name::Name;

/// A descriptor opened for listing.
#[derive(Debug)]
pub(super) struct OsDir {
    kernel: Arc<Kernel>,
    fd: OwnedFd,
    dev: u64,
    place: Arc<Place>,
    /// Held while entries are read: the descriptor has one position.
    scan: Mutex<Scan>,
    /// What was listed, where names have several spellings and so a name must have been listed.
    listed: Option<Mutex<BTreeSet<Box<[u8]>>>>,
}

#[derive(Debug, Default)]
struct Scan {
    /// The position is not the beginning.
    moved: bool,
    buffer: Vec<u8>,
}

impl OsDir {
    pub(super) fn new(kernel: Arc<Kernel>, fd: OwnedFd, dev: u64, place: Arc<Place>) -> Self {
        let several = match place.traits.names {
            Names::Exact => false,
            Names::PerDirectory => names::folds(fd.as_fd()),
            Names::Several => true,
        };
        let listed = several.then(Mutex::default);
        Self { kernel, fd, dev, place, scan: Mutex::default(), listed }
    }
}

impl Dir for OsDir {
    /// `each` may call [`Dir::stat`], but not this.
    fn names(&self, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Errno> {
        let mut scan = lock(&self.scan);
        if scan.moved {
            rustix::fs::seek(&self.fd, SeekFrom::Start(0)).map_err(in_words_of_open)?;
        }
        scan.moved = true;
        scan.buffer.clear();
        scan.buffer.reserve(SCAN_BYTES);
        let space: &mut [MaybeUninit<u8>] = scan.buffer.spare_capacity_mut();
        let mut entries = RawDir::new(&self.fd, space);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(in_words_of_open)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if let Some(listed) = &self.listed {
                lock(listed).insert(name.into());
            }
            if !each(name) {
                break;
            }
        }
        Ok(())
    }

    /// Where names have several spellings, only a name that [`Dir::names`] has given is known.
    ///
    /// One statx, which also asks a filesystem that is mounted on the entry and only then is found barred. If that is the
    /// tree this process serves, another thread has to answer: listings are for threads that may wait.
    fn stat(&self, name: Name<'_>) -> Result<Meta, Errno> {
        if let Some(listed) = &self.listed
            && !lock(listed).contains(name.as_bytes())
        {
            return Err(Errno::NOENT);
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let meta = super::meta(self.fd.as_fd(), name.as_str(), flags).map_err(in_words)?;
        if meta.dev != self.dev
            && (!self.place.crossable || self.kernel.bars(self.fd.as_fd(), name.as_str())?)
        {
            return Err(Errno::NOENT);
        }
        Ok(meta)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one getdents64(2) may fill: some 800 entries with the names of sessions.
const SCAN_BYTES: usize = 64 << 10;
