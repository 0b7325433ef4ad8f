//! Names that a directory finds under more than one spelling.
//!
//! Owns: whether a directory folds case, and whether it lists a name as it is spelled. Must not know: which names are
//! hidden.
//!
//! The boundary looks at the bytes of a name. Where a filesystem finds a file under other bytes than it lists (folded
//! case, the short names of FAT: `CREDEN~1.JSO`), those bytes have not passed, so a name there must also be listed.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{PoisonError, RwLock};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::coarse_ns;

/// The directories below a base that, like all those above them, were lately seen not to fold case.
///
/// The mark can only be set on an empty directory, so a directory that holds anything keeps what it is; another directory
/// under the same path is noticed within [`FRESH_NS`].
#[derive(Debug, Default)]
pub(super) struct PlainDirs(RwLock<BTreeMap<Box<str>, u64>>);

impl PlainDirs {
    /// Whether the directory with this path was lately seen to be plain.
    pub(super) fn knows(&self, path: &str) -> bool {
        let seen_ns = self.0.read().unwrap_or_else(PoisonError::into_inner).get(path).copied();
        seen_ns.is_some_and(|seen_ns| coarse_ns().saturating_sub(seen_ns) < FRESH_NS)
    }

    /// Remembers that the directory and all above it are plain.
    pub(super) fn remember(&self, path: &str) {
        let seen_ns = coarse_ns();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match known.get_mut(path) {
            Some(at) => *at = seen_ns,
            None => {
                if known.len() >= MOST {
                    known.retain(|_, at| seen_ns.saturating_sub(*at) < FRESH_NS);
                }
                if known.len() >= MOST {
                    known.clear();
                }
                known.insert(path.into(), seen_ns);
            }
        }
    }
}

/// Whether an open directory is marked as folding case. One that cannot say (its filesystem knows no flags) does not.
pub(super) fn folds(dir: BorrowedFd<'_>) -> bool {
    rustix::fs::ioctl_getflags(dir).is_ok_and(|flags| flags.bits() & FS_CASEFOLD_FL != 0)
}

/// Whether a directory lists the name, byte for byte. Reads the directory from where it stands.
pub(super) fn lists(dir: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
    let mut buffer = vec![MaybeUninit::uninit(); SCAN_BYTES];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        if entry?.file_name().to_bytes() == name.as_bytes() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Opens for reading the directory that an `O_PATH` descriptor holds.
pub(super) fn reopen_dir(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, c".", flags, Mode::empty())
}

/// `<linux/fs.h>`: lookups in this directory fold case.
const FS_CASEFOLD_FL: u32 = 0x4000_0000;
/// How long a directory is taken to be what it was.
const FRESH_NS: u64 = 1_000_000_000;
/// How many directories are remembered.
const MOST: usize = 4096;
/// What one getdents64(2) may fill.
const SCAN_BYTES: usize = 32 << 10;
