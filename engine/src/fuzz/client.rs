//! The client's side: what it sent, what it may be told, and what it believes of its fids.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use proto::frame::{self, Next};
use proto::message::RVERSION;
use proto::{Dialect, NOTAG, Refusal, Rmessage, Tmessage};

use super::script::{self, Script};

/// A request that has not been answered.
#[derive(Debug)]
struct Sent {
    tag: u16,
    frame: Vec<u8>,
    dialect: Dialect,
}

impl Sent {
    fn message(&self) -> Option<Tmessage<'_>> {
        Tmessage::decode(&self.frame, self.dialect).ok().map(|(_, message)| message)
    }

    fn is_version(&self) -> bool {
        matches!(self.message(), Some(Tmessage::Version { .. }))
    }

    fn is_flush(&self) -> bool {
        matches!(self.message(), Some(Tmessage::Flush { .. }))
    }
}

/// A client that sends anything at any time, and holds the server to the laws. It panics when one is broken.
#[derive(Debug)]
pub struct Client {
    /// Sent and not yet received by the session.
    pub wire: VecDeque<u8>,
    /// Those it believes to be bound, and whether they are open.
    pub(super) fids: BTreeMap<u32, bool>,
    sent: Vec<Sent>,
    received: Vec<u8>,
    /// Dialect of what it sends, which is that of its last Tversion.
    speaks: Dialect,
    /// Dialect of what it receives, which is that of the last Rversion.
    hears: Dialect,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            wire: VecDeque::new(),
            fids: BTreeMap::new(),
            sent: Vec::new(),
            received: Vec::new(),
            speaks: Dialect::Plain,
            hears: Dialect::Plain,
        }
    }
}

impl Client {
    /// Offers a version.
    pub fn begin(&mut self, script: &mut Script<'_>) {
        let version = script.pick(&Dialect::ALL).name().as_bytes();
        let msize = script.pick(&[8192, 32 * 1024]);
        let frame = script::encoded(&Tmessage::Version { msize, version }, NOTAG, Dialect::Plain);
        self.put(frame);
    }

    /// Sends a message, mostly under a tag of its own.
    pub fn send(&mut self, script: &mut Script<'_>) {
        let tag = match script.below(12) {
            0 => self.tag_to_repeat(script),
            1 if !self.is_awaited(NOTAG) => Some(NOTAG),
            _ => self.fresh_tag(),
        };
        let Some(tag) = tag else { return };
        let frame = script.frame(tag, self.speaks);
        self.put(frame);
    }

    /// Sends a flush, mostly of a request that is awaited.
    pub fn send_flush(&mut self, script: &mut Script<'_>) {
        let Some(fresh) = self.fresh_tag() else { return };
        let (tag, oldtag) = match script.below(8) {
            0 => (fresh, fresh),
            1 => (fresh, 1000),
            2 | 3 => {
                let Some(oldtag) = self.flushed_tag(script) else { return };
                (fresh, oldtag)
            }
            own => {
                let Some(oldtag) = self.tag_to_repeat(script) else { return };
                if own == 4 { (oldtag, oldtag) } else { (fresh, oldtag) }
            }
        };
        let frame = script::encoded(&Tmessage::Flush { oldtag }, tag, self.speaks);
        self.put(frame);
    }

    /// Sends a Tversion: what was sent before is answered before it or never.
    pub fn send_version(&mut self, script: &mut Script<'_>) {
        if !self.is_awaited(NOTAG) {
            let frame = script::encoded(&script.version(), NOTAG, self.speaks);
            self.put(frame);
        }
    }

    /// Sends a message of which some bytes are others. Its size and its tag are true: else the session ends, or nobody
    /// could tell what is answered.
    pub fn send_mutated(&mut self, script: &mut Script<'_>) {
        let Some(tag) = self.fresh_tag() else { return };
        let mut frame = script.frame(tag, self.speaks);
        frame.truncate((7 + script.below(frame.len())).min(frame.len()));
        for _ in 0..script.below(3) {
            let at = 4 + script.below(frame.len() - 4);
            if !(5..7).contains(&at) {
                frame[at] = script.byte();
            }
        }
        let size = frame.len() as u32;
        frame[..4].copy_from_slice(&size.to_le_bytes());
        self.put(frame);
    }

