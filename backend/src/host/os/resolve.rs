//! From a path below a base to a descriptor, without ever following a link.
//!
//! Owns: the two ways of resolving, crossing of mounts, and the one way in which a regular file is opened. Must not know:
//! roots.
//!
//! The usual way is one openat2(2) from the base, with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
//! RESOLVE_NO_XDEV`. The second way goes name by name. It is taken where the first cannot answer: where openat2 is not
//! available at all (an old kernel, a seccomp filter), where a mount is to be crossed (`EXDEV`: its type decides, and it
//! is learnt without touching it), where names may have several spellings, and for paths longer than the kernel takes
//! at once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::port::Effort;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::base::Base;
use super::filesystem::{Names, OwnProc, Traits};
use super::names;
use crate::host::{Kind, Meta};

/// Which way of resolving is taken.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub enum Resolving {
    /// openat2(2), if a try says that it works here, else name by name.
    #[default]
    Probed,
    /// Name by name, as though openat2 were not available.
    Stepwise,
}

/// The ways into the kernel that were found to be open at the start.
#[derive(Debug)]
pub(super) struct Kernel {
    way: Way,
    own: Option<OwnProc>,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Way {
    /// openat2(2); `cached`: with `RESOLVE_CACHED` (Linux 5.12).
    Openat2 { cached: bool },
    /// openat(2) with `O_PATH | O_NOFOLLOW`, once for each name.
    Stepwise,
}

/// Where a file lies.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) traits: Traits,
    /// Mounts further below may be entered.
    pub(super) crossable: bool,
    /// A read with `RWF_NOWAIT` was refused here once.
    pub(super) lacks_nowait: AtomicBool,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) fd: OwnedFd,
    pub(super) meta: Meta,
    pub(super) place: Arc<Place>,
}

/// A directory that a name is looked up in.
#[derive(Copy, Clone)]
struct Here<'a> {
    fd: BorrowedFd<'a>,
    dev: u64,
    place: &'a Arc<Place>,
}

impl Kernel {
    /// Tries once what works here, on a directory known to be good.
    pub(super) fn new(resolving: Resolving) -> Self {
        let probe = |more| rustix::fs::openat2(CWD, c"/", HOLD, Mode::empty(), NO_LINKS | more);
        let way = match (resolving, probe(ResolveFlags::empty())) {
            (Resolving::Probed, Ok(_)) => {
                let cached = probe(ResolveFlags::CACHED).map_or_else(|e| e == Errno::AGAIN, |_| true);
                Way::Openat2 { cached }
            }
            _ => Way::Stepwise,
        };
        Self { way, own: OwnProc::open() }
    }

