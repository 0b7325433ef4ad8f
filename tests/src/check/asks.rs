//! What a client can ask in any dialect, each request a call that takes its reply.
//!
//! Owns: the choice of the message a dialect has for a request. Must not know: how replies are checked.

use proto::{Dialect, NOFID, NONUNAME, NOTAG, Qid, Rmessage, Tmessage};

use super::answers::{Answer, Entry, Info, Refused, entries, info_of_attr, info_of_record};
use super::{BULK, Client, ROOT, pack};

/// How a file is to be opened, in any dialect.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum How {
    /// For reading.
    Read,
    /// For writing.
    Write,
    /// For both.
    ReadWrite,
    /// For reading, and cut to nothing first.
    ReadTruncate,
    /// For writing, and cut to nothing first: what `echo x > f` sends.
    WriteTruncate,
}

/// What every dialect can ask.
impl Client {
    /// Tversion, in any words; yields the msize and the words of the answer.
    #[track_caller]
    pub fn version(&mut self, msize: u32, version: impl AsRef<[u8]>) -> Answer<(u32, String)> {
        let message = Tmessage::Version { msize, version: version.as_ref() };
        self.send(NOTAG, &message);
        let frame = self.receive();
        assert_eq!(frame.tag(), NOTAG);
        match frame.message() {
            Rmessage::Version { msize: agreed, version } => {
                self.msize = agreed;
                Ok((agreed, String::from_utf8_lossy(version).into_owned()))
            }
            other => Err(Refused::of(&other)),
        }
    }

    /// Agrees on the client's own dialect.
    #[track_caller]
    pub fn greet(&mut self, msize: u32) {
        let (_, version) = self.version(msize, self.dialect.name()).expect("an msize that is large enough");
        assert_eq!(version, self.dialect.name());
    }

    /// Tattach without authentication.
    #[track_caller]
    pub fn attach(&mut self, fid: u32, aname: &str) -> Answer<Qid> {
        self.attach_as(fid, NOFID, "glenda", aname)
    }

    /// Tattach with everything.
    #[track_caller]
    pub fn attach_as(&mut self, fid: u32, afid: u32, uname: &str, aname: &str) -> Answer<Qid> {
        let n_uname = self.numeric(NONUNAME);
        let (uname, aname) = (uname.as_bytes(), aname.as_bytes());
        match self.call(&Tmessage::Attach { fid, afid, uname, aname, n_uname }).message() {
            Rmessage::Attach { qid } => Ok(qid),
            other => Err(Refused::of(&other)),
        }
    }

    /// A number, where the dialect has it.
    pub fn numeric(&self, number: u32) -> Option<u32> {
        (self.dialect != Dialect::Plain).then_some(number)
    }

    /// Twalk.
    #[track_caller]
    pub fn walk<N: AsRef<[u8]>>(&mut self, fid: u32, newfid: u32, names: &[N]) -> Answer<Vec<Qid>> {
        let mut space = Vec::new();
        match self.call(&Tmessage::Walk { fid, newfid, names: pack(names, &mut space) }).message() {
            Rmessage::Walk { qids } => Ok(qids.iter().collect()),
            other => Err(Refused::of(&other)),
        }
    }

    /// Topen or Tlopen; yields the qid and the iounit.
    #[track_caller]
    pub fn open_as(&mut self, fid: u32, how: How) -> Answer<(Qid, u32)> {
        let message = self.opening(fid, how);
        match self.call(&message).message() {
            Rmessage::Open { qid, iounit } | Rmessage::Lopen { qid, iounit } => Ok((qid, iounit)),
            other => Err(Refused::of(&other)),
        }
    }

