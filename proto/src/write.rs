//! Putting fields into the caller's buffer.
//!
//! Also the headers of the four answers whose payload is written first, behind reserved bytes, and whose length is known
//! only afterwards.

use thiserror::Error;

use crate::message::{Names, Qids, RGETATTR, RSTAT};
use crate::stat::{Attr, Stat, Statfs};
use crate::{Dialect, HEADER_SIZE, IO_HEADER_SIZE, NONUNAME, Qid, STAT_HEADER_SIZE};

/// Why a message cannot be written. What the buffer holds afterwards is unspecified.
#[derive(Copy, Clone, Debug, Eq, Error, PartialEq)]
pub enum EncodeError {
    /// The buffer is too small; a larger one would do.
    #[error("the buffer is too small")]
    Full,
    /// A string, list or record is longer than its count can say, in any buffer.
    #[error("a field is longer than its count can say")]
    TooLong,
    /// The dialect has no such message.
    #[error("the dialect has no such message")]
    Foreign,
}

/// Writes the header of an answer that is count\[4\] and data over the bytes reserved before that data.
///
/// `kind` is [`RREAD`](crate::message::RREAD) or [`RREADDIR`](crate::message::RREADDIR). `count` is how many bytes of
/// data follow; it is at most `u32::MAX - 11`, as msize bounds it far below.
pub fn io_header(kind: u8, tag: u16, count: u32, out: &mut [u8; IO_HEADER_SIZE]) {
    let [s0, s1, s2, s3] = count.saturating_add(IO_HEADER_SIZE as u32).to_le_bytes();
    let [t0, t1] = tag.to_le_bytes();
    let [c0, c1, c2, c3] = count.to_le_bytes();
    *out = [s0, s1, s2, s3, kind, t0, t1, c0, c1, c2, c3];
}

/// Writes the header of an Rstat over the bytes reserved before its record. `len` is the whole record's length, its own
/// size\[2\] included.
pub fn stat_header(tag: u16, len: u16, out: &mut [u8; STAT_HEADER_SIZE]) {
    let [s0, s1, s2, s3] = (u32::from(len) + STAT_HEADER_SIZE as u32).to_le_bytes();
    let [t0, t1] = tag.to_le_bytes();
    let [n0, n1] = len.to_le_bytes();
    *out = [s0, s1, s2, s3, RSTAT, t0, t1, n0, n1];
}

/// Writes the header of an Rgetattr over the bytes reserved before its [`Attr`].
pub fn getattr_header(tag: u16, out: &mut [u8; HEADER_SIZE]) {
    let [s0, s1, s2, s3] = ((HEADER_SIZE + Attr::SIZE) as u32).to_le_bytes();
    let [t0, t1] = tag.to_le_bytes();
    *out = [s0, s1, s2, s3, RGETATTR, t0, t1];
}

/// A buffer being filled from its front.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    out: &'b mut [u8],
    at: usize,
    dialect: Dialect,
}

type Put = Result<(), EncodeError>;

impl<'b> Writer<'b> {
    /// Writes bytes that have no header.
    pub(crate) const fn new(out: &'b mut [u8], dialect: Dialect) -> Self {
        Self { out, at: 0, dialect }
    }

    /// Begins a message; [`Writer::finish_frame`] writes its size.
    pub(crate) fn frame(
        kind: u8,
        tag: u16,
        dialect: Dialect,
        out: &'b mut [u8],
    ) -> Result<Self, EncodeError> {
        let mut writer = Self::new(out, dialect);
        writer.u32(0)?;
        writer.u8(kind)?;
        writer.u16(tag)?;
        Ok(writer)
    }

    /// Writes the size of a message begun with [`Writer::frame`]; yields it.
    pub(crate) fn finish_frame(self) -> Result<usize, EncodeError> {
        let size = u32::try_from(self.at).map_err(|_| EncodeError::TooLong)?;
        *self.out.first_chunk_mut().ok_or(EncodeError::Full)? = size.to_le_bytes();
        Ok(self.at)
    }

    /// How many bytes have been written.
    pub(crate) const fn written(&self) -> usize {
        self.at
    }

