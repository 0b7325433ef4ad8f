//! Posting: a listening unix socket at a place where clients find it, and taking it away again.
//!
//! Owns the socket *file*: who may connect to it from its first moment (its owner), what to do with one that
//! is already there, and its removal. Knows nothing of what is served on it.
//!
//! Two kinds of place. A *name* lies in `$XDG_RUNTIME_DIR/9p`, beside a lock file `.NAME.lock` that the
//! poster holds for life, so of two starting at once exactly one wins. A *path* is the user's choice, and a
//! lock file of ours there would be litter: instead the directory itself is locked (flock(2)) for the moment
//! of starting.
//!
//! A socket file outlives a killed server, so one that is found is dialled: only a refused connection proves
//! that nobody listens, and only then it is replaced. Whatever is not a socket of ours is left alone.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};

/// A listening socket's file, ours until [`unpost`](Self::unpost) or drop removes it.
#[derive(Debug)]
pub struct Post {
    path: PathBuf,
    file: Pinned,
    /// Held for life by a posted name; a path has none.
    _lock: Option<OwnedFd>,
}

impl Post {
    /// Posts `name` below `runtime_dir`, the value of `XDG_RUNTIME_DIR`: a listening socket `9p/NAME`, mode
    /// 0600, in a directory made 0700 if absent. An existing directory is taken as it is, but it must be ours
    /// and writable by nobody else.
    pub fn name(runtime_dir: Option<&OsStr>, name: &Name) -> Result<(OwnedFd, Self), PostError> {
        let directory = directory_of(runtime_dir)?;
        let path = directory.join(&name.0);
        let address = address_of(&path)?;
        let lock = lock_name(&own_directory(&directory)?, &path, name)?;
        let live = || PostError::LiveName { name: name.0.clone() };
        let (listener, file) = claim(&path, &address, live)?;
        Ok((listener, Self { path, file, _lock: Some(lock) }))
    }

    /// Listens on a socket at `path`, mode 0600, in a directory that exists.
    pub fn path(path: &Path) -> Result<(OwnedFd, Self), PostError> {
        let address = address_of(path)?;
        let _starting = lock_directory(path)?;
        let live = || PostError::LivePath { path: path.to_owned() };
        let (listener, file) = claim(path, &address, live)?;
        Ok((listener, Self { path: path.to_owned(), file, _lock: None }))
    }

    /// Where the socket is.
    pub fn location(&self) -> &Path {
        &self.path
    }

    /// Removes the socket's file if it is still the one that was made, and says whether it was. Drop does the
    /// same.
    pub fn unpost(self) -> bool {
        // Drop then finds nothing of ours.
        self.file.remove_from(&self.path)
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.file.remove_from(&self.path);
    }
}

/// Where a client finds the server that posted `name`; whether there is one, only dialling tells.
pub fn path_of(runtime_dir: Option<&OsStr>, name: &Name) -> Result<PathBuf, PostError> {
    Ok(directory_of(runtime_dir)?.join(&name.0))
}

/// A name that can be posted: 1 to [`NAME_BYTES_MAX`] bytes, one path component, not hidden, printable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

impl std::str::FromStr for Name {
    type Err = PostError;

