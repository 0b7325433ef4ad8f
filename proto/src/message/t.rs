//! The table of requests: messages a client sends.

use crate::Dialect;
use crate::message::speakers;
use crate::read::{DecodeError, Reader};
use crate::write::{EncodeError, Writer};

messages! {
    /// A request.
    ///
    /// Terror (106) and Tlerror (6) do not exist on the wire, and 9P2000.L replaces Topen, Tcreate, Tstat and Twstat.
    Tmessage<'a>

    /// Ask for the filesystem's numbers: fid\[4\].
    TSTATFS = 8 LINUX Statfs {
        /// A file of the filesystem.
        fid: u32,
    }

    /// Open: fid\[4\] flags\[4\].
    TLOPEN = 12 LINUX Lopen {
        /// What to open.
        fid: u32,
        /// `O_` bits.
        flags: u32,
    }

    /// Make a file and open it: fid\[4\] name\[s\] flags\[4\] mode\[4\] gid\[4\].
    TLCREATE = 14 LINUX Lcreate {
        /// The directory; afterwards the new file.
        fid: u32,
        /// Name of the new file.
        name: string,
        /// `O_` bits.
        flags: u32,
        /// Permissions.
        mode: u32,
        /// Group.
        gid: u32,
    }

    /// Make a symbolic link: fid\[4\] name\[s\] symtgt\[s\] gid\[4\].
    TSYMLINK = 16 LINUX Symlink {
        /// The directory.
        fid: u32,
        /// Name of the link.
        name: string,
        /// What it says.
        target: string,
        /// Group.
        gid: u32,
    }

    /// Make a special file: dfid\[4\] name\[s\] mode\[4\] major\[4\] minor\[4\] gid\[4\].
    TMKNOD = 18 LINUX Mknod {
        /// The directory.
        dfid: u32,
        /// Name of the new file.
        name: string,
        /// Kind and permissions.
        mode: u32,
        /// Major device number.
        major: u32,
        /// Minor device number.
        minor: u32,
        /// Group.
        gid: u32,
    }

    /// Move a file: fid\[4\] dfid\[4\] name\[s\].
    TRENAME = 20 LINUX Rename {
        /// The file.
        fid: u32,
        /// The directory it goes to.
        dfid: u32,
        /// Its name there.
        name: string,
    }

    /// Ask what a symbolic link says: fid\[4\].
    TREADLINK = 22 LINUX Readlink {
        /// The link.
        fid: u32,
    }

    /// Ask for attributes: fid\[4\] request_mask\[8\].
    TGETATTR = 24 LINUX Getattr {
        /// The file.
        fid: u32,
        /// `GETATTR_` bits of what is wanted.
        mask: u64,
    }

    /// Set attributes: fid\[4\] valid\[4\] mode\[4\] uid\[4\] gid\[4\] size\[8\] atime_sec\[8\] atime_nsec\[8\]
    /// mtime_sec\[8\] mtime_nsec\[8\].
    TSETATTR = 26 LINUX Setattr {
        /// The file.
        fid: u32,
        /// `SETATTR_` bits of what is set; the other fields say nothing.
        valid: u32,
        /// Permissions.
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Length in bytes.
        size: u64,
        /// Last access: seconds since 1970.
        atime_sec: u64,
        /// Last access: nanoseconds of the second.
        atime_nsec: u64,
        /// Last change of content: seconds since 1970.
        mtime_sec: u64,
        /// Last change of content: nanoseconds of the second.
        mtime_nsec: u64,
    }

    /// Get ready to read an extended attribute: fid\[4\] newfid\[4\] name\[s\].
    TXATTRWALK = 30 LINUX Xattrwalk {
        /// The file.
        fid: u32,
        /// The fid the attribute is read through.
        newfid: u32,
        /// Name of the attribute; empty for the list of them.
        name: string,
    }

    /// Get ready to write an extended attribute: fid\[4\] name\[s\] attr_size\[8\] flags\[4\].
    TXATTRCREATE = 32 LINUX Xattrcreate {
        /// The file; afterwards its attribute.
        fid: u32,
        /// Name of the attribute.
        name: string,
        /// Length of the value, in bytes.
        size: u64,
        /// As setxattr(2) has them.
        flags: u32,
    }

    /// Read a directory: fid\[4\] offset\[8\] count\[4\].
    TREADDIR = 40 LINUX Readdir {
        /// The open directory.
        fid: u32,
        /// 0, or the cookie of the last entry seen.
        offset: u64,
        /// The most bytes of entries wanted.
        count: u32,
    }

    /// Bring a file to disk: fid\[4\] datasync\[4\].
    TFSYNC = 50 LINUX Fsync {
        /// The open file.
        fid: u32,
        /// Whether its content alone is enough.
        datasync: u32,
    }

    /// Take or drop a lock: fid\[4\] type\[1\] flags\[4\] start\[8\] length\[8\] proc_id\[4\] client_id\[s\].
    TLOCK = 52 LINUX Lock {
        /// The open file.
        fid: u32,
        /// Read lock 0, write lock 1, unlock 2.
        kind: u8,
        /// 1 to wait, 2 if it reclaims.
        flags: u32,
        /// First byte.
        start: u64,
        /// How many bytes; 0 to the end.
        length: u64,
        /// The process that asks, in the client's numbering.
        proc_id: u32,
        /// Which client.
        client_id: string,
    }

    /// Ask who holds a lock: fid\[4\] type\[1\] start\[8\] length\[8\] proc_id\[4\] client_id\[s\].
    TGETLOCK = 54 LINUX Getlock {
        /// The open file.
        fid: u32,
        /// Read lock 0, write lock 1.
        kind: u8,
        /// First byte.
        start: u64,
        /// How many bytes; 0 to the end.
        length: u64,
        /// The process that asks, in the client's numbering.
        proc_id: u32,
        /// Which client.
        client_id: string,
    }

    /// Make a hard link: dfid\[4\] fid\[4\] name\[s\].
    TLINK = 70 LINUX Link {
        /// The directory.
        dfid: u32,
        /// The file.
        fid: u32,
        /// Its new name.
        name: string,
    }

    /// Make a directory: dfid\[4\] name\[s\] mode\[4\] gid\[4\].
    TMKDIR = 72 LINUX Mkdir {
        /// The directory to make it in.
        dfid: u32,
        /// Its name.
        name: string,
        /// Permissions.
        mode: u32,
        /// Group.
        gid: u32,
    }

    /// Move a file by name: olddirfid\[4\] oldname\[s\] newdirfid\[4\] newname\[s\].
    TRENAMEAT = 74 LINUX Renameat {
        /// The directory it is in.
        olddirfid: u32,
        /// Its name there.
        oldname: string,
        /// The directory it goes to.
        newdirfid: u32,
        /// Its name there.
        newname: string,
    }

    /// Remove a file by name: dirfd\[4\] name\[s\] flags\[4\].
    TUNLINKAT = 76 LINUX Unlinkat {
        /// The directory.
        dfid: u32,
        /// The name to remove.
        name: string,
        /// As unlinkat(2) has them.
        flags: u32,
    }

    /// Agree on dialect and message size, and begin anew: msize\[4\] version\[s\].
    TVERSION = 100 EVERY Version {
        /// The largest message the client takes, in bytes.
        msize: u32,
        /// The dialect it wants; see [`Dialect::negotiate`].
        version: string,
    }

    /// Ask for an authentication file: afid\[4\] uname\[s\] aname\[s\], and n_uname\[4\] but in 9P2000.
    TAUTH = 102 EVERY Auth {
        /// The fid to authenticate through.
        afid: u32,
        /// Who is asking.
        uname: string,
        /// Which tree.
        aname: string,
        /// Who is asking, as a number.
        n_uname: n_uname,
    }

    /// Bind a fid to the root of a tree: fid\[4\] afid\[4\] uname\[s\] aname\[s\], and n_uname\[4\] but in 9P2000.
    TATTACH = 104 EVERY Attach {
        /// The fid to bind.
        fid: u32,
        /// The fid authenticated through, or [`NOFID`](crate::NOFID).
        afid: u32,
        /// Who is asking.
        uname: string,
        /// Which tree.
        aname: string,
        /// Who is asking, as a number.
        n_uname: n_uname,
    }

    /// Give up waiting for an answer: oldtag\[2\].
    TFLUSH = 108 EVERY Flush {
        /// The tag of the request no longer waited for.
        oldtag: u16,
    }

    /// Descend by names: fid\[4\] newfid\[4\] nwname\[2\] nwname*(wname\[s\]).
    TWALK = 110 EVERY Walk {
        /// Where to begin.
        fid: u32,
        /// The fid to bind to where it ends.
        newfid: u32,
        /// The names, in order.
        names: names,
    }

    /// Open: fid\[4\] mode\[1\].
    TOPEN = 112 LEGACY Open {
        /// What to open.
        fid: u32,
        /// [`OREAD`](crate::OREAD) and the like.
        mode: u8,
    }

    /// Make a file and open it: fid\[4\] name\[s\] perm\[4\] mode\[1\], and extension\[s\] in 9P2000.u.
    TCREATE = 114 LEGACY Create {
        /// The directory; afterwards the new file.
        fid: u32,
        /// Name of the new file.
        name: string,
        /// Permissions and `DM` bits.
        perm: u32,
        /// [`OREAD`](crate::OREAD) and the like.
        mode: u8,
        /// What a special file is.
        extension: extension,
    }

    /// Read: fid\[4\] offset\[8\] count\[4\].
    TREAD = 116 EVERY Read {
        /// The open file.
        fid: u32,
        /// First byte.
        offset: u64,
        /// The most bytes wanted.
        count: u32,
    }

    /// Write: fid\[4\] offset\[8\] count\[4\] data\[count\].
    TWRITE = 118 EVERY Write {
        /// The open file.
        fid: u32,
        /// First byte.
        offset: u64,
        /// What to write.
        data: data,
    }

    /// Forget a fid: fid\[4\].
    TCLUNK = 120 EVERY Clunk {
        /// Which.
        fid: u32,
    }

    /// Remove a file and forget its fid: fid\[4\].
    TREMOVE = 122 EVERY Remove {
        /// Which.
        fid: u32,
    }

    /// Ask for attributes: fid\[4\].
    TSTAT = 124 LEGACY Stat {
        /// The file.
        fid: u32,
    }

    /// Set attributes: fid\[4\] stat\[n\].
    TWSTAT = 126 LEGACY Wstat {
        /// The file.
        fid: u32,
        /// What to set, and "don't touch" in every other field; see [`Stat::is_untouched`](crate::Stat::is_untouched).
        stat: stat,
    }
}
