//! Taking fields off a frame.
//!
//! Every take either yields a whole field or fails; nothing is read past the end and nothing is guessed.

use thiserror::Error;

use crate::message::{Names, Qids};
use crate::stat::{Attr, Stat, Statfs};
use crate::{Dialect, HEADER_SIZE, QID_SIZE, Qid};

/// Why bytes are not a message. The tag, if the frame is long enough to hold one, is [`frame::tag`](crate::frame::tag).
#[derive(Copy, Clone, Debug, Eq, Error, PartialEq)]
pub enum DecodeError {
    /// Shorter than a header, or the size field is not the frame's length.
    #[error("the size field is not the frame's length")]
    Size,
    /// The dialect has no such message in this direction.
    #[error("no message of type {kind} in this dialect and direction")]
    Unknown {
        /// The type byte.
        kind: u8,
    },
    /// A field reaches past the end.
    #[error("a field reaches past the end")]
    Short,
    /// Bytes are left over after the last field, or inside a counted field.
    #[error("bytes are left over after the last field")]
    Trailing,
}

/// What is left of a frame, or of a counted part of one.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    dialect: Dialect,
}

type Taken<T> = Result<T, DecodeError>;

impl<'a> Reader<'a> {
    /// Reads bytes that have no header.
    pub(crate) const fn new(bytes: &'a [u8], dialect: Dialect) -> Self {
        Self { rest: bytes, dialect }
    }

    /// Reads a whole frame; yields type, tag and the reader of the fields.
    pub(crate) fn frame(frame: &'a [u8], dialect: Dialect) -> Taken<(u8, u16, Self)> {
        let (header, rest) = frame.split_first_chunk::<HEADER_SIZE>().ok_or(DecodeError::Size)?;
        let [s0, s1, s2, s3, kind, t0, t1] = *header;
        if usize::try_from(u32::from_le_bytes([s0, s1, s2, s3])) != Ok(frame.len()) {
            return Err(DecodeError::Size);
        }
        Ok((kind, u16::from_le_bytes([t0, t1]), Self::new(rest, dialect)))
    }

    /// The end: nothing may be left.
    pub(crate) const fn finish(self) -> Taken<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::Trailing) }
    }

    /// Whether nothing is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The dialect read in.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn u8(&mut self) -> Taken<u8> {
        self.chunk().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Taken<u16> {
        self.chunk().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Taken<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Taken<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    pub(crate) fn qid(&mut self) -> Taken<Qid> {
        self.chunk().map(Qid::from_bytes)
    }

    /// s\[2\] and so many bytes.
    pub(crate) fn string(&mut self) -> Taken<&'a [u8]> {
        let len = self.u16()?;
        self.bytes(usize::from(len))
    }

    /// count\[4\] and so many bytes.
    pub(crate) fn data(&mut self) -> Taken<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).map_err(|_| DecodeError::Short)?)
    }

    /// n_uname\[4\], where the dialect has numeric users.
    pub(crate) fn n_uname(&mut self) -> Taken<Option<u32>> {
        if self.dialect == Dialect::Plain { Ok(None) } else { self.u32().map(Some) }
    }

    /// errno\[4\] of an Rerror, in 9P2000.u.
    pub(crate) fn errno(&mut self) -> Taken<Option<u32>> {
        if self.dialect == Dialect::Unix { self.u32().map(Some) } else { Ok(None) }
    }

    /// extension\[s\] of a Tcreate, in 9P2000.u.
    pub(crate) fn extension(&mut self) -> Taken<Option<&'a [u8]>> {
        if self.dialect == Dialect::Unix { self.string().map(Some) } else { Ok(None) }
    }

    /// nwname\[2\] and so many strings.
    pub(crate) fn names(&mut self) -> Taken<Names<'a>> {
        let count = self.u16()?;
        let start = self.rest;
        for _ in 0..count {
            self.string()?;
        }
        let wire = start.get(..start.len() - self.rest.len()).ok_or(DecodeError::Short)?;
        Ok(Names::known(count, wire))
    }

    /// nwqid\[2\] and so many qids.
    pub(crate) fn qids(&mut self) -> Taken<Qids<'a>> {
        let count = self.u16()?;
        let wire = self.bytes(usize::from(count) * QID_SIZE)?;
        Ok(Qids::new(wire.as_chunks().0))
    }

    /// n\[2\] and so many bytes, which are one stat record.
    pub(crate) fn stat(&mut self) -> Taken<Stat<'a>> {
        Stat::decode(self.string()?, self.dialect)
    }

    /// size\[2\] and so many bytes: a reader of the inside of a stat record.
    pub(crate) fn record(&mut self) -> Taken<Self> {
        Ok(Self::new(self.string()?, self.dialect))
    }

    pub(crate) fn attr(&mut self) -> Taken<Attr> {
        Attr::take(self)
    }

    pub(crate) fn statfs(&mut self) -> Taken<Statfs> {
        Statfs::take(self)
    }

    fn bytes(&mut self, len: usize) -> Taken<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Taken<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }
}
