//! A client and its connection.
//!
//! Owns: the bytes between the two, and what can happen to them. Must not know: other clients.

use backend::Tree;
use engine::port::Now;
use memchr::memmem::Finder;
use proto::frame::{self, Next};
use proto::{Dialect, Tmessage};

use super::client::{Client, Effect};
use super::draft::{Draft, noise};
use super::link::Link;
use super::witness::Witness;
use crate::plan::{Cut, Which};
use crate::slow::Slowed;

/// A client, connected or not.
pub(super) struct Seat {
    /// What it knows.
    pub(super) client: Client,
    /// Its connection.
    pub(super) link: Option<Link<Slowed<Tree>>>,
    /// What it has sent and the session has not taken.
    coming: Vec<u8>,
    /// Whether it has sent what makes the session hang up.
    broke: bool,
    space: Vec<u8>,
    witness: Witness,
}

/// What can happen.
pub(super) enum Event {
    /// Bytes come to the session.
    Comes,
    /// Replies go to the client.
    Goes,
    /// A task goes on: which, of those that can.
    Work(usize),
}

impl Seat {
    /// A client that is not connected.
    pub(super) fn new(number: usize, (dialect, _): (Dialect, u32), tells: bool, witness: Witness) -> Self {
        let client = Client::new(dialect, tells.then_some(number), witness.clone());
        Self { client, link: None, coming: Vec::new(), broke: false, space: vec![0; SPACE], witness }
    }

    /// Sends a request; yields its tag.
    pub(super) fn post(&mut self, draft: &Draft) -> u16 {
        let tag = if matches!(draft, Draft::Version(..)) { proto::NOTAG } else { self.client.tag() };
        let mut borrowed = Vec::new();
        let message = draft.message(self.client.dialect, &mut borrowed);
        self.client.asks(tag, &message, draft.effect());
        self.append(tag, &message);
        if let Draft::Version(offer, _) = draft {
            self.client.dialect = offer.unwrap_or(Dialect::Plain);
        }
        tag
    }

    /// Sends a stat under the tag of what waits longest.
    pub(super) fn post_same_tag(&mut self, fid: u32) {
        let tag = self.tag_of(Which::First);
        let mut borrowed = Vec::new();
        let draft = Draft::Stat(fid);
        let message = draft.message(self.client.dialect, &mut borrowed);
        self.client.asks(tag, &message, Effect::None);
        self.append(tag, &message);
    }

    /// Sends what is no request.
    pub(super) fn post_noise(&mut self, which: u8) {
        let tag = self.client.tag();
        let (bytes, breaks) = noise(which, tag);
        self.client.asks_nonsense(tag);
        self.coming.extend(bytes);
        self.broke |= breaks;
    }

    fn append(&mut self, tag: u16, message: &Tmessage<'_>) {
        let size = message.encode(tag, self.client.dialect, &mut self.space).expect("a request that fits");
        self.coming.extend_from_slice(&self.space[..size]);
    }

    /// The tag of one of those that wait.
    pub(super) fn tag_of(&self, which: Which) -> u16 {
        let mut waiting = self.client.waiting();
        let count = waiting.len();
        let tag = match which {
            Which::First => waiting.next(),
            Which::Last => waiting.last(),
            Which::Some(number) if count > 0 => waiting.nth(usize::from(number) % count),
            Which::Some(_) | Which::None => None,
        };
        tag.unwrap_or(NOBODYS_TAG)
    }

    /// How many fids the session has.
    pub(super) fn fids(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.session().fids())
    }

    /// How many things can happen.
    pub(super) fn events(&self, now: Now, epoch: u64) -> usize {
        let Some(link) = &self.link else { return 0 };
        usize::from(self.comes(link)) + usize::from(link.outgoing().is_some()) + link.ready(now, epoch)
    }

    /// The one of this number.
    pub(super) fn event(&self, at: usize) -> Event {
        let Some(link) = &self.link else { return Event::Work(at) };
        let all = [(self.comes(link), Event::Comes), (link.outgoing().is_some(), Event::Goes)];
        let mut left = at;
        for (can, event) in all {
            match (can, left) {
                (true, 0) => return event,
                (true, _) => left -= 1,
                (false, _) => {}
            }
        }
        Event::Work(left)
    }

    fn comes(&self, link: &Link<Slowed<Tree>>) -> bool {
        !self.coming.is_empty() && link.wants_input()
    }

    /// The session takes some bytes.
    pub(super) fn bytes_come(&mut self, cut: Cut, now: Now, choose: impl FnOnce(u32) -> u32) {
        let Some(link) = &mut self.link else { return };
        let most = match cut {
            Cut::Whole => self.coming.len(),
            Cut::Frames => match frame::next(&self.coming, u32::MAX) {
                Next::Frame(size) => size,
                Next::More(_) | Next::Broken => self.coming.len(),
            },
            Cut::Anywhere => 1 + choose(self.coming.len() as u32) as usize,
            Cut::Small => (1 + choose(3) as usize).min(self.coming.len()),
        };
        link.receive(&self.coming[..most], now);
        self.coming.drain(..most);
    }

    /// The client takes what the wire has; yields a hash of it.
    pub(super) fn bytes_go(&mut self, canary: &Finder<'_>, now: Now) -> u64 {
        let Some(link) = &mut self.link else { return 0 };
        let Some(bytes) = link.outgoing() else { return 0 };
        self.client.receive(bytes, canary);
        let hash = bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            (hash ^ u64::from_le_bytes(word)).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(31)
        });
        link.sent(now);
        hash
    }

    /// A task goes on.
    pub(super) fn work(&mut self, at: usize, now: Now, epoch: u64) {
        if let Some(link) = &mut self.link {
            link.work_ready(at, now, epoch);
        }
    }

    /// Whether the session has hung up and nothing more is to come from it.
    pub(super) fn has_ended(&self) -> bool {
        let ended = self.link.as_ref().is_some_and(|link| link.has_hung_up() && link.outgoing().is_none());
        assert!(!ended || self.broke, "a session hung up on a client that has done nothing wrong");
        ended
    }

    /// The client goes away, and forgets everything.
    pub(super) fn leave(&mut self) -> Option<Link<Slowed<Tree>>> {
        self.coming.clear();
        self.broke = false;
        self.client = Client::new(self.client.dialect, self.client.tells, self.witness.clone());
        self.link.take()
    }

    /// How much was begun and has not ended: requests and bytes.
    pub(super) fn begun(&self) -> usize {
        self.coming.len()
            + self.client.waiting().len()
            + self.link.as_ref().map_or(0, |link| link.tasks().len())
    }

    /// Holds a connection in which nothing can go on to being quiet.
    pub(super) fn expect_quiet(&self) {
        let Some(link) = &self.link else { return };
        assert!(self.coming.is_empty(), "{} bytes are never read", self.coming.len());
        assert_eq!(self.client.waiting().len(), 0, "requests are never answered: {}", self.client.told());
        assert!(!link.session().is_busy(), "a session is busy with nothing");
        assert_eq!(
            link.session().fids(),
            self.client.fids.len(),
            "fids of a session, and those its client has"
        );
    }
}

/// The longest request.
const SPACE: usize = 16 * 1024;
/// A tag that is never used.
const NOBODYS_TAG: u16 = 9999;
