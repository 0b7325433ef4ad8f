//! The machine itself: [`Host`] over system calls.
//!
//! Owns: how a path below a base becomes a descriptor (`resolve`), the pinned bases (`base`), what a filesystem's
//! type allows (`filesystem`), open files and directories, and the names of users. Must not know: 9P, harnesses, or
//! which names are hidden: a [`Rel`] holds none.
//!
//! What a call costs, in system calls, while a base is known to stand (it is looked at again after 100 ms) and nothing is
//! mounted below it; every one is the least there is without following a name twice:
//!
//! | call | system calls |
//! |---|---|
//! | `stat` of a base | statx |
//! | `stat` | openat2, statx, close |
//! | `walk` of n names | n × (openat2, statx, close) |
//! | `open` | openat2, statx, openat, close |
//! | `open` below a procfs, which holds no fifo | openat2, statx |
//! | `open_dir` | openat2, statx (and an ioctl where single directories can fold case) |
//! | `read_link`, `stat_link` | openat2, readlinkat or statx, close |
//! | an entry of a listing | statx |
//! | `read_at` | preadv2; one more to know that the file ends |
//!
//! A path of one name would take a single statx, but statx has no way of asking for what is cached only. A miss costs
//! three more, to know that the base still is the base. Where single directories can fold case (ext4, tmpfs), a directory
//! that was not used for a second is looked at on the way, name by name.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use engine::port::{Effort, Now};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, Statx, StatxFlags, StatxTimestamp};
use rustix::io::Errno;
use rustix::time::ClockId;

use self::base::{Base, Pin};
use self::children::Children;
use self::dir::OsDir;
use self::file::OsFile;
use self::held::OsHeld;
use self::resolve::{Found, Kernel};
use self::users::Users;
use super::{Dir, File, Held, Host, Kind, Launch, Me, Meta, Time};
use crate::name::{Rel, Root};
use crate::process::Process;

mod base;
mod children;
mod dir;
mod file;
mod filesystem;
mod held;
mod names;
mod resolve;
mod users;

pub use self::resolve::Resolving;

/// The base directory of each harness, absolute. Each may be a symbolic link, may be missing, may come and go: it is
/// configuration.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Claude Code: `~/.claude`.
    pub claude: PathBuf,
    /// Codex: `~/.codex`.
    pub codex: PathBuf,
    /// omp: `~/.omp/agent`.
    pub omp: PathBuf,
    /// hermes: `~/.hermes`.
    pub hermes: PathBuf,
    /// dsh: `~/.dsh`.
    pub dsh: PathBuf,
}

/// The kernel as a [`Host`]. Any number of threads may call at once.
#[derive(Debug)]
pub struct Os {
    kernel: Arc<Kernel>,
    claude: Pin,
    codex: Pin,
    omp: Pin,
    hermes: Pin,
    dsh: Pin,
    proc: Pin,
    users: Users,
    groups: Users,
    children: Children,
    me: Me,
    machine_id: OnceLock<Arc<str>>,
}

impl Os {
    /// The machine with these bases. `proc` is where processes are read from: `/proc`, or a directory that looks like
    /// one. Nothing below a base is touched yet.
    #[must_use]
    pub fn new(roots: Roots, proc: PathBuf, resolving: Resolving) -> Self {
        Self {
            kernel: Arc::new(Kernel::new(resolving)),
            claude: Pin::new(roots.claude, true),
            codex: Pin::new(roots.codex, true),
            omp: Pin::new(roots.omp, true),
            hermes: Pin::new(roots.hermes, true),
            dsh: Pin::new(roots.dsh, true),
            proc: Pin::new(proc, false),
            users: Users::new("/etc/passwd"),
            groups: Users::new("/etc/group"),
            children: Children::default(),
            me: Me {
                pid: rustix::process::getpid().as_raw_nonzero().get().unsigned_abs(),
                uid: rustix::process::geteuid().as_raw(),
                gid: rustix::process::getegid().as_raw(),
            },
            machine_id: OnceLock::new(),
        }
    }

    /// Starts programs through a command that becomes them: its words go in front of theirs. It is to give them a session of
    /// their own, say so by a byte on its standard output, which it replaces by `/dev/null` then, and give them signals and
    /// resource limits as this process was given them.
    #[must_use]
    pub fn launching_by(self, launcher: Vec<OsString>) -> Self {
        Self { children: Children::launched_by(launcher), ..self }
    }

