//! What a server says of a file, in one shape for all dialects.

use proto::stat::{Attr, Stat as Record};
use proto::{Qid, S_IFMT};

/// What a server says of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stat {
    /// Its name; `/` for the root.
    pub name: Vec<u8>,
    /// Identity, version and kind.
    pub qid: Qid,
    /// Permissions, and `DM` bits for the kind.
    pub mode: u32,
    /// Length in bytes.
    pub length: u64,
    /// Last change of content.
    pub mtime: Time,
    /// Last access.
    pub atime: Time,
    /// The owner, by name, or by number where the server has no names.
    pub user: Vec<u8>,
    /// The group, in the same way.
    pub group: Vec<u8>,
    /// Who changed it last; empty where the server does not say.
    pub changer: Vec<u8>,
}

/// A point in time, since 1970. A server's word: it may be any.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Time {
    /// Seconds.
    pub sec: i64,
    /// Nanoseconds.
    pub nsec: u64,
}

impl Stat {
    /// From a stat record of 9P2000 or 9P2000.u.
    pub(super) fn from_record(record: &Record<'_>) -> Self {
        let named = |name: &[u8], number| match name {
            [] if number != proto::NONUNAME => u32::to_string(&number).into_bytes(),
            name => name.to_vec(),
        };
        Self {
            name: record.name.to_vec(),
            qid: record.qid,
            mode: record.mode,
            length: record.length,
            mtime: Time { sec: record.mtime.into(), nsec: 0 },
            atime: Time { sec: record.atime.into(), nsec: 0 },
            user: named(record.uid, record.n_uid),
            group: named(record.gid, record.n_gid),
            changer: named(record.muid, record.n_muid),
        }
    }

    /// From the attributes of 9P2000.L, which do not hold the name.
    pub(super) fn from_attr(attr: &Attr, name: &[u8]) -> Self {
        let time = |sec: u64, nsec| Time { sec: sec.cast_signed(), nsec };
        Self {
            name: name.to_vec(),
            qid: attr.qid,
            mode: (attr.mode & 0o777) | kind_bits(attr.mode),
            length: attr.size,
            mtime: time(attr.mtime_sec, attr.mtime_nsec),
            atime: time(attr.atime_sec, attr.atime_nsec),
            user: attr.uid.to_string().into_bytes(),
            group: attr.gid.to_string().into_bytes(),
            changer: Vec::new(),
        }
    }

    /// Whether it is a directory.
    pub const fn is_directory(&self) -> bool {
        is_directory(self.qid)
    }
}

/// Whether a qid is a directory's.
pub const fn is_directory(qid: Qid) -> bool {
    qid.kind & proto::QTDIR != 0
}

/// The `DM` bits for the kind in a Linux mode.
const fn kind_bits(mode: u32) -> u32 {
    match mode & S_IFMT {
        proto::S_IFDIR => proto::DMDIR,
        S_IFLNK => proto::DMSYMLINK,
        S_IFIFO => proto::DMNAMEDPIPE,
        S_IFSOCK => proto::DMSOCKET,
        S_IFCHR | S_IFBLK => proto::DMDEVICE,
        _ => 0,
    }
}

// Kinds in a Linux mode, inode(7).
const S_IFSOCK: u32 = 0o140_000;
const S_IFLNK: u32 = 0o120_000;
const S_IFBLK: u32 = 0o060_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFIFO: u32 = 0o010_000;
