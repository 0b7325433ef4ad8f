//! What is said of a file: stat records, directory entries, and the bodies of Rgetattr and Rstatfs.

use crate::read::{DecodeError, Reader};
use crate::write::{EncodeError, Writer};
use crate::{Dialect, NONUNAME, QID_SIZE, Qid};

/// A stat record (stat(5)). On the wire it begins with a size\[2\] of what follows, which is computed.
///
/// The last four fields exist in 9P2000.u alone. Another dialect does not write them and reads an empty extension and
/// [`NONUNAME`]s, that is, "don't touch".
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Stat<'a> {
    /// For kernel use: 0 from a server.
    pub kind: u16,
    /// For kernel use: 0 from a server.
    pub dev: u32,
    /// Identity, kind and version.
    pub qid: Qid,
    /// Permissions and `DM` bits.
    pub mode: u32,
    /// Last access, in seconds since 1970.
    pub atime: u32,
    /// Last change of content, in seconds since 1970.
    pub mtime: u32,
    /// Length in bytes; 0 for a directory.
    pub length: u64,
    /// Last component of the path; `/` for the root.
    pub name: &'a [u8],
    /// Owner's name.
    pub uid: &'a [u8],
    /// Group's name.
    pub gid: &'a [u8],
    /// Name of whoever changed it last.
    pub muid: &'a [u8],
    /// What a special file is: a link's target, a device's numbers.
    pub extension: &'a [u8],
    /// Owner, as a number.
    pub n_uid: u32,
    /// Group, as a number.
    pub n_gid: u32,
    /// Whoever changed it last, as a number.
    pub n_muid: u32,
}

impl<'a> Stat<'a> {
    /// The record that changes nothing: every number all ones, every string empty. A Twstat of it asks for a sync.
    pub const UNTOUCHED: Stat<'static> = Stat {
        kind: !0,
        dev: !0,
        qid: Qid::UNTOUCHED,
        mode: !0,
        atime: !0,
        mtime: !0,
        length: !0,
        name: b"",
        uid: b"",
        gid: b"",
        muid: b"",
        extension: b"",
        n_uid: NONUNAME,
        n_gid: NONUNAME,
        n_muid: NONUNAME,
    };

    /// Whether a Twstat of this record changes nothing.
    pub fn is_untouched(&self) -> bool {
        *self == Stat::UNTOUCHED
    }

    /// Bytes of the record on the wire, its size\[2\] included. May pass what [`Stat::encode`] can write.
    pub const fn encoded_len(&self, dialect: Dialect) -> usize {
        let strings = self.name.len() + self.uid.len() + self.gid.len() + self.muid.len();
        let unix = match dialect {
            Dialect::Unix => 2 + self.extension.len() + 3 * 4,
            Dialect::Plain | Dialect::Linux => 0,
        };
        2 + 2 + 4 + QID_SIZE + 3 * 4 + 8 + 4 * 2 + strings + unix
    }

    /// Writes the record at the front of `out`; yields its length.
    ///
    /// # Errors
    /// [`EncodeError::Full`] if `out` is too small, [`EncodeError::TooLong`] if a string or the record passes 65,535.
    pub fn encode(&self, dialect: Dialect, out: &mut [u8]) -> Result<usize, EncodeError> {
        let mut writer = Writer::new(out, dialect);
        self.put(&mut writer)?;
        Ok(writer.written())
    }

    /// Reads exactly one record.
    ///
    /// # Errors
    /// [`DecodeError::Short`] or [`DecodeError::Trailing`] if `bytes` are not one whole record of the dialect.
    pub fn decode(bytes: &'a [u8], dialect: Dialect) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, dialect);
        let stat = Self::take(&mut reader)?;
        reader.finish()?;
        Ok(stat)
    }

    fn take(outer: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut reader = outer.record()?;
        let mut stat = Self {
            kind: reader.u16()?,
            dev: reader.u32()?,
            qid: reader.qid()?,
            mode: reader.u32()?,
            atime: reader.u32()?,
            mtime: reader.u32()?,
            length: reader.u64()?,
            name: reader.string()?,
            uid: reader.string()?,
            gid: reader.string()?,
            muid: reader.string()?,
            ..Stat::UNTOUCHED
        };
        if reader.dialect() == Dialect::Unix {
            stat.extension = reader.string()?;
            stat.n_uid = reader.u32()?;
            stat.n_gid = reader.u32()?;
            stat.n_muid = reader.u32()?;
        }
        reader.finish()?;
        Ok(stat)
    }

    pub(crate) fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let size = self.encoded_len(writer.dialect()) - 2;
        writer.u16(u16::try_from(size).map_err(|_| EncodeError::TooLong)?)?;
        writer.u16(self.kind)?;
        writer.u32(self.dev)?;
        writer.qid(self.qid)?;
        writer.u32(self.mode)?;
        writer.u32(self.atime)?;
        writer.u32(self.mtime)?;
        writer.u64(self.length)?;
        writer.string(self.name)?;
        writer.string(self.uid)?;
        writer.string(self.gid)?;
        writer.string(self.muid)?;
        if writer.dialect() == Dialect::Unix {
            writer.string(self.extension)?;
            writer.u32(self.n_uid)?;
            writer.u32(self.n_gid)?;
            writer.u32(self.n_muid)?;
        }
        Ok(())
    }
}

