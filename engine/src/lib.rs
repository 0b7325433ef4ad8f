//! The 9P session: fids, tags, flushes and order, in three dialects, without input or output.
//!
//! A [`Session`] is one connection's state machine. It is fed bytes and hands out *asks*; whoever drives it carries the
//! asks to a [`port::Backend`] and the answers back, and sends the replies. It never calls anyone: what waits, where, and
//! on which thread is the driver's business.
//!
//! ```text
//!   receive(bytes) ─▶ ┌─────────┐ ─▶ poll() → Perform(ticket, ask) | Abandon(ticket) | Hangup
//!   complete(ticket)─▶│ Session │
//!   sent(buf) ───────▶└─────────┘ ─▶ take() → buf
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod dispatch;
mod fid;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod inbox;
pub mod limits;
mod memory;
mod outbox;
mod pending;
#[cfg(feature = "planted")]
pub mod planted;
pub mod port;
mod session;

pub use limits::{Budget, Limits};
pub use outbox::{Apart, Buf};
pub use session::{Action, Hangup, Session};