    fn is_awaited(&self, tag: u16) -> bool {
        self.sent.iter().any(|sent| sent.tag == tag)
    }

    /// A tag that nothing awaited has.
    fn fresh_tag(&self) -> Option<u16> {
        (1..100).find(|&tag| !self.is_awaited(tag))
    }

    /// The tag of an awaited request that may be used once more, or flushed, and leave no doubt which reply answers what:
    /// that of one request, a valid one.
    fn tag_to_repeat(&self, script: &mut Script<'_>) -> Option<u16> {
        if self.sent.is_empty() {
            return None;
        }
        let sent = &self.sent[script.below(self.sent.len())];
        let alone = self.sent.iter().filter(|other| other.tag == sent.tag).count() == 1;
        (alone && sent.tag != NOTAG && sent.message().is_some() && !self.is_flushed(sent.tag))
            .then_some(sent.tag)
    }

    fn is_flushed(&self, tag: u16) -> bool {
        let of = |sent: &Sent| matches!(sent.message(), Some(Tmessage::Flush { oldtag }) if oldtag == tag);
        self.sent.iter().any(of)
    }

    /// The tag of a request that is being flushed already.
    fn flushed_tag(&self, script: &mut Script<'_>) -> Option<u16> {
        let flushed: Vec<u16> =
            self.sent.iter().map(|sent| sent.tag).filter(|tag| self.is_flushed(*tag)).collect();
        if flushed.is_empty() { None } else { Some(flushed[script.below(flushed.len())]) }
    }

    fn put(&mut self, frame: Vec<u8>) {
        self.wire.extend(&frame);
        let tag = frame::tag(&frame).expect("a header");
        let sent = Sent { tag, frame, dialect: self.speaks };
        if let Some(Tmessage::Version { version, .. }) = sent.message() {
            self.speaks = Dialect::negotiate(version).unwrap_or(Dialect::Plain);
        }
        self.sent.push(sent);
    }

    /// Receives bytes of replies; says how many they make whole.
    pub fn receive(&mut self, bytes: &[u8]) -> u64 {
        self.received.extend_from_slice(bytes);
        let mut replies = 0;
        while let Next::Frame(size) = frame::next(&self.received, MSIZE_MAX) {
            let frame: Vec<u8> = self.received.drain(..size).collect();
            self.hear(&frame);
            replies += 1;
        }
        replies
    }