    pub(super) fn describe(&self) -> &'static str {
        match self.way {
            Way::Openat2 { cached: true } => "openat2",
            Way::Openat2 { cached: false } => "openat2 without RESOLVE_CACHED",
            Way::Stepwise => "name by name",
        }
    }

    /// The traits of the filesystem that a base lies in.
    pub(super) fn traits(&self, fd: BorrowedFd<'_>) -> Traits {
        self.own.as_ref().and_then(|own| own.traits(fd)).unwrap_or(Traits::UNKNOWN)
    }

    /// Opens a base directory. Links are followed.
    pub(super) fn open_base(&self, path: &Path, effort: Effort) -> Result<OwnedFd, Errno> {
        match (effort, self.way) {
            (Effort::Full, _) => rustix::fs::openat(CWD, path, HOLD, Mode::empty()),
            (Effort::Cached, Way::Openat2 { cached: true }) => {
                rustix::fs::openat2(CWD, path, HOLD, Mode::empty(), ResolveFlags::CACHED)
            }
            (Effort::Cached, _) => Err(Errno::AGAIN),
        }
    }

    /// Finds what stands at a path: an `O_PATH` descriptor of whatever it is, a link included.
    pub(super) fn find(&self, base: &Base, path: &str, effort: Effort) -> Result<Found, Errno> {
        self.may_try(base, effort)?;
        match self.at_once(base, path, LOOK, effort) {
            Some(fd) => Found::here(fd?, &base.place),
            None => self.stepwise(base, path, effort),
        }
    }

    /// Does `call` on the directory that holds a path's last name, which is not looked at. `INVAL` for the base.
    pub(super) fn in_parent<T>(
        &self,
        base: &Base,
        path: &str,
        call: impl FnOnce(BorrowedFd<'_>, &str) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let (parent, name) = split_last(path);
        if name.is_empty() {
            return Err(Errno::INVAL);
        }
        match self.at_once(base, parent, HOLD, Effort::Full) {
            Some(fd) => call(fd?.as_fd(), name),
            None => call(self.stepwise(base, parent, Effort::Full)?.as_dir()?.fd, name),
        }
    }

    /// Finds the entry `name` of a directory found before; `path` is that directory's.
    pub(super) fn descend(
        &self,
        base: &Base,
        dir: &Found,
        path: &str,
        name: &str,
        effort: Effort,
    ) -> Result<Found, Errno> {
        let here = dir.as_dir()?;
        self.check_spelling(base, here, path, name, effort)?;
        self.step(here, name, effort)
    }

    /// Opens a regular file. It is looked at without being opened first, for the open of a fifo disturbs its writer.
    pub(super) fn open_file(&self, base: &Base, path: &str, effort: Effort) -> Result<Found, Errno> {
        self.may_try(base, effort)?;
        if base.place.traits.opens_plainly
            && let Some(fd) = self.at_once(base, path, READ, effort)
        {
            let found = Found::here(fd?, &base.place)?;
            found.is_file()?;
            return Ok(found);
        }
        let looked = self.find(base, path, effort)?;
        looked.is_file()?;
        match &self.own {
            // The descriptor's own entry in /proc leads to the inode that was looked at, under any name or none. An inode
            // never changes its kind, so nothing need be checked again.
            Some(own) => {
                let flags = if effort == Effort::Cached { READ | OFlags::NONBLOCK } else { READ };
                let fd = own.reopen(looked.fd.as_fd(), flags).map_err(|e| in_words_for(e, effort))?;
                Ok(Found { fd, ..looked })
            }
            None => self.open_by_name(base, path, &looked, effort),
        }
    }

    /// Opens a directory for listing.
    pub(super) fn open_dir(&self, base: &Base, path: &str) -> Result<Found, Errno> {
        if let Some(fd) = self.at_once(base, path, LIST, Effort::Full) {
            return Found::here(fd?, &base.place);
        }
        let looked = self.stepwise(base, path, Effort::Full)?;
        looked.as_dir()?;
        let fd = names::reopen_dir(looked.fd.as_fd()).map_err(in_words)?;
        Ok(Found { fd, ..looked })
    }

    /// Whether two devices mean that a mount lies between a directory and an entry that may not be crossed. (They differ
    /// for a btrfs subvolume or a file of overlayfs too, without any mount.)
    pub(super) fn bars(&self, dir: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
        let entry = rustix::fs::openat(dir, name, LOOK, Mode::empty()).map_err(in_words)?;
        Ok(self.crossed(dir, entry.as_fd())?.is_some_and(|traits| !traits.enterable))
    }

    /// Under `Cached`, only a local base can be asked, and only by an openat2 that knows how.
    fn may_try(&self, base: &Base, effort: Effort) -> Result<(), Errno> {
        let can = self.way == (Way::Openat2 { cached: true }) && base.place.traits.local;
        if effort == Effort::Cached && !can { Err(Errno::AGAIN) } else { Ok(()) }
    }

    /// One openat2 from the base. `None` if that cannot answer and the path has to be taken name by name.
    fn at_once(
        &self,
        base: &Base,
        path: &str,
        flags: OFlags,
        effort: Effort,
    ) -> Option<Result<OwnedFd, Errno>> {
        let one_spelling = match base.place.traits.names {
            Names::Exact => true,
            Names::PerDirectory => path.is_empty() || base.plain.knows(split_last(path).0),
            Names::Several => path.is_empty(),
        };
        if self.way == Way::Stepwise || !one_spelling || path.len() >= PATH_MAX {
            return None;
        }
        let path = if path.is_empty() { "." } else { path };
        match openat2(base.fd.as_fd(), path, flags, ResolveFlags::NO_XDEV, effort) {
            Err(Errno::XDEV) if base.place.crossable => None,
            answer => Some(answer.map_err(|e| in_words_for(e, effort))),
        }
    }

    fn stepwise(&self, base: &Base, path: &str, effort: Effort) -> Result<Found, Errno> {
        let here = Here { fd: base.fd.as_fd(), dev: base.dev, place: &base.place };
        if path.is_empty() {
            return self.step(here, ".", effort);
        }
        let mut end = super::next_end(path, 0);
        self.check_spelling(base, here, "", &path[..end], effort)?;
        let mut found = self.step(here, &path[..end], effort)?;
        while end < path.len() {
            let parent = &path[..end];
            end = super::next_end(path, end + 1);
            found = self.descend(base, &found, parent, &path[parent.len() + 1..end], effort)?;
        }
        Ok(found)
    }

    /// One name further: what stands under it, whatever it is.
    fn step(&self, here: Here<'_>, name: &str, effort: Effort) -> Result<Found, Errno> {
        match self.way {
            Way::Openat2 { .. } => match openat2(here.fd, name, LOOK, ResolveFlags::NO_XDEV, effort) {
                Err(Errno::XDEV) if here.place.crossable => self.cross(here, name, effort),
                answer => Found::here(answer.map_err(|e| in_words_for(e, effort))?, here.place),
            },
            Way::Stepwise => {
                let fd = rustix::fs::openat(here.fd, name, LOOK, Mode::empty()).map_err(in_words)?;
                let found = Found::here(fd, here.place)?;
                if found.meta.dev == here.dev {
                    return Ok(found);
                }
                match self.crossed(here.fd, found.fd.as_fd())? {
                    None => Ok(found),
                    Some(traits) => Self::admit(traits, here, found.fd),
                }
            }
        }
    }

    /// One name further, where a mount is known to lie between. Its filesystem is asked nothing before it is admitted.
    fn cross(&self, here: Here<'_>, name: &str, effort: Effort) -> Result<Found, Errno> {
        if effort == Effort::Cached {
            return Err(Errno::AGAIN);
        }
        let fd = openat2(here.fd, name, LOOK, ResolveFlags::empty(), effort).map_err(in_words)?;
        let traits = self.own.as_ref().and_then(|own| own.traits(fd.as_fd())).ok_or(Errno::NOENT)?;
        Self::admit(traits, here, fd)
    }

    fn admit(traits: Traits, here: Here<'_>, fd: OwnedFd) -> Result<Found, Errno> {
        if !traits.enterable || !here.place.crossable {
            return Err(Errno::NOENT);
        }
        Found::here(fd, &Arc::new(Place::new(traits, true)))
    }

    /// The traits of the mount that was crossed between a directory and what was found in it, if one was. Without `/proc`
    /// nobody can tell what is mounted: then no mount is crossed.
    fn crossed(&self, dir: BorrowedFd<'_>, entry: BorrowedFd<'_>) -> Result<Option<Traits>, Errno> {
        let own = self.own.as_ref().ok_or(Errno::NOENT)?;
        if own.mount_id(dir).ok_or(Errno::NOENT)? == own.mount_id(entry).ok_or(Errno::NOENT)? {
            return Ok(None);
        }
        own.traits(entry).ok_or(Errno::NOENT).map(Some)
    }

    /// Where a directory finds names under several spellings, the one that is asked for must be the listed one.
    fn check_spelling(
        &self,
        base: &Base,
        here: Here<'_>,
        path: &str,
        name: &str,
        effort: Effort,
    ) -> Result<(), Errno> {
        let several = match here.place.traits.names {
            Names::Exact => return Ok(()),
            Names::Several => true,
            Names::PerDirectory if base.plain.knows(path) => return Ok(()),
            // A directory that may not be read cannot say. What it may fold is no more than the boundary folds itself.
            Names::PerDirectory => names::reopen_dir(here.fd).is_ok_and(|dir| names::folds(dir.as_fd())),
        };
        if !several {
            if path.is_empty() || base.plain.knows(split_last(path).0) {
                base.plain.remember(path);
            }
            return Ok(());
        }
        if effort == Effort::Cached {
            return Err(Errno::AGAIN);
        }
        let dir = names::reopen_dir(here.fd).map_err(in_words)?;
        if names::lists(dir.as_fd(), name).map_err(in_words)? { Ok(()) } else { Err(Errno::NOENT) }
    }

    /// Opens a file by its name, where there is no `/proc` to open a descriptor by. Between the look and the open a fifo
    /// may take the name: it is then opened without waiting, found out, and closed.
    fn open_by_name(&self, base: &Base, path: &str, looked: &Found, effort: Effort) -> Result<Found, Errno> {
        let (parent, name) = split_last(path);
        let dir = self.find(base, parent, effort)?;
        let flags = READ | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let fd = match self.way {
            Way::Openat2 { .. } => openat2(dir.fd.as_fd(), name, flags, ResolveFlags::NO_XDEV, effort),
            Way::Stepwise => rustix::fs::openat(&dir.fd, name, flags, Mode::empty()),
        };
        let found = Found::here(fd.map_err(|e| in_words_for(e, effort))?, &looked.place)?;
        found.is_file()?;
        let same = (found.meta.dev, found.meta.ino) == (looked.meta.dev, looked.meta.ino);
        if same { Ok(found) } else { Err(Errno::NOENT) }
    }
}