/// The records of a directory read, in order. Ends after the first error: what follows a torn record is not known.
pub fn records(bytes: &[u8], dialect: Dialect) -> impl Iterator<Item = Result<Stat<'_>, DecodeError>> {
    fused(bytes, dialect, Stat::take)
}

/// One entry of an Rreaddir (9P2000.L).
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Dirent<'a> {
    /// Identity, kind and version.
    pub qid: Qid,
    /// The cookie at which a Treaddir goes on after this entry.
    pub offset: u64,
    /// Kind of file, as readdir(3) numbers them: [`DT_DIR`](crate::DT_DIR), [`DT_REG`](crate::DT_REG).
    pub kind: u8,
    /// Last component of the path.
    pub name: &'a [u8],
}

impl<'a> Dirent<'a> {
    /// Bytes of the entry on the wire.
    pub const fn encoded_len(&self) -> usize {
        QID_SIZE + 8 + 1 + 2 + self.name.len()
    }

    /// Writes the entry at the front of `out`; yields its length.
    ///
    /// # Errors
    /// [`EncodeError::Full`] if `out` is too small, [`EncodeError::TooLong`] if the name passes 65,535 bytes.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, EncodeError> {
        let mut writer = Writer::new(out, Dialect::Linux);
        writer.qid(self.qid)?;
        writer.u64(self.offset)?;
        writer.u8(self.kind)?;
        writer.string(self.name)?;
        Ok(writer.written())
    }

    /// Reads exactly one entry.
    ///
    /// # Errors
    /// [`DecodeError::Short`] or [`DecodeError::Trailing`] if `bytes` are not one whole entry.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Dialect::Linux);
        let entry = Self::take(&mut reader)?;
        reader.finish()?;
        Ok(entry)
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { qid: reader.qid()?, offset: reader.u64()?, kind: reader.u8()?, name: reader.string()? })
    }
}

/// The entries of an Rreaddir, in order. Ends after the first error.
pub fn dirents(bytes: &[u8]) -> impl Iterator<Item = Result<Dirent<'_>, DecodeError>> {
    fused(bytes, Dialect::Linux, Dirent::take)
}

fn fused<'a, T>(
    bytes: &'a [u8],
    dialect: Dialect,
    take: impl Fn(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> impl Iterator<Item = Result<T, DecodeError>> {
    let mut rest = Some(Reader::new(bytes, dialect));
    core::iter::from_fn(move || {
        let reader = rest.as_mut().filter(|reader| !reader.is_empty())?;
        let item = take(reader);
        if item.is_err() {
            rest = None;
        }
        Some(item)
    })
}

/// The body of an Rgetattr (9P2000.L): a `struct stat` and what Linux may add to it.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Attr {
    /// Which fields hold a value, as `GETATTR_` bits. The qid always does.
    pub valid: u64,
    /// Identity, kind and version.
    pub qid: Qid,
    /// Permissions and kind, as `struct stat` has them ([`S_IFDIR`](crate::S_IFDIR),
    /// [`S_IFREG`](crate::S_IFREG)).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Hard links.
    pub nlink: u64,
    /// Device numbers of a special file.
    pub rdev: u64,
    /// Length in bytes.
    pub size: u64,
    /// Preferred size of a read, in bytes.
    pub blksize: u64,
    /// Space taken, in units of 512 bytes.
    pub blocks: u64,
    /// Last access: seconds since 1970.
    pub atime_sec: u64,
    /// Last access: nanoseconds of the second.
    pub atime_nsec: u64,
    /// Last change of content: seconds since 1970.
    pub mtime_sec: u64,
    /// Last change of content: nanoseconds of the second.
    pub mtime_nsec: u64,
    /// Last change of content or attributes: seconds since 1970.
    pub ctime_sec: u64,
    /// Last change of content or attributes: nanoseconds of the second.
    pub ctime_nsec: u64,
    /// Birth: seconds since 1970.
    pub btime_sec: u64,
    /// Birth: nanoseconds of the second.
    pub btime_nsec: u64,
    /// Inode generation. No known client reads it.
    pub generation: u64,
    /// Version of the content. No known client reads it.
    pub data_version: u64,
}

impl Attr {
    /// Bytes on the wire, always.
    pub const SIZE: usize = 153;

