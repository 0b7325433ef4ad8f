//! Clients that measure: as little work as possible between the socket and the count.
//!
//! Owns: connections of one thread, whole frames and how many of them are in flight. Must not know: what is measured.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use proto::frame::{self, Next};
use proto::message::{RERROR, RLERROR};
use proto::{Dialect, NOFID, NOTAG, Names, Tmessage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A connection that has attached.
pub(crate) struct Client {
    stream: UnixStream,
    dialect: Dialect,
    msize: u32,
    inbox: Vec<u8>,
    from: usize,
    to: usize,
}

impl Client {
    /// Attaches to a tree as fid [`ROOT`].
    pub(crate) fn attach(socket: &Path, dialect: Dialect, msize: u32, aname: &str) -> Self {
        let stream = connect(socket);
        let inbox = vec![0; (2 * msize as usize).max(256 * 1024)];
        let mut client = Self { stream, dialect, msize, inbox, from: 0, to: 0 };
        client.call(NOTAG, &Tmessage::Version { msize, version: dialect.name().as_bytes() });
        let aname = aname.as_bytes();
        let n_uname = (dialect != Dialect::Plain).then_some(0);
        client.call(1, &Tmessage::Attach { fid: ROOT, afid: NOFID, uname: b"root", aname, n_uname });
        client
    }

    /// A request as it travels.
    pub(crate) fn frame(&self, tag: u16, message: &Tmessage<'_>) -> Vec<u8> {
        let mut frame = vec![0; 2048];
        let size = message.encode(tag, self.dialect, &mut frame).expect("requests here are short");
        frame.truncate(size);
        frame
    }

    /// A walk from the root to a path.
    pub(crate) fn walk_frame(&self, tag: u16, newfid: u32, path: &str) -> Vec<u8> {
        let mut wire = [0; 1024];
        let parts = path.split('/').filter(|part| !part.is_empty()).map(str::as_bytes);
        let names = Names::pack(parts, &mut wire).expect("paths here are short");
        self.frame(tag, &Tmessage::Walk { fid: ROOT, newfid, names })
    }

    /// A stat, as the dialect has it.
    pub(crate) fn stat_frame(&self, tag: u16, fid: u32) -> Vec<u8> {
        match self.dialect {
            Dialect::Linux => self.frame(tag, &Tmessage::Getattr { fid, mask: 0x7ff }),
            _ => self.frame(tag, &Tmessage::Stat { fid }),
        }
    }

    /// An open for reading, as the dialect has it.
    pub(crate) fn open_frame(&self, tag: u16, fid: u32) -> Vec<u8> {
        match self.dialect {
            Dialect::Linux => self.frame(tag, &Tmessage::Lopen { fid, flags: 0 }),
            _ => self.frame(tag, &Tmessage::Open { fid, mode: 0 }),
        }
    }

    /// A request and its answer.
    pub(crate) fn call(&mut self, tag: u16, message: &Tmessage<'_>) -> &[u8] {
        let frame = self.frame(tag, message);
        self.send(&frame);
        self.answer(&frame)
    }

    /// The next answer, which is to `request`.
    pub(crate) fn answer(&mut self, request: &[u8]) -> &[u8] {
        let wanted = request[4] + 1;
        let reply = self.next();
        assert_eq!(reply[4], wanted, "refused: {}", String::from_utf8_lossy(reply));
        reply
    }

    /// Walks to a file and opens it.
    pub(crate) fn open(&mut self, fid: u32, path: &str) {
        for frame in [self.walk_frame(1, fid, path), self.open_frame(1, fid)] {
            self.send(&frame);
            self.answer(&frame);
        }
    }

    /// The content of an open file, or the records of an open directory, front to back. Says how many bytes they are.
    pub(crate) fn drain(&mut self, fid: u32, count: u32) -> u64 {
        let mut offset = 0;
        loop {
            let reply = self.call(1, &Tmessage::Read { fid, offset, count });
            match reply.len() as u64 - 11 {
                0 => return offset,
                bytes => offset += bytes,
            }
        }
    }

    /// Sends requests.
    pub(crate) fn send(&mut self, frames: &[u8]) {
        self.stream.write_all(frames).expect("a server that reads");
    }

    /// Whether nothing has come yet.
    pub(crate) fn waits(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&now)) == Ok(0)
    }

    /// Takes the next reply.
    pub(crate) fn next(&mut self) -> &[u8] {
        loop {
            if let Some(size) = self.whole() {
                self.from += size;
                return &self.inbox[self.from - size..self.from];
            }
            self.fill();
        }
    }

    /// Takes all replies that have come, at least one. Says how many.
    pub(crate) fn take(&mut self) -> usize {
        let mut count = 0;
        loop {
            while let Some(size) = self.whole() {
                assert!(!matches!(self.inbox[self.from + 4], RERROR | RLERROR), "a request was refused");
                self.from += size;
                count += 1;
            }
            if count > 0 {
                return count;
            }
            self.fill();
        }
    }

    fn whole(&self) -> Option<usize> {
        match frame::next(&self.inbox[self.from..self.to], self.msize) {
            Next::Frame(size) => Some(size),
            Next::More(_) => None,
            Next::Broken => panic!("a frame that is none"),
        }
    }

    fn fill(&mut self) {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.inbox.len() - self.from < self.msize as usize {
            self.inbox.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        let count = self.stream.read(&mut self.inbox[self.to..]).expect("a server that answers");
        assert_ne!(count, 0, "the server hung up");
        self.to += count;
    }
}

