//! What each message means.
//!
//! Owns: which fids a message names and how, what it asks of the backend, what may be refused without asking, and what an
//! answer does to a fid and says in which reply. Must not know: order, flushes, or buffers (`session`, `pending`,
//! `outbox`).
//!
//! The dialects meet here: a Topen and a Tlopen become the same ask, and one answer becomes the reply of either. A message
//! that would change the tree is a line in a table.

use proto::write::{getattr_header, io_header, stat_header};
use proto::{Dialect, NOFID, Qid, Refusal, Rmessage, Stat, Statfs, Tmessage};

use crate::fid::{Cursor, Fid, Opened};
use crate::outbox::{Apart, Spec};
use crate::pending::{Key, Purpose};
use crate::port::{Answer, Ask, Change, Form, Kinds, Mode, Path, Qids, Ticket};
use crate::session::Session;

/// How a request begins.
#[derive(Debug)]
pub(crate) enum Start<K: Kinds> {
    /// It was answered at once.
    Replied,
    /// The backend is asked.
    Ask {
        ask: Ask<K>,
        /// What completing it does.
        purpose: Purpose,
        /// The room for its answer.
        spec: Spec,
        /// It may share its fid, although that was not known when it came.
        shareable: bool,
    },
}

type Started<K> = Result<Start<K>, Refusal>;

