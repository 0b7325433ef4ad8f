//! Why a request has no answer yet, or none at all.

use proto::Refusal;

use crate::chat::Error;
use crate::chat::pool::Visit;
use crate::harness::Torn;
use crate::host::Errno;

/// The end of a request that was not answered.
#[derive(Debug)]
pub(crate) enum Halt {
    /// It never will be.
    Refused(Refusal),
    /// It would have to wait: the same request again, with full effort.
    Cold,
    /// It met a record that is being written: the same request once more, a little later.
    Torn,
    /// It has come a step further: the same request again, while this is kept.
    Unfinished(Unfinished),
}

/// What a request that takes several steps leaves between two of them.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// Its place among those who wait for a chat.
    pub(crate) _visit: Option<Visit>,
    /// Another request is at it: the next step is worth while once the epoch differs from this.
    pub(crate) bell: Option<u64>,
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Torn> for Halt {
    fn from(Torn: Torn) -> Self {
        Self::Torn
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        match error {
            Error::Host(errno) => errno.into(),
            other => Self::Refused(other.into()),
        }
    }
}

impl From<Errno> for Halt {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::AGAIN => Self::Cold,
            // A link is not there, and what is too long to be named cannot be there.
            Errno::LOOP | Errno::NAMETOOLONG => Self::Refused(Refusal::NOT_FOUND),
            other => Self::Refused(Refusal::from_errno(other.raw_os_error().unsigned_abs())),
        }
    }
}
