//! One client of a run, with its connection.
//!
//! Owns: what it has written and what came back, and the law that a request gets one reply, or none and its Rflush. Must not
//! know: the machine.

use std::sync::Arc;

use backend::Tree;
use engine::port::{Backend, Now};
use engine::{Budget, Limits};
use proto::{Dialect, NOFID, NOTAG, Names, Rmessage, Tmessage};

use crate::check::encode;
use crate::sim::link::{Link, When};

/// A client.
pub(super) struct Seat {
    pub(super) link: Link<Tree>,
    unread: Vec<u8>,
    /// What waits for a reply: its tag, and the tag that it flushes.
    waiting: Vec<(u16, Option<u16>)>,
    /// The write that asks for a move.
    pub(super) write: Option<Written>,
    pub(super) is_gone: bool,
}

/// A write that asks for a move, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// Which agent, by its place in the scene.
    pub(super) agent: usize,
    pub(super) name: &'static str,
    pub(super) at_ns: u64,
    /// The count that was answered, or the words.
    pub(super) answer: Option<Result<u32, String>>,
    /// When.
    pub(super) answered_ns: u64,
    /// Flushed, and the Rflush is there.
    pub(super) is_flushed: bool,
}

/// The tag of the write; others are used for everything else.
const WRITE: u16 = 1;
const FID: u32 = 1;

impl Seat {
    pub(super) fn new(backend: &Arc<dyn Backend<Tree>>, budget: &Budget, is_local: bool) -> Self {
        let link = Link::new(Arc::clone(backend), Limits::DEFAULT, budget.clone(), 1);
        let link = if is_local { link.local() } else { link };
        Self { link, unread: Vec::new(), waiting: Vec::new(), write: None, is_gone: false }
    }

    /// Attaches, and says so.
    pub(super) fn greet(&mut self, now: &dyn Fn() -> Now) {
        self.ask(NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" }, now);
        self.ask(9, &Tmessage::Attach { fid: 0, afid: NOFID, uname: b"", aname: b"", n_uname: None }, now);
    }

    /// Opens a file for writing or reading; whether it could be.
    pub(super) fn open(&mut self, path: &[&str], mode: u8, now: &dyn Fn() -> Now) -> bool {
        let mut wire = [0; 256];
        let names = Names::pack(path.iter().map(|name| name.as_bytes()), &mut wire).expect("it fits");
        let walked = self.ask(9, &Tmessage::Walk { fid: 0, newfid: FID, names }, now);
        walked && self.ask(9, &Tmessage::Open { fid: FID, mode }, now)
    }

    /// Asks, and works until the reply is there; whether it is no refusal.
    fn ask(&mut self, tag: u16, message: &Tmessage<'_>, now: &dyn Fn() -> Now) -> bool {
        self.send(tag, None, message, now());
        for _ in 0..1_000 {
            if let Some((_, reply)) = self.replies(now()).pop() {
                return reply.is_ok();
            }
            let task = self.link.tasks().iter().position(|task| task.when() == When::Now);
            self.link.work(task.expect("something is done for whoever waits"), now());
        }
        panic!("no reply to {message:?}");
    }

    fn send(&mut self, tag: u16, flushes: Option<u16>, message: &Tmessage<'_>, now: Now) {
        self.waiting.push((tag, flushes));
        self.link.receive(&encode(Dialect::Plain, tag, message), now);
    }

    /// Writes a name.
    pub(super) fn write(&mut self, agent: usize, name: &'static str, now: Now) {
        let at_ns = now.mono_ns;
        self.write = Some(Written { agent, name, at_ns, answer: None, answered_ns: 0, is_flushed: false });
        self.send(WRITE, None, &Tmessage::Write { fid: FID, offset: 0, data: name.as_bytes() }, now);
    }

    /// Flushes the write.
    pub(super) fn flush(&mut self, tag: u16, now: Now) {
        self.send(tag, Some(WRITE), &Tmessage::Flush { oldtag: WRITE }, now);
    }

    /// Begins anew: what was asked is answered no more.
    pub(super) fn restart(&mut self, now: Now) {
        self.take_in(now);
        self.waiting.clear();
        self.send(NOTAG, None, &Tmessage::Version { msize: 8192, version: b"9P2000" }, now);
    }

    /// Reads what it has open.
    pub(super) fn read(&mut self, tag: u16, now: Now) {
        self.send(tag, None, &Tmessage::Read { fid: FID, offset: 0, count: 100 }, now);
    }

    pub(super) fn hang_up(&mut self, now: Now) {
        self.is_gone = true;
        self.waiting.clear();
        self.link.disconnect(now);
    }

    /// Whether a tag waits for its reply.
    pub(super) fn waits(&self, tag: u16) -> bool {
        self.waiting.iter().any(|(waiting, _)| *waiting == tag)
    }

    /// Whether the write does.
    pub(super) fn waits_for_write(&self) -> bool {
        self.waits(WRITE)
    }

    pub(super) fn has_unanswered(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes in the replies there are, and holds them to the law.
    pub(super) fn take_in(&mut self, now: Now) {
        self.replies(now);
    }

    /// The replies there are: a count, or the words of a refusal.
    fn replies(&mut self, now: Now) -> Vec<(u16, Result<u32, String>)> {
        while let Some(bytes) = self.link.outgoing() {
            self.unread.extend_from_slice(bytes);
            self.link.sent(now);
        }
        let mut replies = Vec::new();
        let bytes = std::mem::take(&mut self.unread);
        let mut rest = &bytes[..];
        while let Some(size) = rest.first_chunk().map(|size| u32::from_le_bytes(*size) as usize) {
            let (frame, more) = rest.split_at(size);
            rest = more;
            let (tag, message) = Rmessage::decode(frame, Dialect::Plain).expect("a good reply");
            let at = self.waiting.iter().position(|(waiting, _)| *waiting == tag);
            let (_, flushed) =
                self.waiting.remove(at.unwrap_or_else(|| panic!("nobody waits for {tag}: {message:?}")));
            if let (Rmessage::Flush, Some(flushed)) = (&message, flushed) {
                self.waiting.retain(|(waiting, _)| *waiting != flushed);
                self.write.iter_mut().for_each(|write| write.is_flushed = true);
            }
            let reply = match message {
                Rmessage::Error { ename, .. } => Err(String::from_utf8_lossy(ename).into_owned()),
                Rmessage::Write { count } => Ok(count),
                _ => Ok(0),
            };
            if let Some(write) = self.write.as_mut().filter(|_| tag == WRITE) {
                assert!(write.answer.is_none() && !write.is_flushed, "a second answer: {write:?} {reply:?}");
                (write.answer, write.answered_ns) = (Some(reply.clone()), now.mono_ns);
            }
            replies.push((tag, reply));
        }
        replies
    }
}
