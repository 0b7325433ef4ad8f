//! What carries a client's bytes.

use std::io;
use std::time::Duration;

use engine::port::Kinds;
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use crate::inproc::Inproc;

/// A way to a server and back: bytes in order, both ways.
pub trait Wire {
    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// The connection is of no further use; `TimedOut` if the server took nothing for as long as [`Wire::set_patience`] said.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Waits for bytes from the server and appends them to `into`, which has capacity to spare; yields how many came, and 0 only
    /// if no more will. A wire that is not a socket may append more than was spare.
    ///
    /// # Errors
    /// The connection is of no further use; `TimedOut` if nothing came for as long as [`Wire::set_patience`] said.
    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize>;

    /// How long a send or receive may wait for the server; `None` for ever.
    ///
    /// # Errors
    /// The wire cannot wait like that.
    fn set_patience(&mut self, patience: Option<Duration>) -> io::Result<()>;
}

/// A connected stream socket, unix or TCP.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// A wire over a socket that blocks.
    pub const fn new(connected: OwnedFd) -> Self {
        Self(connected)
    }
}

impl Wire for Socket {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failure(errno)),
            }
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            match rustix::net::recv(&self.0, spare_capacity(into), RecvFlags::empty()) {
                Ok((received, _)) => return Ok(received),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failure(errno)),
            }
        }
    }

    fn set_patience(&mut self, patience: Option<Duration>) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, patience)?;
        sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Send, patience)?;
        Ok(())
    }
}

/// What a call on a socket failed with. One whose time is up says EAGAIN (socket(7), SO_RCVTIMEO).
fn failure(errno: Errno) -> io::Error {
    if errno == Errno::AGAIN { io::ErrorKind::TimedOut.into() } else { errno.into() }
}

/// A session in this process. There is nobody to wait for but ourselves, so patience is not needed.
impl<K: Kinds> Wire for Inproc<K> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        Self::send(self, bytes)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        Ok(Self::receive(self, into))
    }

    fn set_patience(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_server_that_is_silent_or_deaf_does_not_hold_us() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut wire = Socket::new(ours.into());
        wire.set_patience(Some(Duration::from_millis(20))).unwrap();
        let silent = wire.receive(&mut Vec::with_capacity(10)).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        let deaf = wire.send(&vec![0; 64 << 20]).unwrap_err();
        assert_eq!(deaf.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn bytes_are_appended_and_the_end_is_told() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut ours, mut theirs) = (Socket::new(ours.into()), Socket::new(theirs.into()));
        theirs.send(b"bytes").unwrap();
        let mut received = b"some ".to_vec();
        received.reserve(100);
        assert_eq!(ours.receive(&mut received).unwrap(), 5);
        assert_eq!(received, b"some bytes");
        drop(theirs);
        assert_eq!(ours.receive(&mut received).unwrap(), 0);
        assert_eq!(ours.send(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