    fn from_str(name: &str) -> Result<Self, PostError> {
        let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
        let hidden = name.starts_with('.');
        if !fits || hidden || name.contains(|c: char| c == '/' || c.is_control()) {
            return Err(PostError::Name);
        }
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why nothing was posted. The texts are for the user of the command line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// There is no runtime directory.
    #[error("XDG_RUNTIME_DIR is not set, so no name can be posted: set it, or use --unix PATH --no-post")]
    NoRuntimeDir,
    /// The runtime directory is not absolute.
    #[error(
        "XDG_RUNTIME_DIR is not an absolute path ({}): correct it, or use --unix PATH --no-post",
        .0.display()
    )]
    RelativeRuntimeDir(OsString),
    /// The name cannot be one.
    #[error(
        "not a name to post: it needs 1 to {NAME_BYTES_MAX} printable bytes, no `/`, and no `.` in front"
    )]
    Name,
    /// The path does not fit a socket address.
    #[error(
        "{}: too long for a unix socket: {} bytes, the limit is {PATH_BYTES_MAX}",
        .path.display(), .path.as_os_str().len()
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Somebody else could change what is in the directory.
    #[error("{}: {why}: not posting there", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A server that lives has the name.
    #[error("the name `{name}` is already posted by a live server")]
    LiveName {
        /// The name.
        name: String,
    },
    /// A server that lives has the path.
    #[error("{}: a live server is already listening there", .path.display())]
    LivePath {
        /// The path.
        path: PathBuf,
    },
    /// Something that is not ours to replace has the path.
    #[error("{}: taken by {what}: left alone", .path.display())]
    Taken {
        /// The path.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// A socket of ours has the path, and whether somebody listens on it cannot be told.
    #[error("{}: taken by a socket that answers neither yes nor no ({cause}): left alone", .path.display())]
    Unclear {
        /// The path.
        path: PathBuf,
        /// What dialling it said.
        cause: io::Error,
    },
    /// A system call failed.
    #[error("{}: cannot {action}: {cause}", .path.display())]
    Failed {
        /// The path it was about.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

impl PostError {
    fn failed(action: &'static str, path: &Path) -> impl FnOnce(Errno) -> Self {
        move |cause| Self::Failed { path: path.to_owned(), action, cause: cause.into() }
    }

    fn taken(path: &Path, what: &'static str) -> Self {
        Self::Taken { path: path.to_owned(), what }
    }
}

/// A file that is held, so that its inode number is not given to another.
#[derive(Debug)]
struct Pinned {
    _hold: OwnedFd,
    device: u64,
    inode: u64,
    mode: u32,
    owner: u32,
}

impl Pinned {
    /// Holds what is at `path`, of whatever kind, without following or opening it.
    fn at(path: &Path) -> Result<Self, Errno> {
        let hold = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&hold)?;
        Ok(Self {
            _hold: hold,
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode,
            owner: stat.st_uid,
        })
    }

    /// Removes `path` if it is still this file, and says whether it was.
    fn remove_from(&self, path: &Path) -> bool {
        let same =
            rustix::fs::lstat(path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (self.device, self.inode));
        same && rustix::fs::unlink(path).is_ok()
    }
}

/// Makes the socket, after dealing with what is there. The caller holds a lock against others that do the
/// same.
fn claim(
    path: &Path,
    address: &SocketAddrUnix,
    live: impl FnOnce() -> PostError,
) -> Result<(OwnedFd, Pinned), PostError> {
    if let Some(found) = own_socket(path)? {
        match dial(address) {
            Ok(()) | Err(Errno::AGAIN) => return Err(live()),
            Err(Errno::CONNREFUSED) => {
                tracing::info!(path = %path.display(), "replacing the socket of a server that is gone");
                found.remove_from(path);
            }
            Err(Errno::NOENT) => {}
            Err(cause) => return Err(PostError::Unclear { path: path.to_owned(), cause: cause.into() }),
        }
    }
    bind(path, address)
}

/// The socket of ours at `path`, `None` if nothing is there.
fn own_socket(path: &Path) -> Result<Option<Pinned>, PostError> {
    let found = match Pinned::at(path) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(None),
        Err(cause) => return Err(PostError::failed("look at it", path)(cause)),
    };
    match FileType::from_raw_mode(found.mode) {
        FileType::Socket if found.owner == geteuid().as_raw() => Ok(Some(found)),
        FileType::Socket => Err(PostError::taken(path, "a socket of another user")),
        FileType::Symlink => Err(PostError::taken(path, "a symbolic link")),
        FileType::Directory => Err(PostError::taken(path, "a directory")),
        _ => Err(PostError::taken(path, "a file that is not a socket")),
    }
}

/// Asks whether somebody listens: yes, no (ECONNREFUSED), or yes but its backlog is full (EAGAIN); see unix(7).
///
/// It waits for nobody who lives. But what a killed process had given to io_uring, the kernel closes a little after the
/// process is gone: such a socket is given a second to go, too.
fn dial(address: &SocketAddrUnix) -> Result<(), Errno> {
    let mut pause = DIAL_PAUSE_MIN;
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, address)?;
        if pause > DIAL_PAUSE_MAX || !is_orphaned(&socket) {
            return Ok(());
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

/// Whether the process that listens at the other end (SO_PEERCRED has who called listen(2)) has ended.
fn is_orphaned(socket: &OwnedFd) -> bool {
    let credentials = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials);
    // None for a process of another pid namespace.
    let Some(pid) = credentials.ok().and_then(|found| Pid::from_raw(found.pid())) else { return false };
    match pidfd_open(pid, PidfdFlags::empty()) {
        // It becomes readable when the process ends, whether or not somebody has waited for that.
        Ok(process) => poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&Timespec::default())) == Ok(1),
        Err(errno) => errno == Errno::SRCH,
    }
}

