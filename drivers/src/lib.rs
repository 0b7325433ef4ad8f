//! Drivers: they move bytes between sockets and sessions.

pub mod log;
pub mod post;
