//! A tree in memory for tests of the client, and a server for it.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use drivers::client::Wire;
use drivers::inproc::Inproc;
use engine::Limits;
use engine::port::{Answer, Ask, Backend, Effort, Kinds, Now, Outcome, Progress, Qids, Room, Stat};
use proto::frame::{self, Next};
use proto::{Dialect, QTDIR, Qid, Refusal, Rmessage, Tmessage};

/// The kinds of the tree.
#[derive(Debug)]
pub(crate) struct Toy;

impl Kinds for Toy {
    type Node = Arc<Item>;
    type Open = Arc<Item>;
}

/// A file or directory.
#[derive(Debug)]
pub(crate) struct Item {
    name: String,
    path: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Dir(Vec<Arc<Item>>),
    /// Contains itself.
    Loop,
    File(Vec<u8>),
    /// Keeps what is written to it, each write apart.
    Slot(Mutex<Vec<(u64, Vec<u8>)>>),
    /// Cannot be opened.
    Locked(Refusal),
}

pub(crate) fn dir<const N: usize>(name: &str, entries: [Arc<Item>; N]) -> Arc<Item> {
    item(name, Content::Dir(entries.into()))
}

pub(crate) fn many(name: &str, entries: Vec<Arc<Item>>) -> Arc<Item> {
    item(name, Content::Dir(entries))
}

pub(crate) fn file(name: &str, content: impl Into<Vec<u8>>) -> Arc<Item> {
    item(name, Content::File(content.into()))
}

pub(crate) fn slot(name: &str) -> Arc<Item> {
    item(name, Content::Slot(Mutex::default()))
}

pub(crate) fn locked(name: &str, refusal: Refusal) -> Arc<Item> {
    item(name, Content::Locked(refusal))
}

/// A directory that contains itself.
pub(crate) fn ouroboros(name: &str) -> Arc<Item> {
    item(name, Content::Loop)
}

fn item(name: &str, content: Content) -> Arc<Item> {
    static PATHS: AtomicU64 = AtomicU64::new(1);
    Arc::new(Item { name: name.to_owned(), path: PATHS.fetch_add(1, Ordering::Relaxed), content })
}

impl Item {
    /// What was written to a slot, and where.
    pub(crate) fn written(&self) -> Vec<(u64, Vec<u8>)> {
        let Content::Slot(writes) = &self.content else { panic!("{} is no slot", self.name) };
        writes.lock().unwrap().clone()
    }

    fn is_dir(&self) -> bool {
        matches!(self.content, Content::Dir(_) | Content::Loop)
    }

    fn entries(self: &Arc<Self>) -> Vec<Arc<Self>> {
        match &self.content {
            Content::Dir(entries) => entries.clone(),
            Content::Loop => vec![Arc::clone(self)],
            _ => Vec::new(),
        }
    }

    fn qid(&self) -> Qid {
        Qid { kind: if self.is_dir() { QTDIR } else { 0 }, version: 1, path: self.path }
    }

    fn stat(&self) -> Stat<'_> {
        let (perm, length) = match &self.content {
            Content::Dir(_) | Content::Loop => (0o555, 0),
            Content::File(bytes) => (0o444, bytes.len() as u64),
            Content::Slot(_) => (0o644, 0),
            Content::Locked(_) => (0o000, 0),
        };
        Stat {
            qid: self.qid(),
            name: &self.name,
            perm,
            length,
            mtime_ns: MTIME_NS,
            atime_ns: MTIME_NS,
            ctime_ns: MTIME_NS,
            btime_ns: None,
            uid: 7,
            gid: 8,
            user: "glenda",
            group: "bunnies",
        }
    }
}

/// The backend of a tree.
struct Tree(Arc<Item>);

impl Tree {
    fn outcome(&self, ask: Ask<Toy>, mut room: Room<'_>) -> Outcome<Toy> {
        match ask {
            Ask::Attach { .. } => Ok(Answer::Attached { qid: self.0.qid(), root: Arc::clone(&self.0) }),
            Ask::Walk { from, names } => {
                let mut qids = Qids::new();
                let mut at = from;
                for name in names.iter() {
                    let entry = at.entries().into_iter().find(|entry| entry.name.as_bytes() == name);
                    let refusal = if at.is_dir() { Refusal::NOT_FOUND } else { Refusal::NOT_A_DIRECTORY };
                    match entry {
                        Some(entry) => at = entry,
                        None if qids.is_empty() => return Err(refusal),
                        None => return Ok(Answer::Walked { qids, end: None }),
                    }
                    qids.push(at.qid());
                }
                Ok(Answer::Walked { qids, end: Some(at) })
            }
            Ask::Stat { node } => {
                if room.stat(&node.stat()) {
                    Ok(Answer::Stat { bytes: room.used() })
                } else {
                    Err(Refusal::IO)
                }
            }
            Ask::Change { .. } => Err(Refusal::VIEW),
            Ask::Open { node, mode } => match &node.content {
                Content::Locked(refusal) => Err(*refusal),
                Content::Slot(writes) => {
                    if mode.truncate {
                        writes.lock().unwrap().clear();
                    }
                    Ok(Answer::Opened { qid: node.qid(), open: node, list: false })
                }
                _ if mode.write => Err(Refusal::PERMISSION_DENIED),
                _ => Ok(Answer::Opened { qid: node.qid(), list: node.is_dir(), open: node }),
            },
            Ask::Read { open, offset } => {
                let Content::File(bytes) = &open.content else { return Ok(Answer::Bytes(0)) };
                let rest = bytes.get(offset as usize..).unwrap_or_default();
                let space = room.bytes();
                let count = rest.len().min(space.len());
                space[..count].copy_from_slice(&rest[..count]);
                Ok(Answer::Bytes(count as u32))
            }
            Ask::List { open, from } => {
                let entries = open.entries();
                let mut next = from;
                while let Some(entry) = entries.get(next as usize) {
                    if !room.pack(&entry.stat(), next) {
                        break;
                    }
                    next += 1;
                }
                Ok(Answer::Listed { bytes: room.used(), next, open: None })
            }
            Ask::Write { open, offset, data } => {
                let Content::Slot(writes) = &open.content else { return Err(Refusal::PERMISSION_DENIED) };
                writes.lock().unwrap().push((offset, data.to_vec()));
                Ok(Answer::Wrote(data.len() as u32))
            }
        }
    }
}

