//! Messages made from a string of bytes.

use proto::message::*;
use proto::*;

/// Bytes that are still to choose with. When they run out, everything chosen is 0 or empty.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl<'a> Choices<'a> {
    pub(crate) fn request(&mut self, kind: u8, dialect: Dialect, room: &'a mut [u8]) -> Tmessage<'a> {
        match kind {
            TVERSION => Tmessage::Version { msize: self.u32(), version: self.string() },
            TAUTH => Tmessage::Auth {
                afid: self.u32(),
                uname: self.string(),
                aname: self.string(),
                n_uname: (dialect != Dialect::Plain).then(|| self.u32()),
            },
            TATTACH => Tmessage::Attach {
                fid: self.u32(),
                afid: self.u32(),
                uname: self.string(),
                aname: self.string(),
                n_uname: (dialect != Dialect::Plain).then(|| self.u32()),
            },
            TFLUSH => Tmessage::Flush { oldtag: self.u16() },
            TWALK => Tmessage::Walk { fid: self.u32(), newfid: self.u32(), names: self.names(room) },
            TOPEN => Tmessage::Open { fid: self.u32(), mode: self.u8() },
            TCREATE => Tmessage::Create {
                fid: self.u32(),
                name: self.string(),
                perm: self.u32(),
                mode: self.u8(),
                extension: (dialect == Dialect::Unix).then(|| self.string()),
            },
            TREAD => Tmessage::Read { fid: self.u32(), offset: self.u64(), count: self.u32() },
            TWRITE => Tmessage::Write { fid: self.u32(), offset: self.u64(), data: self.string() },
            TCLUNK => Tmessage::Clunk { fid: self.u32() },
            TREMOVE => Tmessage::Remove { fid: self.u32() },
            TSTAT => Tmessage::Stat { fid: self.u32() },
            TWSTAT => Tmessage::Wstat { fid: self.u32(), stat: self.stat(dialect) },
            _ => self.linux_request(kind),
        }
    }

    fn linux_request(&mut self, kind: u8) -> Tmessage<'a> {
        let (fid, name) = (self.u32(), self.string());
        let mut u = || self.u32();
        match kind {
            TSTATFS => Tmessage::Statfs { fid },
            TLOPEN => Tmessage::Lopen { fid, flags: u() },
            TLCREATE => Tmessage::Lcreate { fid, name, flags: u(), mode: u(), gid: u() },
            TSYMLINK => Tmessage::Symlink { fid, name, gid: u(), target: self.string() },
            TMKNOD => Tmessage::Mknod { dfid: fid, name, mode: u(), major: u(), minor: u(), gid: u() },
            TRENAME => Tmessage::Rename { fid, dfid: u(), name },
            TREADLINK => Tmessage::Readlink { fid },
            TGETATTR => Tmessage::Getattr { fid, mask: self.u64() },
            TSETATTR => Tmessage::Setattr {
                fid,
                valid: u(),
                mode: u(),
                uid: u(),
                gid: u(),
                size: self.u64(),
                atime_sec: self.u64(),
                atime_nsec: self.u64(),
                mtime_sec: self.u64(),
                mtime_nsec: self.u64(),
            },
            TXATTRWALK => Tmessage::Xattrwalk { fid, newfid: u(), name },
            TXATTRCREATE => Tmessage::Xattrcreate { fid, name, flags: u(), size: self.u64() },
            TREADDIR => Tmessage::Readdir { fid, count: u(), offset: self.u64() },
            TFSYNC => Tmessage::Fsync { fid, datasync: u() },
            TLOCK => Tmessage::Lock {
                fid,
                flags: u(),
                proc_id: u(),
                kind: self.u8(),
                start: self.u64(),
                length: self.u64(),
                client_id: name,
            },
            TGETLOCK => Tmessage::Getlock {
                fid,
                proc_id: u(),
                kind: self.u8(),
                start: self.u64(),
                length: self.u64(),
                client_id: name,
            },
            TLINK => Tmessage::Link { dfid: fid, fid: u(), name },
            TMKDIR => Tmessage::Mkdir { dfid: fid, name, mode: u(), gid: u() },
            TRENAMEAT => {
                Tmessage::Renameat { olddirfid: fid, oldname: name, newdirfid: u(), newname: self.string() }
            }
            TUNLINKAT => Tmessage::Unlinkat { dfid: fid, name, flags: u() },
            kind => panic!("no request of type {kind}"),
        }
    }

    pub(crate) fn answer(
        &mut self,
        kind: u8,
        dialect: Dialect,
        room: &'a mut [[u8; QID_SIZE]],
    ) -> Rmessage<'a> {
        match kind {
            RVERSION => Rmessage::Version { msize: self.u32(), version: self.string() },
            RAUTH => Rmessage::Auth { aqid: self.qid() },
            RATTACH => Rmessage::Attach { qid: self.qid() },
            RERROR => Rmessage::Error {
                ename: self.string(),
                errno: (dialect == Dialect::Unix).then(|| self.u32()),
            },
            RFLUSH => Rmessage::Flush,
            RWALK => Rmessage::Walk { qids: self.qids(room) },
            ROPEN => Rmessage::Open { qid: self.qid(), iounit: self.u32() },
            RCREATE => Rmessage::Create { qid: self.qid(), iounit: self.u32() },
            RREAD => Rmessage::Read { data: self.string() },
            RWRITE => Rmessage::Write { count: self.u32() },
            RCLUNK => Rmessage::Clunk,
            RREMOVE => Rmessage::Remove,
            RSTAT => Rmessage::Stat { stat: self.stat(dialect) },
            RWSTAT => Rmessage::Wstat,
            _ => self.linux_answer(kind),
        }
    }

    fn linux_answer(&mut self, kind: u8) -> Rmessage<'a> {
        match kind {
            RLERROR => Rmessage::Lerror { ecode: self.u32() },
            RSTATFS => Rmessage::Statfs { statfs: self.statfs() },
            RLOPEN => Rmessage::Lopen { qid: self.qid(), iounit: self.u32() },
            RLCREATE => Rmessage::Lcreate { qid: self.qid(), iounit: self.u32() },
            RSYMLINK => Rmessage::Symlink { qid: self.qid() },
            RMKNOD => Rmessage::Mknod { qid: self.qid() },
            RRENAME => Rmessage::Rename,
            RREADLINK => Rmessage::Readlink { target: self.string() },
            RGETATTR => Rmessage::Getattr { attr: self.attr() },
            RSETATTR => Rmessage::Setattr,
            RXATTRWALK => Rmessage::Xattrwalk { size: self.u64() },
            RXATTRCREATE => Rmessage::Xattrcreate,
            RREADDIR => Rmessage::Readdir { data: self.string() },
            RFSYNC => Rmessage::Fsync,
            RLOCK => Rmessage::Lock { status: self.u8() },
            RGETLOCK => Rmessage::Getlock {
                kind: self.u8(),
                start: self.u64(),
                length: self.u64(),
                proc_id: self.u32(),
                client_id: self.string(),
            },
            RLINK => Rmessage::Link,
            RMKDIR => Rmessage::Mkdir { qid: self.qid() },
            RRENAMEAT => Rmessage::Renameat,
            RUNLINKAT => Rmessage::Unlinkat,
            kind => panic!("no answer of type {kind}"),
        }
    }

    pub(crate) fn stat(&mut self, dialect: Dialect) -> Stat<'a> {
        let stat = Stat {
            kind: self.u16(),
            dev: self.u32(),
            qid: self.qid(),
            mode: self.u32(),
            atime: self.u32(),
            mtime: self.u32(),
            length: self.u64(),
            name: self.string(),
            uid: self.string(),
            gid: self.string(),
            muid: self.string(),
            ..Stat::UNTOUCHED
        };
        if dialect != Dialect::Unix {
            return stat;
        }
        Stat { extension: self.string(), n_uid: self.u32(), n_gid: self.u32(), n_muid: self.u32(), ..stat }
    }

    pub(crate) fn dirent(&mut self) -> Dirent<'a> {
        Dirent { qid: self.qid(), offset: self.u64(), kind: self.u8(), name: self.string() }
    }

    pub(crate) fn names(&mut self, room: &'a mut [u8]) -> Names<'a> {
        let count = self.u8() % 20;
        let names: Vec<_> = (0..count).map(|_| self.string()).collect();
        Names::pack(names, room).unwrap()
    }

    fn qids(&mut self, room: &'a mut [[u8; QID_SIZE]]) -> Qids<'a> {
        let count = self.u8() % 20;
        let qids: Vec<_> = (0..count).map(|_| self.qid()).collect();
        let packed = Qids::pack(&qids, room).unwrap();
        assert!(packed.iter().eq(qids));
        packed
    }

    fn attr(&mut self) -> Attr {
        Attr {
            valid: self.u64(),
            qid: self.qid(),
            mode: self.u32(),
            uid: self.u32(),
            gid: self.u32(),
            nlink: self.u64(),
            rdev: self.u64(),
            size: self.u64(),
            blksize: self.u64(),
            blocks: self.u64(),
            atime_sec: self.u64(),
            atime_nsec: self.u64(),
            mtime_sec: self.u64(),
            mtime_nsec: self.u64(),
            ctime_sec: self.u64(),
            ctime_nsec: self.u64(),
            btime_sec: self.u64(),
            btime_nsec: self.u64(),
            generation: self.u64(),
            data_version: self.u64(),
        }
    }

    fn statfs(&mut self) -> Statfs {
        Statfs {
            kind: self.u32(),
            bsize: self.u32(),
            blocks: self.u64(),
            bfree: self.u64(),
            bavail: self.u64(),
            files: self.u64(),
            ffree: self.u64(),
            fsid: self.u64(),
            namelen: self.u32(),
        }
    }

    fn qid(&mut self) -> Qid {
        Qid { kind: self.u8(), version: self.u32(), path: self.u64() }
    }

    fn string(&mut self) -> &'a [u8] {
        let len = usize::from(self.u8() % 40).min(self.0.len());
        let (string, rest) = self.0.split_at(len);
        self.0 = rest;
        string
    }

    fn u8(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *byte
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }
}
