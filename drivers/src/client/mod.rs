//! A 9P client, for the command line's own verbs.
//!
//! Owns: one connection to a server, its fids and its tags. Must not know: what the tree holds, or what the answers are for.
//!
//! It is meant for our own server and works with any: it asks for 9P2000.u, whose refusals come in words and whose directories
//! come with their stats, takes 9P2000 if that is what the server offers, and 9P2000.L from one that offers nothing else.
//! It does not authenticate.
//!
//! A server is not trusted: no reply leads to a panic, and what one can make this side hold is bounded (a frame by msize, a
//! listing by [`LISTING_BYTES_MAX`]). A reply that no server may send ends the connection. An operation gives back the fids it
//! took, whatever came of it.

mod address;
mod error;
mod escape;
mod gather;
mod inbox;
mod list;
mod path;
mod stat;
mod transfer;
mod wire;

use std::fmt;
use std::io;
use std::time::Duration;

use proto::{DecodeError, Dialect, EncodeError, MAX_WALK, NOFID, NOTAG, Names, Qid, Rmessage, Tmessage};

use self::inbox::Inbox;

pub use self::address::{Address, AddressError};
pub use self::error::{Cause, Error};
pub use self::escape::Escaped;
pub use self::gather::Files;
pub use self::list::{Entry, LISTING_BYTES_MAX};
pub use self::path::TreePath;
pub use self::stat::{Stat, Time, is_directory};
pub use self::transfer::Pace;
pub use self::wire::{Socket, Wire};

/// One connection to a server, attached to its tree.
pub struct Client {
    wire: Box<dyn Wire>,
    dialect: Dialect,
    msize: u32,
    inbox: Inbox,
    outbox: Outbox,
    fids: Fids,
    root: Qid,
    lost: bool,
}

impl Client {
    /// Agrees on a dialect with the server at the other end of `wire`, and attaches to its tree as `user`, whose number is `uid`.
    ///
    /// # Errors
    /// The server refuses, is none, or does not answer for as long as `patience`.
    pub fn connect(
        mut wire: Box<dyn Wire>,
        user: &[u8],
        uid: u32,
        patience: Duration,
    ) -> Result<Self, Error> {
        wire.set_patience(Some(patience)).map_err(Error::Failed)?;
        let mut client = Self {
            wire,
            dialect: Dialect::Plain,
            msize: MSIZE,
            inbox: Inbox::default(),
            outbox: Outbox::new(),
            fids: Fids::default(),
            root: Qid::default(),
            lost: false,
        };
        client.agree()?;
        let attach = Tmessage::Attach { fid: ROOT, afid: NOFID, uname: user, aname: b"", n_uname: Some(uid) };
        let Rmessage::Attach { qid } = client.call(&attach)? else { return Err(UNEXPECTED) };
        client.root = qid;
        client.wire.set_patience(Some(ANSWER_TIME)).map_err(Error::Failed)?;
        Ok(client)
    }

