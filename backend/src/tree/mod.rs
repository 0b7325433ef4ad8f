//! The shape of the tree: which places there are, and how they hang together.
//!
//! Owns: [`Node`] and its parts, the open handle, and every question about a place that needs no system call (its name,
//! its depth, its parent). Must not know: how a place is looked up, listed or read; [`crate::agents`] shares that out
//! among the three provinces: static entries ([`fixed`]), mirrors of real directories ([`crate::mirror`]) and what is
//! running ([`crate::active`]).

pub(crate) mod facts;
pub(crate) mod fixed;
pub(crate) mod halt;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use engine::port::{Effort, Kinds, Now};

use crate::active;
use crate::listing::Listing;
use crate::mirror::Mirrored;
use crate::pins::Pin;
use fixed::Fixed;

/// The agents tree, as the engine's kinds.
#[derive(Debug)]
pub enum Tree {}

impl Kinds for Tree {
    type Node = Node;
    type Open = Open;
}

/// A place in the tree and the kind it had when it was walked to. Cloning is at most one reference.
///
/// What stands at the place is looked up at each request. If that is of another kind by then (a directory where a file
/// was), it is another thing, and this one is gone.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) place: Place,
    /// Depth of the root this node was attached under. Whatever is reached from there stays below it, so the node at
    /// this depth is that root, and `..` of it is itself.
    pub(crate) floor: u16,
    /// Whether it was attached by a connection whose requests may change something.
    pub(crate) local: bool,
}

// A fid owns its node, and ten thousand fids are to cost little (performance: at most 128 bytes each, all told).
const _: () = assert!(size_of::<Node>() <= 32);

/// A place in one of the three provinces.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A static entry.
    Fixed(Fixed),
    /// A file or directory on disk.
    Mirror(Mirrored),
    /// Something in `/active`.
    Active(active::Place),
}

impl Place {
    /// The place `..` leads to; `/` is its own.
    pub(crate) fn parent(&self) -> Self {
        match self {
            Self::Fixed(fixed) => Self::Fixed(fixed.parent()),
            Self::Mirror(at) => match at.parent() {
                Some(parent) => Self::Mirror(parent),
                None => Self::Fixed(at.mount().parent),
            },
            Self::Active(at) => at.parent().map_or(Self::Fixed(Fixed::Root), Self::Active),
        }
    }

    /// How many steps below `/`. Paths are far too short to pass what 16 bits count.
    pub(crate) fn depth(&self) -> u16 {
        let depth = match self {
            Self::Fixed(fixed) => fixed.depth(),
            Self::Mirror(at) => at.mount().parent.depth() + 1 + at.depth(),
            Self::Active(at) => 1 + at.depth(),
        };
        u16::try_from(depth).unwrap_or(u16::MAX)
    }

    /// Whether it is a directory, or was when it was walked to.
    pub(crate) fn is_dir(&self) -> bool {
        match self {
            Self::Fixed(fixed) => fixed.is_dir(),
            Self::Mirror(at) => at.is_dir(),
            Self::Active(at) => at.is_dir(),
        }
    }

    /// Its entry's name in its parent; `/` for the root.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Fixed(fixed) => Cow::Borrowed(fixed.name()),
            Self::Mirror(at) => Cow::Borrowed(at.name()),
            Self::Active(at) => at.name(),
        }
    }
}

/// An open file or directory. Cloning is a reference; the last one dropped closes it.
#[derive(Clone)]
pub struct Open(Arc<Handle>);

struct Handle {
    opened: Opened,
    local: bool,
}

impl Open {
    /// `local` as of the node that was opened.
    pub(crate) fn new(opened: Opened, local: bool) -> Self {
        Self(Arc::new(Handle { opened, local }))
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.0.opened
    }

    pub(crate) fn is_local(&self) -> bool {
        self.0.local
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.opened() {
            Opened::File(_) => "File",
            Opened::Message(_) => "Message",
            Opened::Text(_) => "Text",
            Opened::Dir(_) => "Dir",
            Opened::Listing(_) | Opened::Active(_) => "Listing",
        };
        f.debug_tuple("Open").field(&kind).finish()
    }
}

/// What is open.
pub(crate) enum Opened {
    /// A file on disk.
    File(Pin),
    /// A message of a chat.
    Message(active::Message),
    /// A derived file.
    Text(Text),
    /// A directory whose names nobody has asked for yet, or that needs no snapshot of them.
    Dir(Place),
    /// A mirrored directory with its names.
    Listing(Listing),
    /// A directory of `/active` with its entries.
    Active(active::Listing),
}

/// An open derived file: its text as of Topen or of the last read at offset 0, so that one pass from front to back
/// never mixes two values.
pub(crate) struct Text {
    /// Whose text it is.
    pub(crate) place: Place,
    latest: Mutex<Arc<str>>,
}

impl Text {
    /// Opened, with this text.
    pub(crate) fn new(place: Place, text: Arc<str>) -> Self {
        Self { place, latest: Mutex::new(text) }
    }

    /// The text to continue.
    pub(crate) fn latest(&self) -> Arc<str> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a new pass. A read that runs beside this one sees the old text or the new one, whole.
    pub(crate) fn renew(&self, text: &Arc<str>) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(text);
    }
}

/// How a request is to be answered: what every step of it needs to know.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) effort: Effort,
    pub(crate) now: Now,
    /// The request has waited for a record that was being written. What is still torn now is not there.
    pub(crate) last_try: bool,
    /// The connection is one whose requests may change something.
    pub(crate) local: bool,
}

/// How long a record that is being rewritten is given (contract 8: it is read again once).
pub(crate) const TORN_NS: u64 = 50_000_000;
