//! An open regular file.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use engine::port::Effort;
use rustix::fs::AtFlags;
use rustix::io::{Errno, ReadWriteFlags};

use super::filesystem::Reads;
use super::resolve::{Place, in_words_of_open};
use crate::host::{File, Meta};

/// A descriptor opened for reading, and what its filesystem allows.
#[derive(Debug)]
pub(super) struct OsFile {
    fd: OwnedFd,
    place: Arc<Place>,
}

impl OsFile {
    pub(super) fn new(fd: OwnedFd, place: Arc<Place>) -> Self {
        Self { fd, place }
    }

    /// Reads what is in memory. A read with `RWF_NOWAIT` stops early where waiting would begin, and at the end of the
    /// file: only a further one that gets nothing tells which it was (preadv2(2)).
    fn read_cached(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        if self.place.lacks_nowait.load(Relaxed) {
            return self.read_unless_nowait(buf, offset);
        }
        let nowait = |buf: &mut [u8], at| {
            rustix::io::preadv2(&self.fd, &mut [IoSliceMut::new(buf)], at, ReadWriteFlags::NOWAIT)
        };
        match fill(buf, offset, nowait) {
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
                self.place.lacks_nowait.store(true, Relaxed);
                self.read_unless_nowait(buf, offset)
            }
            answer => answer,
        }
    }

    fn read_unless_nowait(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        match self.place.traits.unless_nowait {
            Reads::Inline => self.read_full(buf, offset),
            Reads::Full => Err(Errno::AGAIN),
        }
    }

    fn read_full(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        fill(buf, offset, |buf, at| rustix::io::pread(&self.fd, buf, at))
    }
}

impl File for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64, effort: Effort) -> Result<usize, Errno> {
        match effort {
            Effort::Cached if self.place.traits.opens_plainly => Err(Errno::AGAIN),
            Effort::Cached => self.read_cached(buf, offset),
            Effort::Full => match self.read_full(buf, offset) {
                Err(Errno::AGAIN) => Err(Errno::IO),
                answer => answer,
            },
        }
        .map_err(in_words_of_open)
    }

    fn meta(&self) -> Result<Meta, Errno> {
        super::meta(self.fd.as_fd(), "", AtFlags::empty()).map_err(in_words_of_open)
    }

    fn tells_replacement(&self) -> bool {
        self.place.traits.tells_replacement
    }
}

/// Reads until the buffer is full or nothing comes any more.
fn fill(
    buf: &mut [u8],
    offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut done = 0;
    // The kernel refuses offsets past 2^63; no file reaches them.
    let room = usize::try_from(FURTHEST.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
    while done < room {
        match read(&mut buf[done..room], offset + done as u64) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// `loff_t` ends here.
const FURTHEST: u64 = i64::MAX as u64;

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, OFlags};

    use super::super::filesystem::Traits;
    use super::*;

    /// procfs refuses `RWF_NOWAIT`.
    #[test]
    fn where_nowait_is_refused_the_filesystem_decides_and_it_is_not_tried_again() {
        for (unless_nowait, expected) in [(Reads::Full, Err(Errno::AGAIN)), (Reads::Inline, Ok(5))] {
            let fd = rustix::fs::openat(CWD, "/proc/version", OFlags::RDONLY, Mode::empty()).expect("a file");
            let place = Arc::new(Place::new(Traits { unless_nowait, ..Traits::UNKNOWN }, true));
            let file = OsFile::new(fd, place.clone());
            let mut buf = [0; 5];
            for _ in 0..2 {
                assert_eq!(file.read_at(&mut buf, 0, Effort::Cached), expected);
                assert!(place.lacks_nowait.load(Relaxed));
            }
            assert_eq!(file.read_at(&mut buf, 0, Effort::Full), Ok(5));
            assert_eq!(&buf, b"Linux");
        }
    }
}
