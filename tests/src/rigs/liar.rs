//! A server that is wrong in one chosen way: it proves that the cases see.
//!
//! Owns: a decorator over another rig that changes replies on their way. Must not know: any case.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::frame::{self, Next};
use proto::{Dialect, Qid, Rmessage};

use crate::check::entries;
use crate::rig::{Need, Received, Rig, Wire, World};
use crate::slow::Gate;
use crate::world::{Edit, WorldSpec};

/// A way to be wrong.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Lie {
    /// None: what is decorated shows as it is.
    Nothing,
    /// An msize larger than asked for.
    LargeMsize,
    /// An Rread of one byte more than there is.
    LongRead,
    /// An Rread of nothing before the end.
    EmptyRead,
    /// One byte of an Rread is another.
    OtherByte,
    /// Reads answer with the bytes of the next reply's neighbour: the first byte is left out.
    ShiftedRead,
    /// An iounit that is small.
    SmallIounit,
    /// Every file has the same qid path.
    OnePath,
    /// The version of a stat is not that of a walk.
    OtherVersion,
    /// A stat tells of one byte more.
    OtherLength,
    /// The last entry of a listing is missing.
    LostEntry,
    /// A file shows under a hidden name.
    HiddenEntry,
    /// Refusals give another reason.
    OtherReason,
    /// Refusals are told as Rclunk.
    Obliging,
    /// Flushes are not answered.
    NoFlush,
    /// After an Rflush the flushed request is answered after all.
    LateAnswer,
    /// Everything is said twice.
    Twice,
    /// Two replies change places.
    Swapped,
    /// The connection stays open whatever comes.
    NeverCloses,
    /// Half a walk is told as a whole one.
    WholeWalk,
}

/// The rig: another one, behind a lie.
pub struct Liar<R> {
    honest: R,
    lie: Lie,
}

impl<R: Rig> Liar<R> {
    /// Puts a lie before a rig.
    pub fn new(honest: R, lie: Lie) -> Self {
        Self { honest, lie }
    }
}

impl<R: Rig> Rig for Liar<R> {
    fn name(&self) -> &'static str {
        "liar"
    }

    fn declines(&self) -> &'static [(Need, &'static str)] {
        self.honest.declines()
    }

    fn start(&self, spec: &WorldSpec) -> Box<dyn World> {
        Box::new(Behind { world: self.honest.start(spec), lie: self.lie })
    }
}

struct Behind {
    world: Box<dyn World>,
    lie: Lie,
}

impl World for Behind {
    fn connect(&self) -> Box<dyn Wire> {
        Box::new(Lying {
            wire: self.world.connect(),
            lie: self.lie,
            dialect: Dialect::Plain,
            flushes: BTreeMap::new(),
            names: BTreeMap::new(),
            unread: Vec::new(),
        })
    }

    fn edit(&self, edit: &Edit) {
        self.world.edit(edit);
    }

    fn gate(&self) -> &Gate {
        self.world.gate()
    }

    fn control(&self) -> &'static str {
        self.world.control()
    }

    fn fids(&self) -> usize {
        self.world.fids()
    }
}

struct Lying {
    wire: Box<dyn Wire>,
    lie: Lie,
    dialect: Dialect,
    /// The old tags of flushes on the way.
    flushes: BTreeMap<u16, u16>,
    /// How many names the walks on the way have.
    names: BTreeMap<u16, u16>,
    unread: Vec<u8>,
}

impl Wire for Lying {
    fn send(&mut self, bytes: &[u8], within: Duration) -> usize {
        self.overhear(bytes);
        self.wire.send(bytes, within)
    }

    fn receive(&mut self, within: Duration) -> Received {
        match self.wire.receive(within) {
            Received::Bytes(bytes) => {
                self.unread.extend(bytes);
                let mut replies = Vec::new();
                while let Next::Frame(size) = frame::next(&self.unread, u32::MAX) {
                    let reply: Vec<u8> = self.unread.drain(..size).collect();
                    replies.extend(self.tell(&reply));
                }
                if self.lie == Lie::Swapped && replies.len() > 1 {
                    replies.swap(0, 1);
                }
                if replies.is_empty() { Received::Nothing } else { Received::Bytes(replies.concat()) }
            }
            Received::Closed if self.lie == Lie::NeverCloses => Received::Nothing,
            other => other,
        }
    }
}

impl Lying {
    /// Remembers what some lies need of requests, where whole ones are sent.
    fn overhear(&mut self, mut bytes: &[u8]) {
        while let Next::Frame(size) = frame::next(bytes, u32::MAX) {
            let (message, rest) = bytes.split_at(size);
            bytes = rest;
            match proto::Tmessage::decode(message, self.dialect) {
                Ok((tag, proto::Tmessage::Flush { oldtag })) => {
                    self.flushes.insert(tag, oldtag);
                }
                Ok((tag, proto::Tmessage::Walk { names, .. })) => {
                    self.names.insert(tag, names.count());
                }
                _ => {}
            }
        }
    }

    /// What is said instead of a reply.
    fn tell(&mut self, reply: &[u8]) -> Vec<Vec<u8>> {
        let Ok((tag, message)) = Rmessage::decode(reply, self.dialect) else { return vec![reply.to_vec()] };
        if let Rmessage::Version { version, .. } = message {
            self.dialect = Dialect::negotiate(version).unwrap_or(Dialect::Plain);
        }
        let mut told = match self.lie {
            Lie::NoFlush if message == Rmessage::Flush => return Vec::new(),
            Lie::LateAnswer if message == Rmessage::Flush => {
                let oldtag = self.flushes.remove(&tag).unwrap_or_default();
                let late = self.encode(oldtag, &Rmessage::Read { data: b"late" });
                return vec![reply.to_vec(), late];
            }
            Lie::Twice => vec![reply.to_vec()],
            _ => Vec::new(),
        };
        told.push(self.distort(tag, &message).unwrap_or_else(|| reply.to_vec()));
        told
    }

