//! Choices taken from bytes, and messages made of them.

use alloc::vec;
use alloc::vec::Vec;

use proto::{Dialect, NOFID, Names, Stat, Tmessage};

/// Bytes as a row of choices. Past the end every choice is the first.
#[derive(Debug)]
pub struct Script<'a> {
    rest: &'a [u8],
    /// What walks go along; nothing: any number of names that mean nothing.
    paths: &'a [&'a [u8]],
}

impl<'a> Script<'a> {
    /// These choices, about a tree that does not exist.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, paths: &[] }
    }

    /// These choices, about a tree that has, or has not, these paths: names with a `/` between them.
    #[must_use]
    pub fn along(bytes: &'a [u8], paths: &'a [&'a [u8]]) -> Self {
        Self { rest: bytes, paths }
    }

    /// Whether everything that is left to choose is the first.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                *byte
            }
            None => 0,
        }
    }

    /// A number below a bound, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = if bound > 256 { usize::from(self.byte()) << 8 } else { 0 };
        (wide | usize::from(self.byte())) % bound
    }

    /// One of these, of which there is at least one.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Mostly one of few: what is bound, opened and read has to be the same one.
    fn fid(&mut self) -> u32 {
        self.pick(&[0, 0, 0, 1, 1, 2, 3, NOFID])
    }

    /// A whole frame of a dialect.
    pub(super) fn frame(&mut self, tag: u16, dialect: Dialect) -> Vec<u8> {
        let mut names = [0; 256];
        let data = [b'x'; 30_000];
        encoded(&self.message(dialect, &mut names, &data), tag, dialect)
    }

    fn message<'m>(&mut self, dialect: Dialect, names: &'m mut [u8], data: &'m [u8]) -> Tmessage<'m> {
        let linux = dialect == Dialect::Linux;
        let fid = self.fid();
        match self.below(20) {
            0 | 1 => Tmessage::Attach {
                fid,
                afid: self.pick(&[NOFID, NOFID, 1]),
                uname: b"u",
                aname: b"",
                n_uname: None,
            },
            2..=4 => Tmessage::Walk { fid, names: self.names(names), newfid: self.fid() },
            5 | 6 if linux => Tmessage::Lopen { fid, flags: self.pick(&[0, 0, 2, 1, 3, proto::O_DIRECTORY]) },
            5 | 6 => Tmessage::Open { fid, mode: self.pick(&[0, 0, 2, 1, 0x11, 0x40]) },
            7 | 8 => Tmessage::Read { fid, offset: self.offset(), count: self.count() },
            9 if linux => Tmessage::Readdir { fid, offset: self.offset(), count: self.count() },
            9 => Tmessage::Read { fid, offset: 0, count: self.count() },
            10 => {
                let most = self.pick(&[100, 4000, 4000, data.len()]);
                Tmessage::Write { fid, offset: 0, data: &data[..self.below(most)] }
            }
            11 if linux => Tmessage::Getattr { fid, mask: 0 },
            11 => Tmessage::Stat { fid },
            12 if linux => Tmessage::Xattrwalk { fid, newfid: self.fid(), name: self.pick(&[b"", b"n"]) },
            12 => Tmessage::Wstat { fid, stat: Stat { length: self.pick(&[!0, 0]), ..Stat::UNTOUCHED } },
            13 | 14 => Tmessage::Clunk { fid },
            15 => Tmessage::Remove { fid },
            16 if linux => Tmessage::Statfs { fid },
            16 => Tmessage::Auth { afid: fid, uname: b"u", aname: b"", n_uname: None },
            17 if linux => {
                Tmessage::Lock { fid, kind: 0, flags: 0, start: 0, length: 0, proc_id: 0, client_id: b"" }
            }
            17 => Tmessage::Create { fid, name: b"n", perm: 0, mode: 0, extension: None },
            _ => Tmessage::Walk { fid, newfid: fid, names: Names::EMPTY },
        }
    }

    fn names<'m>(&mut self, room: &'m mut [u8]) -> Names<'m> {
        let packed = if self.paths.is_empty() {
            let count = self.pick(&[0, 1, 1, 2, 3, 16, 17]);
            Names::pack((0..count).map(|_| &b"name"[..]), room)
        } else {
            Names::pack(self.pick(self.paths).split(|byte| *byte == b'/'), room)
        };
        packed.expect("room")
    }

    pub(super) fn version(&mut self) -> Tmessage<'static> {
        let version = self.pick(&[&b"9P2000"[..], b"9P2000.u", b"9P2000.L", b"9P2000.x", b"huh"]);
        Tmessage::Version { msize: self.pick(&[8192, 5000, 4096, 70_000, 600, 100, 32_768]), version }
    }

    fn offset(&mut self) -> u64 {
        self.pick(&[0, 0, 1, 69, 7, 1 << 63, u64::MAX])
    }

    fn count(&mut self) -> u32 {
        self.pick(&[0, 1, 100, 5000, u32::MAX])
    }
}

/// A whole frame of a message.
pub(super) fn encoded(message: &Tmessage<'_>, tag: u16, dialect: Dialect) -> Vec<u8> {
    let mut frame = vec![0; 32 * 1024];
    let size = message.encode(tag, dialect, &mut frame).expect("a message of this dialect, and room for it");
    frame.truncate(size);
    frame
}
