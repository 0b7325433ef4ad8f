//! Typed messages of 9P2000, 9P2000.u and 9P2000.L, both directions.
//!
//! Owns: what each message looks like on the wire, where one frame ends and the next begins, and the words and numbers a
//! refusal is told in ([`Refusal`]). Must not know: fids, sessions, files, sockets, or what any message *means*.
//!
//! - **Strict.** [`Tmessage::decode`] and [`Rmessage::decode`] accept exactly one spelling of a message: no byte is
//!   missing, none is left over, and every inner length agrees with the outer one. What decodes encodes to the same
//!   bytes. No input panics.
//! - **Borrowed.** Strings, data and lists of names point into the frame; encoding writes into the caller's buffer.
//!   Nothing allocates.
//! - **Pure.** `no_std`, no unsafe code, no clock, no input or output.
//!
//! Strings are bytes: whether a name is UTF-8 is a question for whoever looks the name up.
//!
//! The sources are the manual pages of section 5 (intro, version, attach, walk, open, read, stat, flush, remove, error)
//! for 9P2000, and `include/net/9p/9p.h`, `net/9p/protocol.c` and `net/9p/client.c` of Linux for 9P2000.u and 9P2000.L.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzz"))]
extern crate alloc;

pub mod dialect;
pub mod error;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod message;
pub mod qid;
pub mod read;
pub mod stat;
pub mod write;

pub use dialect::Dialect;
pub use error::Refusal;
pub use message::bits::*;
pub use message::{Names, Qids, Rmessage, Tmessage};
pub use qid::{QTAPPEND, QTAUTH, QTDIR, QTEXCL, QTFILE, QTMOUNT, QTSYMLINK, QTTMP, Qid};
pub use read::DecodeError;
pub use stat::{Attr, Dirent, Stat, Statfs};
pub use write::EncodeError;

/// The tag of a Tversion, and of no other message (version(5)).
pub const NOTAG: u16 = !0;
/// "No fid": the afid of an attach without authentication (attach(5)).
pub const NOFID: u32 = !0;
/// "No numeric user", in the `n_uname` of 9P2000.u and 9P2000.L.
pub const NONUNAME: u32 = !0;
/// The most names one walk may have, and the most qids its answer carries (walk(5)).
pub const MAX_WALK: usize = 16;
/// Bytes of a qid on the wire.
pub const QID_SIZE: usize = 13;
/// Bytes before a message's own fields: size\[4\] type\[1\] tag\[2\].
pub const HEADER_SIZE: usize = 7;
/// Bytes of an Rread or Rreaddir before its data: the header and count\[4\].
pub const IO_HEADER_SIZE: usize = 11;
/// Bytes of an Rstat before its record: the header and n\[2\].
pub const STAT_HEADER_SIZE: usize = 9;
