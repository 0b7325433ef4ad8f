//! A request on its way to be sent.
//!
//! Owns: turning what a plan says into messages of a dialect, and what their answers do to the fids. Must not know:
//! connections.

use proto::{Dialect, NOFID, Stat, Tmessage};

use super::client::Effect;
use crate::check::pack;
use crate::plan::{CANARY, How};

/// A request in no dialect yet.
#[derive(Clone, Debug)]
pub(super) enum Draft {
    /// Tversion: what is offered (`None` for what nobody speaks), and msize.
    Version(Option<Dialect>, u32),
    /// Tattach.
    Attach(u32, Vec<String>),
    /// Twalk.
    Walk(u32, u32, Vec<Vec<u8>>),
    /// Tstat, Tgetattr.
    Stat(u32),
    /// Topen, Tlopen.
    Open(u32, How),
    /// Tread: fid, offset, count.
    Read(u32, u64, u32),
    /// Tread of a directory, Treaddir: fid, offset, count.
    List(u32, u64, u32),
    /// Tclunk.
    Clunk(u32),
    /// Tflush.
    Flush(u16),
    /// Tremove.
    Remove(u32),
    /// Anything else, by number.
    Other(u32, u8),
}

impl Draft {
    /// The message, and what its answer does. `space` is for what it borrows.
    pub(super) fn message<'a>(&'a self, dialect: Dialect, space: &'a mut Vec<u8>) -> Tmessage<'a> {
        let linux = dialect == Dialect::Linux;
        match *self {
            Self::Version(offer, msize) => {
                let version = offer.map_or("8P", Dialect::name).as_bytes();
                Tmessage::Version { msize, version }
            }
            Self::Attach(fid, ref path) => {
                space.clear();
                space.extend_from_slice(path.join("/").as_bytes());
                Tmessage::Attach { fid, afid: NOFID, uname: b"glenda", aname: space, n_uname: None }
            }
            Self::Walk(fid, newfid, ref names) => Tmessage::Walk { fid, newfid, names: pack(names, space) },
            Self::Stat(fid) if linux => Tmessage::Getattr { fid, mask: proto::GETATTR_BASIC },
            Self::Stat(fid) => Tmessage::Stat { fid },
            Self::Open(fid, how) if linux => Tmessage::Lopen { fid, flags: flags(how) },
            Self::Open(fid, how) => Tmessage::Open { fid, mode: mode(how) },
            Self::List(fid, offset, count) if linux => Tmessage::Readdir { fid, offset, count },
            Self::Read(fid, offset, count) | Self::List(fid, offset, count) => {
                Tmessage::Read { fid, offset, count }
            }
            Self::Clunk(fid) => Tmessage::Clunk { fid },
            Self::Flush(oldtag) => Tmessage::Flush { oldtag },
            Self::Remove(fid) => Tmessage::Remove { fid },
            Self::Other(fid, which) if linux => of_linux(fid, which),
            Self::Other(fid, which) => of_all(fid, which),
        }
    }

    /// The fid it looks at.
    pub(super) fn fid(&self) -> Option<u32> {
        match *self {
            Self::Stat(fid) | Self::Read(fid, ..) | Self::List(fid, ..) => Some(fid),
            _ => None,
        }
    }

    /// What the answer does to the fids.
    pub(super) fn effect(&self) -> Effect {
        match *self {
            Self::Version(offer, _) => Effect::Version(offer),
            Self::Attach(fid, ref path) => Effect::Attach(fid, path.clone()),
            Self::Walk(fid, newfid, ref names) => Effect::Walk(fid, newfid, names.clone()),
            Self::Open(fid, how) => Effect::Open(fid, how != How::Write),
            Self::List(fid, offset, _) => Effect::List(fid, offset),
            Self::Clunk(fid) => Effect::Clunk(fid),
            Self::Remove(fid) => Effect::Remove(fid),
            Self::Flush(oldtag) => Effect::Flush(oldtag),
            Self::Read(fid, offset, _) => Effect::Read(fid, offset),
            Self::Stat(_) | Self::Other(..) => Effect::None,
        }
    }
}