impl<K: Kinds> Session<K> {
    /// The fids a message names: one it uses, which must be there, and one it binds.
    pub(crate) fn keys(&self, message: &Tmessage<'_>) -> Result<[Option<Key>; 2], Refusal> {
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::OpenShared)
            && let Tmessage::Open { fid, .. } | Tmessage::Lopen { fid, .. } = *message
            && self.fids.find(fid).is_some()
        {
            return Ok([Some(Key::shared(fid)), None]);
        }
        let (uses, binds) = match *message {
            Tmessage::Version { .. } | Tmessage::Auth { .. } | Tmessage::Flush { .. } => (None, None),
            Tmessage::Attach { fid, .. } => (None, Some(Key::alone(fid))),
            Tmessage::Walk { fid, newfid, .. } if fid == newfid => (Some(Key::alone(fid)), None),
            Tmessage::Walk { fid, newfid, .. } => (Some(Key::shared(fid)), Some(Key::alone(newfid))),
            Tmessage::Read { fid, .. } if self.stays_file(fid) => (Some(Key::shared(fid)), None),
            Tmessage::Read { fid, .. }
            | Tmessage::Readdir { fid, .. }
            | Tmessage::Open { fid, .. }
            | Tmessage::Lopen { fid, .. }
            | Tmessage::Write { fid, .. }
            | Tmessage::Wstat { fid, .. }
            | Tmessage::Setattr { fid, .. }
            | Tmessage::Clunk { fid }
            | Tmessage::Remove { fid } => (Some(Key::alone(fid)), None),
            Tmessage::Stat { fid }
            | Tmessage::Getattr { fid, .. }
            | Tmessage::Statfs { fid }
            | Tmessage::Readlink { fid }
            | Tmessage::Fsync { fid, .. }
            | Tmessage::Xattrwalk { fid, .. } => (Some(Key::shared(fid)), None),
            ref other => (changing(other).map(Key::shared), None),
        };
        match uses {
            Some(key) if self.fids.find(key.fid).is_none() => Err(Refusal::UNKNOWN_FID),
            _ => Ok([uses, binds]),
        }
    }

    /// Starts a request whose fids are its own.
    pub(crate) fn start(&mut self, tag: u16, message: &Tmessage<'_>) -> Started<K> {
        match *message {
            Tmessage::Attach { fid, afid, uname, aname, .. } => self.start_attach(fid, afid, uname, aname),
            Tmessage::Walk { fid, newfid, .. } => self.start_walk(tag, fid, newfid, message),
            Tmessage::Open { fid, mode } => self.start_open(fid, plain_mode(mode)?, false),
            Tmessage::Lopen { fid, flags } => {
                self.start_open(fid, linux_mode(flags)?, flags & proto::O_DIRECTORY != 0)
            }
            Tmessage::Read { fid, offset, count } => self.start_read(tag, fid, offset, count),
            Tmessage::Readdir { fid, offset, count } => self.start_readdir(fid, offset, count),
            Tmessage::Write { fid, offset, data } => self.start_write(tag, fid, offset, data),
            Tmessage::Stat { fid } | Tmessage::Getattr { fid, .. } => self.start_stat(fid),
            Tmessage::Wstat { fid, stat } => self.start_change(tag, fid, wstat_change(&stat)),
            Tmessage::Setattr { fid, valid, size, .. } => {
                self.start_change(tag, fid, setattr_change(valid, size))
            }
            Tmessage::Clunk { fid } => self.forget_fid(fid, tag, Ok(Rmessage::Clunk)),
            // remove(5): the fid is gone even though the file is not.
            Tmessage::Remove { fid } => self.forget_fid(fid, tag, Err(Refusal::VIEW)),
            Tmessage::Statfs { fid } => self.tell(fid, tag, Ok(Rmessage::Statfs { statfs: STATFS })),
            Tmessage::Fsync { fid, .. } => self.tell(fid, tag, Ok(Rmessage::Fsync)),
            Tmessage::Readlink { fid } => self.tell(fid, tag, Err(Refusal::INVALID)),
            Tmessage::Xattrwalk { fid, name: b"", .. } => self.tell(fid, tag, Err(Refusal::NOT_SUPPORTED)),
            Tmessage::Xattrwalk { fid, .. } => self.tell(fid, tag, Err(Refusal::NO_DATA)),
            Tmessage::Auth { .. } => Err(Refusal::NO_AUTH),
            ref other => match changing(other) {
                Some(fid) => self.tell(fid, tag, Err(Refusal::VIEW)),
                None => Err(Refusal::UNKNOWN_MESSAGE),
            },
        }
    }

    /// Ends a request with the backend's answer: what it does to the fid, and the reply. A refusal is for the caller to
    /// tell.
    pub(crate) fn conclude(
        &mut self,
        ticket: Ticket,
        tag: u16,
        purpose: Purpose,
        spec: Spec,
        answer: Answer<K>,
        apart: Option<Apart>,
    ) -> Result<(), Refusal> {
        match (purpose, answer) {
            (Purpose::Attach { fid }, Answer::Attached { qid, root }) => {
                self.fids.bind(fid, root, qid.kind & proto::QTDIR != 0);
                self.reply(tag, &Rmessage::Attach { qid });
                Ok(())
            }
            (Purpose::Walk { newfid, asked }, Answer::Walked { qids, end }) => {
                self.conclude_walk(tag, newfid, asked, &qids, end)
            }
            (Purpose::Open { fid, mode }, Answer::Opened { qid, open, list }) => {
                self.fids.open(fid, Opened { open, mode, cursor: list.then(Cursor::default) });
                self.reply_opened(tag, qid);
                Ok(())
            }
            (Purpose::Read, Answer::Bytes(count)) => {
                self.finish(ticket, tag, spec, count, apart, Header::Read)
            }
            (Purpose::List { fid, offset }, Answer::Listed { bytes, next, open }) => {
                let header = if self.is_linux() { Header::Readdir } else { Header::Read };
                self.finish(ticket, tag, spec, bytes, apart, header)?;
                self.conclude_list(fid, offset, bytes, next, open);
                Ok(())
            }
            (Purpose::Stat, Answer::Stat { bytes }) if self.may_be_record(bytes) => {
                let header = if self.is_linux() { Header::Getattr } else { Header::Stat };
                self.finish(ticket, tag, spec, bytes, apart, header)
            }
            (Purpose::Change, Answer::Changed) => {
                self.reply_changed(tag);
                Ok(())
            }
            (Purpose::Write { asked }, Answer::Wrote(count)) if count as usize <= asked => {
                self.reply(tag, &Rmessage::Write { count });
                Ok(())
            }
            // Not an answer to what was asked.
            _ => Err(Refusal::IO),
        }
    }

    fn start_attach(&self, fid: u32, afid: u32, uname: &[u8], aname: &[u8]) -> Started<K> {
        if self.node(fid).is_ok() {
            return Err(Refusal::FID_IN_USE);
        }
        if afid != NOFID {
            return Err(Refusal::NO_AUTH);
        }
        let spec = Spec::carrying(uname.len() + aname.len());
        let ask_of = Ask::Attach { uname: uname.into(), aname: aname.into(), local: self.local };
        ask(ask_of, Purpose::Attach { fid }, spec)
    }

    fn start_walk(&mut self, tag: u16, fid: u32, newfid: u32, message: &Tmessage<'_>) -> Started<K> {
        let Tmessage::Walk { names, .. } = *message else { return Err(Refusal::INVALID) };
        let from = self.fids.find(fid).ok_or(Refusal::UNKNOWN_FID)?;
        let node = from.node().ok_or(Refusal::UNKNOWN_FID)?.clone();
        let directory = from.is_directory();
        if names.len() > proto::MAX_WALK {
            return Err(Refusal::TOO_MANY_NAMES);
        }
        if fid == newfid && from.opened().is_some() {
            return Err(Refusal::BAD_FID_USE);
        }
        if fid != newfid && self.node(newfid).is_ok() {
            return Err(Refusal::FID_IN_USE);
        }
        if names.is_empty() {
            if fid != newfid {
                self.fids.bind(newfid, node, directory);
            }
            self.reply(tag, &Rmessage::Walk { qids: proto::Qids::new(&[]) });
            return Ok(Start::Replied);
        }
        if !directory {
            return Err(Refusal::NOT_A_DIRECTORY);
        }
        let purpose = Purpose::Walk { newfid, asked: names.len() };
        let spec = Spec::carrying(names.wire().len());
        ask(Ask::Walk { from: node, names: Path::copy(names) }, purpose, spec)
    }

    fn start_open(&self, fid: u32, mode: Mode, only_directory: bool) -> Started<K> {
        let from = self.fids.find(fid).ok_or(Refusal::UNKNOWN_FID)?;
        let node = from.node().ok_or(Refusal::UNKNOWN_FID)?;
        if from.opened().is_some() {
            return Err(Refusal::BAD_FID_USE);
        }
        if from.is_directory() && (mode.write || mode.truncate) {
            return Err(Refusal::IS_A_DIRECTORY);
        }
        if only_directory && !from.is_directory() {
            return Err(Refusal::NOT_A_DIRECTORY);
        }
        ask(Ask::Open { node: node.clone(), mode }, Purpose::Open { fid, mode }, Spec::NOTHING)
    }

    fn start_read(&mut self, tag: u16, fid: u32, offset: u64, count: u32) -> Started<K> {
        let opened = self.opened(fid)?;
        if !opened.mode.read {
            return Err(Refusal::BAD_FID_USE);
        }
        let Some(cursor) = &opened.cursor else {
            // No file has a byte there: off_t is signed.
            if count == 0 || offset > MAX_OFFSET {
                self.reply(tag, &Rmessage::Read { data: b"" });
                return Ok(Start::Replied);
            }
            let open = opened.open.clone();
            let spec = self.payload(Form::Bytes, count);
            return Ok(Start::Ask {
                ask: Ask::Read { open, offset },
                purpose: Purpose::Read,
                spec,
                shareable: true,
            });
        };
        if self.is_linux() {
            return Err(Refusal::IS_A_DIRECTORY);
        }
        let from = match offset {
            0 => 0,
            offset => cursor.index(offset).ok_or(Refusal::BAD_OFFSET)?,
        };
        self.start_list(fid, offset, from, count)
    }

    fn start_readdir(&self, fid: u32, offset: u64, count: u32) -> Started<K> {
        let opened = self.opened(fid)?;
        let cursor = opened.cursor.as_ref().ok_or(Refusal::NOT_A_DIRECTORY)?;
        if offset > 0 && !cursor.taken {
            return Err(Refusal::BAD_OFFSET);
        }
        self.start_list(fid, offset, u32::try_from(offset).unwrap_or(u32::MAX), count)
    }

    fn start_list(&self, fid: u32, offset: u64, from: u32, count: u32) -> Started<K> {
        let open = self.opened(fid)?.open.clone();
        ask(Ask::List { open, from }, Purpose::List { fid, offset }, self.payload(Form::Entries, count))
    }

    fn start_write(&mut self, tag: u16, fid: u32, offset: u64, data: &[u8]) -> Started<K> {
        self.node(fid)?;
        let opened = self.opened(fid).ok().filter(|opened| opened.mode.write).ok_or(Refusal::VIEW)?;
        if offset > MAX_OFFSET {
            return Err(Refusal::INVALID);
        }
        if data.is_empty() {
            self.reply(tag, &Rmessage::Write { count: 0 });
            return Ok(Start::Replied);
        }
        let open = opened.open.clone();
        let (purpose, spec) = (Purpose::Write { asked: data.len() }, Spec::carrying(data.len()));
        ask(Ask::Write { open, offset, data: data.into() }, purpose, spec)
    }

    fn start_stat(&self, fid: u32) -> Started<K> {
        let node = self.node(fid)?.clone();
        let spec = if self.is_linux() {
            let head = proto::HEADER_SIZE as u8;
            Spec { form: Form::Stat, head, limit: proto::Attr::SIZE as u32, carried: 0 }
        } else {
            let head = proto::STAT_HEADER_SIZE as u8;
            Spec { form: Form::Stat, head, limit: MAX_RECORD.min(self.msize - u32::from(head)), carried: 0 }
        };
        ask(Ask::Stat { node }, Purpose::Stat, spec)
    }

    fn start_change(&mut self, tag: u16, fid: u32, change: Change) -> Started<K> {
        let node = self.node(fid)?;
        if change == NO_CHANGE {
            self.reply_changed(tag);
            return Ok(Start::Replied);
        }
        ask(Ask::Change { node: node.clone(), change }, Purpose::Change, Spec::NOTHING)
    }

    fn forget_fid(&mut self, fid: u32, tag: u16, reply: Result<Rmessage<'_>, Refusal>) -> Started<K> {
        if !self.fids.clunk(fid) {
            return Err(Refusal::UNKNOWN_FID);
        }
        self.reply(tag, &reply?);
        Ok(Start::Replied)
    }

    /// A reply that needs nothing but that the fid is bound.
    fn tell(&mut self, fid: u32, tag: u16, reply: Result<Rmessage<'_>, Refusal>) -> Started<K> {
        self.node(fid)?;
        self.reply(tag, &reply?);
        Ok(Start::Replied)
    }

    /// walk(5): the new fid is bound only if every name resolved, and a walk of which nothing resolved is refused.
    fn conclude_walk(
        &mut self,
        tag: u16,
        newfid: u32,
        asked: usize,
        qids: &Qids,
        end: Option<K::Node>,
    ) -> Result<(), Refusal> {
        let last = qids.last().ok_or(Refusal::NOT_FOUND)?;
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::WalkBinds)
            && end.is_none()
            && let Some(node) = self.fids.find(0).and_then(|root| root.node()).cloned()
        {
            self.fids.bind(newfid, node, true);
        }
        match end {
            Some(node) if qids.len() == asked => {
                self.fids.bind(newfid, node, last.kind & proto::QTDIR != 0);
            }
            None if qids.len() < asked => {}
            // So many qids tell the client whether its fid is bound, and here that would be a lie.
            _ => return Err(Refusal::IO),
        }
        self.reply(tag, &Rmessage::Walk { qids: proto::Qids::new(qids.wire()) });
        Ok(())
    }

    fn conclude_list(&mut self, fid: u32, offset: u64, bytes: u32, next: u32, open: Option<K::Open>) {
        let linux = self.is_linux();
        let Some(opened) = self.fids.find_mut(fid).and_then(|fid| fid.opened_mut()) else { return };
        if let Some(open) = open {
            opened.open = open;
        }
        let Some(cursor) = &mut opened.cursor else { return };
        if offset == 0 {
            cursor.rewind();
        }
        if bytes > 0 && !linux {
            cursor.ended(offset + u64::from(bytes), next);
        }
    }

    fn reply_opened(&mut self, tag: u16, qid: Qid) {
        // An iounit of 0 leaves the size of reads to msize: a small one would cost the client round trips.
        let iounit = 0;
        let linux = self.is_linux();
        self.reply(
            tag,
            &if linux { Rmessage::Lopen { qid, iounit } } else { Rmessage::Open { qid, iounit } },
        );
    }

    fn reply_changed(&mut self, tag: u16) {
        let linux = self.is_linux();
        self.reply(tag, &if linux { Rmessage::Setattr } else { Rmessage::Wstat });
    }

    /// Sends the reply whose payload is in the room.
    fn finish(
        &mut self,
        ticket: Ticket,
        tag: u16,
        spec: Spec,
        count: u32,
        apart: Option<Apart>,
        header: Header,
    ) -> Result<(), Refusal> {
        let write = |space: &mut [u8]| header.write(tag, count, space);
        let sent = match apart {
            Some(apart) => self.outbox.finish_apart(apart, spec, count, write),
            None => self.outbox.finish(ticket, spec, count, write),
        };
        if sent { Ok(()) } else { Err(Refusal::IO) }
    }

    fn payload(&self, form: Form, count: u32) -> Spec {
        let limit = count.min(self.room_bytes());
        Spec { form, head: proto::IO_HEADER_SIZE as u8, limit, carried: 0 }
    }

    /// Whether a record can be so long: the body of an Rgetattr always is, and no stat record is empty.
    fn may_be_record(&self, bytes: u32) -> bool {
        if self.is_linux() { bytes as usize == proto::Attr::SIZE } else { bytes > 0 }
    }

    fn node(&self, fid: u32) -> Result<&K::Node, Refusal> {
        self.fids.find(fid).and_then(|fid| fid.node()).ok_or(Refusal::UNKNOWN_FID)
    }

    fn opened(&self, fid: u32) -> Result<&Opened<K>, Refusal> {
        self.node(fid)?;
        self.fids.find(fid).and_then(|fid| fid.opened()).ok_or(Refusal::BAD_FID_USE)
    }

    fn stays_file(&self, fid: u32) -> bool {
        self.fids.find(fid).is_some_and(Fid::stays_file)
    }

    fn is_linux(&self) -> bool {
        self.dialect == Some(Dialect::Linux)
    }
}

