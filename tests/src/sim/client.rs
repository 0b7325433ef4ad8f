//! One simulated client: what it has sent, what it waits for, and which fids it may believe in.
//!
//! Owns: the laws that every reply is held to, whatever else is going on, and the fids as the replies tell them. Must not
//! know: what any answer should say (that is `expect`), or when it comes.
//!
//! # Laws
//! - Bytes that are sent are whole frames of the dialect, strictly decoded, no longer than msize.
//! - None of them is, or holds, what must never be seen.
//! - A reply answers a request that waits for one, of its tag and its kind; nothing is said of a tag after its Rflush, nor
//!   of what was sent before a Tversion after its Rversion.
//! - Flushes of one tag are answered in their order. A fid is not bound, nor opened, while it is already.
//! - An answer is no larger than was asked for. A refusal is told as the dialect tells it, without what the client sent.

use std::collections::BTreeMap;

use memchr::memmem::Finder;
use proto::frame::{self, Next};
use proto::message::{TFLUSH, TVERSION};
use proto::{Dialect, NOTAG, QTDIR, Refusal, Rmessage, Tmessage};

use super::witness::{When, Witness};
use crate::plan::CANARY;

/// A client, without the connection it speaks over.
#[derive(Debug)]
pub(super) struct Client {
    /// The dialect of what it sends.
    pub(super) dialect: Dialect,
    /// The dialect of what comes.
    replies_in: Dialect,
    /// What was agreed.
    pub(super) msize: u32,
    waiting: Vec<Asked>,
    /// Tells what it says and hears, under this number.
    pub(super) tells: Option<usize>,
    /// Which fids are bound, and to what.
    pub(super) fids: BTreeMap<u32, Held>,
    sent: u64,
    next_tag: u16,
    /// The tag whose reply is kept.
    pub(super) caught_tag: Option<u16>,
    /// That reply.
    pub(super) caught: Option<Vec<u8>>,
    witness: Witness,
    /// The time ([`engine::port::Now::mono_ns`]).
    pub(super) now_ns: u64,
}

/// A bound fid.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Where it is: names from the root.
    pub(super) path: Vec<String>,
    /// How many of them were the attach's.
    pub(super) floor: usize,
    /// Whether it was a directory when it was walked to, or opened.
    pub(super) dir: bool,
    /// The qid path of the agent whose directory it is, or is in, as far as it was walked through.
    pub(super) agent: Option<u64>,
    /// How it is open.
    pub(super) open: Option<Opened>,
}

/// An open fid.
#[derive(Copy, Clone, Debug)]
pub(super) struct Opened {
    /// Whether it may be read.
    pub(super) reads: bool,
    /// Where its last read as a directory ended.
    pub(super) end: Option<u64>,
    /// Whose session it is a part of, where that is known.
    pub(super) session: Option<u64>,
}

/// What is remembered of a request.
#[derive(Clone, Debug)]
struct Asked {
    number: u64,
    tag: u16,
    kind: u8,
    /// The most its answer may hold: bytes of data, or qids.
    most: u32,
    effect: Effect,
    when: When,
}

/// What the answer to a request does to the fids.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// Nothing.
    None,
    /// It binds a fid to a path.
    Attach(u32, Vec<String>),
    /// It binds a fid to where these names lead from another.
    Walk(u32, u32, Vec<Vec<u8>>),
    /// It opens a fid; whether for reading.
    Open(u32, bool),
    /// It reads a file from an offset.
    Read(u32, u64),
    /// It reads a directory from an offset.
    List(u32, u64),
    /// It unbinds a fid.
    Clunk(u32),
    /// It unbinds a fid, and is refused all the same.
    Remove(u32),
    /// It ends a request of this tag.
    Flush(u16),
    /// It ends everything.
    Version(Option<Dialect>),
}

impl Client {
    /// A client that has said nothing.
    pub(super) fn new(dialect: Dialect, tells: Option<usize>, witness: Witness) -> Self {
        Self {
            witness,
            now_ns: 0,
            dialect,
            tells,
            replies_in: Dialect::Plain,
            msize: UNVERSIONED,
            waiting: Vec::new(),
            fids: BTreeMap::new(),
            sent: 0,
            next_tag: 0,
            caught_tag: None,
            caught: None,
        }
    }

    /// A tag that nothing waits under.
    pub(super) fn tag(&mut self) -> u16 {
        loop {
            self.next_tag = (self.next_tag + 1) % TAGS;
            if !self.waiting.iter().any(|asked| asked.tag == self.next_tag) {
                return self.next_tag;
            }
        }
    }

    /// One of the fids that are open, as directories or as files; with no such, or now and then, the number itself.
    pub(super) fn open_fid(&self, number: u8, dir: bool) -> u32 {
        let open = self.fids.iter().filter(|(_, held)| held.open.is_some() && held.dir == dir);
        let count = open.clone().count();
        match usize::from(number).checked_rem(count) {
            Some(at) if number > 0 => open.clone().nth(at).map_or(0, |(fid, _)| *fid),
            _ => number.into(),
        }
    }