/// Bytes that are no request under this tag, and whether they end the connection.
pub(super) fn noise(which: u8, tag: u16) -> (Vec<u8>, bool) {
    let [low, high] = tag.to_le_bytes();
    match which {
        0 => (vec![6, 0, 0, 0, proto::message::TCLUNK, low, high], true),
        1 => (vec![0xff, 0xff, 0xff, 0x7f, proto::message::TCLUNK, low, high], true),
        2 => (vec![7, 0, 0, 0, 200, low, high], false),
        3 => (vec![9, 0, 0, 0, proto::message::TCLUNK, low, high, 0, 0], false),
        4 => (vec![12, 0, 0, 0, proto::message::TCLUNK, low, high, 0, 0, 0, 0, 0], false),
        5 => (vec![11, 0, 0, 0, proto::message::TVERSION, low, high, 0, 0, 0, 0], false),
        6 => (vec![7, 0, 0, 0, proto::message::RCLUNK, low, high], false),
        _ => (
            vec![19, 0, 0, 0, proto::message::TWALK, low, high, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0xff, 0xff],
            false,
        ),
    }
}

fn mode(how: How) -> u8 {
    match how {
        How::Read => proto::OREAD,
        How::Write => proto::OWRITE,
        How::Truncate => proto::OREAD | proto::OTRUNC,
        How::Odd => proto::OEXEC | proto::ORCLOSE,
    }
}

fn flags(how: How) -> u32 {
    match how {
        How::Read => proto::O_RDONLY,
        How::Write => proto::O_WRONLY,
        How::Truncate => proto::O_RDONLY | proto::O_TRUNC,
        How::Odd => proto::O_ACCMODE,
    }
}

/// A change, in every dialect but 9P2000.L.
fn of_all<'a>(fid: u32, which: u8) -> Tmessage<'a> {
    let name = CANARY.as_bytes();
    match which % 6 {
        0 => Tmessage::Write { fid, offset: 0, data: name },
        1 => Tmessage::Create { fid, name, perm: 0o644, mode: proto::OWRITE, extension: None },
        2 => Tmessage::Wstat { fid, stat: Stat::UNTOUCHED },
        3 => Tmessage::Wstat { fid, stat: Stat { name, ..Stat::UNTOUCHED } },
        4 => Tmessage::Wstat { fid, stat: Stat { length: 0, mtime: 1, ..Stat::UNTOUCHED } },
        _ => Tmessage::Auth { afid: fid, uname: name, aname: b"", n_uname: None },
    }
}

/// A change in 9P2000.L, or something that only it has.
fn of_linux<'a>(fid: u32, which: u8) -> Tmessage<'a> {
    let name = CANARY.as_bytes();
    match which {
        0 => Tmessage::Write { fid, offset: 0, data: name },
        1 => Tmessage::Lcreate { fid, name, flags: proto::O_WRONLY, mode: 0o644, gid: 0 },
        2 => setattr(fid, 0, 0),
        3 => setattr(fid, proto::SETATTR_SIZE | proto::SETATTR_MTIME, 0),
        4 => setattr(fid, proto::SETATTR_SIZE, 9),
        5 => Tmessage::Auth { afid: fid, uname: name, aname: b"", n_uname: None },
        6 => Tmessage::Statfs { fid },
        7 => Tmessage::Readlink { fid },
        8 => Tmessage::Xattrwalk { fid, newfid: 5, name },
        9 => Tmessage::Mkdir { dfid: fid, name, mode: 0o755, gid: 0 },
        10 => Tmessage::Fsync { fid, datasync: 0 },
        11 => Tmessage::Symlink { fid, name, target: name, gid: 0 },
        12 => Tmessage::Rename { fid, dfid: 0, name },
        13 => Tmessage::Unlinkat { dfid: fid, name, flags: 0 },
        14 => Tmessage::Link { dfid: fid, fid: 0, name },
        _ => Tmessage::Xattrcreate { fid, name, size: 1, flags: 0 },
    }
}

fn setattr<'a>(fid: u32, valid: u32, size: u64) -> Tmessage<'a> {
    Tmessage::Setattr {
        fid,
        valid,
        mode: 0,
        uid: 0,
        gid: 0,
        size,
        atime_sec: 0,
        atime_nsec: 0,
        mtime_sec: 0,
        mtime_nsec: 0,
    }
}