    /// Writes the body at the front of `out`; yields [`Attr::SIZE`].
    ///
    /// # Errors
    /// [`EncodeError::Full`] if `out` is too small.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, EncodeError> {
        let mut writer = Writer::new(out, Dialect::Linux);
        self.put(&mut writer)?;
        Ok(writer.written())
    }

    pub(crate) fn take(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            valid: reader.u64()?,
            qid: reader.qid()?,
            mode: reader.u32()?,
            uid: reader.u32()?,
            gid: reader.u32()?,
            nlink: reader.u64()?,
            rdev: reader.u64()?,
            size: reader.u64()?,
            blksize: reader.u64()?,
            blocks: reader.u64()?,
            atime_sec: reader.u64()?,
            atime_nsec: reader.u64()?,
            mtime_sec: reader.u64()?,
            mtime_nsec: reader.u64()?,
            ctime_sec: reader.u64()?,
            ctime_nsec: reader.u64()?,
            btime_sec: reader.u64()?,
            btime_nsec: reader.u64()?,
            generation: reader.u64()?,
            data_version: reader.u64()?,
        })
    }

    pub(crate) fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.u64(self.valid)?;
        writer.qid(self.qid)?;
        writer.u32(self.mode)?;
        writer.u32(self.uid)?;
        writer.u32(self.gid)?;
        for value in [
            self.nlink,
            self.rdev,
            self.size,
            self.blksize,
            self.blocks,
            self.atime_sec,
            self.atime_nsec,
            self.mtime_sec,
            self.mtime_nsec,
            self.ctime_sec,
            self.ctime_nsec,
            self.btime_sec,
            self.btime_nsec,
            self.generation,
            self.data_version,
        ] {
            writer.u64(value)?;
        }
        Ok(())
    }
}

/// The body of an Rstatfs (9P2000.L): statfs(2).
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Statfs {
    /// Magic number of the filesystem: [`V9FS_MAGIC`](crate::V9FS_MAGIC).
    pub kind: u32,
    /// Block size in bytes.
    pub bsize: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks free.
    pub bfree: u64,
    /// Blocks free to everyone.
    pub bavail: u64,
    /// Files in all.
    pub files: u64,
    /// Files that may yet be made.
    pub ffree: u64,
    /// Identity of the filesystem.
    pub fsid: u64,
    /// Longest name, in bytes.
    pub namelen: u32,
}

impl Statfs {
    pub(crate) fn take(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            kind: reader.u32()?,
            bsize: reader.u32()?,
            blocks: reader.u64()?,
            bfree: reader.u64()?,
            bavail: reader.u64()?,
            files: reader.u64()?,
            ffree: reader.u64()?,
            fsid: reader.u64()?,
            namelen: reader.u32()?,
        })
    }

    pub(crate) fn put(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.u32(self.kind)?;
        writer.u32(self.bsize)?;
        for value in [self.blocks, self.bfree, self.bavail, self.files, self.ffree, self.fsid] {
            writer.u64(value)?;
        }
        writer.u32(self.namelen)
    }
}

#[cfg(test)]
mod tests {
    use super::Stat;
    use crate::{Dialect, Qid};

    #[test]
    fn a_record_is_untouched_only_while_every_field_is() {
        let none = Stat::UNTOUCHED;
        assert!(none.is_untouched());
        for touched in [
            Stat { kind: 0, ..none },
            Stat { dev: 0, ..none },
            Stat { qid: Qid { kind: 0, ..none.qid }, ..none },
            Stat { qid: Qid { version: 0, ..none.qid }, ..none },
            Stat { qid: Qid { path: 0, ..none.qid }, ..none },
            Stat { mode: 0o644, ..none },
            Stat { atime: 0, ..none },
            Stat { mtime: 0, ..none },
            Stat { length: 0, ..none },
            Stat { name: b"x", ..none },
            Stat { uid: b"x", ..none },
            Stat { gid: b"x", ..none },
            Stat { muid: b"x", ..none },
            Stat { extension: b"x", ..none },
            Stat { n_uid: 0, ..none },
            Stat { n_gid: 0, ..none },
            Stat { n_muid: 0, ..none },
        ] {
            assert!(!touched.is_untouched(), "{touched:?}");
        }
    }

    #[test]
    fn an_untouched_record_stays_one_over_the_wire() {
        for dialect in [Dialect::Plain, Dialect::Unix] {
            let mut out = [0; 128];
            let len = Stat::UNTOUCHED.encode(dialect, &mut out).unwrap();
            assert!(Stat::decode(&out[..len], dialect).unwrap().is_untouched());
        }
    }

    #[test]
    fn a_record_of_another_dialect_is_not_one() {
        let mut out = [0; 128];
        let len = Stat::UNTOUCHED.encode(Dialect::Unix, &mut out).unwrap();
        assert!(Stat::decode(&out[..len], Dialect::Plain).is_err());
        let len = Stat::UNTOUCHED.encode(Dialect::Plain, &mut out).unwrap();
        assert!(Stat::decode(&out[..len], Dialect::Unix).is_err());
    }
}
