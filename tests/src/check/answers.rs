//! What answers say.
//!
//! Owns: refusals and the reasons they are compared with, stat records, and directory entries, each in one form for all
//! dialects. Must not know: clients or wires.

use std::fmt::Debug;

use proto::stat::{dirents, records};
use proto::{Attr, DMDIR, Dialect, QTDIR, Qid, Rmessage, S_IFDIR, S_IFMT, Stat};

/// A refusal, as it was told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    /// The words of 9P2000 and 9P2000.u.
    pub words: Option<String>,
    /// The number of 9P2000.u and 9P2000.L.
    pub errno: Option<u32>,
}

/// What a request came to.
pub type Answer<T> = Result<T, Refused>;

/// A reason a refusal should give.
#[derive(Copy, Clone, Debug)]
pub struct Why {
    /// Its exact words in 9P2000.
    pub plain: &'static str,
    /// Its number, where 9P2000.u and 9P2000.L have to agree on one.
    pub errno: Option<u32>,
}

/// What a stat says, in any dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Info {
    /// Identity.
    pub qid: Qid,
    /// Whether the mode says it is a directory.
    pub dir: bool,
    /// Permissions.
    pub perm: u32,
    /// Length in bytes.
    pub length: u64,
    /// Last change of content, in seconds since 1970.
    pub mtime: u64,
    /// Name, where the dialect says it.
    pub name: Option<Vec<u8>>,
    /// The whole record as it travelled.
    pub record: Vec<u8>,
}

/// An entry of a directory, in any dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Name.
    pub name: Vec<u8>,
    /// Identity.
    pub qid: Qid,
    /// The stat record, where the dialect lists those.
    pub record: Option<Vec<u8>>,
    /// The offset at which a read goes on after this entry, where the dialect says so.
    pub cookie: Option<u64>,
}

impl Refused {
    /// What a message refuses; any other message fails the case.
    #[track_caller]
    pub(super) fn of(message: &Rmessage<'_>) -> Self {
        match *message {
            Rmessage::Error { ename, errno } => {
                Self { words: Some(String::from_utf8_lossy(ename).into_owned()), errno }
            }
            Rmessage::Lerror { ecode } => Self { words: None, errno: Some(ecode) },
            other => panic!("neither the answer nor a refusal: {other:?}"),
        }
    }

    /// For a walk that ended early, which gives no reason.
    pub(super) fn silent() -> Self {
        Self { words: None, errno: None }
    }
}

/// Sees that a request was refused, for a reason.
#[track_caller]
pub fn refused<T: Debug>(answer: Answer<T>, why: Why) {
    let refused = match answer {
        Err(refused) => refused,
        Ok(done) => panic!("this should have been refused with {why:?}, and was not: {done:?}"),
    };
    match (&refused.words, refused.errno) {
        (Some(words), None) => assert_eq!(words, why.plain, "{why:?}"),
        (Some(_), Some(errno)) | (None, Some(errno)) => {
            assert!(why.errno.is_none_or(|expected| errno == expected), "{refused:?}, but expected {why:?}");
        }
        (None, None) => panic!("a refusal without a reason, but expected {why:?}"),
    }
}

/// Sees that a request was refused, whatever the reason.
#[track_caller]
pub fn refused_somehow<T: Debug>(answer: Answer<T>) {
    assert!(answer.is_err(), "this should have been refused: {answer:?}");
}

/// The entries of one read of a directory. Bytes that are not whole entries fail the case.
#[track_caller]
pub fn entries(bytes: &[u8], dialect: Dialect) -> Vec<Entry> {
    if dialect == Dialect::Linux {
        let entries = dirents(bytes).map(|entry| entry.expect("whole entries"));
        return entries
            .map(|e| Entry { name: e.name.to_vec(), qid: e.qid, record: None, cookie: Some(e.offset) })
            .collect();
    }
    let mut rest = bytes;
    let mut all = Vec::new();
    for stat in records(bytes, dialect) {
        let stat = stat.expect("whole records");
        let (record, after) = rest.split_at(stat.encoded_len(dialect));
        all.push(Entry {
            name: stat.name.to_vec(),
            qid: stat.qid,
            record: Some(record.to_vec()),
            cookie: None,
        });
        rest = after;
    }
    all
}

pub(super) fn info_of_record(stat: &Stat<'_>, record: &[u8]) -> Info {
    assert_eq!(stat.mode & DMDIR != 0, stat.qid.kind & QTDIR != 0, "DMDIR and QTDIR disagree: {stat:?}");
    Info {
        qid: stat.qid,
        dir: stat.mode & DMDIR != 0,
        perm: stat.mode & 0o777,
        length: stat.length,
        mtime: u64::from(stat.mtime),
        name: Some(stat.name.to_vec()),
        record: record.to_vec(),
    }
}

pub(super) fn info_of_attr(attr: &Attr, record: &[u8]) -> Info {
    let dir = attr.mode & S_IFMT == S_IFDIR;
    assert_eq!(dir, attr.qid.kind & QTDIR != 0, "S_IFDIR and QTDIR disagree: {attr:?}");
    Info {
        qid: attr.qid,
        dir,
        perm: attr.mode & 0o7777,
        length: attr.size,
        mtime: attr.mtime_sec,
        name: None,
        record: record.to_vec(),
    }
}

/// The reasons that cases expect: the texts of the Linux client's table, to the letter, and Linux's numbers.
pub mod why {
    use super::Why;

    const fn why(plain: &'static str, errno: u32) -> Why {
        Why { plain, errno: Some(errno) }
    }

    /// ENOENT.
    pub const NOT_FOUND: Why = why("file does not exist", 2);
    /// EACCES.
    pub const DENIED: Why = why("permission denied", 13);
    /// EPERM.
    pub const NOT_PERMITTED: Why = why("Operation not permitted", 1);
    /// EPERM, of what is no regular file.
    pub const NOT_REGULAR: Why = why("not a regular file: opening is not permitted", 1);
    /// ENOTDIR.
    pub const NOT_A_DIRECTORY: Why = why("not a directory", 20);
    /// EISDIR.
    pub const IS_A_DIRECTORY: Why = why("Is a directory", 21);
    /// EINVAL.
    pub const INVALID: Why = why("Invalid argument", 22);
    /// ESPIPE.
    pub const BAD_OFFSET: Why = why("bad offset in directory read", 29);
    /// EBADF, of a fid that is not bound.
    pub const UNKNOWN_FID: Why = why("fid unknown or out of range", 9);
    /// EBADF, of a fid that is bound already.
    pub const FID_IN_USE: Why = why("fid already in use", 9);
    /// EBADF, of a fid in the wrong state.
    pub const BAD_FID_USE: Why = why("bad use of fid", 9);
    /// Of an authentication nobody asked for.
    pub const NO_AUTH: Why = Why { plain: "authentication not required", errno: None };
    /// Of a tag that is in flight.
    pub const DUPLICATE_TAG: Why = Why { plain: "duplicate tag", errno: None };
    /// ENODATA.
    pub const NO_DATA: u32 = 61;
    /// EOPNOTSUPP.
    pub const NOT_SUPPORTED: u32 = 95;
}
