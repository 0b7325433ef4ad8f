//! `/active`: what is running right now.
//!
//! Owns: the places below `/active` and every question about them. Must not know: mirrors, and how a request came.

use std::borrow::Cow;
use std::sync::Arc;

use engine::port::Room;
use proto::Refusal;

use crate::host::Host;
use crate::name::Root;
use crate::qid;
use crate::tree::Turn;
use crate::tree::facts::{self, Daemon, Facts};
use crate::tree::halt::Halt;

/// A place in `/active`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// `/active` itself.
    Top,
    /// `/active/<harness>`: the harness whose files are below this root.
    Harness(Root),
}

impl Place {
    /// The directory it is in; `None` for `/active` itself.
    pub(crate) fn parent(&self) -> Option<Self> {
        match self {
            Self::Top => None,
            Self::Harness(_) => Some(Self::Top),
        }
    }

    /// How many steps below `/active`.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Top => 0,
            Self::Harness(_) => 1,
        }
    }

    /// Whether it is a directory.
    pub(crate) fn is_dir(&self) -> bool {
        match self {
            Self::Top | Self::Harness(_) => true,
        }
    }

    /// Its entry's name.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Top => Cow::Borrowed(NAME),
            Self::Harness(root) => Cow::Borrowed(root.as_str()),
        }
    }
}

/// Looks up, lists and reads what is in `/active`.
pub(crate) struct Active {
    host: Arc<dyn Host>,
    daemon: Daemon,
}

impl Active {
    /// On one machine.
    pub(crate) fn new(host: Arc<dyn Host>, daemon: Daemon) -> Self {
        Self { host, daemon }
    }

    /// The entry of a directory under a name a client spelt.
    pub(crate) fn child(&self, of: &Place, name: &[u8], _turn: Turn) -> Result<Place, Halt> {
        let child = match of {
            Place::Top => HARNESSES.into_iter().find(|root| root.as_str().as_bytes() == name),
            Place::Harness(_) => None,
        };
        Ok(child.map(Place::Harness).ok_or(Refusal::NOT_FOUND)?)
    }

    /// What a stat record says of a place.
    pub(crate) fn facts(&self, of: &Place, _turn: Turn) -> Result<Facts, Halt> {
        let path = match of {
            Place::Top => qid::derived(&[b"active"]),
            Place::Harness(root) => qid::derived(&[b"active", root.as_str().as_bytes()]),
        };
        Ok(self.daemon.directory(path))
    }

    /// The text of a file.
    pub(crate) fn text(&self, of: &Place, _turn: Turn) -> Result<Arc<str>, Halt> {
        match of {
            Place::Top | Place::Harness(_) => Err(Refusal::IS_A_DIRECTORY.into()),
        }
    }

    /// Packs entries of a directory from index `from` on, as many as fit. Answers the index of the first that was not
    /// packed.
    pub(crate) fn list(&self, of: &Place, from: u32, turn: Turn, room: &mut Room<'_>) -> Result<u32, Halt> {
        let entries = match of {
            Place::Top => &HARNESSES[..],
            Place::Harness(_) => &[],
        };
        facts::pack(room, &*self.host, from, entries.len(), |index| {
            let root = entries[index];
            let facts = self.facts(&Place::Harness(root), turn)?;
            Ok(Some((root.as_str().into(), facts)))
        })
    }
}

/// The entry in `/`.
pub(crate) const NAME: &str = "active";
/// The harnesses, in the order of their names.
const HARNESSES: [Root; 5] = [Root::Claude, Root::Codex, Root::Dsh, Root::Hermes, Root::Omp];
