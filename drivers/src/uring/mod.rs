//! The io_uring driver: one thread and one ring for all connections.
//!
//! Owns: whether this machine lets us have a ring, and the server that runs on one. Must not know: the tree, or who may
//! connect (`listen`, `peer`).
//!
//! - `ring`: operations with the buffers they own; the only unsafe code there is.
//! - `slots`: tables whose names go stale.
//! - `lifecycle`: what a connection does next, without any input or output.
//! - `connection`: a session, its socket, and the steps between them.
//! - `reactor`: the thread's loop.
//!
//! The ring carries the sockets and the wake-ups; files are read by plain system calls on the same thread where that does
//! not wait, and by the worker pool where it does.

mod buffers;
mod connection;
mod lifecycle;
mod reactor;
mod ring;
mod slots;
mod unavailable;

use std::fmt;
use std::io;
use std::sync::Arc;

use engine::port::{Backend, Kinds};

pub use self::unavailable::Unavailable;

use self::connection::Who;
use self::reactor::Reactor;
use self::ring::{Mode, Ring};
use crate::listen::{Listener, Stream};
use crate::server::Options;
use crate::signals::Stop;

/// A ring that works, on the thread that made it.
pub struct Uring<'s> {
    ring: Ring<'s, Who>,
}

impl<'s> Uring<'s> {
    /// Has the kernel make a ring for a server with such options, and tries it.
    ///
    /// # Errors
    /// Why there can be none; another driver may serve then.
    pub fn open(options: &Options) -> Result<Self, Unavailable> {
        let operations = options.connections.saturating_mul(OPERATIONS).saturating_add(OTHERS);
        let ring = Ring::open(u32::try_from(operations).unwrap_or(MOST).min(MOST))?;
        Ok(Self { ring })
    }

    /// Serves every connection of the listeners, and the streams already there, until asked to stop. Without a listener it
    /// ends with the last connection.
    ///
    /// # Errors
    /// What keeps it from starting, or a ring that no longer works. A connection's failures cost that connection.
    pub fn serve<K: Kinds>(
        self,
        backend: &Arc<dyn Backend<K>>,
        listeners: &'s [Listener],
        streams: Vec<Stream>,
        stop: &'s Stop,
        options: &Options,
    ) -> io::Result<()> {
        // Each listener has an operation too; so many that they crowd the connections out are not meant to be.
        let places = self.ring.capacity().saturating_sub(listeners.len() + OTHERS) / OPERATIONS;
        let options = Options { connections: options.connections.min(places), ..options.clone() };
        Reactor::new(self.ring, backend, listeners, stop, &options)?.run(streams)
    }
}

impl fmt::Display for Uring<'_> {
    /// The driver, and how the kernel runs the ring.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ring.mode() {
            Mode::Deferred => "uring (SINGLE_ISSUER, DEFER_TASKRUN)",
            Mode::Cooperative => "uring (COOP_TASKRUN)",
            Mode::Plain => "uring",
        })
    }
}

impl fmt::Debug for Uring<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uring").field("mode", &self.ring.mode()).finish_non_exhaustive()
    }
}

/// Operations in flight of one connection: a read, a write and a watch.
const OPERATIONS: usize = 3;
/// Operations of the server itself: its listeners, the stop, the workers' mail.
const OTHERS: usize = 64;
/// The most completions a ring may hold (io_uring_setup(2)).
const MOST: u32 = 65_536;