    /// How paths are resolved, in words for the log.
    #[must_use]
    pub fn resolving(&self) -> &'static str {
        self.kernel.describe()
    }

    fn pin(&self, root: Root) -> &Pin {
        match root {
            Root::Claude => &self.claude,
            Root::Codex => &self.codex,
            Root::Omp => &self.omp,
            Root::Hermes => &self.hermes,
            Root::Dsh => &self.dsh,
            Root::Proc => &self.proc,
        }
    }

    /// Does `call` on the root's base. What a base does not hold is looked for again if the base turns out to have been
    /// replaced since it was last looked at: a miss is a miss of now.
    fn beneath<T>(
        &self,
        root: Root,
        effort: Effort,
        mut call: impl FnMut(&Arc<Base>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let pin = self.pin(root);
        let base = pin.base(&self.kernel, effort)?;
        match call(&base) {
            Err(Errno::NOENT) => {
                let now = pin.renewed(&self.kernel, effort)?;
                if Arc::ptr_eq(&base, &now) { Err(Errno::NOENT) } else { call(&now) }
            }
            answer => answer,
        }
    }
}

impl Host for Os {
    fn now(&self) -> Now {
        let mono = rustix::time::clock_gettime(ClockId::Monotonic);
        let wall = rustix::time::clock_gettime(ClockId::Realtime);
        Now {
            mono_ns: mono.tv_sec.unsigned_abs() * 1_000_000_000 + mono.tv_nsec.unsigned_abs(),
            wall_ns: wall.tv_sec.saturating_mul(1_000_000_000).saturating_add(wall.tv_nsec),
        }
    }

    fn stat(&self, root: Root, rel: &Rel, effort: Effort) -> Result<Meta, Errno> {
        self.beneath(root, effort, |base| {
            if rel.as_str().is_empty() {
                return base.meta();
            }
            Ok(self.kernel.find(base, rel.as_str(), effort)?.meta)
        })
    }

    fn walk(
        &self,
        root: Root,
        rel: &Rel,
        from: usize,
        effort: Effort,
        each: &mut dyn FnMut(&Meta),
    ) -> Result<(), Errno> {
        let path = rel.as_str();
        let Some(mut end) = end_of(path, from) else {
            return match self.stat(root, rel, effort)?.kind {
                Kind::Link => Err(Errno::NOENT),
                _ => Ok(()),
            };
        };
        let (base, mut found) = self.beneath(root, effort, |base| {
            Ok((base.clone(), self.kernel.find(base, &path[..end], effort)?))
        })?;
        loop {
            if found.meta.kind == Kind::Link {
                return Err(Errno::NOENT);
            }
            each(&found.meta);
            if end == path.len() {
                return Ok(());
            }
            let parent = &path[..end];
            end = next_end(path, end + 1);
            let name = &path[parent.len() + 1..end];
            found = self.kernel.descend(&base, &found, parent, name, effort)?;
        }
    }

    fn open(&self, root: Root, rel: &Rel, effort: Effort) -> Result<(Box<dyn File>, Meta), Errno> {
        let Found { fd, meta, place } =
            self.beneath(root, effort, |base| self.kernel.open_file(base, rel.as_str(), effort))?;
        Ok((Box::new(OsFile::new(fd, place)), meta))
    }

    fn open_dir(&self, root: Root, rel: &Rel) -> Result<(Box<dyn Dir>, Meta), Errno> {
        let Found { fd, meta, place } =
            self.beneath(root, Effort::Full, |base| self.kernel.open_dir(base, rel.as_str()))?;
        Ok((Box::new(OsDir::new(self.kernel.clone(), fd, meta.dev, place)), meta))
    }