    /// The tags of what waits, the oldest first.
    pub(super) fn waiting(&self) -> impl ExactSizeIterator<Item = u16> {
        self.waiting.iter().map(|asked| asked.tag)
    }

    /// What waits, in words.
    pub(super) fn told(&self) -> String {
        format!("{:?}", self.waiting)
    }

    /// Remembers a request, which is about to be sent.
    pub(super) fn asks(&mut self, tag: u16, message: &Tmessage<'_>, effect: Effect) {
        let most = match *message {
            Tmessage::Read { count, .. } | Tmessage::Readdir { count, .. } => count,
            Tmessage::Walk { names, .. } => u32::from(names.count()),
            _ => 0,
        };
        if let Some(number) = self.tells {
            println!("  {number} > {tag} {message:?}");
        }
        self.remember(tag, message.kind(), most, effect);
    }

    /// Remembers bytes that are no request, but have a tag, under which they will be refused.
    pub(super) fn asks_nonsense(&mut self, tag: u16) {
        self.remember(tag, NONSENSE, 0, Effect::None);
    }

    fn remember(&mut self, tag: u16, kind: u8, most: u32, effect: Effect) {
        self.sent += 1;
        let when = self.witness.now(self.now_ns);
        self.waiting.push(Asked { number: self.sent, tag, kind, most, effect, when });
    }

    /// Takes whole frames.
    ///
    /// # Panics
    /// If a law is broken.
    pub(super) fn receive(&mut self, bytes: &[u8], canary: &Finder<'_>) {
        if let Some(at) = canary.find(bytes) {
            let start = at.saturating_sub(80);
            panic!("what must never be seen was sent: {}", bytes[start..at + CANARY.len()].escape_ascii());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let bound = self.msize.max(UNVERSIONED);
            let Next::Frame(size) = frame::next(rest, bound) else {
                panic!("what was sent is not whole frames: {:?}", &rest[..rest.len().min(64)])
            };
            let (frame, after) = rest.split_at(size);
            self.hold(frame);
            rest = after;
        }
    }

    fn hold(&mut self, frame: &[u8]) {
        let (tag, message) = match Rmessage::decode(frame, self.replies_in) {
            Ok(decoded) => decoded,
            Err(error) => panic!("a reply that is none ({error}): {frame:?}"),
        };
        if let Some(number) = self.tells {
            println!("  {number} < {tag} {message:?}");
        }
        let refused = is_refusal(&message);
        let under = || self.waiting.iter().enumerate().filter(|(_, asked)| asked.tag == tag);
        // A Tversion and a Tflush are never refused for their tags.
        let refusable = |(_, asked): &(usize, &Asked)| !matches!(asked.kind, TVERSION | TFLUSH);
        let at = match refused {
            // It is refused as it is read, while the one that has the tag still waits. Nobody has NOTAG, nor the tag of what
            // is no request, which 9P2000.L refuses with the same number.
            true if is(&message, Refusal::DUPLICATE_TAG) => {
                let had = tag != NOTAG && under().next().is_some_and(|(_, asked)| asked.kind != NONSENSE);
                under().skip(usize::from(had)).find(refusable)
            }
            true => under().find(refusable),
            false => under().find(|(_, asked)| message.kind() == asked.kind + 1),
        };
        let Some((at, _)) = at else {
            panic!("a reply nobody waits for, tag {tag}: {message:?}; waiting: {:?}", self.waiting);
        };
        let asked = self.waiting.remove(at);
        match message {
            Rmessage::Read { data } | Rmessage::Readdir { data } => {
                assert!(
                    data.len() as u64 <= u64::from(asked.most),
                    "more than was asked for: {}",
                    data.len()
                );
                assert!(frame.len() as u32 <= self.msize, "a reply longer than msize");
            }
            Rmessage::Walk { qids } => assert!(qids.len() as u32 <= asked.most, "more qids than names"),
            Rmessage::Error { ename, .. } => {
                assert!(frame.len() <= 139, "an error that makes Linux drop the mount: {message:?}");
                let words = str::from_utf8(ename).expect("an error is words");
                assert!(!words.is_empty() && !words.contains(char::is_control), "{words:?}");
            }
            Rmessage::Version { msize, .. } => self.msize = msize,
            _ => {}
        }
        if self.caught_tag == Some(tag) {
            self.caught = Some(frame.to_vec());
        }
        self.take_effect(&asked, &message, refused);
    }

