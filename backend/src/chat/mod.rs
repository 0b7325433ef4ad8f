//! The conversation of a session, one file per message.
//!
//! Owns: the way from the bytes of a transcript to messages and back to their bytes. Must not know: where transcripts
//! are, how a client asks, or what a harness's records mean (that is each harness's own `records`).
//!
//! A transcript is read once, in bounded steps, into an [`Index`] of positions ([`Builder`]); what is appended later is
//! read when somebody asks. A message is rendered from the file each time it is read ([`render`]).
//!
#![doc = include_str!("sample.md")]

pub mod build;
pub mod compressed;
pub mod index;
mod kind;
pub(crate) mod out;
pub mod pool;
pub mod render;
pub(crate) mod scan;
pub mod source;
pub(crate) mod tape;
mod text;
pub(crate) mod time;

pub(crate) use self::index::Word;
pub(crate) use self::kind::Kind;

pub use self::build::Builder;
pub use self::index::{Entry, Index};
pub use self::source::Source;

use proto::Refusal;
use rustix::io::Errno;

/// Whose records a transcript holds.
#[derive(Copy, Clone, Debug, Eq, Hash, PartialEq)]
pub enum Format {
    /// Claude Code's.
    Claude,
    /// Codex's.
    Codex,
}

/// Why a chat cannot be told.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Error {
    /// The file could not be read.
    Host(Errno),
    /// Its index would take more than all indexes may.
    TooLarge,
    /// It has more distinct tool names than can be numbered.
    TooManyTools,
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Self::Host(errno)
    }
}

impl From<scan::TooLarge> for Error {
    fn from(_: scan::TooLarge) -> Self {
        Self::TooLarge
    }
}

impl From<kind::TooManyTools> for Error {
    fn from(_: kind::TooManyTools) -> Self {
        Self::TooManyTools
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Host(errno) => Self::from_errno(errno.raw_os_error().unsigned_abs()),
            Error::TooLarge => Self::CHAT_TOO_LARGE,
            Error::TooManyTools => Self::CHAT_TOO_MANY_TOOLS,
        }
    }
}

/// 64 bits for an id, for telling ids apart.
fn digest(id: &[u8]) -> u64 {
    crate::qid::Hash::new().bytes(id).finish()
}
