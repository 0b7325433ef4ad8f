//! Mirrors: real directories and files, as they are on disk at the moment of the request.
//!
//! Owns: the table of what is mirrored where, and lookup, stat and open below it. Must not know: what the files mean.
//!
//! A mirrored place is a mount (one line of the table) and a [`Rel`], the whole path below the root's base. Nothing of a
//! client becomes a path: each name passes [`Name::vet`], and `..` takes the last name off again. Two mounts may show the
//! same directory; their files are the same files, with equal qids, and each place keeps its own way up.

use std::fmt;
use std::iter::Peekable;
use std::ops::Deref;
use std::sync::Arc;

use proto::{Qid, Refusal};

use crate::host::{Errno, Host, Kind, Meta};
use crate::name::{Name, Rel, Root};
use crate::qid;
use crate::tree::Turn;
use crate::tree::facts::Facts;
use crate::tree::fixed::Fixed;
use crate::tree::halt::Halt;

/// One line of the table: a directory or file of a root, and where it stands in the tree.
#[derive(Debug)]
pub(crate) struct Mounted {
    /// The static directory that shows it.
    pub(crate) parent: Fixed,
    /// Its entry there.
    pub(crate) name: &'static str,
    /// The root it is in.
    root: Root,
    /// Its one name below the root's base; empty for the base itself.
    target: &'static str,
    kind: Kind,
    /// Whether the entry is there, as an empty directory, even while the target is not.
    lasting: bool,
}

/// A line of [`MOUNTS`].
#[derive(Copy, Clone, Eq, PartialEq)]
pub(crate) struct Mount(u8);

impl Mount {
    /// All of them, in the order of the table.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..MOUNTS.len() as u8).map(Self)
    }

    /// The qid path of the empty directory that stands in for a target that is not there.
    pub(crate) fn path(self) -> u64 {
        qid::derived(&[b"mount", self.parent.name().as_bytes(), self.name.as_bytes()])
    }

    /// The target's path below its root.
    fn target_rel(self) -> Rel {
        Name::of_harness(self.target).map_or(Rel::base(), |name| Rel::base().join(name))
    }

    fn target_depth(self) -> usize {
        usize::from(!self.target.is_empty())
    }
}

impl Deref for Mount {
    type Target = Mounted;

    fn deref(&self) -> &Mounted {
        &MOUNTS[usize::from(self.0)]
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.parent.name(), self.name)
    }
}

/// A place below a mount, or the mount itself, and its kind when it was walked to.
#[derive(Clone, Debug)]
pub(crate) struct Mirrored {
    mount: Mount,
    dir: bool,
    rel: Rel,
}

impl Mirrored {
    pub(crate) fn mount(&self) -> Mount {
        self.mount
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.dir
    }

    pub(crate) fn root(&self) -> Root {
        self.mount.root
    }

    pub(crate) fn rel(&self) -> &Rel {
        &self.rel
    }

    /// How many steps below its mount.
    pub(crate) fn depth(&self) -> usize {
        self.rel.depth() - self.mount.target_depth()
    }

    /// The directory it is in, unless that is the mount's parent.
    pub(crate) fn parent(&self) -> Option<Self> {
        let rel = if self.is_mount() { None } else { self.rel.parent() };
        rel.map(|rel| Self { mount: self.mount, dir: true, rel })
    }

    /// Whether a name in this directory can be asked for: with it, the path is still one that a file can have.
    pub(crate) fn reaches(&self, name: Name<'_>) -> bool {
        name.as_bytes().len() < PATH_BYTES.saturating_sub(self.rel.as_str().len())
    }

    pub(crate) fn name(&self) -> &str {
        if self.is_mount() { self.mount.name } else { self.rel.name().unwrap_or_default() }
    }

    fn is_mount(&self) -> bool {
        self.depth() == 0
    }

    /// Whether it is the mount and there even while its target is not.
    pub(crate) fn is_lasting(&self) -> bool {
        self.mount.lasting && self.is_mount()
    }

    /// Whether this is what was walked to: something of another kind in its place is another thing.
    fn is_kind(&self, kind: Kind) -> bool {
        match kind {
            Kind::Dir => self.dir,
            Kind::File => !self.dir,
            // Below a mount a special file is an empty plain one; the mount itself is what the table says or nothing.
            Kind::Other => !self.dir && !self.is_mount(),
            Kind::Link => false,
        }
    }
}

