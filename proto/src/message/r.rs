//! The table of answers: messages a server sends.

use crate::message::speakers;
use crate::read::{DecodeError, Reader};
use crate::write::{EncodeError, Writer};
use crate::{Dialect, Refusal};

messages! {
    /// An answer.
    Rmessage<'a>

    /// Refused: ecode\[4\].
    RLERROR = 7 LINUX Lerror {
        /// A Linux errno.
        ecode: u32,
    }

    /// The filesystem's numbers: type\[4\] bsize\[4\] blocks\[8\] bfree\[8\] bavail\[8\] files\[8\] ffree\[8\] fsid\[8\]
    /// namelen\[4\].
    RSTATFS = 9 LINUX Statfs {
        /// The numbers.
        statfs: statfs,
    }

    /// Opened: qid\[13\] iounit\[4\].
    RLOPEN = 13 LINUX Lopen {
        /// What was opened.
        qid: qid,
        /// The most bytes one read or write moves whole; 0 for what msize allows.
        iounit: u32,
    }

    /// Made and opened: qid\[13\] iounit\[4\].
    RLCREATE = 15 LINUX Lcreate {
        /// What was made.
        qid: qid,
        /// The most bytes one read or write moves whole; 0 for what msize allows.
        iounit: u32,
    }

    /// Made: qid\[13\].
    RSYMLINK = 17 LINUX Symlink {
        /// The link.
        qid: qid,
    }

    /// Made: qid\[13\].
    RMKNOD = 19 LINUX Mknod {
        /// The special file.
        qid: qid,
    }

    /// Moved.
    RRENAME = 21 LINUX Rename

    /// What the link says: target\[s\].
    RREADLINK = 23 LINUX Readlink {
        /// It.
        target: string,
    }

    /// The attributes, in 153 bytes.
    RGETATTR = 25 LINUX Getattr {
        /// They.
        attr: attr,
    }

    /// Set.
    RSETATTR = 27 LINUX Setattr

    /// The new fid is an extended attribute: size\[8\].
    RXATTRWALK = 31 LINUX Xattrwalk {
        /// Length of its value, in bytes.
        size: u64,
    }

    /// The fid is an extended attribute to be written.
    RXATTRCREATE = 33 LINUX Xattrcreate

    /// Entries of a directory: count\[4\] data\[count\].
    RREADDIR = 41 LINUX Readdir {
        /// Whole entries; see [`dirents`](crate::stat::dirents).
        data: data,
    }

    /// On disk.
    RFSYNC = 51 LINUX Fsync

    /// What became of a lock: status\[1\].
    RLOCK = 53 LINUX Lock {
        /// A `LOCK_` number.
        status: u8,
    }

    /// A lock: type\[1\] start\[8\] length\[8\] proc_id\[4\] client_id\[s\].
    RGETLOCK = 55 LINUX Getlock {
        /// Read lock 0, write lock 1, none 2.
        kind: u8,
        /// First byte.
        start: u64,
        /// How many bytes; 0 to the end.
        length: u64,
        /// The process that holds it, in its client's numbering.
        proc_id: u32,
        /// Which client.
        client_id: string,
    }

    /// Linked.
    RLINK = 71 LINUX Link

    /// Made: qid\[13\].
    RMKDIR = 73 LINUX Mkdir {
        /// The directory.
        qid: qid,
    }

    /// Moved.
    RRENAMEAT = 75 LINUX Renameat

    /// Removed.
    RUNLINKAT = 77 LINUX Unlinkat

    /// Agreed: msize\[4\] version\[s\].
    RVERSION = 101 EVERY Version {
        /// The largest message either side sends, in bytes.
        msize: u32,
        /// The dialect spoken from here on, or `unknown`.
        version: string,
    }

    /// The afid is an authentication file: aqid\[13\].
    RAUTH = 103 EVERY Auth {
        /// It.
        aqid: qid,
    }

    /// Bound: qid\[13\].
    RATTACH = 105 EVERY Attach {
        /// The root.
        qid: qid,
    }

    /// Refused: ename\[s\], and errno\[4\] in 9P2000.u.
    RERROR = 107 LEGACY Error {
        /// Why, in words.
        ename: string,
        /// Why, as a Linux errno.
        errno: errno,
    }

    /// Nothing more will be said of the old tag.
    RFLUSH = 109 EVERY Flush

    /// Walked: nwqid\[2\] nwqid*(wqid\[13\]).
    RWALK = 111 EVERY Walk {
        /// The qid at each name; fewer than names if one did not resolve.
        qids: qids,
    }

    /// Opened: qid\[13\] iounit\[4\].
    ROPEN = 113 LEGACY Open {
        /// What was opened.
        qid: qid,
        /// The most bytes one read or write moves whole; 0 for what msize allows.
        iounit: u32,
    }

    /// Made and opened: qid\[13\] iounit\[4\].
    RCREATE = 115 LEGACY Create {
        /// What was made.
        qid: qid,
        /// The most bytes one read or write moves whole; 0 for what msize allows.
        iounit: u32,
    }

    /// Read: count\[4\] data\[count\].
    RREAD = 117 EVERY Read {
        /// The bytes; none at the end of the file.
        data: data,
    }

    /// Written: count\[4\].
    RWRITE = 119 EVERY Write {
        /// How many bytes.
        count: u32,
    }

    /// Forgotten.
    RCLUNK = 121 EVERY Clunk

    /// Removed and forgotten.
    RREMOVE = 123 EVERY Remove

    /// The attributes: stat\[n\].
    RSTAT = 125 LEGACY Stat {
        /// They.
        stat: stat,
    }

    /// Set.
    RWSTAT = 127 LEGACY Wstat
}

impl Rmessage<'_> {
    /// A refusal, told as the dialect tells it.
    pub const fn refusal(refusal: Refusal, dialect: Dialect) -> Rmessage<'static> {
        match dialect {
            Dialect::Plain => Rmessage::Error { ename: refusal.plain.as_bytes(), errno: None },
            Dialect::Unix => Rmessage::Error { ename: refusal.unix.as_bytes(), errno: Some(refusal.errno) },
            Dialect::Linux => Rmessage::Lerror { ecode: refusal.errno },
        }
    }
}