/// Which header goes in front of a payload.
#[derive(Copy, Clone, Debug)]
enum Header {
    Read,
    Readdir,
    Stat,
    Getattr,
}

impl Header {
    /// Fills the space in front of a payload, which is exactly as long as the header.
    fn write(self, tag: u16, count: u32, space: &mut [u8]) {
        match self {
            Self::Read => {
                space.first_chunk_mut().map(|space| io_header(proto::message::RREAD, tag, count, space))
            }
            Self::Readdir => {
                space.first_chunk_mut().map(|space| io_header(proto::message::RREADDIR, tag, count, space))
            }
            Self::Stat => space.first_chunk_mut().map(|space| stat_header(tag, count as u16, space)),
            Self::Getattr => space.first_chunk_mut().map(|space| getattr_header(tag, space)),
        };
    }
}

/// The file a message would change, for every message that can only be refused in this tree.
fn changing(message: &Tmessage<'_>) -> Option<u32> {
    match *message {
        Tmessage::Create { fid, .. }
        | Tmessage::Lcreate { fid, .. }
        | Tmessage::Symlink { fid, .. }
        | Tmessage::Mknod { dfid: fid, .. }
        | Tmessage::Rename { fid, .. }
        | Tmessage::Xattrcreate { fid, .. }
        | Tmessage::Lock { fid, .. }
        | Tmessage::Getlock { fid, .. }
        | Tmessage::Link { dfid: fid, .. }
        | Tmessage::Mkdir { dfid: fid, .. }
        | Tmessage::Renameat { olddirfid: fid, .. }
        | Tmessage::Unlinkat { dfid: fid, .. } => Some(fid),
        _ => None,
    }
}

