//! Drivers: they move bytes between sockets and sessions.

pub mod inherit;
pub mod limits;
pub mod listen;
pub mod log;
pub mod peer;
pub mod post;
pub mod signals;