impl Backend<Toy> for Tree {
    fn perform(&self, ask: Ask<Toy>, room: Room<'_>, _: Effort, _: Now) -> Progress<Toy> {
        Progress::Done(self.outcome(ask, room))
    }
}

/// A connection to a tree.
pub(crate) fn session(root: &Arc<Item>, msize: u32) -> Inproc<Toy> {
    Inproc::new(Arc::new(Tree(Arc::clone(root))), Limits { msize, ..Limits::DEFAULT })
}

/// Which dialects a server admits to.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Offer {
    /// All.
    Every,
    /// 9P2000, whatever is asked for.
    Plain,
    /// 9P2000.L, and nothing to whoever asks for something else.
    LinuxOnly,
    /// None.
    Nothing,
    /// None, told as an error.
    Error,
}

/// A wire whose other end has its own mind about dialects, and keeps account of fids.
pub(crate) struct Offering {
    inner: Inproc<Toy>,
    offer: Offer,
    requests: Frames,
    replies: Frames,
    ready: VecDeque<Vec<u8>>,
}

impl Offering {
    pub(crate) fn new(inner: Inproc<Toy>, offer: Offer) -> Self {
        let (requests, replies) = Default::default();
        Self { inner, offer, requests, replies, ready: VecDeque::new() }
    }

    fn request(&mut self, request: Vec<u8>) -> io::Result<()> {
        let decoded = Tmessage::decode(&request, Dialect::Plain);
        if let Ok((tag, Tmessage::Version { msize, version })) = decoded {
            let (asked, refused) = (version, &b"unknown"[..]);
            let answer = match self.offer {
                Offer::Every => return self.inner.send(&request),
                Offer::Plain => {
                    let mut plain = vec![0; 64];
                    let version = Tmessage::Version { msize, version: b"9P2000" };
                    let size = version.encode(tag, Dialect::Plain, &mut plain).unwrap();
                    return self.inner.send(&plain[..size]);
                }
                Offer::LinuxOnly if asked == b"9P2000.L" => return self.inner.send(&request),
                Offer::LinuxOnly | Offer::Nothing => Rmessage::Version { msize, version: refused },
                Offer::Error => Rmessage::Error { ename: b"what?", errno: None },
            };
            let mut bytes = vec![0; 64];
            let size = answer.encode(tag, Dialect::Plain, &mut bytes).unwrap();
            bytes.truncate(size);
            self.ready.push_back(bytes);
            return Ok(());
        }
        self.inner.send(&request)
    }
}

impl Wire for Offering {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        for request in self.requests.cut(bytes) {
            self.request(request)?;
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        if self.ready.is_empty() {
            let mut bytes = Vec::new();
            self.inner.receive(&mut bytes);
            self.ready.extend(self.replies.cut(&bytes));
        }
        let Some(reply) = self.ready.pop_front() else { return Ok(0) };
        into.extend_from_slice(&reply);
        Ok(reply.len())
    }

    fn set_patience(&mut self, _: Option<std::time::Duration>) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that are cut into frames as they become whole.
#[derive(Default)]
pub(crate) struct Frames(Vec<u8>);

impl Frames {
    pub(crate) fn cut(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.0.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Next::Frame(size) = frame::next(&self.0, u32::MAX) {
            frames.push(self.0.drain(..size).collect());
        }
        frames
    }
}

/// A server on a socket of its own, for the life of the test process.
pub(crate) struct Server {
    pub(crate) directory: PathBuf,
}

impl Server {
    pub(crate) fn start(test: &str, root: Arc<Item>, offer: Offer, msize: u32) -> Self {
        Self::listen(test, move |stream| serve(stream, Offering::new(session(&root, msize), offer)))
    }

    /// One that does with each connection as it likes.
    pub(crate) fn listen(test: &str, serve: impl Fn(UnixStream) + Send + Sync + 'static) -> Self {
        let directory = scratch(test);
        let listener = UnixListener::bind(directory.join("s")).unwrap();
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serve = Arc::clone(&serve);
                thread::spawn(move || serve(stream));
            }
        });
        Self { directory }
    }

    pub(crate) fn address(&self) -> String {
        format!("unix!{}", self.directory.join("s").display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A fresh directory.
pub(crate) fn scratch(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("9agents-cli-{}-{test}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(Path::new(&path)).unwrap();
    path
}

fn serve(mut stream: UnixStream, mut wire: Offering) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if wire.send(&bytes[..count]).is_err() {
            return;
        }
        let mut replies = Vec::new();
        while let Ok(1..) = wire.receive(&mut replies) {
            if stream.write_all(&replies).is_err() {
                return;
            }
            replies.clear();
        }
    }
}

/// 2024-11-29 21:03:00 UTC, and a little.
pub(crate) const MTIME_NS: i64 = 1_732_914_180_000_000_005;
