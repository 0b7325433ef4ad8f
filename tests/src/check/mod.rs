//! A client that is hard to please.
//!
//! Owns: a client over a [`Wire`], and the laws every reply is held to, whatever a case is about. The requests it can make
//! are in `asks`, what answers say in `answers`. Must not know: any case, or how bytes travel.
//!
//! # What is checked of every reply
//! - It is one frame of the dialect, decoded strictly, no longer than the agreed msize.
//! - Its tag is one that waits for an answer; a tag waits no longer after its Rflush, nor anything after Rversion.
//! - It answers the request of that tag, and not with more than was asked for (Rread, Rreaddir, Rwalk).
//! - A refusal is told as the dialect tells it, in at most 139 bytes, without control characters.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use proto::frame::{self, Next};
use proto::{Dialect, EncodeError, Names, Rmessage, Tmessage};

use crate::rig::{Received, Wire};

mod answers;
mod asks;

pub use answers::{Answer, Entry, Info, Refused, Why, entries, refused, refused_somehow, why};
pub use asks::How;

/// A client of one connection.
pub struct Client {
    wire: Box<dyn Wire>,
    dialect: Dialect,
    /// What was agreed; before that, the largest frame there may be.
    msize: u32,
    inbox: Vec<u8>,
    waiting: BTreeMap<u16, Vec<Asked>>,
    next_tag: u16,
    next_fid: u32,
}

/// What is remembered of a request.
#[derive(Copy, Clone, Debug)]
struct Asked {
    kind: u8,
    /// The most its answer may hold: bytes of data, or qids.
    most: Option<u32>,
    flushes: Option<u16>,
}

/// What came next.
#[derive(Debug)]
pub enum Event {
    /// A reply.
    Frame(Frame),
    /// The connection was closed.
    Closed,
    /// Nothing, for as long as was waited.
    Quiet,
}

/// One reply.
#[derive(Clone)]
pub struct Frame {
    bytes: Vec<u8>,
    dialect: Dialect,
}

impl Client {
    /// A client that has said nothing yet.
    pub fn new(wire: Box<dyn Wire>, dialect: Dialect) -> Self {
        Self {
            wire,
            dialect,
            msize: UNVERSIONED,
            inbox: Vec::new(),
            waiting: BTreeMap::new(),
            next_tag: 1,
            next_fid: FIRST_FREE_FID,
        }
    }

    /// The dialect it speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The agreed msize.
    pub fn msize(&self) -> u32 {
        self.msize
    }

    /// The wire below, for what no client should do.
    pub fn wire(&mut self) -> &mut dyn Wire {
        &mut *self.wire
    }

    /// A fid number not used before.
    pub fn fresh_fid(&mut self) -> u32 {
        self.next_fid += 1;
        self.next_fid
    }

    /// A tag not used for a long time.
    pub fn fresh_tag(&mut self) -> u16 {
        self.next_tag = if self.next_tag >= MAX_TAG { 1 } else { self.next_tag + 1 };
        self.next_tag
    }

    /// A request as it travels.
    pub fn encode(&self, tag: u16, message: &Tmessage<'_>) -> Vec<u8> {
        encode(self.dialect, tag, message)
    }

    /// Sends a request.
    #[track_caller]
    pub fn send(&mut self, tag: u16, message: &Tmessage<'_>) {
        self.post(&[(tag, *message)]);
    }