fn ask<K: Kinds>(ask: Ask<K>, purpose: Purpose, spec: Spec) -> Started<K> {
    Ok(Start::Ask { ask, purpose, spec, shareable: false })
}

/// open(5). A file of this tree is never executable and never removed.
fn plain_mode(mode: u8) -> Result<Mode, Refusal> {
    if mode & !(proto::OMASK | proto::OTRUNC | proto::OCEXEC | proto::ORCLOSE) != 0 {
        return Err(Refusal::INVALID);
    }
    if mode & proto::ORCLOSE != 0 {
        return Err(Refusal::VIEW);
    }
    let truncate = mode & proto::OTRUNC != 0;
    Ok(match mode & proto::OMASK {
        proto::OREAD => Mode { read: true, write: false, truncate },
        proto::OWRITE => Mode { read: false, write: true, truncate },
        proto::ORDWR => Mode { read: true, write: true, truncate },
        _ => return Err(Refusal::PERMISSION_DENIED),
    })
}

/// Tlopen's flags are open(2)'s, of which the kernel passes on more than it means: only these count.
fn linux_mode(flags: u32) -> Result<Mode, Refusal> {
    let truncate = flags & proto::O_TRUNC != 0;
    match flags & proto::O_ACCMODE {
        proto::O_RDONLY => Ok(Mode { read: true, write: false, truncate }),
        proto::O_WRONLY => Ok(Mode { read: false, write: true, truncate }),
        proto::O_RDWR => Ok(Mode { read: true, write: true, truncate }),
        _ => Err(Refusal::INVALID),
    }
}

