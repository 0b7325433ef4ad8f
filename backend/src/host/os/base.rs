//! The pinned base directories.
//!
//! Owns: a descriptor for each base and the knowledge whether it still is the base. Must not know: what lies below.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use engine::port::Effort;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::coarse_ns;
use super::names::PlainDirs;
use super::resolve::{Kernel, Place};
use crate::host::Meta;

/// The path of a base, and the directory it led to when it was last looked at.
///
/// Resolution needs a descriptor of the base for every call, and opening the path each time would double what most calls
/// cost. So the descriptor is kept, and the path is followed again in two cases: when
/// that was last done more than [`FRESH_NS`] ago, and before anything is said not to exist. A base that is replaced is
/// therefore served for at most as long as an open file is before it is checked (contract, section 9), a base that was
/// moved away and came back is found at once, and a burst of requests follows the path ten times a second.
///
/// While the descriptor is open its inode cannot be given to another directory, so device and inode tell whether the
/// path still leads to it.
#[derive(Debug)]
pub(super) struct Pin {
    path: PathBuf,
    crossable: bool,
    current: RwLock<Option<Arc<Base>>>,
}

/// A base directory.
#[derive(Debug)]
pub(super) struct Base {
    /// `O_PATH`.
    pub(super) fd: OwnedFd,
    pub(super) dev: u64,
    ino: u64,
    pub(super) place: Arc<Place>,
    pub(super) plain: PlainDirs,
    looked_ns: AtomicU64,
}

impl Pin {
    /// `crossable`: mounts below may be entered.
    pub(super) fn new(path: PathBuf, crossable: bool) -> Self {
        Self { path, crossable, current: RwLock::new(None) }
    }

    /// Where it is, as it was configured.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The base, looked at no longer than [`FRESH_NS`] ago. `NOENT` while there is none.
    pub(super) fn base(&self, kernel: &Kernel, effort: Effort) -> Result<Arc<Base>, Errno> {
        match self.current() {
            Some(base) if coarse_ns().saturating_sub(base.looked_ns.load(Relaxed)) < FRESH_NS => Ok(base),
            known => self.look(known, kernel, effort),
        }
    }

    /// The base as it is now.
    pub(super) fn renewed(&self, kernel: &Kernel, effort: Effort) -> Result<Arc<Base>, Errno> {
        self.look(self.current(), kernel, effort)
    }

    fn look(&self, known: Option<Arc<Base>>, kernel: &Kernel, effort: Effort) -> Result<Arc<Base>, Errno> {
        let looked_ns = coarse_ns();
        let fd = match kernel.open_base(&self.path, effort) {
            Ok(fd) => fd,
            Err(Errno::AGAIN) => return Err(Errno::AGAIN),
            Err(gone) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
                // What is no directory, or a link to nothing, is as good as no base.
                return Err(if matches!(gone, Errno::NOTDIR | Errno::LOOP) { Errno::NOENT } else { gone });
            }
        };
        if effort == Effort::Cached && !known.as_ref().is_some_and(|base| base.place.traits.local) {
            return Err(Errno::AGAIN);
        }
        let meta = super::meta(fd.as_fd(), "", AtFlags::empty())?;
        if let Some(base) = known.filter(|base| (base.dev, base.ino) == (meta.dev, meta.ino)) {
            base.looked_ns.store(looked_ns, Relaxed);
            return Ok(base);
        }
        if effort == Effort::Cached {
            return Err(Errno::AGAIN);
        }
        let place = Place::new(kernel.traits(fd.as_fd()), self.crossable);
        let base = Arc::new(Base::new(fd, &meta, place, looked_ns));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(base.clone());
        Ok(base)
    }

    fn current(&self) -> Option<Arc<Base>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Base {
    pub(super) fn new(fd: OwnedFd, meta: &Meta, place: Place, looked_ns: u64) -> Self {
        Self {
            fd,
            dev: meta.dev,
            ino: meta.ino,
            place: Arc::new(place),
            plain: PlainDirs::default(),
            looked_ns: AtomicU64::new(looked_ns),
        }
    }

    /// What the directory itself is now; `NOENT` if it was removed.
    pub(super) fn meta(&self) -> Result<Meta, Errno> {
        let meta = super::meta(self.fd.as_fd(), "", AtFlags::empty())?;
        if meta.nlink == 0 { Err(Errno::NOENT) } else { Ok(meta) }
    }
}

/// How long a base is taken to be what its path leads to.
const FRESH_NS: u64 = 100_000_000;