/// Connects, once the socket that is there is listened to.
fn connect(socket: &Path) -> UnixStream {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return stream,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{}: {error}", socket.display()),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Reads of one file one after the other, again from the start when its end is near.
pub(crate) struct Reads {
    request: Vec<u8>,
    burst: Vec<u8>,
    count: u32,
    offset: u64,
    size: u64,
}

impl Reads {
    /// Of fid [`FILE`], `count` bytes each.
    pub(crate) fn new(client: &Client, count: u32, size: u64) -> Self {
        let request = client.frame(1, &Tmessage::Read { fid: FILE, offset: 0, count });
        Self { request, burst: Vec::new(), count, offset: 0, size }
    }

    /// Asks for so many more.
    pub(crate) fn ask(&mut self, client: &mut Client, times: usize) {
        self.burst.clear();
        for _ in 0..times {
            let at = self.burst.len();
            self.burst.extend_from_slice(&self.request);
            self.burst[at + 11..at + 19].copy_from_slice(&self.offset.to_le_bytes());
            self.offset += u64::from(self.count);
            if self.offset + u64::from(self.count) > self.size {
                self.offset = 0;
            }
        }
        client.send(&self.burst);
    }

    /// Keeps so many in flight for a while. Says how many were answered in a second.
    pub(crate) fn run(&mut self, client: &mut Client, flight: usize, time: Duration) -> f64 {
        let (start, mut answered) = (Instant::now(), 0);
        self.ask(client, flight);
        let mut in_flight = flight;
        while in_flight > 0 {
            let count = client.take();
            answered += count;
            in_flight -= count;
            if start.elapsed() < time {
                self.ask(client, count);
                in_flight += count;
            }
        }
        answered as f64 / start.elapsed().as_secs_f64()
    }
}

/// Many connections on this thread, each with a file open as fid [`FILE`].
pub(crate) struct Crowd {
    clients: Vec<(Client, Reads, usize)>,
}

impl Crowd {
    /// Connects.
    pub(crate) fn new(socket: &Path, connections: usize, count: u32, path: &str, size: u64) -> Self {
        let client = |_| {
            let mut client = Client::attach(socket, Dialect::Plain, count + 24, "");
            client.open(FILE, path);
            let reads = Reads::new(&client, count, size);
            (client, reads, 0)
        };
        Self { clients: (0..connections).map(client).collect() }
    }

    /// Keeps so many requests of each client in flight for a while. Says how many were answered.
    pub(crate) fn run(&mut self, flight: usize, time: Duration) -> usize {
        let (start, mut answered) = (Instant::now(), 0);
        for (client, reads, in_flight) in &mut self.clients {
            reads.ask(client, flight);
            *in_flight = flight;
        }
        while self.clients.iter().any(|(_, _, in_flight)| *in_flight > 0) {
            let ready = self.ready();
            let late = start.elapsed() >= time;
            for at in ready {
                let (client, reads, in_flight) = &mut self.clients[at];
                let count = client.take();
                answered += count;
                *in_flight -= count;
                if !late {
                    reads.ask(client, count);
                    *in_flight += count;
                }
            }
        }
        answered
    }

    fn ready(&self) -> Vec<usize> {
        let mut fds: Vec<_> =
            self.clients.iter().map(|(client, ..)| PollFd::new(&client.stream, PollFlags::IN)).collect();
        poll(&mut fds, None).expect("poll");
        (0..fds.len()).filter(|at| !fds[*at].revents().is_empty()).collect()
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
/// The fid of the root, and of the file that is read.
pub(crate) const ROOT: u32 = 0;
pub(crate) const FILE: u32 = 1;
