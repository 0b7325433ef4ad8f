//! The first bytes of SQLite's files.

/// How many bytes of a file [`is_database`] needs to see.
pub const DATABASE_HEAD_BYTES: usize = 16;

/// Whether a file that begins with `head` is an SQLite database, or a write-ahead log or rollback journal of one.
///
/// `head` is the file's first [`DATABASE_HEAD_BYTES`] bytes, or the whole file where it is shorter; more do no harm.
/// The magic numbers are those of "Database File Format", <https://sqlite.org/fileformat2.html>, sections 1.3.1, 3 and
/// 4.1. (A `-shm` file has none: its name hides it.)
#[must_use]
pub fn is_database(head: &[u8]) -> bool {
    MAGICS.iter().any(|magic| head.starts_with(magic))
}

const MAGICS: [&[u8]; 4] = [
    b"SQLite format 3\0",
    // A write-ahead log with little-endian, then with big-endian checksums.
    &[0x37, 0x7f, 0x06, 0x82],
    &[0x37, 0x7f, 0x06, 0x83],
    // A rollback journal.
    &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7],
];
