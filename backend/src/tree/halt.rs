//! Why a request has no answer yet, or none at all.

use proto::Refusal;

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
