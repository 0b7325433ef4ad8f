//! Which driver serves.
//!
//! Owns: the choice, and the reason for it in words. Must not know: how any driver works, or what makes a ring unavailable
//! (`uring`).

use std::fmt;
use std::io;
use std::sync::Arc;

use clap::ValueEnum;
use engine::port::{Backend, Kinds};

use crate::blocking;
use crate::listen::{Listener, Stream};
use crate::server::Options;
use crate::signals::Stop;
use crate::uring::{Unavailable, Uring};

/// The driver that is wished for.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Driver {
    /// The best there is
    #[default]
    Auto,
    /// io_uring, or nothing
    Uring,
    /// A thread for each connection
    Blocking,
}

/// The driver that serves. Shown with the reason, where it is not the first choice.
#[derive(Debug)]
pub struct Chosen<'s>(Choice<'s>);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one, for as long as the process serves")]
enum Choice<'s> {
    Uring(Uring<'s>),
    Blocking(Reason),
}

/// Why a thread for each connection.
#[derive(Debug)]
enum Reason {
    Wished,
    OneConnection,
    NoRing(Unavailable),
}

impl<'s> Chosen<'s> {
    /// Chooses. `lone`: there will be one connection and no other, for which a ring is of no use; so there is only one if it
    /// is wished for.
    ///
    /// # Errors
    /// A ring is wished for, and cannot be had.
    pub fn new(wish: Driver, lone: bool, options: &Options) -> Result<Self, Unavailable> {
        let choice = match wish {
            Driver::Blocking => Choice::Blocking(Reason::Wished),
            Driver::Auto if lone => Choice::Blocking(Reason::OneConnection),
            Driver::Uring => Choice::Uring(Uring::open(options)?),
            Driver::Auto => match Uring::open(options) {
                Ok(uring) => Choice::Uring(uring),
                Err(why) => Choice::Blocking(Reason::NoRing(why)),
            },
        };
        Ok(Self(choice))
    }

    /// Serves every connection of the listeners, and the streams already there, until asked to stop. If there is no listener
    /// and one stream, until that ends.
    ///
    /// # Errors
    /// What keeps it from starting. Once it serves, failures are logged and cost at most a connection; but a ring that does
    /// not work any more ends it.
    pub fn serve<K: Kinds>(
        self,
        backend: &Arc<dyn Backend<K>>,
        listeners: &'s [Listener],
        mut streams: Vec<Stream>,
        stop: &'s Stop,
        options: &Options,
    ) -> io::Result<()> {
        match self.0 {
            Choice::Uring(uring) => uring.serve(backend, listeners, streams, stop, options),
            Choice::Blocking(_) => match streams.pop() {
                Some(stream) if listeners.is_empty() && streams.is_empty() => {
                    blocking::serve_one(backend, stream, stop, options)
                }
                last => {
                    streams.extend(last);
                    blocking::serve(backend, listeners, streams, stop, options)
                }
            },
        }
    }
}

impl fmt::Display for Chosen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Choice::Uring(uring) => write!(f, "{uring}"),
            Choice::Blocking(Reason::Wished) => f.write_str("blocking, as asked"),
            Choice::Blocking(Reason::OneConnection) => f.write_str("blocking, for one connection"),
            Choice::Blocking(Reason::NoRing(why)) => write!(f, "blocking, because {why}"),
        }
    }
}