impl Place {
    pub(super) fn new(traits: Traits, crossable: bool) -> Self {
        Self { traits, crossable, lacks_nowait: AtomicBool::new(false) }
    }
}

impl Found {
    fn here(fd: OwnedFd, place: &Arc<Place>) -> Result<Self, Errno> {
        let meta = super::meta(fd.as_fd(), "", AtFlags::empty()).map_err(in_words)?;
        Ok(Self { fd, meta, place: place.clone() })
    }

    fn as_dir(&self) -> Result<Here<'_>, Errno> {
        match self.meta.kind {
            Kind::Dir => Ok(Here { fd: self.fd.as_fd(), dev: self.meta.dev, place: &self.place }),
            Kind::Link => Err(Errno::NOENT),
            Kind::File | Kind::Other => Err(Errno::NOTDIR),
        }
    }

    fn is_file(&self) -> Result<(), Errno> {
        match self.meta.kind {
            Kind::File => Ok(()),
            Kind::Dir => Err(Errno::ISDIR),
            Kind::Link => Err(Errno::NOENT),
            Kind::Other => Err(Errno::PERM),
        }
    }
}

/// The errors of a lookup, as [`Host`](crate::host::Host) has them: whatever cannot be reached does not exist.
pub(super) fn in_words(error: Errno) -> Errno {
    in_words_for(error, Effort::Full)
}