    fn read_link(&self, rel: &Rel) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::with_capacity(LINK_BYTES + 1);
        let bytes = self.beneath(Root::Proc, Effort::Full, |base| {
            self.kernel.in_parent(base, rel.as_str(), |dir, name| {
                text.clear();
                rustix::fs::readlinkat_raw(dir, name, rustix::buffer::spare_capacity(&mut text))
                    .map_err(resolve::in_words_of_open)
            })
        })?;
        if bytes > LINK_BYTES { Err(Errno::NAMETOOLONG) } else { Ok(text) }
    }

    fn stat_link(&self, rel: &Rel) -> Result<Meta, Errno> {
        // Device and inode are what is asked of a link: no file server need be asked whether the rest is fresh.
        let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        self.beneath(Root::Proc, Effort::Full, |base| {
            self.kernel.in_parent(base, rel.as_str(), |dir, name| {
                meta(dir, name, flags).map_err(resolve::in_words_of_open)
            })
        })
    }

    fn user(&self, uid: u32) -> Option<Arc<str>> {
        self.users.name(uid)
    }

    fn group(&self, gid: u32) -> Option<Arc<str>> {
        self.groups.name(gid)
    }

    fn me(&self) -> Me {
        self.me
    }

    fn is_base(&self, root: Root, path: &[u8]) -> bool {
        if !path.starts_with(b"/") {
            return false;
        }
        let Ok(base) = self.stat(root, &Rel::base(), Effort::Full) else { return false };
        rustix::fs::statx(CWD, path, AtFlags::NO_AUTOMOUNT, StatxFlags::BASIC_STATS)
            .is_ok_and(|stat| (of_statx(&stat).dev, stat.stx_ino) == (base.dev, base.ino))
    }

    fn machine_id(&self) -> Option<Arc<str>> {
        if let Some(known) = self.machine_id.get() {
            return Some(Arc::clone(known));
        }
        let file = rustix::fs::open(MACHINE_ID, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut line = [0; MACHINE_ID_DIGITS];
        let read = rustix::io::pread(&file, &mut line, 0).ok()?;
        let id = str::from_utf8(&line[..read]).ok().filter(|id| id.len() == MACHINE_ID_DIGITS)?;
        Some(Arc::clone(self.machine_id.get_or_init(|| id.into())))
    }

    fn base(&self, root: Root) -> Vec<u8> {
        self.pin(root).path().as_os_str().as_bytes().to_vec()
    }

    fn look_up(&self, path: &[u8]) -> Result<Meta, Errno> {
        if !path.starts_with(b"/") {
            return Err(Errno::INVAL);
        }
        let asked = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        rustix::fs::statx(CWD, path, AtFlags::NO_AUTOMOUNT, asked).map(|stat| of_statx(&stat))
    }

    fn may_run(&self, path: &[u8]) -> bool {
        let is_file = self.look_up(path).is_ok_and(|meta| meta.kind == Kind::File);
        is_file && rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
    }

    fn is_live(&self, socket: &[u8]) -> bool {
        socket.starts_with(b"/") && held::is_live(socket)
    }

    fn hold(&self, pid: u32, start: u64) -> Result<Box<dyn Held>, Errno> {
        Ok(Box::new(OsHeld::take(self, Process { pid, start })?))
    }

    fn spawn(&self, launch: &Launch<'_>) -> Result<(), Errno> {
        self.children.spawn(launch)
    }
}

/// What statx(2) says of a file: of `fd` itself if `name` is empty, else of that entry of the directory `fd`.
fn meta(fd: BorrowedFd<'_>, name: &str, flags: AtFlags) -> Result<Meta, Errno> {
    let asked = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let answer = if name.is_empty() {
        rustix::fs::statx(fd, c"", flags | AtFlags::EMPTY_PATH, asked)
    } else {
        rustix::fs::statx(fd, name, flags, asked)
    };
    answer.map(|stat| of_statx(&stat))
}

fn of_statx(stat: &Statx) -> Meta {
    Meta {
        kind: match FileType::from_raw_mode(stat.stx_mode.into()) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Dir,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        },
        dev: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        ino: stat.stx_ino,
        btime: (stat.stx_mask & StatxFlags::BTIME.bits() != 0).then(|| time(stat.stx_btime)),
        // name_to_handle_at(2) has no safe wrapper yet (rustix 1.1). Without it, two files are told apart by birth time:
        // since Linux 6.13 that differs whenever the first one was looked at before it was removed.
        handle: 0,
        mtime: time(stat.stx_mtime),
        ctime: time(stat.stx_ctime),
        atime: time(stat.stx_atime),
        size: stat.stx_size,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        nlink: stat.stx_nlink,
    }
}

fn time(at: StatxTimestamp) -> Time {
    Time { sec: at.tv_sec, nsec: at.tv_nsec }
}

/// Nanoseconds of the cheap clock that base and spelling checks are aged by; it moves in ticks of 1 to 10 ms.
fn coarse_ns() -> u64 {
    let at = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    at.tv_sec.unsigned_abs() * 1_000_000_000 + at.tv_nsec.unsigned_abs()
}

/// Where the name with this index ends in a path; `None` if the path has fewer names.
fn end_of(path: &str, index: usize) -> Option<usize> {
    let last = (!path.is_empty()).then_some(path.len());
    memchr::memchr_iter(b'/', path.as_bytes()).chain(last).nth(index)
}

/// Where the name that begins at `start` ends.
fn next_end(path: &str, start: usize) -> usize {
    path.get(start..)
        .and_then(|rest| memchr::memchr(b'/', rest.as_bytes()))
        .map_or(path.len(), |at| start + at)
}

/// The longest text of a link that is handed on.
const LINK_BYTES: usize = 4095;
const MACHINE_ID: &str = "/etc/machine-id";
/// 128 bits, in hexadecimal.
const MACHINE_ID_DIGITS: usize = 32;