    /// Sends several requests in one piece.
    #[track_caller]
    pub fn post(&mut self, requests: &[(u16, Tmessage<'_>)]) {
        let mut bytes = Vec::new();
        for (tag, message) in requests {
            self.expect_answer(*tag, message);
            bytes.extend(self.encode(*tag, message));
        }
        self.send_bytes(&bytes);
    }

    /// Sends bytes that are, or are not, requests.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        assert_eq!(self.wire.send(bytes, PATIENCE), bytes.len(), "the server stopped reading, or has closed");
    }

    /// Remembers that a request of this tag is on the way, whoever sends its bytes.
    pub fn expect_answer(&mut self, tag: u16, message: &Tmessage<'_>) {
        let most = match *message {
            Tmessage::Read { count, .. } | Tmessage::Readdir { count, .. } => Some(count),
            Tmessage::Walk { names, .. } => Some(u32::from(names.count())),
            _ => None,
        };
        let flushes = if let Tmessage::Flush { oldtag } = *message { Some(oldtag) } else { None };
        self.waiting.entry(tag).or_default().push(Asked { kind: message.kind(), most, flushes });
    }

    /// What comes next, within a time.
    #[track_caller]
    pub fn event(&mut self, within: Duration) -> Event {
        loop {
            match frame::next(&self.inbox, self.msize) {
                Next::Frame(size) => {
                    let bytes = self.inbox.drain(..size).collect();
                    let frame = Frame { bytes, dialect: self.dialect };
                    self.hold_to_the_laws(&frame);
                    return Event::Frame(frame);
                }
                Next::Broken => {
                    panic!("a reply of an impossible size, msize is {}: {:?}", self.msize, self.inbox)
                }
                Next::More(_) => match self.wire.receive(within) {
                    Received::Bytes(bytes) => self.inbox.extend(bytes),
                    Received::Closed => {
                        assert_eq!(self.inbox, b"", "the connection was closed inside a reply");
                        return Event::Closed;
                    }
                    Received::Nothing => return Event::Quiet,
                },
            }
        }
    }

    /// The next reply. It has to come.
    #[track_caller]
    pub fn receive(&mut self) -> Frame {
        match self.event(PATIENCE) {
            Event::Frame(frame) => frame,
            Event::Closed => panic!("the server closed the connection instead of answering"),
            Event::Quiet => panic!("no reply came; unanswered: {:?}", self.waiting),
        }
    }

    /// The next so many replies.
    #[track_caller]
    pub fn receive_all(&mut self, count: usize) -> Vec<Frame> {
        (0..count).map(|_| self.receive()).collect()
    }

    /// Sees that no reply comes for a short while.
    #[track_caller]
    pub fn expect_quiet(&mut self) {
        let event = self.event(SHORTLY);
        assert!(matches!(event, Event::Quiet), "nothing should have come, but: {event:?}");
    }

    /// Sees that the server closes, and says nothing more.
    #[track_caller]
    pub fn expect_closed(&mut self) {
        let event = self.event(PATIENCE);
        assert!(matches!(event, Event::Closed), "the server should have closed, but: {event:?}");
    }

    /// Sees that the server refuses, or closes without an answer; says which.
    #[track_caller]
    pub fn expect_refused_or_closed(&mut self) -> Ending {
        match self.event(PATIENCE) {
            Event::Frame(frame) => match frame.refused() {
                Some(_) => Ending::Refused,
                None => panic!("this should have been refused: {frame:?}"),
            },
            Event::Closed => Ending::Closed,
            Event::Quiet => panic!("neither a refusal nor a close"),
        }
    }

    /// Sends a request and takes the next reply, which is its.
    #[track_caller]
    pub fn call(&mut self, message: &Tmessage<'_>) -> Frame {
        let tag = self.fresh_tag();
        self.send(tag, message);
        let frame = self.receive();
        assert_eq!(frame.tag(), tag, "a reply to another request: {frame:?}");
        frame
    }

    #[track_caller]
    fn hold_to_the_laws(&mut self, frame: &Frame) {
        let (tag, message) = match Rmessage::decode(&frame.bytes, frame.dialect) {
            Ok(decoded) => decoded,
            Err(error) => panic!("a reply that is none ({error}): {:?}", frame.bytes),
        };
        let mut asked = self.waiting.remove(&tag).unwrap_or_default();
        let kind = message.kind();
        let answers = |asked: &Asked| kind == asked.kind + 1;
        // A refusal of one of several under one tag is of the last: the first had the tag for itself.
        let at = if frame.refused().is_some() {
            asked.len().checked_sub(1)
        } else {
            asked.iter().position(answers)
        };
        let Some(at) = at else {
            panic!("a reply nobody waits for, tag {tag}: {message:?}; asked: {asked:?}");
        };
        let request = asked.remove(at);
        if !asked.is_empty() {
            self.waiting.insert(tag, asked);
        }
        match message {
            Rmessage::Version { .. } => self.waiting.clear(),
            Rmessage::Flush => {
                request.flushes.map(|oldtag| self.waiting.remove(&oldtag));
            }
            Rmessage::Read { data } | Rmessage::Readdir { data } => {
                assert!(Some(data.len() as u32) <= request.most, "more than was asked for: {}", data.len());
            }
            Rmessage::Walk { qids } => {
                assert!(Some(qids.len() as u32) <= request.most, "more qids than names: {}", qids.len());
            }
            Rmessage::Error { ename, .. } => {
                assert!(frame.bytes.len() <= 139, "an error that makes Linux drop the mount: {message:?}");
                let words = str::from_utf8(ename).expect("an error is words");
                assert!(!words.is_empty() && !words.contains(char::is_control), "{words:?}");
            }
            _ => {}
        }
    }
}

/// How a server got rid of a request it does not want.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// In words.
    Refused,
    /// By closing.
    Closed,
}