/// Binds a new socket that no other user can connect to at any moment, and listens.
fn bind(path: &Path, address: &SocketAddrUnix) -> Result<(OwnedFd, Pinned), PostError> {
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(PostError::failed("make a socket", path))?;
    // bind(2) makes the file with the mode of the socket less the umask (net/unix/af_unix.c, unix_bind_bsd),
    // so this sets it before the file exists, and without touching the umask, which belongs to every thread.
    rustix::fs::fchmod(&socket, OWNER_ONLY).map_err(PostError::failed("restrict the socket", path))?;
    rustix::net::bind(&socket, address).map_err(|cause| match cause {
        Errno::ADDRINUSE => PostError::taken(path, "something that has just appeared"),
        cause => PostError::failed("bind the socket", path)(cause),
    })?;
    let file = Pinned::at(path).map_err(PostError::failed("look at the new socket", path))?;
    let restricted = Mode::from_raw_mode(file.mode) == OWNER_ONLY;
    let listening = if restricted { rustix::net::listen(&socket, BACKLOG) } else { Err(Errno::PERM) };
    match listening {
        Ok(()) => Ok((socket, file)),
        Err(cause) => {
            file.remove_from(path);
            let action = if restricted { "listen on it" } else { "make it mode 0600" };
            Err(PostError::failed(action, path)(cause))
        }
    }
}

fn directory_of(runtime_dir: Option<&OsStr>) -> Result<PathBuf, PostError> {
    // Empty is unset, as the XDG base directory specification has it for the other variables.
    let runtime_dir = runtime_dir.filter(|dir| !dir.is_empty()).ok_or(PostError::NoRuntimeDir)?;
    if !Path::new(runtime_dir).is_absolute() {
        return Err(PostError::RelativeRuntimeDir(runtime_dir.to_owned()));
    }
    Ok(Path::new(runtime_dir).join(DIRECTORY))
}

fn address_of(path: &Path) -> Result<SocketAddrUnix, PostError> {
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return Err(PostError::TooLong { path: path.to_owned() });
    }
    if path.as_os_str().is_empty() {
        // An empty address would bind a socket to no file at all.
        return Err(PostError::failed("bind a socket", path)(Errno::INVAL));
    }
    SocketAddrUnix::new(path.as_os_str().as_bytes())
        .map_err(PostError::failed("use it as a socket's path", path))
}

/// Opens the directory of posted names, made if absent, and makes sure that nobody else can change what is in
/// it.
fn own_directory(path: &Path) -> Result<OwnedFd, PostError> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(cause) => return Err(PostError::failed("make the directory", path)(cause)),
    }
    let directory = open_directory(path, OFlags::NOFOLLOW)?;
    let stat = rustix::fs::fstat(&directory).map_err(PostError::failed("look at the directory", path))?;
    let wrong = |why| Err(PostError::Directory { path: path.to_owned(), why });
    if stat.st_uid != geteuid().as_raw() {
        return wrong("the directory belongs to another user");
    }
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        return wrong("the directory can be written by its group or by everyone");
    }
    Ok(directory)
}

fn open_directory(path: &Path, more: OFlags) -> Result<OwnedFd, PostError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    rustix::fs::open(path, flags, Mode::empty()).map_err(PostError::failed("open the directory", path))
}

/// Takes the lock that goes with a name. It is never removed: removing a lock file is how two come to hold
/// it.
fn lock_name(directory: &OwnedFd, path: &Path, name: &Name) -> Result<OwnedFd, PostError> {
    let lock_path = path.with_file_name(format!(".{name}.lock"));
    let file_name = lock_path.file_name().unwrap_or_default();
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let lock = rustix::fs::openat(directory, file_name, flags, OWNER_ONLY)
        .map_err(PostError::failed("open the lock file", &lock_path))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(PostError::LiveName { name: name.0.clone() }),
        Err(cause) => Err(PostError::failed("lock it", &lock_path)(cause)),
    }
}

/// Locks the directory that `path` is in, until the answer is dropped. `None` where the filesystem cannot
/// lock a directory (NFS): two starting there at the same moment are then not kept apart.
fn lock_directory(path: &Path) -> Result<Option<OwnedFd>, PostError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = open_directory(parent, OFlags::empty())?;
    // Nobody holds it longer than a start takes, unless somebody means harm: then this gives up.
    for _ in 0..LOCK_TRIES {
        match rustix::fs::flock(directory.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(directory)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOCK_PAUSE),
            Err(_) => return Ok(None),
        }
    }
    Err(PostError::Directory { path: parent.to_owned(), why: "another process keeps the directory locked" })
}

/// The longest name that can be posted, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The longest path of a unix socket: `sun_path` less its NUL, see unix(7).
pub const PATH_BYTES_MAX: usize = 107;

/// Where posted names lie, below the runtime directory.
const DIRECTORY: &str = "9p";

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Pauses between two dials double from the first of these to the second: a second in all.
const DIAL_PAUSE_MIN: Duration = Duration::from_millis(8);
const DIAL_PAUSE_MAX: Duration = Duration::from_millis(512);

const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
