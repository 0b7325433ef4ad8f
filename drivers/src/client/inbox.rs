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

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;

    #[test]
    fn frames_are_whole_and_memory_is_bounded() {
        let mut inbox = Inbox::default();
        let mut wire = Endless { at: 0 };
        for _ in 0..20_000 {
            assert_eq!(inbox.frame(&mut wire, 1000).unwrap(), FRAME);
        }
        assert!(inbox.bytes.capacity() <= 4 * RECEIVE_BYTES_MIN, "{}", inbox.bytes.capacity());
    }

    #[test]
    fn an_impossible_size_is_refused_before_anything_is_made_room_for() {
        for size in [0, 6, 1001, u32::MAX] {
            let mut inbox = Inbox { bytes: size.to_le_bytes().to_vec(), done: 0 };
            let error = inbox.frame(&mut Endless { at: 0 }, 1000).unwrap_err();
            assert!(matches!(error, Error::Protocol(_)), "{size}: {error}");
            assert!(inbox.bytes.capacity() < 100);
        }
    }

    /// The same frame over and over, cut anywhere.
    struct Endless {
        at: usize,
    }

    impl Wire for Endless {
        fn send(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
            let count = 1 + self.at % 40;
            into.extend((0..count).map(|more| FRAME[(self.at + more) % FRAME.len()]));
            self.at += count;
            Ok(count)
        }

        fn set_patience(&mut self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }
    }

    const FRAME: &[u8] = &[13, 0, 0, 0, 117, 1, 0, 2, 0, 0, 0, 8, 9];
}