    /// Whether something has not been answered.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.sent.is_empty()
    }

    pub(super) fn check_all_answered(&self) {
        assert!(self.received.is_empty(), "a torn reply");
        assert!(self.sent.is_empty(), "never answered: {:?}", self.awaited());
    }

    fn awaited(&self) -> Vec<(u16, Option<Tmessage<'_>>)> {
        self.sent.iter().map(|sent| (sent.tag, sent.message())).collect()
    }

    fn hear(&mut self, frame: &[u8]) {
        let tag = frame::tag(frame).expect("a header");
        let awaited = self.sent.iter().position(|sent| sent.tag == tag);
        if let Some(at) = awaited.filter(|&at| self.sent[at].is_version()) {
            // Whatever was sent before is over.
            let version = self.sent.drain(..=at).next_back().expect("a Tversion");
            let Some(Tmessage::Version { version, .. }) = version.message() else { unreachable!() };
            let agreed = frame::kind(frame) == Some(RVERSION);
            self.hears = Dialect::negotiate(version).filter(|_| agreed).unwrap_or(Dialect::Plain);
            self.fids.clear();
            return;
        }
        let (_, reply) = Rmessage::decode(frame, self.hears).expect("a valid reply");
        let Some(at) = self.answered(tag, &reply) else {
            panic!("to nobody, under tag {tag}: {reply:?}; awaited: {:?}", self.awaited());
        };
        let sent = self.sent.remove(at);
        let Some(message) = sent.message() else { return };
        if let (Tmessage::Flush { oldtag }, Rmessage::Flush) = (message, reply) {
            let is_same =
                |sent: &Sent| matches!(sent.message(), Some(Tmessage::Flush { oldtag: of }) if of == oldtag);
            assert!(
                !self.sent[..at].iter().any(is_same),
                "a flush is answered before an earlier one of {oldtag}"
            );
            let mut earlier = 0..at;
            self.sent.retain(|sent| earlier.next().is_none() || sent.tag != oldtag);
        } else if !is_any(&reply, self.hears, &[Refusal::DUPLICATE_TAG, Refusal::MALFORMED]) {
            self.believe(&message, &reply);
        }
    }

    /// Which request a reply answers. Of two under one tag the first is answered first, unless the second is refused for
    /// just that, or is the flush of the first.
    fn answered(&self, tag: u16, reply: &Rmessage<'_>) -> Option<usize> {
        let mut tagged = self.sent.iter().enumerate().filter(|(_, sent)| sent.tag == tag).map(|(at, _)| at);
        let (first, second) = (tagged.next()?, tagged.next());
        assert_eq!(tagged.next(), None);
        let is_second = match reply {
            // A flush is itself answered, flushed or not.
            Rmessage::Flush => !self.sent[first].is_flush(),
            reply => is_any(reply, self.hears, &[Refusal::DUPLICATE_TAG]),
        };
        if is_second && second.is_some() { second } else { Some(first) }
    }

    /// What a reply says of fids.
    fn believe(&mut self, message: &Tmessage<'_>, reply: &Rmessage<'_>) {
        match (*message, *reply) {
            (Tmessage::Attach { fid, .. }, Rmessage::Attach { .. }) => {
                assert!(self.fids.insert(fid, false).is_none(), "attached to a fid in use");
            }
            (Tmessage::Walk { fid, newfid, names }, Rmessage::Walk { qids }) => {
                assert!(self.fids.contains_key(&fid) && qids.len() <= names.len());
                if qids.len() == names.len() && (fid != newfid || !names.is_empty()) {
                    let before = self.fids.insert(newfid, false);
                    assert!(if fid == newfid { before == Some(false) } else { before.is_none() });
                }
            }
            (Tmessage::Open { fid, .. }, Rmessage::Open { .. })
            | (Tmessage::Lopen { fid, .. }, Rmessage::Lopen { .. }) => {
                assert_eq!(self.fids.insert(fid, true), Some(false), "opened what is not there, or is open");
            }
            (Tmessage::Clunk { fid }, Rmessage::Clunk) => {
                assert!(self.fids.remove(&fid).is_some(), "clunked what is not there");
            }
            (Tmessage::Remove { fid }, _) if is_any(reply, self.hears, &[Refusal::VIEW]) => {
                assert!(self.fids.remove(&fid).is_some(), "removed what is not there");
            }
            (Tmessage::Read { count, .. }, Rmessage::Read { data })
            | (Tmessage::Readdir { count, .. }, Rmessage::Readdir { data }) => {
                assert!(data.len() <= count as usize, "more than was asked");
            }
            (_, reply) => assert!(
                matches!(reply, Rmessage::Error { .. } | Rmessage::Lerror { .. })
                    || reply.kind() == message.kind() + 1,
                "{message:?} was answered with {reply:?}"
            ),
        }
    }
}

fn is_any(reply: &Rmessage<'_>, dialect: Dialect, refusals: &[Refusal]) -> bool {
    refusals.iter().any(|refusal| *reply == Rmessage::refusal(*refusal, dialect))
}

/// The largest frame that a version in a script agrees on.
const MSIZE_MAX: u32 = 70_000;