fn wstat_change(stat: &Stat<'_>) -> Change {
    let untouched = Stat::UNTOUCHED;
    let rest = Stat { length: !0, atime: !0, mtime: !0, ..*stat };
    Change {
        truncate: stat.length == 0,
        times: stat.atime != untouched.atime || stat.mtime != untouched.mtime,
        other: !rest.is_untouched() || (stat.length != 0 && stat.length != untouched.length),
    }
}

fn setattr_change(valid: u32, size: u64) -> Change {
    let sized = valid & proto::SETATTR_SIZE != 0;
    Change {
        truncate: sized && size == 0,
        times: valid & TIMES != 0,
        other: (sized && size != 0) || valid & !(TIMES | proto::SETATTR_SIZE) != 0,
    }
}

const NO_CHANGE: Change = Change { truncate: false, times: false, other: false };

const TIMES: u32 = proto::SETATTR_ATIME
    | proto::SETATTR_MTIME
    | proto::SETATTR_CTIME
    | proto::SETATTR_ATIME_SET
    | proto::SETATTR_MTIME_SET;

/// Offsets are signed on every system a file of this tree lies on.
const MAX_OFFSET: u64 = i64::MAX as u64;

/// Room for a stat record: four names and 61 bytes. Longer names would not fit the smallest msize either.
const MAX_RECORD: u32 = 2048;

/// What this tree says of itself to statfs(2): nothing is free, and names are as long as anywhere.
const STATFS: Statfs = Statfs {
    kind: proto::V9FS_MAGIC,
    bsize: 4096,
    blocks: 0,
    bfree: 0,
    bavail: 0,
    files: 0,
    ffree: 0,
    fsid: 0,
    namelen: 255,
};
