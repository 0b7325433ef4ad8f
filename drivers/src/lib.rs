//! Drivers: they move bytes between sockets and sessions, and carry asks to a backend and answers back.
//!
//! Must not know: what the tree holds. Every driver takes its turn with [`pump`], so that what differs between them is
//! only how bytes are moved and where an ask waits.

pub mod blocking;
pub mod choose;
pub mod client;
pub mod clock;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod inherit;
pub mod inproc;
pub mod limits;
pub mod listen;
pub mod log;
pub mod notify;
pub mod offload;
pub mod peer;
pub mod post;
pub mod pump;
pub mod server;
pub mod signals;
pub mod simulated;
pub mod uring;

#[cfg(test)]
#[path = "../../tests/src/fitness.rs"]
mod fitness;
