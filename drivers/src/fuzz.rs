//! The body of the fuzz target of what the kernel tells as text. It panics if what it is given breaks a law.

use crate::peer;

/// The laws of the text files of `/proc`: see [`backend::fuzz::host_text`], and of the tables of sockets.
///
/// # Panics
/// If one is broken.
pub fn host_text(bytes: &[u8]) {
    backend::fuzz::host_text(bytes);
    peer::fuzz::tables(bytes);
}