    /// The dialect agreed on.
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether an error has ended the connection, so that every further operation is [`Error::Lost`].
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// What the server says of the file at `path`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn stat(&mut self, path: &TreePath) -> Result<Stat, Error> {
        self.visit(path, |client, place| client.attributes(place))
    }

    /// version(5). Offers 9P2000.u, and 9P2000.L to a server that does not know that.
    fn agree(&mut self) -> Result<(), Error> {
        for offer in [Dialect::Unix, Dialect::Linux] {
            let version = Tmessage::Version { msize: MSIZE, version: offer.name().as_bytes() };
            self.send(NOTAG, &version).map_err(turned_away)?;
            let frame = self.inbox.frame(&mut *self.wire, MSIZE).map_err(turned_away)?;
            // A server that knows nothing of the offer may say so with an error, in whatever dialect.
            let Ok((NOTAG, Rmessage::Version { msize, version })) = Rmessage::decode(frame, offer) else {
                continue;
            };
            let spoken = Dialect::ALL.into_iter().find(|dialect| dialect.name().as_bytes() == version);
            let Some(dialect) = spoken.filter(|spoken| *spoken == offer || *spoken == Dialect::Plain) else {
                continue;
            };
            if !(MSIZE_MIN..=MSIZE).contains(&msize) {
                return Err(Error::Protocol("an msize that was not offered, or is too small"));
            }
            self.dialect = dialect;
            self.msize = msize;
            return Ok(());
        }
        Err(Error::Dialect)
    }

    /// Walks to `path`, acts there, and clunks what it walked to.
    fn visit<T>(
        &mut self,
        path: &TreePath,
        act: impl FnOnce(&mut Self, &Place<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.lost {
            return Err(Error::Lost);
        }
        let fid = self.fids.take();
        let outcome = self.walk(fid, path).and_then(|qid| {
            let name = path.last().unwrap_or(b"/");
            let outcome = act(self, &Place { fid, qid, name });
            self.clunk_after(fid, outcome)
        });
        self.fids.give_back(fid);
        self.lost = outcome.as_ref().is_err_and(Error::is_fatal);
        outcome
    }

    /// Binds `fid` to `path`. After an error it is not bound.
    fn walk(&mut self, fid: u32, path: &TreePath) -> Result<Qid, Error> {
        let mut from = ROOT;
        let mut qid = self.root;
        let mut names = path.names();
        let mut most = MAX_WALK;
        loop {
            let leg = self.leg(names, most);
            let walked = match leg {
                [] if !names.is_empty() => Err(Error::NameTooLong),
                leg => self.step(from, fid, leg),
            };
            let qids = match walked {
                Ok(qids) => qids,
                Err(error) if from == fid => return self.clunk_after(fid, Err(error)),
                Err(error) => return Err(error),
            };
            if qids.len() < leg.len() {
                // Part of the way is no way: nothing has moved. Go that part alone, so that the next step begins with the name
                // that failed, and the server says why.
                most = qids.len();
                continue;
            }
            qid = qids.last().copied().unwrap_or(qid);
            from = fid;
            names = &names[leg.len()..];
            most = MAX_WALK;
            if names.is_empty() {
                return Ok(qid);
            }
        }
    }

    /// As many names from the front as one walk may have and one frame can carry.
    fn leg<'n>(&self, names: &'n [Box<[u8]>], most: usize) -> &'n [Box<[u8]>] {
        let mut room = (self.msize as usize).saturating_sub(WALK_HEADER_BYTES);
        let fits = names.iter().take(most).take_while(|name| {
            let left = room.checked_sub(2 + name.len());
            room = left.unwrap_or(0);
            left.is_some() && name.len() <= usize::from(u16::MAX)
        });
        &names[..fits.count()]
    }

    /// One Twalk; at least one qid, unless there are no names.
    fn step(&mut self, fid: u32, newfid: u32, names: &[Box<[u8]>]) -> Result<Vec<Qid>, Error> {
        let mut wire = vec![0; names.iter().map(|name| 2 + name.len()).sum()];
        let packed = Names::pack(names.iter().map(|name| &**name), &mut wire).map_err(unencoded)?;
        match self.call(&Tmessage::Walk { fid, newfid, names: packed })? {
            Rmessage::Walk { qids } if qids.len() <= names.len() && qids.is_empty() == names.is_empty() => {
                Ok(qids.iter().collect())
            }
            _ => Err(UNEXPECTED),
        }
    }

    /// Clunks `fid`, and yields `outcome` unless only the clunk went wrong. What was written may be refused as late as that.
    fn clunk_after<T>(&mut self, fid: u32, outcome: Result<T, Error>) -> Result<T, Error> {
        if outcome.as_ref().is_err_and(Error::is_fatal) {
            return outcome;
        }
        let clunked = match self.call(&Tmessage::Clunk { fid }) {
            Ok(Rmessage::Clunk) => Ok(()),
            Ok(_) => Err(UNEXPECTED),
            Err(error) => Err(error),
        };
        match (outcome, clunked) {
            (Err(_), Err(error)) if error.is_fatal() => Err(error),
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            (Ok(value), Ok(())) => Ok(value),
        }
    }

    fn attributes(&mut self, place: &Place<'_>) -> Result<Stat, Error> {
        let fid = place.fid;
        let request = match self.dialect {
            Dialect::Linux => Tmessage::Getattr { fid, mask: proto::GETATTR_BASIC },
            Dialect::Plain | Dialect::Unix => Tmessage::Stat { fid },
        };
        match self.call(&request)? {
            Rmessage::Getattr { attr } => Ok(Stat::from_attr(&attr, place.name)),
            Rmessage::Stat { stat } => Ok(Stat::from_record(&stat)),
            _ => Err(UNEXPECTED),
        }
    }

    /// Opens a fid; yields the most bytes that one read or write of it moves.
    fn open(&mut self, fid: u32, purpose: Purpose) -> Result<u32, Error> {
        let request = self.opening(fid, purpose);
        let most = self.io_room();
        match self.call(&request)? {
            Rmessage::Open { iounit: 0, .. } | Rmessage::Lopen { iounit: 0, .. } => Ok(most),
            Rmessage::Open { iounit, .. } | Rmessage::Lopen { iounit, .. } => Ok(iounit.min(most)),
            _ => Err(UNEXPECTED),
        }
    }

    /// The request that opens a fid.
    const fn opening(&self, fid: u32, purpose: Purpose) -> Tmessage<'static> {
        match (self.dialect, purpose) {
            (Dialect::Linux, Purpose::Read) => Tmessage::Lopen { fid, flags: proto::O_LARGEFILE },
            (Dialect::Linux, Purpose::Rewrite) => {
                let flags = proto::O_WRONLY | proto::O_TRUNC | proto::O_LARGEFILE;
                Tmessage::Lopen { fid, flags }
            }
            (_, Purpose::Read) => Tmessage::Open { fid, mode: proto::OREAD },
            (_, Purpose::Rewrite) => Tmessage::Open { fid, mode: proto::OWRITE | proto::OTRUNC },
        }
    }

    /// The most bytes that one read or write can move.
    const fn io_room(&self) -> u32 {
        self.msize - IO_HEADER_BYTES
    }

    /// One request and its answer, with nothing else in flight. A refusal is an error.
    fn call(&mut self, request: &Tmessage<'_>) -> Result<Rmessage<'_>, Error> {
        self.send(CALL_TAG, request)?;
        match self.answer()? {
            (CALL_TAG, answer) => accepted(answer),
            _ => Err(UNEXPECTED),
        }
    }

    fn send(&mut self, tag: u16, request: &Tmessage<'_>) -> Result<(), Error> {
        self.queue(tag, request)?;
        self.flush()
    }

    /// Puts a request behind those that [`Client::flush`] will send.
    fn queue(&mut self, tag: u16, request: &Tmessage<'_>) -> Result<(), Error> {
        self.outbox.push(tag, request, self.dialect).map_err(unencoded)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let sent = self.wire.send(self.outbox.bytes()).map_err(unreachable_server);
        self.outbox.clear();
        sent
    }

    /// The next answer to arrive, whichever request it is to.
    fn answer(&mut self) -> Result<(u16, Rmessage<'_>), Error> {
        let frame = self.inbox.frame(&mut *self.wire, self.msize)?;
        Rmessage::decode(frame, self.dialect).map_err(undecoded)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("dialect", &self.dialect).field("msize", &self.msize).finish()
    }
}

