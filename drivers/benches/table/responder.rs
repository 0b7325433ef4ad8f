//! The yardstick of the socket rows: a server that does no input or output but that of its socket.
//!
//! One thread, blocking. It answers whatever one recv(2) brought with one send(2), as long as that fits its buffer; a read
//! is answered with zeros that are there already, so that only the header is written.
//!
//! Given a file it answers reads from that, straight into the reply, whatever fid they name: the least that a server of files
//! can do. What it falls short of the other by is the file's, and no server's to save.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use proto::frame::{self, Next};
use proto::{Dialect, Qid, Qids, Rmessage, Stat, Tmessage};

/// Answers one connection after the other, until the process is killed.
pub(crate) fn serve(socket: &Path, file: Option<&Path>) {
    let listener = UnixListener::bind(socket).expect("a socket");
    let file = file.map(|path| File::open(path).expect("a file"));
    for stream in listener.incoming().flatten() {
        let (replies, inbox) = (vec![0; GATHER + MSIZE_MAX], vec![0; 64 * 1024]);
        let file = file.as_ref();
        Responder { stream, file, dialect: Dialect::Plain, inbox, replies, used: 0 }.converse();
    }
}

struct Responder<'f> {
    stream: UnixStream,
    /// What reads are answered from, if it is not zeros.
    file: Option<&'f File>,
    dialect: Dialect,
    inbox: Vec<u8>,
    replies: Vec<u8>,
    used: usize,
}

impl Responder<'_> {
    fn converse(mut self) {
        let (mut from, mut to) = (0, 0);
        loop {
            while let Next::Frame(size) = frame::next(&self.inbox[from..to], MSIZE_MAX as u32) {
                self.reply(from, size);
                from += size;
                if self.used >= GATHER && !self.flush() {
                    return;
                }
            }
            if !self.flush() {
                return;
            }
            self.inbox.copy_within(from..to, 0);
            (from, to) = (0, to - from);
            match self.stream.read(&mut self.inbox[to..]) {
                Ok(0) | Err(_) => return,
                Ok(count) => to += count,
            }
        }
    }

    fn flush(&mut self) -> bool {
        let all = self.used == 0 || self.stream.write_all(&self.replies[..self.used]).is_ok();
        self.used = 0;
        all
    }

    fn reply(&mut self, at: usize, size: usize) {
        let frame = &self.inbox[at..at + size];
        if let Tmessage::Version { version, .. } = version_of(frame) {
            self.dialect = Dialect::negotiate(version).expect("a dialect");
        }
        let (tag, message) = Tmessage::decode(frame, self.dialect).expect("a request");
        let out = &mut self.replies[self.used..];
        let qids = [Qid::default().to_bytes(); proto::MAX_WALK];
        let stat = Stat { name: b"file", uid: b"root", gid: b"root", muid: b"root", ..Stat::UNTOUCHED };
        let reply = match message {
            Tmessage::Version { msize, version } => Rmessage::Version { msize, version },
            Tmessage::Attach { .. } => Rmessage::Attach { qid: Qid::default() },
            Tmessage::Walk { names, .. } => Rmessage::Walk { qids: Qids::new(&qids[..names.len()]) },
            Tmessage::Open { .. } => Rmessage::Open { qid: Qid::default(), iounit: 0 },
            Tmessage::Stat { .. } => Rmessage::Stat { stat },
            Tmessage::Clunk { .. } => Rmessage::Clunk,
            Tmessage::Read { offset, mut count, .. } => {
                let header = proto::IO_HEADER_SIZE;
                if let Some(file) = self.file {
                    let room = &mut out[header..header + count as usize];
                    count = file.read_at(room, offset).expect("a file") as u32;
                }
                proto::write::io_header(
                    proto::message::RREAD,
                    tag,
                    count,
                    (&mut out[..header]).try_into().expect("a header"),
                );
                self.used += header + count as usize;
                return;
            }
            other => panic!("nobody asks this here: {other:?}"),
        };
        self.used += reply.encode(tag, self.dialect, out).expect("replies here are short");
    }
}

/// A Tversion is the same in every dialect.
fn version_of(frame: &[u8]) -> Tmessage<'_> {
    match Tmessage::decode(frame, Dialect::Plain) {
        Ok((_, message @ Tmessage::Version { .. })) => message,
        _ => Tmessage::Clunk { fid: 0 },
    }
}

/// Bytes of replies that are sent before more input is looked at.
const GATHER: usize = 256 * 1024;
const MSIZE_MAX: usize = 1 << 20;