    /// The message that opens a fid.
    pub fn opening(&self, fid: u32, how: How) -> Tmessage<'static> {
        if self.dialect == Dialect::Linux {
            let flags = match how {
                How::Read => proto::O_RDONLY,
                How::Write => proto::O_WRONLY,
                How::ReadWrite => proto::O_RDWR,
                How::ReadTruncate => proto::O_RDONLY | proto::O_TRUNC,
                How::WriteTruncate => proto::O_WRONLY | proto::O_TRUNC,
            };
            return Tmessage::Lopen { fid, flags: flags | proto::O_LARGEFILE };
        }
        let mode = match how {
            How::Read => proto::OREAD,
            How::Write => proto::OWRITE,
            How::ReadWrite => proto::ORDWR,
            How::ReadTruncate => proto::OREAD | proto::OTRUNC,
            How::WriteTruncate => proto::OWRITE | proto::OTRUNC,
        };
        Tmessage::Open { fid, mode }
    }

    /// Opens for reading.
    #[track_caller]
    pub fn open(&mut self, fid: u32) -> Answer<Qid> {
        self.open_as(fid, How::Read).map(|(qid, _)| qid)
    }

    /// Tread.
    #[track_caller]
    pub fn read(&mut self, fid: u32, offset: u64, count: u32) -> Answer<Vec<u8>> {
        match self.call(&Tmessage::Read { fid, offset, count }).message() {
            Rmessage::Read { data } => Ok(data.to_vec()),
            other => Err(Refused::of(&other)),
        }
    }

    /// Twrite.
    #[track_caller]
    pub fn write(&mut self, fid: u32, offset: u64, data: &[u8]) -> Answer<u32> {
        match self.call(&Tmessage::Write { fid, offset, data }).message() {
            Rmessage::Write { count } => Ok(count),
            other => Err(Refused::of(&other)),
        }
    }

    /// One read of an open directory: Tread or Treaddir.
    #[track_caller]
    pub fn list_bytes(&mut self, fid: u32, offset: u64, count: u32) -> Answer<Vec<u8>> {
        if self.dialect != Dialect::Linux {
            return self.read(fid, offset, count);
        }
        match self.call(&Tmessage::Readdir { fid, offset, count }).message() {
            Rmessage::Readdir { data } => Ok(data.to_vec()),
            other => Err(Refused::of(&other)),
        }
    }

    /// One read of an open directory, taken apart; yields the offset of the next read, too.
    #[track_caller]
    pub fn list(&mut self, fid: u32, offset: u64, count: u32) -> Answer<(Vec<Entry>, u64)> {
        let bytes = self.list_bytes(fid, offset, count)?;
        let entries = entries(&bytes, self.dialect);
        let next = match entries.last().map(|entry| entry.cookie) {
            Some(Some(cookie)) => cookie,
            _ => offset + bytes.len() as u64,
        };
        Ok((entries, next))
    }

    /// Every entry of an open directory, in reads of so many bytes.
    #[track_caller]
    pub fn list_all(&mut self, fid: u32, count: u32) -> Vec<Entry> {
        let mut all = Vec::new();
        let mut offset = 0;
        loop {
            let (entries, next) = self.list(fid, offset, count).expect("a read of a directory");
            if entries.is_empty() {
                return all;
            }
            all.extend(entries);
            offset = next;
        }
    }

    /// Tstat or Tgetattr.
    #[track_caller]
    pub fn stat(&mut self, fid: u32) -> Answer<Info> {
        let message = self.stating(fid);
        let frame = self.call(&message);
        match frame.message() {
            Rmessage::Stat { stat } => Ok(info_of_record(&stat, &frame.bytes[proto::STAT_HEADER_SIZE..])),
            Rmessage::Getattr { attr } => Ok(info_of_attr(&attr, &frame.bytes[proto::HEADER_SIZE..])),
            other => Err(Refused::of(&other)),
        }
    }

    /// The message that asks for a fid's attributes.
    pub fn stating(&self, fid: u32) -> Tmessage<'static> {
        match self.dialect {
            Dialect::Linux => Tmessage::Getattr { fid, mask: proto::GETATTR_ALL },
            Dialect::Plain | Dialect::Unix => Tmessage::Stat { fid },
        }
    }

    /// Tclunk.
    #[track_caller]
    pub fn clunk(&mut self, fid: u32) -> Answer<()> {
        self.done(&Tmessage::Clunk { fid })
    }

    /// Tremove.
    #[track_caller]
    pub fn remove(&mut self, fid: u32) -> Answer<()> {
        self.done(&Tmessage::Remove { fid })
    }

    /// Any request whose answer says no more than that it is done, or is not looked at.
    #[track_caller]
    pub fn done(&mut self, message: &Tmessage<'_>) -> Answer<()> {
        match self.call(message).message() {
            refusal @ (Rmessage::Error { .. } | Rmessage::Lerror { .. }) => Err(Refused::of(&refusal)),
            _ => Ok(()),
        }
    }

    /// Binds a new fid to a path below the root of the first attach. The path has to be there.
    #[track_caller]
    pub fn go(&mut self, path: impl AsRef<[u8]>) -> u32 {
        let path = path.as_ref();
        self.try_go(path).unwrap_or_else(|refused| panic!("{}: {refused:?}", path.escape_ascii()))
    }

    /// Binds a new fid to a path below the root of the first attach, if it is all there.
    #[track_caller]
    pub fn try_go(&mut self, path: impl AsRef<[u8]>) -> Answer<u32> {
        let names: Vec<&[u8]> =
            path.as_ref().split(|&byte| byte == b'/').filter(|name| !name.is_empty()).collect();
        let fid = self.fresh_fid();
        self.walk::<&[u8]>(ROOT, fid, &[])?;
        for part in names.chunks(proto::MAX_WALK) {
            let walked = self.walk(fid, fid, part);
            if !walked.as_ref().is_ok_and(|qids| qids.len() == part.len()) {
                self.clunk(fid).expect("a clone can be clunked");
                return Err(walked.err().unwrap_or_else(Refused::silent));
            }
        }
        Ok(fid)
    }

    /// Binds a new fid to a path and opens it for reading.
    #[track_caller]
    pub fn open_path(&mut self, path: impl AsRef<[u8]>) -> u32 {
        let fid = self.go(path);
        self.open(fid).expect("an open for reading");
        fid
    }

    /// All that an open file holds from an offset on, in reads of so many bytes.
    #[track_caller]
    pub fn read_from(&mut self, fid: u32, offset: u64, count: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let more = self.read(fid, offset + bytes.len() as u64, count).expect("a read of an open file");
            if more.is_empty() {
                return bytes;
            }
            bytes.extend(more);
        }
    }

    /// All that a file holds.
    #[track_caller]
    pub fn contents(&mut self, path: impl AsRef<[u8]>) -> Vec<u8> {
        let fid = self.open_path(path);
        let bytes = self.read_from(fid, 0, BULK);
        self.clunk(fid).expect("a clunk of an open fid");
        bytes
    }

    /// The names in a directory.
    #[track_caller]
    pub fn names(&mut self, path: impl AsRef<[u8]>) -> Vec<Vec<u8>> {
        let fid = self.open_path(path);
        let entries = self.list_all(fid, BULK);
        self.clunk(fid).expect("a clunk of an open fid");
        entries.into_iter().map(|entry| entry.name).collect()
    }

    /// Sees that the connection still serves.
    #[track_caller]
    pub fn expect_alive(&mut self) {
        let info = self.stat(ROOT).expect("a stat of the root");
        assert!(info.dir, "the root is a directory");
    }
}
