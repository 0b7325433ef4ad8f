//! Bytes from the server, until they are a whole frame.

use proto::frame::{self, Next};

use super::wire::Wire;
use super::{Error, unreachable_server};

/// Bytes received, and how many of them are done with.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    done: usize,
}

impl Inbox {
    /// Waits for the next whole frame. `bound` is the largest that the server may send.
    pub(super) fn frame(&mut self, wire: &mut dyn Wire, bound: u32) -> Result<&[u8], Error> {
        let size = loop {
            match frame::next(&self.bytes[self.done..], bound) {
                Next::Frame(size) => break size,
                Next::Broken => return Err(Error::Protocol("a frame of an impossible size")),
                Next::More(missing) => self.fill(wire, missing)?,
            }
        };
        let begin = self.done;
        self.done += size;
        Ok(&self.bytes[begin..self.done])
    }

    /// Receives something, with room for at least `missing` bytes, which the bound on frames bounds.
    fn fill(&mut self, wire: &mut dyn Wire, missing: usize) -> Result<(), Error> {
        let wanted = missing.max(RECEIVE_BYTES_MIN);
        if self.bytes.capacity() - self.bytes.len() < wanted {
            self.bytes.drain(..self.done);
            self.done = 0;
            self.bytes.reserve(wanted);
        }
        match wire.receive(&mut self.bytes) {
            Ok(0) => Err(Error::Closed),
            Ok(_) => Ok(()),
            Err(error) => Err(unreachable_server(error)),
        }
    }
}

/// The least room to receive into: what many small answers take.
const RECEIVE_BYTES_MIN: usize = 16 * 1024;
