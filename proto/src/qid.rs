//! Qids: what a server says a file *is* (intro(5)).

use crate::QID_SIZE;

/// A server's name for a file. Two files are the same exactly if their qids' paths are.
#[derive(Copy, Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Qid {
    /// The kind of file, as `QT` bits: the high byte of the mode in a stat record.
    pub kind: u8,
    /// Moves whenever the file's content does.
    pub version: u32,
    /// Unique among all files of the server, now and before.
    pub path: u64,
}

impl Qid {
    /// All bits set: "don't touch" in a Twstat (stat(5)).
    pub const UNTOUCHED: Self = Self { kind: !0, version: !0, path: !0 };

    /// The qid as it travels: type\[1\] version\[4\] path\[8\].
    pub const fn to_bytes(self) -> [u8; QID_SIZE] {
        let [v0, v1, v2, v3] = self.version.to_le_bytes();
        let [p0, p1, p2, p3, p4, p5, p6, p7] = self.path.to_le_bytes();
        [self.kind, v0, v1, v2, v3, p0, p1, p2, p3, p4, p5, p6, p7]
    }

    /// What [`Qid::to_bytes`] wrote. Every 13 bytes are a qid.
    pub const fn from_bytes(bytes: [u8; QID_SIZE]) -> Self {
        let [kind, v0, v1, v2, v3, p0, p1, p2, p3, p4, p5, p6, p7] = bytes;
        Self {
            kind,
            version: u32::from_le_bytes([v0, v1, v2, v3]),
            path: u64::from_le_bytes([p0, p1, p2, p3, p4, p5, p6, p7]),
        }
    }
}

/// Kind of a plain file.
pub const QTFILE: u8 = 0x00;
/// Kind bit of a symbolic link (9P2000.u, 9P2000.L).
pub const QTSYMLINK: u8 = 0x02;
/// Kind bit of a temporary file.
pub const QTTMP: u8 = 0x04;
/// Kind bit of an authentication file.
pub const QTAUTH: u8 = 0x08;
/// Kind bit of a mounted channel.
pub const QTMOUNT: u8 = 0x10;
/// Kind bit of a file only one may have open.
pub const QTEXCL: u8 = 0x20;
/// Kind bit of a file that only grows.
pub const QTAPPEND: u8 = 0x40;
/// Kind bit of a directory.
pub const QTDIR: u8 = 0x80;