/// Where an operation acts.
#[derive(Debug)]
struct Place<'a> {
    fid: u32,
    qid: Qid,
    name: &'a [u8],
}

/// What a file is opened for.
#[derive(Copy, Clone, Debug)]
enum Purpose {
    Read,
    /// Cut to nothing and written anew.
    Rewrite,
}

/// Requests on their way out.
#[derive(Debug)]
struct Outbox {
    bytes: Vec<u8>,
    used: usize,
}

impl Outbox {
    fn new() -> Self {
        // Zeroed memory costs nothing until it is touched, and only a write touches much of it.
        Self { bytes: vec![0; MSIZE as usize], used: 0 }
    }

    fn push(&mut self, tag: u16, request: &Tmessage<'_>, dialect: Dialect) -> Result<(), EncodeError> {
        self.used += request.encode(tag, dialect, &mut self.bytes[self.used..])?;
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    fn clear(&mut self) {
        self.used = 0;
    }
}

/// Numbers for fids: those given back are used again.
#[derive(Debug, Default)]
struct Fids {
    free: Vec<u32>,
    made: u32,
}

impl Fids {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            ROOT + self.made
        })
    }

    fn give_back(&mut self, fid: u32) {
        self.free.push(fid);
    }
}

/// Turns a refusal into an error.
fn accepted(answer: Rmessage<'_>) -> Result<Rmessage<'_>, Error> {
    match answer {
        Rmessage::Error { ename, errno } => Err(Error::refused(ename, errno)),
        Rmessage::Lerror { ecode } => Err(Error::numbered(ecode)),
        answer => Ok(answer),
    }
}

/// What a failed send or receive means.
fn unreachable_server(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::TimedOut => Error::Silent,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Error::Closed,
        _ => Error::Failed(error),
    }
}

/// Of a server that has not said a word yet.
fn turned_away(error: Error) -> Error {
    if matches!(error, Error::Closed) { Error::TurnedAway } else { error }
}

/// The only requests that may not fit are walks, whose names were counted, and those with a name that cannot be sent at all.
fn unencoded(_: EncodeError) -> Error {
    Error::NameTooLong
}

fn undecoded(_: DecodeError) -> Error {
    Error::Protocol("a reply that cannot be decoded")
}

const UNEXPECTED: Error = Error::Protocol("a reply to nothing that was asked");

/// The fid of the tree's root, for the whole connection.
const ROOT: u32 = 0;
/// The tag of a request that is alone. Those of reads that are in flight together begin above it.
const CALL_TAG: u16 = 0;
/// What is offered as msize: reads of 256 KiB, which is where larger ones stop paying, and the header of the larger message.
const MSIZE: u32 = 256 * 1024 + IO_HEADER_BYTES;
/// The least that a server may offer: what 9P2000's own smallest servers do.
const MSIZE_MIN: u32 = 256;
/// What the messages around read and written data may take (`IOHDRSZ` of Plan 9's `fcall.h`).
const IO_HEADER_BYTES: u32 = 24;
/// A Twalk before its names: the header, two fids and the count.
const WALK_HEADER_BYTES: usize = 7 + 4 + 4 + 2;
/// How long any other answer may take, but that to a read or a write, which a file may hold back for as long as it likes.
const ANSWER_TIME: Duration = Duration::from_secs(60);
