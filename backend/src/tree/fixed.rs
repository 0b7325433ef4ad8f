//! The static entries: those that are there on every machine, whatever runs and whatever is on disk.
//!
//! Owns: their names, parents and texts, and which entries a static directory has. Must not know: files.

use std::sync::Arc;

use engine::port::Now;

use super::facts::{Daemon, Facts};
use crate::mirror::Mount;
use crate::qid;

/// A static entry.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fixed {
    Root,
    Readme,
    Pid,
    Uptime,
    Claude,
    Codex,
    Skills,
}

impl Fixed {
    /// The static entries below `/`; no other static directory has any.
    const BELOW_ROOT: [Self; 6] =
        [Self::Readme, Self::Pid, Self::Uptime, Self::Claude, Self::Codex, Self::Skills];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Root => "/",
            Self::Readme => "README",
            Self::Pid => "pid",
            Self::Uptime => "uptime",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Skills => "skills",
        }
    }

    /// The directory it is in; `/` for itself.
    pub(crate) const fn parent(self) -> Self {
        Self::Root
    }

    pub(crate) const fn depth(self) -> usize {
        match self {
            Self::Root => 0,
            _ => 1,
        }
    }

    pub(crate) const fn is_dir(self) -> bool {
        matches!(self, Self::Root | Self::Claude | Self::Codex | Self::Skills)
    }
}

/// An entry of a static directory.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Child {
    /// Another static entry.
    Fixed(Fixed),
    /// What is mirrored there.
    Mount(Mount),
    /// `/active`.
    Active,
}

impl Child {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fixed(fixed) => fixed.name(),
            Self::Mount(mount) => mount.name,
            Self::Active => crate::active::NAME,
        }
    }
}

/// All static entries of one daemon.
#[derive(Debug)]
pub(crate) struct Fixtures {
    daemon: Daemon,
    readme: Arc<str>,
    pid: Arc<str>,
    /// By directory, sorted bytewise.
    root: Box<[Child]>,
    claude: Box<[Child]>,
    codex: Box<[Child]>,
    skills: Box<[Child]>,
}

impl Fixtures {
    /// The entries of one daemon.
    pub(crate) fn new(daemon: Daemon) -> Self {
        Self {
            daemon,
            readme: README.into(),
            pid: format!("{}\n", daemon.me.pid).into(),
            root: children(Fixed::Root),
            claude: children(Fixed::Claude),
            codex: children(Fixed::Codex),
            skills: children(Fixed::Skills),
        }
    }

    /// What a directory may have, sorted bytewise; a mount is an entry only while its target exists, if it says so.
    pub(crate) fn children(&self, of: Fixed) -> &[Child] {
        match of {
            Fixed::Root => &self.root,
            Fixed::Claude => &self.claude,
            Fixed::Codex => &self.codex,
            Fixed::Skills => &self.skills,
            Fixed::Readme | Fixed::Pid | Fixed::Uptime => &[],
        }
    }

    /// The entry of a directory under a name.
    pub(crate) fn child(&self, of: Fixed, name: &[u8]) -> Option<Child> {
        self.children(of).iter().copied().find(|child| child.name().as_bytes() == name)
    }

    /// The text of a file; a directory has none.
    pub(crate) fn text(&self, of: Fixed, now: Now) -> Option<Arc<str>> {
        match of {
            Fixed::Readme => Some(Arc::clone(&self.readme)),
            Fixed::Pid => Some(Arc::clone(&self.pid)),
            Fixed::Uptime => {
                let seconds = now.mono_ns.saturating_sub(self.daemon.start.mono_ns) / 1_000_000_000;
                Some(format!("{seconds}\n").into())
            }
            Fixed::Root | Fixed::Claude | Fixed::Codex | Fixed::Skills => None,
        }
    }

    /// What a stat record says of an entry.
    pub(crate) fn facts(&self, of: Fixed, now: Now) -> Facts {
        match self.text(of, now) {
            Some(text) => self.daemon.file(path(of), &text),
            None => self.daemon.directory(path(of)),
        }
    }
}

fn children(of: Fixed) -> Box<[Child]> {
    let mut children: Vec<Child> =
        Mount::all().filter(|mount| mount.parent == of).map(Child::Mount).collect();
    if of == Fixed::Root {
        children.extend(Fixed::BELOW_ROOT.map(Child::Fixed));
        children.push(Child::Active);
    }
    children.sort_unstable_by_key(|child| child.name());
    children.into()
}

fn path(of: Fixed) -> u64 {
    qid::derived(&[b"fixed", of.name().as_bytes()])
}

/// The tree, explained in place.
const README: &str = include_str!("README.txt");