impl Frame {
    /// Its tag.
    pub fn tag(&self) -> u16 {
        frame::tag(&self.bytes).expect("a frame has a tag")
    }

    /// Its bytes, all of them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it says.
    pub fn message(&self) -> Rmessage<'_> {
        Rmessage::decode(&self.bytes, self.dialect).expect("decoded once already").1
    }

    /// The refusal, if it is one.
    pub fn refused(&self) -> Option<Refused> {
        match self.message() {
            refusal @ (Rmessage::Error { .. } | Rmessage::Lerror { .. }) => Some(Refused::of(&refusal)),
            _ => None,
        }
    }

    /// The bytes of an Rread; anything else fails the case.
    #[track_caller]
    pub fn data(&self) -> Vec<u8> {
        match self.message() {
            Rmessage::Read { data } => data.to_vec(),
            other => panic!("not an Rread: {other:?}"),
        }
    }
}

impl Debug for Frame {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "tag {} {:?}", self.tag(), self.message())
    }
}

/// A request as it travels.
pub fn encode(dialect: Dialect, tag: u16, message: &Tmessage<'_>) -> Vec<u8> {
    let mut space = vec![0; 512];
    loop {
        match message.encode(tag, dialect, &mut space) {
            Ok(size) => {
                space.truncate(size);
                return space;
            }
            Err(EncodeError::Full) => space.resize(space.len() * 4, 0),
            Err(error) => panic!("a request that cannot be encoded ({error}): {message:?}"),
        }
    }
}

/// Names for a Twalk.
pub fn pack<'a, N: AsRef<[u8]>>(names: &[N], space: &'a mut Vec<u8>) -> Names<'a> {
    space.resize(names.iter().map(|name| 2 + name.as_ref().len()).sum(), 0);
    Names::pack(names.iter().map(AsRef::as_ref), space).expect("names that fit")
}

/// The fid of a client's first attach.
pub const ROOT: u32 = 0;

/// How long a reply may take before it is missing.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long is waited for what should not come.
pub const SHORTLY: Duration = Duration::from_millis(60);
/// Bytes asked for at a time where that does not matter.
pub const BULK: u32 = 1 << 20;

/// The largest reply before a version is agreed on.
const UNVERSIONED: u32 = 8192;
/// Tags of [`Client::fresh_tag`] stay below those that cases choose themselves.
const MAX_TAG: u16 = 0x7fff;
/// Fids of [`Client::fresh_fid`] stay above those that cases choose themselves.
const FIRST_FREE_FID: u32 = 1000;
