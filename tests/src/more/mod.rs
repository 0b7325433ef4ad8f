//! Cases beyond the list of protocol facts.

use crate::suite::Case;

/// All of them.
pub fn all() -> Vec<Case> {
    Vec::new()
}