    fn take_effect(&mut self, asked: &Asked, message: &Rmessage<'_>, refused: bool) {
        match (&asked.effect, message) {
            (Effect::Remove(fid), _) if is(message, Refusal::VIEW) => drop(self.fids.remove(fid)),
            (Effect::Flush(oldtag), _) => {
                let is_earlier = |other: &Asked| {
                    matches!(other.effect, Effect::Flush(of) if of == *oldtag) && other.number < asked.number
                };
                assert!(
                    !self.waiting.iter().any(is_earlier),
                    "flushes of tag {oldtag} are answered out of order"
                );
                self.waiting.retain(|other| other.tag != *oldtag || other.number > asked.number);
            }
            (Effect::Version(dialect), _) => {
                self.waiting.retain(|other| other.number > asked.number);
                self.fids.clear();
                self.replies_in = dialect.unwrap_or(Dialect::Plain);
            }
            _ if refused => {}
            (Effect::Clunk(fid), _) => drop(self.fids.remove(fid)),
            (Effect::Attach(fid, path), _) => {
                let agent = match message {
                    Rmessage::Attach { qid } if path.len() == 3 => Some(qid.path),
                    _ => None,
                };
                if let Some(agent) = agent {
                    self.witness.walked(asked.when, path, agent, None);
                }
                let held = Held { floor: path.len(), path: path.clone(), dir: true, agent, open: None };
                let bound = self.fids.insert(*fid, held);
                assert!(bound.is_none(), "fid {fid} was bound already: {bound:?}");
            }
            (Effect::Walk(fid, newfid, names), Rmessage::Walk { qids }) => {
                let from = self.fids.get(fid).expect("a walk from a fid that is bound");
                let mut to = Held { open: None, ..from.clone() };
                for (name, qid) in names.iter().zip(qids.iter()) {
                    to.step(name);
                    if to.path.len() < 3 {
                        to.agent = None;
                    } else if to.path.len() == 3 && name != b".." {
                        to.agent = Some(qid.path);
                    }
                    if name != b".." {
                        self.witness.walked(asked.when, &to.path, qid.path, to.agent);
                    }
                }
                if qids.len() < names.len() {
                    return;
                }
                if let Some(last) = qids.iter().last() {
                    to.dir = last.kind & QTDIR != 0;
                }
                let bound = self.fids.insert(*newfid, to);
                assert!(bound.is_none() || newfid == fid, "fid {newfid} was bound already: {bound:?}");
            }
            (Effect::Open(fid, reads), Rmessage::Open { qid, .. } | Rmessage::Lopen { qid, .. }) => {
                let agent = self.fids.get(fid).and_then(|held| held.agent);
                let session = self.witness.session(asked.when, agent);
                let held = self.fids.get_mut(fid).expect("an open of a fid that is bound");
                assert!(held.open.is_none(), "fid {fid} was open already");
                held.dir = qid.kind & QTDIR != 0;
                held.open = Some(Opened { reads: *reads, end: None, session });
            }
            (Effect::Read(fid, offset) | Effect::List(fid, offset), Rmessage::Read { data }) => {
                let Some(held) = self.fids.get(fid) else { return };
                if held.dir {
                    let records = proto::stat::records(data, self.replies_in);
                    let records = records.map(|record| record.expect("whole records"));
                    records.for_each(|stat| self.witness.listed(asked.when, held, stat.name, stat.qid.path));
                    self.listed(*fid, offset + data.len() as u64);
                } else {
                    self.witness.read(asked.when, held, *offset, asked.most.min(self.msize - 24), data);
                }
            }
            (Effect::List(fid, offset), Rmessage::Readdir { data }) => {
                let mut end = *offset;
                let held = self.fids.get(fid);
                for entry in proto::stat::dirents(data).map(|entry| entry.expect("whole entries")) {
                    if let Some(held) = held {
                        self.witness.listed(asked.when, held, entry.name, entry.qid.path);
                    }
                    end = entry.offset;
                }
                self.listed(*fid, end);
            }
            _ => {}
        }
    }

    fn listed(&mut self, fid: u32, end: u64) {
        if let Some(open) = self.fids.get_mut(&fid).and_then(|held| held.open.as_mut()) {
            open.end = Some(end);
        }
    }
}

impl Held {
    /// Takes one step of a walk that succeeded.
    pub(super) fn step(&mut self, name: &[u8]) {
        if name == b".." {
            self.dir = true;
            if self.path.len() > self.floor {
                self.path.pop();
            }
        } else {
            self.path.push(String::from_utf8_lossy(name).into_owned());
        }
    }

    /// The name its record bears.
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("/", String::as_str)
    }
}

/// Whether a message refuses.
pub(super) fn is_refusal(message: &Rmessage<'_>) -> bool {
    matches!(message, Rmessage::Error { .. } | Rmessage::Lerror { .. })
}

/// Whether a message is this refusal, as far as its dialect can tell.
pub(super) fn is(message: &Rmessage<'_>, refusal: Refusal) -> bool {
    match *message {
        Rmessage::Error { ename, errno: None } => ename == refusal.plain.as_bytes(),
        Rmessage::Error { ename, .. } => ename == refusal.unix.as_bytes(),
        Rmessage::Lerror { ecode } => ecode == refusal.errno,
        _ => false,
    }
}

/// The kind of what is no request.
const NONSENSE: u8 = 0;
/// The largest frame before a version is agreed on.
const UNVERSIONED: u32 = 8192 + 24;
/// Few, so that tags are used again soon.
const TAGS: u16 = 200;