    /// What has been written.
    pub(crate) fn into_written(self) -> &'b [u8] {
        self.out.get(..self.at).unwrap_or_default()
    }

    /// The dialect written in.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn u8(&mut self, value: u8) -> Put {
        self.bytes(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> Put {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> Put {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> Put {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn qid(&mut self, value: Qid) -> Put {
        self.bytes(&value.to_bytes())
    }

    /// s\[2\] and the bytes.
    pub(crate) fn string(&mut self, value: &[u8]) -> Put {
        self.u16(u16::try_from(value.len()).map_err(|_| EncodeError::TooLong)?)?;
        self.bytes(value)
    }

    /// count\[4\] and the bytes.
    pub(crate) fn data(&mut self, value: &[u8]) -> Put {
        self.u32(u32::try_from(value.len()).map_err(|_| EncodeError::TooLong)?)?;
        self.bytes(value)
    }

    /// n_uname\[4\], where the dialect has numeric users.
    pub(crate) fn n_uname(&mut self, value: Option<u32>) -> Put {
        if self.dialect == Dialect::Plain { Ok(()) } else { self.u32(value.unwrap_or(NONUNAME)) }
    }

    /// errno\[4\] of an Rerror, in 9P2000.u. 0 sends a client back to the words.
    pub(crate) fn errno(&mut self, value: Option<u32>) -> Put {
        if self.dialect == Dialect::Unix { self.u32(value.unwrap_or(0)) } else { Ok(()) }
    }

    /// extension\[s\] of a Tcreate, in 9P2000.u.
    pub(crate) fn extension(&mut self, value: Option<&[u8]>) -> Put {
        if self.dialect == Dialect::Unix { self.string(value.unwrap_or_default()) } else { Ok(()) }
    }

    /// nwname\[2\] and the strings.
    pub(crate) fn names(&mut self, value: Names<'_>) -> Put {
        self.u16(value.count())?;
        self.bytes(value.wire())
    }

    /// nwqid\[2\] and the qids.
    pub(crate) fn qids(&mut self, value: Qids<'_>) -> Put {
        self.u16(u16::try_from(value.len()).map_err(|_| EncodeError::TooLong)?)?;
        self.bytes(value.wire().as_flattened())
    }

    /// n\[2\] and the record, which has a size\[2\] of its own.
    pub(crate) fn stat(&mut self, value: Stat<'_>) -> Put {
        let len = u16::try_from(value.encoded_len(self.dialect)).map_err(|_| EncodeError::TooLong)?;
        self.u16(len)?;
        value.put(self)
    }

    pub(crate) fn attr(&mut self, value: Attr) -> Put {
        value.put(self)
    }

    pub(crate) fn statfs(&mut self, value: Statfs) -> Put {
        value.put(self)
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> Put {
        let place = self.out.get_mut(self.at..self.at + value.len()).ok_or(EncodeError::Full)?;
        place.copy_from_slice(value);
        self.at += value.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{EncodeError, getattr_header, io_header, stat_header};
    use crate::message::{RREAD, RREADDIR};
    use crate::{Attr, Dialect, Names, Qid, Qids, Rmessage, Stat, Tmessage};
    use alloc::vec;

    #[test]
    fn a_header_written_afterwards_is_the_messages_own() {
        let data = b"the bytes";
        for dialect in Dialect::ALL {
            let mut whole = [0; 64];
            let size = Rmessage::Read { data }.encode(0x1234, dialect, &mut whole).unwrap();
            let mut header = [0xff; 11];
            io_header(RREAD, 0x1234, data.len() as u32, &mut header);
            assert_eq!(whole[..size], [&header[..], data].concat());
        }
        let mut whole = [0; 64];
        let size = Rmessage::Readdir { data }.encode(0x1234, Dialect::Linux, &mut whole).unwrap();
        let mut header = [0xff; 11];
        io_header(RREADDIR, 0x1234, data.len() as u32, &mut header);
        assert_eq!(whole[..size], [&header[..], data].concat());
    }

    #[test]
    fn a_stat_header_written_afterwards_is_the_messages_own() {
        let stat = Stat { name: b"README", length: 12, ..Stat::UNTOUCHED };
        for dialect in [Dialect::Plain, Dialect::Unix] {
            let mut whole = [0; 128];
            let size = Rmessage::Stat { stat }.encode(0x1234, dialect, &mut whole).unwrap();
            let mut record = [0; 128];
            let len = stat.encode(dialect, &mut record).unwrap();
            let mut header = [0xff; 9];
            stat_header(0x1234, len as u16, &mut header);
            assert_eq!(whole[..size], [&header[..], &record[..len]].concat());
        }
    }

    #[test]
    fn a_getattr_header_written_afterwards_is_the_messages_own() {
        let attr = Attr { size: 12, ..Attr::default() };
        let mut whole = [0; 160];
        assert_eq!(Rmessage::Getattr { attr }.encode(0x1234, Dialect::Linux, &mut whole), Ok(160));
        let mut body = [0; Attr::SIZE];
        assert_eq!(attr.encode(&mut body), Ok(Attr::SIZE));
        let mut header = [0xff; 7];
        getattr_header(0x1234, &mut header);
        assert_eq!(whole[..], [&header[..], &body].concat());
    }

    #[test]
    fn the_largest_headers_say_what_they_are_told() {
        let mut header = [0; 9];
        stat_header(0, u16::MAX, &mut header);
        assert_eq!(header, *b"\x08\0\x01\0\x7d\0\0\xff\xff");
        let mut header = [0; 11];
        io_header(RREAD, 0xffff, u32::MAX, &mut header);
        assert_eq!(header, *b"\xff\xff\xff\xff\x75\xff\xff\xff\xff\xff\xff");
    }

    #[test]
    fn a_string_of_65535_bytes_travels_and_a_longer_one_does_not() {
        let bytes = vec![b'x'; 65_536];
        let mut out = vec![0; 200_000];
        let longest = Tmessage::Version { msize: 0, version: &bytes[1..] };
        assert_eq!(longest.encode(0, Dialect::Plain, &mut out), Ok(7 + 4 + 2 + 65_535));
        assert_eq!(Tmessage::decode(&out[..7 + 4 + 2 + 65_535], Dialect::Plain), Ok((0, longest)));
        let longer = Tmessage::Version { msize: 0, version: &bytes };
        assert_eq!(longer.encode(0, Dialect::Plain, &mut out), Err(EncodeError::TooLong));
        assert_eq!(Names::pack([&bytes[..]], &mut out), Err(EncodeError::TooLong));
        assert_eq!(Names::pack((0..65_536).map(|_| &b""[..]), &mut out), Err(EncodeError::TooLong));
    }

    #[test]
    fn a_record_of_65535_bytes_travels_alone_and_a_longer_one_does_not() {
        let bytes = vec![b'x'; 65_535];
        let mut out = vec![0; 200_000];
        let fixed = Stat::UNTOUCHED.encoded_len(Dialect::Plain);
        let stat = Stat { name: &bytes[..30_000], uid: &bytes[..65_535 - 30_000 - fixed], ..Stat::UNTOUCHED };
        let size = Rmessage::Stat { stat }.encode(0, Dialect::Plain, &mut out).unwrap();
        assert_eq!(Rmessage::decode(&out[..size], Dialect::Plain), Ok((0, Rmessage::Stat { stat })));
        // The record still has a size of its own, but no Rstat can count it any more.
        let stat = Stat { gid: b"x", ..stat };
        assert_eq!(stat.encode(Dialect::Plain, &mut out), Ok(65_536));
        assert_eq!(Rmessage::Stat { stat }.encode(0, Dialect::Plain, &mut out), Err(EncodeError::TooLong));
        let stat = Stat { gid: b"xxx", ..stat };
        assert_eq!(stat.encode(Dialect::Plain, &mut out), Err(EncodeError::TooLong));
    }

    #[test]
    fn more_qids_than_there_is_room_for_are_refused() {
        let mut room = [[0; 13]; 1];
        assert_eq!(Qids::pack(&[Qid::default(); 2], &mut room), Err(EncodeError::Full));
    }
}
