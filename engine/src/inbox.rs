//! Bytes received and not yet acted on.
//!
//! Owns: where the next frame begins, how much memory that takes, and passing over the rest of a frame that nobody wants.
//! Must not know: what a frame says, or who pays for the memory.

use alloc::vec::Vec;

use proto::frame::{self, Next};

/// The inbox.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    read: usize,
    /// How much is still to come of a frame that is passed over.
    passed: usize,
    /// Frames that are done with.
    frames: u64,
}

impl Inbox {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (passed, bytes) = bytes.split_at(self.passed.min(bytes.len()));
        if !passed.is_empty() {
            self.passed -= passed.len();
            self.frames += u64::from(self.passed == 0);
        }
        if self.read > self.bytes.len() / 2 {
            // Less is moved than was read since the last time, so that however the bytes come in, each is moved once.
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        let size = self.bytes.len() + bytes.len();
        if size > self.bytes.capacity() && size > LARGE {
            // What is large does not grow to twice its size.
            self.bytes.reserve_exact(size.next_multiple_of(LARGE) - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Makes room for so many bytes more, which are sure to come or to be waited for.
    pub(crate) fn reserve(&mut self, missing: usize) {
        if missing > LARGE {
            self.bytes.drain(..self.read);
            self.read = 0;
            self.bytes.reserve_exact(missing);
        }
    }

    /// The front of what is not done with: whole frames, and the beginning of another.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// Bytes that are not done with.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.read
    }

    /// Bytes that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// The first frame, which is so long, is done with.
    pub(crate) fn consume(&mut self, size: usize) {
        self.read += size;
        self.frames += 1;
        self.settle();
    }

    /// Drops what there is of the only frame, and whatever comes of its rest.
    pub(crate) fn pass_over(&mut self, missing: usize) {
        self.read = self.bytes.len();
        self.passed = missing;
        self.settle();
    }

    /// The number of the frame whose rest is to come, if the front is not a whole one. `bound` is the largest frame allowed.
    pub(crate) fn unfinished(&self, bound: u32) -> Option<u64> {
        let begun = self.len() > 0 && matches!(frame::next(self.unread(), bound), Next::More(_));
        (begun || self.passed > 0).then_some(self.frames)
    }

    /// Gives memory back.
    pub(crate) fn trim(&mut self) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.shrink_to_fit();
    }

    fn settle(&mut self) {
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
            self.bytes.shrink_to(LARGE);
        }
    }
}

/// From here on memory grows by what is needed, in steps of this, and is given back as soon as it is not needed.
const LARGE: usize = 64 * 1024;