/// Lookup and stat of mirrored places.
pub(crate) struct Mirrors {
    host: Arc<dyn Host>,
    /// The targets of [`MOUNTS`], made once.
    targets: Box<[Rel]>,
}

impl Mirrors {
    /// Over one machine.
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        Self { host, targets: Mount::all().map(Mount::target_rel).collect() }
    }

    /// The place of a mount, whether or not there is anything.
    pub(crate) fn place(&self, mount: Mount) -> Mirrored {
        let rel = self.targets[usize::from(mount.0)].clone();
        Mirrored { mount, dir: mount.kind == Kind::Dir, rel }
    }

    /// What a stat record says of a place; `None` for a lasting mount without a target.
    pub(crate) fn facts(&self, at: &Mirrored, turn: Turn) -> Result<Option<Facts>, Halt> {
        match self.meta(at, turn) {
            Ok(meta) => Ok(Facts::of_file(&meta)),
            // Whatever is wrong with the target, the entry stands: listing it says what it is.
            Err(errno) if at.is_lasting() && errno != Errno::AGAIN => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// What stands at a place, if it is what was walked to.
    fn meta(&self, at: &Mirrored, turn: Turn) -> Result<Meta, Errno> {
        let meta = self.host.stat(at.root(), &at.rel, turn.effort)?;
        if at.is_kind(meta.kind) { Ok(meta) } else { Err(Errno::NOENT) }
    }

    /// Walks down from a directory as far as there is no `..` among the names. `each` is given the qid of every name
    /// that resolved.
    pub(crate) fn walk<'n>(
        &self,
        from: &Mirrored,
        names: &mut Peekable<impl Iterator<Item = &'n [u8]>>,
        turn: Turn,
        each: &mut dyn FnMut(Qid),
    ) -> Result<Mirrored, Halt> {
        let mut end = from.clone();
        let mut hidden = false;
        while let Some(name) = names.next_if(|name| *name != b"..") {
            let vetted = Name::vet(name, from.root());
            #[cfg(feature = "planted")]
            let vetted = vetted.or_else(|| match engine::planted::is(engine::planted::Bug::HiddenWalked) {
                true => str::from_utf8(name).ok().and_then(Name::of_harness),
                false => None,
            });
            match vetted.filter(|name| end.reaches(*name)) {
                Some(name) => end.rel = end.rel.join(name),
                None => {
                    hidden = true;
                    break;
                }
            }
        }
        let first = from.rel.depth();
        let mut dir = from.dir;
        if end.rel.depth() > first {
            self.host.walk(from.root(), &end.rel, first, turn.effort, &mut |meta| {
                dir = meta.kind == Kind::Dir;
                each(qid::of_file(meta));
            })?;
        }
        // The names before a hidden one count as walked, like those before a missing one.
        if hidden { Err(Refusal::NOT_FOUND.into()) } else { Ok(Mirrored { dir, ..end }) }
    }
}

/// The longest path: `PATH_MAX` of `<linux/limits.h>`. No call takes a longer one, so nothing is found there; and a
/// client cannot have paths put together that no file has.
const PATH_BYTES: usize = 4096;

/// Everything that is mirrored.
static MOUNTS: [Mounted; 12] = [
    directory(Fixed::Root, "omp", Root::Omp, "", true),
    directory(Fixed::Root, "hermes", Root::Hermes, "", true),
    directory(Fixed::Root, "dsh", Root::Dsh, "", true),
    directory(Fixed::Claude, "projects", Root::Claude, "projects", true),
    directory(Fixed::Claude, "skills", Root::Claude, "skills", false),
    file(Fixed::Claude, "history", Root::Claude, "history.jsonl"),
    directory(Fixed::Codex, "sessions", Root::Codex, "sessions", true),
    file(Fixed::Codex, "session-index", Root::Codex, "session_index.jsonl"),
    file(Fixed::Codex, "history", Root::Codex, "history.jsonl"),
    directory(Fixed::Skills, "claude", Root::Claude, "skills", false),
    directory(Fixed::Skills, "codex", Root::Codex, "skills", false),
    directory(Fixed::Skills, "omp", Root::Omp, "skills", false),
];

const fn directory(
    parent: Fixed,
    name: &'static str,
    root: Root,
    target: &'static str,
    lasting: bool,
) -> Mounted {
    Mounted { parent, name, root, target, kind: Kind::Dir, lasting }
}

const fn file(parent: Fixed, name: &'static str, root: Root, target: &'static str) -> Mounted {
    Mounted { parent, name, root, target, kind: Kind::File, lasting: false }
}
