//! What a file *is*, in 64 bits, and when it has changed, in 32.
//!
//! Owns: the two numbers of a qid (intro(5)). Must not know: where a file stands in the tree. Everything here is a
//! function of its arguments, the same in every version of the program and on every machine: a client may keep a path
//! across restarts of the daemon.

use proto::{QTDIR, QTFILE, Qid};

use crate::host::{Kind, Meta};

/// The qid of a file on disk.
pub(crate) fn of_file(meta: &Meta) -> Qid {
    let kind = if meta.kind == Kind::Dir { QTDIR } else { QTFILE };
    Qid { kind, version: version(meta), path: path(meta) }
}

/// The identity of a file on disk: device, inode, birth time and file handle. The top bit is 0.
///
/// An inode number alone comes again as soon as the file is gone, and some kernels repeat the birth time with it when
/// both happen within one tick of the clock; the handle holds the inode's generation, which they do not repeat.
pub(crate) fn path(meta: &Meta) -> u64 {
    let handle = meta.handle;
    #[cfg(feature = "planted")]
    let handle = if engine::planted::is(engine::planted::Bug::QidCollision) { 0 } else { handle };
    let mut hash = Hash::new().word(meta.dev).word(meta.ino).word(handle);
    if let Some(birth) = meta.btime {
        hash = hash.word(birth.sec as u64).word(u64::from(birth.nsec));
    }
    hash.0 & !DERIVED
}

/// The version of a file on disk: seconds and nanoseconds of its mtime folded together, xor its size shifted by 8.
pub(crate) fn version(meta: &Meta) -> u32 {
    #[cfg(feature = "planted")]
    if engine::planted::is(engine::planted::Bug::VersionStuck) {
        return meta.mtime.sec as u32 ^ meta.mtime.nsec;
    }
    meta.mtime.sec as u32 ^ meta.mtime.nsec ^ (meta.size << 8) as u32
}

/// The identity of something that is not a file on disk: a hash of the words that say what it is. The top bit is 1.
///
/// Words are told apart by their lengths, so `["ab", "c"]` is not `["a", "bc"]`.
pub(crate) fn derived(words: &[&[u8]]) -> u64 {
    words.iter().copied().fold(Hash::new(), Hash::bytes).0 | DERIVED
}

/// The version of a file that is not on disk: a hash of its content, so that a value of the same size still moves it.
pub(crate) fn content(text: &[u8]) -> u32 {
    Hash::new().bytes(text).0 as u32
}

/// Absorbs one 64-bit word at a time. Each word goes through the finalizer of SplitMix64, a bijection that turns half
/// of its output bits for each turned input bit, so two inputs that differ in one word always differ after it.
///
/// It has no key, on purpose: paths must be the same after a restart. Who can choose inode numbers to make two of his
/// own files collide has won nothing by it.
pub(crate) struct Hash(u64);

impl Hash {
    /// Of nothing yet.
    pub(crate) const fn new() -> Self {
        Self(SEED)
    }

    /// Takes in one word.
    pub(crate) const fn word(self, word: u64) -> Self {
        let mut z = (self.0 ^ word).wrapping_add(GOLDEN);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(z ^ (z >> 31))
    }

    /// Takes in a run of bytes and its length.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let mut hash = self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = hash.word(u64::from_le_bytes(word));
        }
        hash
    }

    /// The hash of what was taken in.
    pub(crate) const fn finish(self) -> u64 {
        self.0
    }
}

/// The bit that keeps derived nodes and files on disk apart.
const DERIVED: u64 = 1 << 63;
/// 2^64 divided by the golden ratio, the increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Where every hash begins: the letters `9agents` and a zero.
const SEED: u64 = u64::from_le_bytes(*b"9agents\0");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::host::Time;

    fn meta() -> Meta {
        let time = Time { sec: 1_700_000_000, nsec: 123_456_789 };
        Meta {
            kind: Kind::File,
            dev: 2049,
            ino: 131_073,
            btime: Some(time),
            handle: 0x1234_5678_9abc_def0,
            mtime: time,
            ctime: time,
            atime: time,
            size: 4096,
            uid: 1000,
            gid: 1000,
            nlink: 1,
        }
    }

    #[test]
    fn paths_and_versions_are_fixed_for_ever() {
        assert_eq!(path(&meta()), 0x7723_0837_f16e_38cf);
        assert_eq!(path(&Meta { btime: None, ..meta() }), 0x6e15_5b0c_adfa_fc30);
        assert_eq!(derived(&[b"README"]), 0xe014_1cf5_1abf_845f);
        assert_eq!(content(b"busy\n"), 0x3045_c34c);
    }

    #[test]
    fn the_version_is_mtime_folded_xor_size_shifted_by_8() {
        assert_eq!(version(&meta()), 1_700_000_000 ^ 123_456_789 ^ (4096 << 8));
    }

    #[test]
    fn each_part_of_the_identity_counts_and_nothing_else_does() {
        let whole = meta();
        let other = Time { sec: 1_700_000_000, nsec: 123_456_790 };
        let changed = [
            Meta { dev: 2050, ..whole },
            Meta { ino: 131_074, ..whole },
            Meta { btime: Some(other), ..whole },
            Meta { btime: None, ..whole },
            Meta { handle: 0, ..whole },
        ];
        let paths: BTreeSet<u64> = changed.iter().chain([&whole]).map(path).collect();
        assert_eq!(paths.len(), changed.len() + 1);
        let same =
            Meta { mtime: other, ctime: other, atime: other, size: 1, uid: 0, gid: 0, nlink: 2, ..whole };
        assert_eq!(path(&same), path(&whole));
        assert_ne!(version(&same), version(&whole));
    }

    #[test]
    fn a_directory_says_so() {
        assert_eq!(of_file(&meta()).kind, QTFILE);
        assert_eq!(of_file(&Meta { kind: Kind::Dir, ..meta() }).kind, QTDIR);
        assert_eq!(of_file(&Meta { kind: Kind::Other, ..meta() }).kind, QTFILE);
    }

    #[test]
    fn files_and_derived_nodes_cannot_meet() {
        assert_eq!(path(&meta()) >> 63, 0);
        assert_eq!(derived(&[b"pid"]) >> 63, 1);
    }

    #[test]
    fn derived_words_are_told_apart_by_their_lengths() {
        let spellings: [&[&[u8]]; 6] =
            [&[b"ab", b"c"], &[b"a", b"bc"], &[b"abc"], &[b"abc", b""], &[b"abc\0"], &[]];
        assert_eq!(
            spellings.iter().map(|words| derived(words)).collect::<BTreeSet<_>>().len(),
            spellings.len()
        );
    }

    #[test]
    fn neighbouring_inodes_spread_over_all_bits() {
        let paths: BTreeSet<u64> = (0..4096).map(|ino| path(&Meta { ino, ..meta() })).collect();
        assert_eq!(paths.len(), 4096);
        for bit in 0..63 {
            let ones = paths.iter().filter(|path| *path >> bit & 1 == 1).count();
            assert!((1800..2300).contains(&ones), "bit {bit} is set in {ones} of 4096");
        }
    }

    proptest! {
        #[test]
        fn a_changed_value_of_any_size_moves_the_version(a in ".{0,40}", b in ".{0,40}") {
            prop_assert_eq!(content(a.as_bytes()) == content(b.as_bytes()), a == b);
        }
    }
}
