//! Where the bytes of a transcript come from.
//!
//! Owns: the seam to files. Must not know: which file.

use rustix::io::Errno;

/// A transcript's bytes, by offset.
pub trait Source {
    /// Reads until `buf` is full or the transcript ends: fewer bytes mean its end.
    ///
    /// # Errors
    /// Those of the host.
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