    /// A reply that says something else; `None` if the lie is not about this one.
    fn distort(&self, tag: u16, message: &Rmessage<'_>) -> Option<Vec<u8>> {
        match (self.lie, *message) {
            (Lie::OnePath | Lie::OtherVersion | Lie::OtherLength, _) => self.distort_stat(tag, message),
            (Lie::LostEntry | Lie::HiddenEntry, _) => self.distort_listing(tag, message),
            (Lie::LargeMsize, Rmessage::Version { msize, version }) => {
                Some(self.encode(tag, &Rmessage::Version { msize: msize.saturating_add(1), version }))
            }
            (lie, Rmessage::Read { data }) if !data.is_empty() => {
                let mut bytes = data.to_vec();
                match lie {
                    Lie::LongRead => bytes.push(0),
                    Lie::EmptyRead => bytes.clear(),
                    Lie::OtherByte => bytes[data.len() / 2] ^= 1,
                    Lie::ShiftedRead => drop(bytes.remove(0)),
                    _ => return None,
                }
                Some(self.encode(tag, &Rmessage::Read { data: &bytes }))
            }
            (Lie::SmallIounit, Rmessage::Open { qid, .. }) => {
                Some(self.encode(tag, &Rmessage::Open { qid, iounit: 4096 }))
            }
            (Lie::SmallIounit, Rmessage::Lopen { qid, .. }) => {
                Some(self.encode(tag, &Rmessage::Lopen { qid, iounit: 4096 }))
            }
            (Lie::OtherReason, Rmessage::Error { errno, .. }) => {
                Some(self.encode(tag, &Rmessage::Error { ename: b"no such luck", errno: errno.map(|_| 99) }))
            }
            (Lie::OtherReason, Rmessage::Lerror { .. }) => {
                Some(self.encode(tag, &Rmessage::Lerror { ecode: 99 }))
            }
            (Lie::Obliging, Rmessage::Error { .. } | Rmessage::Lerror { .. }) => {
                Some(self.encode(tag, &Rmessage::Clunk))
            }
            (Lie::WholeWalk, Rmessage::Walk { qids }) => {
                let names = usize::from(*self.names.get(&tag)?);
                let mut wire = qids.wire().to_vec();
                wire.resize(names, *wire.last()?);
                Some(self.encode(tag, &Rmessage::Walk { qids: proto::Qids::new(&wire) }))
            }
            _ => None,
        }
    }

    fn distort_stat(&self, tag: u16, message: &Rmessage<'_>) -> Option<Vec<u8>> {
        let distort = |qid: Qid, length: u64| match self.lie {
            Lie::OnePath => (Qid { path: 1, ..qid }, length),
            Lie::OtherVersion => (Qid { version: qid.version.wrapping_add(1), ..qid }, length),
            _ => (qid, length + 1),
        };
        Some(match *message {
            Rmessage::Stat { mut stat } => {
                (stat.qid, stat.length) = distort(stat.qid, stat.length);
                self.encode(tag, &Rmessage::Stat { stat })
            }
            Rmessage::Getattr { mut attr } => {
                (attr.qid, attr.size) = distort(attr.qid, attr.size);
                self.encode(tag, &Rmessage::Getattr { attr })
            }
            _ => return None,
        })
    }

    /// Listings are read by Tread, too: bytes that look like whole entries are taken for one.
    fn distort_listing(&self, tag: u16, message: &Rmessage<'_>) -> Option<Vec<u8>> {
        let (Rmessage::Read { data } | Rmessage::Readdir { data }) = *message else { return None };
        let is_listing = match self.dialect {
            Dialect::Linux => matches!(message, Rmessage::Readdir { .. }),
            dialect => proto::stat::records(data, dialect).all(|record| record.is_ok()),
        };
        if !is_listing || data.is_empty() {
            return None;
        }
        let last = entries(data, self.dialect).pop()?;
        let len = last.record.as_ref().map_or(24 + last.name.len(), Vec::len);
        let mut bytes = data.to_vec();
        match self.lie {
            Lie::LostEntry => bytes.truncate(data.len() - len),
            _ => {
                let at = data.len() - len;
                let name = data[at..].windows(last.name.len()).position(|window| window == last.name)? + at;
                let hidden = b"token".iter().cycle().take(last.name.len());
                bytes[name..name + last.name.len()]
                    .iter_mut()
                    .zip(hidden)
                    .for_each(|(place, byte)| *place = *byte);
            }
        }
        let lie = match message {
            Rmessage::Readdir { .. } => Rmessage::Readdir { data: &bytes },
            _ => Rmessage::Read { data: &bytes },
        };
        Some(self.encode(tag, &lie))
    }

    fn encode(&self, tag: u16, message: &Rmessage<'_>) -> Vec<u8> {
        // Nothing is distorted into more than a few bytes more than it was.
        let data = match message {
            Rmessage::Read { data } | Rmessage::Readdir { data } => data.len(),
            _ => 0,
        };
        let mut space = vec![0; data + 2048];
        let size = message.encode(tag, self.dialect, &mut space).expect("a reply that can be encoded");
        space.truncate(size);
        space
    }
}