/// The errors of something that was opened, and may have gone since.
pub(super) fn in_words_of_open(error: Errno) -> Errno {
    if matches!(error, Errno::SRCH | Errno::STALE) { Errno::NOENT } else { error }
}

fn in_words_for(error: Errno, effort: Effort) -> Errno {
    match error {
        // A link; a mount that may not be crossed.
        Errno::LOOP | Errno::XDEV => Errno::NOENT,
        // A name that the filesystem cannot hold: too long, or no text in its encoding.
        Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => Errno::NOENT,
        Errno::AGAIN if effort == Effort::Full => Errno::IO,
        // A process that went away, a file that a file server no longer knows, or an error of its own.
        other => in_words_of_open(other),
    }
}

/// openat2(2) that follows no link and does not leave `dir`.
///
/// `RESOLVE_BENEATH` may answer `EAGAIN` when a rename anywhere races with a `..`. No path here holds one, so it should
/// not happen; if it does, another try settles it.
fn openat2(
    dir: BorrowedFd<'_>,
    path: &str,
    flags: OFlags,
    more: ResolveFlags,
    effort: Effort,
) -> Result<OwnedFd, Errno> {
    let resolve = NO_LINKS | ResolveFlags::BENEATH | more;
    if effort == Effort::Cached {
        return rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve | ResolveFlags::CACHED);
    }
    let mut tries = TRIES;
    loop {
        match rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries > 1 => tries -= 1,
            answer => return answer,
        }
    }
}

