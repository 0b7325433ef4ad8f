//! A way to run the server, as a case sees it.
//!
//! Owns: the three traits every rig implements, and the names of what a rig may lack. Must not know: any rig, any case, or
//! what travels.

use std::time::Duration;

use crate::slow::Gate;
use crate::world::{Edit, WorldSpec};

/// A way to run the server.
pub trait Rig: Send + Sync {
    /// Its name in the table of results.
    fn name(&self) -> &'static str;

    /// What it cannot do, and why. A case that needs one of these is skipped by declaration; there is no other skip.
    fn declines(&self) -> &'static [(Need, &'static str)] {
        &[]
    }

    /// Why it cannot be run on this machine at all. Its cases are skipped then, unless that is forbidden.
    fn absent(&self) -> Option<&'static str> {
        None
    }

    /// Runs a server over a world of its own. Dropping the world ends it.
    fn start(&self, spec: &WorldSpec) -> Box<dyn World>;
}

/// What some cases need and some rigs lack.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Need {
    /// Requests that wait until they are let go ([`World::gate`]).
    Waiting,
    /// A file that may be written ([`World::control`]).
    Control,
    /// How many fids all connections hold ([`World::fids`]).
    Counts,
    /// A stream that can be closed in one direction, fills up, and is served beside others.
    Stream,
    /// A server in a process of its own, whose descriptors can be limited.
    Process,
    /// The whole of the real tree, over a real filesystem.
    Disk,
    /// Files with holes, larger than memory.
    Sparse,
}

/// A server that runs over some files.
pub trait World: Send + Sync {
    /// A new connection.
    fn connect(&self) -> Box<dyn Wire>;

    /// Changes the files. It has happened when this returns.
    fn edit(&self, edit: &Edit);

    /// What holds back the requests that wait. Only for cases that declare [`Need::Waiting`].
    fn gate(&self) -> &Gate {
        panic!("this rig has no requests that wait, and the case did not declare that it needs them")
    }

    /// The path of a file that may be written. Only for cases that declare [`Need::Control`].
    fn control(&self) -> &'static str {
        panic!("this rig has no writable file, and the case did not declare that it needs one")
    }

    /// Fids held by all connections. Only for cases that declare [`Need::Counts`].
    fn fids(&self) -> usize {
        panic!("this rig does not count fids, and the case did not declare that it needs that")
    }
}

/// One end of a connection. Dropping it closes it at once, whatever is on the way.
pub trait Wire: Send {
    /// Sends bytes, for at most so long; yields how many were taken. Fewer than all if the other end stopped reading, or
    /// has closed.
    fn send(&mut self, bytes: &[u8], within: Duration) -> usize;

    /// Waits at most so long for bytes. Whoever sees [`Received::Nothing`] may be sure that nothing came in that time.
    fn receive(&mut self, within: Duration) -> Received;

    /// Closes the direction away from us. Only for cases that declare [`Need::Stream`].
    fn half_close(&mut self) {
        panic!("this wire has one direction only, and the case did not declare that it needs two")
    }
}

/// What came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Received {
    /// Some bytes, cut anywhere.
    Bytes(Vec<u8>),
    /// The other end has closed.
    Closed,
    /// Nothing, in the time given.
    Nothing,
}
