//! A connection to a server, over any stream.
//!
//! Owns: the client's end of it. Must not know: what travels, or who serves.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::rig::{Received, Wire};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

/// One end of a stream: a socket, or a pair of pipes.
#[derive(Debug)]
pub struct Line {
    input: OwnedFd,
    /// Another descriptor than the input only for pipes; nothing once it is closed.
    output: Option<OwnedFd>,
}

impl Line {
    /// Connects to a unix socket.
    pub fn unix(path: &Path) -> Self {
        Self::socket(UnixStream::connect(path).expect("a connection"))
    }

    /// Connects to a TCP port.
    pub fn tcp(address: SocketAddr) -> Self {
        Self::socket(TcpStream::connect(address).expect("a connection"))
    }

    /// A connected socket.
    pub fn socket(socket: impl Into<OwnedFd>) -> Self {
        let socket = socket.into();
        let output = socket.try_clone().expect("a descriptor");
        Self::pipes(socket, output)
    }

    /// Two pipes: what is read from, and what is written to.
    pub fn pipes(input: impl Into<OwnedFd>, output: impl Into<OwnedFd>) -> Self {
        let (input, output) = (input.into(), output.into());
        for way in [&input, &output] {
            rustix::io::ioctl_fionbio(way, true).expect("a stream");
        }
        Self { input, output: Some(output) }
    }
}

impl Wire for Line {
    fn send(&mut self, bytes: &[u8], within: Duration) -> usize {
        let deadline = Instant::now() + within;
        let Some(output) = &self.output else { return 0 };
        let mut sent = 0;
        while sent < bytes.len() {
            match rustix::io::write(output, &bytes[sent..]) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if is_ready(output, PollFlags::OUT, deadline) => {}
                Err(_) => break,
            }
        }
        sent
    }

    fn receive(&mut self, within: Duration) -> Received {
        let deadline = Instant::now() + within;
        let mut bytes = vec![0; PIECE];
        loop {
            return match rustix::io::read(&self.input, &mut bytes) {
                Ok(0) | Err(Errno::CONNRESET) => Received::Closed,
                Ok(count) => {
                    bytes.truncate(count);
                    Received::Bytes(bytes)
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) if is_ready(&self.input, PollFlags::IN, deadline) => continue,
                Err(Errno::AGAIN) => Received::Nothing,
                Err(error) => panic!("a stream that cannot be read: {error}"),
            };
        }
    }

    fn half_close(&mut self) {
        if let Some(output) = self.output.take() {
            // A pipe is closed by the drop.
            let _ = shutdown(output, Shutdown::Write);
        }
    }
}

/// Waits until there is something to read or room to write; `false` if there is not in time.
fn is_ready(stream: impl AsFd, what: PollFlags, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).expect("a short time");
    poll(&mut [PollFd::new(&stream, what)], Some(&left)).is_ok_and(|ready| ready > 0)
}

/// Bytes asked of the stream at a time.
const PIECE: usize = 64 * 1024;