/// The directory that a path's last name is in, and that name.
fn split_last(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);
/// Holds a file without opening it.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Holds a directory. Without `O_NOFOLLOW`, so that a link answers `ELOOP` where links are refused, and is followed where
/// they are not: to a base.
const HOLD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::RDONLY.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Refuses whatever is no directory before it is opened. Without `O_NOFOLLOW`, so that a link answers `ELOOP`.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The longest path the kernel takes, its end included (path_resolution(7)).
const PATH_MAX: usize = 4096;
/// How often a race is tried anew.
const TRIES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAT2: Way = Way::Openat2 { cached: true };

    fn base(path: &Path, names: Names) -> Base {
        let fd = rustix::fs::openat(CWD, path, HOLD, Mode::empty()).expect("a directory");
        let meta = crate::host::os::meta(fd.as_fd(), "", AtFlags::empty()).expect("a directory");
        let traits = Traits { names, ..Traits::UNKNOWN };
        Base::new(fd, &meta, Place::new(traits, true), 0)
    }

    /// Runs on a thread that is not the process's first: `/proc/<tid>` is then found, but not listed.
    #[test]
    fn where_names_have_several_spellings_only_a_listed_one_is_found() {
        let kernel = Kernel::new(Resolving::Probed);
        let (pid, tid) = (rustix::process::getpid(), rustix::thread::gettid());
        assert_ne!(pid, tid, "tests run on threads of their own");
        let (pid, tid) = (pid.to_string(), tid.to_string());
        let exact = base(Path::new("/proc"), Names::Exact);
        assert!(kernel.find(&exact, &tid, Effort::Full).is_ok());
        let several = base(Path::new("/proc"), Names::Several);
        let find = |path: &str| kernel.find(&several, path, Effort::Full).map(|found| found.meta.kind);
        assert_eq!(find(&pid), Ok(Kind::Dir));
        assert_eq!(find(&format!("{pid}/stat")), Ok(Kind::File));
        assert_eq!(find(&tid), Err(Errno::NOENT));
        assert_eq!(find(&format!("{tid}/stat")), Err(Errno::NOENT));
        let dir = kernel.find(&several, "", Effort::Full).expect("/proc");
        assert_eq!(kernel.descend(&several, &dir, "", &tid, Effort::Full).err(), Some(Errno::NOENT));
        assert_eq!(kernel.open_dir(&several, &tid).err(), Some(Errno::NOENT));
        assert_eq!(
            kernel.open_file(&several, &format!("{tid}/stat"), Effort::Full).err(),
            Some(Errno::NOENT)
        );
    }

    #[test]
    fn without_proc_a_file_is_opened_by_name_and_nothing_else_is() {
        let top = std::env::temp_dir().join(format!("host-os-unit-{}", std::process::id()));
        std::fs::create_dir_all(top.join("d")).expect("a directory");
        std::fs::write(top.join("d/f"), b"hello").expect("a file");
        std::os::unix::fs::symlink("f", top.join("d/link")).expect("a link");
        rustix::fs::mkfifoat(CWD, top.join("d/fifo"), Mode::RWXU).expect("a fifo");
        let base = base(&top, Names::Exact);
        for way in [OPENAT2, Way::Stepwise] {
            let kernel = Kernel { way, own: None };
            let open = |path: &str| kernel.open_file(&base, path, Effort::Full);
            let file = open("d/f").expect("a file that may be read");
            let mut buf = [0; 8];
            assert_eq!(rustix::io::read(&file.fd, &mut buf), Ok(5));
            assert_eq!(open("d/link").err(), Some(Errno::NOENT));
            assert_eq!(open("d/fifo").err(), Some(Errno::PERM));
            assert_eq!(open("d").err(), Some(Errno::ISDIR));
            assert_eq!(open("d/none").err(), Some(Errno::NOENT));
            // What was looked at is not what the name leads to by now.
            let looked = kernel.find(&base, "d", Effort::Full).expect("a directory");
            assert_eq!(kernel.open_by_name(&base, "d/f", &looked, Effort::Full).err(), Some(Errno::NOENT));
        }
        std::fs::remove_dir_all(&top).expect("to clean up");
    }

    #[test]
    fn a_directory_is_known_as_plain_only_below_plain_ones() {
        let kernel = Kernel::new(Resolving::Stepwise);
        let base = base(Path::new("/proc/self"), Names::PerDirectory);
        assert!(kernel.find(&base, "task", Effort::Full).is_ok());
        assert!(base.plain.knows("") && !base.plain.knows("task"));
        let name = rustix::process::getpid().to_string();
        assert!(kernel.find(&base, &format!("task/{name}"), Effort::Full).is_ok());
        assert!(base.plain.knows("task") && !base.plain.knows(&format!("task/{name}")));

        let other = self::base(Path::new("/proc/self"), Names::PerDirectory);
        let task = kernel.find(&base, "task", Effort::Full).expect("a directory");
        assert!(kernel.descend(&other, &task, "task", &name, Effort::Full).is_ok());
        assert!(!other.plain.knows("task"), "nothing is known of the directory it is in");
    }
}
