//! What can go wrong between a client and a server.

use std::fmt;
use std::io;

use nix::errno::Errno;
use proto::error::errno;

use crate::log::Clean;

/// Why something was not done. The texts are for the user of the command line; none holds a control character.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server said no, and why.
    #[error("{words}")]
    Refused {
        /// Its words, cleaned; of a 9P2000.L server, which says a number only, our words for it.
        words: String,
        /// The Linux error number, of a server that gives one.
        errno: Option<u32>,
    },
    /// Content was asked of a directory.
    #[error("is a directory")]
    Directory,
    /// A listing was asked of a file.
    #[error("not a directory")]
    NotDirectory,
    /// A directory is longer than this client takes.
    #[error("directory too large: the limit is {} MiB of entries", super::LISTING_BYTES_MAX >> 20)]
    ListingTooLarge,
    /// A path component is longer than the protocol or the server's msize can carry.
    #[error("name too long")]
    NameTooLong,
    /// What was read could not be passed on.
    #[error("cannot write the output: {}", Cause(.0))]
    Sink(io::Error),
    /// What was to be written could not be had.
    #[error("cannot read the input: {}", Cause(.0))]
    Source(io::Error),
    /// The server hung up.
    #[error("the server closed the connection")]
    Closed,
    /// The server hung up before it said anything, which is how one turns a client away.
    #[error(
        "the server closed the connection at once: it has as many as it takes (9agents: 256), or is not for this user"
    )]
    TurnedAway,
    /// The server did not answer in time.
    #[error("the server does not answer")]
    Silent,
    /// The connection broke.
    #[error("the connection failed: {}", Cause(.0))]
    Failed(io::Error),
    /// No dialect of 9P2000 could be agreed on.
    #[error("the server does not speak 9P2000, 9P2000.u or 9P2000.L")]
    Dialect,
    /// A reply that no server may send.
    #[error("the server breaks the protocol: {0}")]
    Protocol(&'static str),
    /// An earlier error ended the connection.
    #[error("the connection to the server was lost")]
    Lost,
}

impl Error {
    /// Whether the connection is of no further use.
    pub const fn is_fatal(&self) -> bool {
        match self {
            Self::Closed
            | Self::TurnedAway
            | Self::Silent
            | Self::Failed(_)
            | Self::Dialect
            | Self::Protocol(_)
            | Self::Lost => true,
            Self::Refused { .. }
            | Self::Directory
            | Self::NotDirectory
            | Self::ListingTooLarge
            | Self::NameTooLong
            | Self::Sink(_)
            | Self::Source(_) => false,
        }
    }

    /// Whether the server says that there is no such file. A 9P2000 server says so in words alone, of which the usual ones are
    /// known.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::NotDirectory => true,
            Self::Refused { errno: Some(number), .. } if *number != 0 => {
                [errno::ENOENT, errno::ENOTDIR, errno::ESRCH].contains(number)
            }
            Self::Refused { words, .. } => {
                let words = words.to_ascii_lowercase();
                ["not exist", "not found", "no such", "not a directory"]
                    .iter()
                    .any(|phrase| words.contains(phrase))
            }
            _ => false,
        }
    }

    /// A refusal in words, with a number in 9P2000.u.
    pub(super) fn refused(ename: &[u8], errno: Option<u32>) -> Self {
        match errno {
            Some(number) if ename.is_empty() && number != 0 => Self::numbered(number),
            _ if ename.is_empty() => Self::Refused { words: "refused without a reason".to_owned(), errno },
            _ => Self::Refused { words: Clean(ename).to_string(), errno },
        }
    }

    /// A refusal by number.
    pub(super) fn numbered(number: u32) -> Self {
        let known = i32::try_from(number).map_or(Errno::UnknownErrno, Errno::from_raw);
        let words = match known {
            Errno::UnknownErrno => format!("refused with the unknown error number {number}"),
            known => known.desc().to_owned(),
        };
        Self::Refused { words, errno: Some(number) }
    }
}

/// Shows what the kernel said, in its words alone, without the number that the library adds.
#[derive(Copy, Clone, Debug)]
pub struct Cause<'a>(pub &'a io::Error);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.raw_os_error().map(Errno::from_raw) {
            None | Some(Errno::UnknownErrno) => self.0.fmt(out),
            Some(errno) => out.write_str(errno.desc()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Cause, Error};

    #[test]
    fn a_cause_is_told_in_words_alone() {
        assert_eq!(Cause(&io::Error::from_raw_os_error(2)).to_string(), "No such file or directory");
        assert_eq!(Cause(&io::Error::other("no address")).to_string(), "no address");
    }

    #[test]
    fn a_refusal_has_words_that_a_terminal_survives() {
        assert_eq!(Error::refused(b"no\x1b[2J\nway", None).to_string(), "no?[2J?way");
        assert_eq!(Error::refused(b"", None).to_string(), "refused without a reason");
        assert_eq!(Error::refused(b"", Some(2)).to_string(), "No such file or directory");
        assert_eq!(Error::numbered(13).to_string(), "Permission denied");
        assert_eq!(Error::numbered(526).to_string(), "refused with the unknown error number 526");
        assert_eq!(Error::numbered(u32::MAX).to_string(), "refused with the unknown error number 4294967295");
    }

    #[test]
    fn absence_is_told_from_other_refusals() {
        for absent in [
            Error::refused(b"file does not exist", None),
            Error::refused(b"x: No such file or directory", Some(0)),
            Error::refused(b"weg", Some(2)),
            Error::numbered(20),
        ] {
            assert!(absent.is_absence(), "{absent}");
        }
        for other in
            [Error::refused(b"permission denied", None), Error::refused(b"not found", Some(5)), Error::Closed]
        {
            assert!(!other.is_absence(), "{other}");
        }
    }
}
