//! The seam to the machine: everything the backend can ask of an operating system.
//!
//! Owns: the [`Host`] contract and the plain values it speaks in. Must not know: 9P, harnesses, or which of its
//! implementations runs. Two stand behind it: `os` (the kernel) and `fixture` (a home directory, `/proc` and a clock in
//! memory); decorators in `wrap` trace them, break them and change the world between two calls.
//!
//! Every path is a [`Root`] and a [`Rel`]: names that passed the boundary, resolved from the root's pinned base. No call
//! follows a symbolic link below a base, whoever swaps it in and whenever. Calls may block unless they take
//! [`Effort::Cached`]; none is ever made under a lock.

pub mod fixture;
#[allow(clippy::disallowed_methods, reason = "it is the machine itself")]
pub mod os;
pub mod wrap;

use std::sync::Arc;

use engine::port::{Effort, Now};

use crate::name::{Name, Rel, Root};

pub use rustix::io::Errno;

/// What the backend asks of a machine. Object-safe, so that one tree serves every implementation and decorator.
///
/// Common errors: `NOENT` for what does not exist, lies behind a link, or lies in a filesystem that may not be entered
/// (procfs, sysfs, devpts, a 9P mount below a base); `NOTDIR` for a component that is no directory; `AGAIN` under
/// [`Effort::Cached`] for what would wait: ask again with [`Effort::Full`].
pub trait Host: Send + Sync {
    /// The clocks.
    fn now(&self) -> Now;

    /// What stands at a path: the link itself if it is one ([`Kind::Link`]).
    fn stat(&self, root: Root, rel: &Rel, effort: Effort) -> Result<Meta, Errno>;

    /// Resolves `rel` component by component and hands the meta of each component from index `from` on to `each`, in
    /// order. At the first that does not resolve (or is a link: `NOENT`) it stops with that error; `each` has then seen
    /// those before it.
    fn walk(
        &self,
        root: Root,
        rel: &Rel,
        from: usize,
        effort: Effort,
        each: &mut dyn FnMut(&Meta),
    ) -> Result<(), Errno>;

    /// Opens a regular file for reading. Anything else is refused with `PERM` (`ISDIR` for a directory, `NOENT` for a
    /// link) without being opened: the kind is known before the open, and checked again after it.
    fn open(&self, root: Root, rel: &Rel, effort: Effort) -> Result<(Box<dyn File>, Meta), Errno>;

    /// Opens a directory for listing. May block.
    fn open_dir(&self, root: Root, rel: &Rel) -> Result<(Box<dyn Dir>, Meta), Errno>;

    /// What a link under [`Root::Proc`] says (`cwd`, `exe`, `fd/N`), at most 4095 bytes. `INVAL` under any other root.
    fn read_link(&self, rel: &Rel) -> Result<Vec<u8>, Errno>;

    /// What a link under [`Root::Proc`] leads to: the kernel follows the magic link itself, not its text. `INVAL` under
    /// any other root.
    fn stat_link(&self, rel: &Rel) -> Result<Meta, Errno>;

    /// The login name of a user id, where it is known. The implementation keeps what it learnt; the first call may block.
    fn user(&self, uid: u32) -> Option<Arc<str>>;

    /// The name of a group id, where it is known.
    fn group(&self, gid: u32) -> Option<Arc<str>>;

    /// Who and where this process is.
    fn me(&self) -> Me;

    /// Whether an absolute path, as a process of this user spells it, leads to the base of `root`. Links are followed, the
    /// base's and the path's; nothing is opened. `false` where either leads nowhere. May block.
    fn is_base(&self, root: Root, path: &[u8]) -> bool;

    /// What tells this machine from others that share its files: the line in `/etc/machine-id` (machine-id(5)).
    fn machine_id(&self) -> Option<Arc<str>>;

    /// Where the base of a root is, as it was configured: an absolute path.
    fn base(&self, root: Root) -> Vec<u8>;

    /// What an absolute path, as a process of this user spells it, leads to. Links are followed; nothing is opened. May
    /// block.
    fn look_up(&self, path: &[u8]) -> Result<Meta, Errno>;

    /// Whether an absolute path leads to a file that this user may execute. May block.
    fn may_run(&self, path: &[u8]) -> bool;

    /// Whether somebody answers at an absolute path: a Unix socket there takes a connection, or would but for the number of
    /// those that wait (unix(7)). Nothing is sent.
    fn is_live(&self, socket: &[u8]) -> bool;

    /// Takes hold of the process of this number that began at this time (field 22 of its `stat`, in ticks since boot). `SRCH`
    /// if there is none, none any more, or only its corpse.
    fn hold(&self, pid: u32, start: u64) -> Result<Box<dyn Held>, Errno>;

    /// Starts a program, in a session of its own, with nothing open but `/dev/null` as its standard streams, and with signals
    /// and resource limits as this process was given them. It is waited for without anybody's help. Answers once it has
    /// its session, so that what is sent to this process's group no longer reaches it: `AGAIN` if it did not get so far. A program
    /// that cannot be executed after all is told by nobody.
    fn spawn(&self, launch: &Launch<'_>) -> Result<(), Errno>;
}

/// A process that is held: whatever is done through this is done to it and to no other, even once its number is another's
/// (pidfd_open(2)).
pub trait Held: Send + Sync {
    /// Sends a signal: `SRCH` once it has ended and was waited for, `PERM` if it is another user's by now.
    fn signal(&self, what: Signal) -> Result<(), Errno>;

    /// Whether it has ended, waited for or not.
    fn has_ended(&self) -> bool;
}

/// A signal that ends a process.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Signal {
    /// SIGTERM: asks.
    Term,
    /// SIGKILL: does not ask.
    Kill,
}

/// A program to be started.
#[derive(Copy, Clone, Debug)]
pub struct Launch<'a> {
    /// Its arguments, the program's absolute path first.
    pub args: &'a [Vec<u8>],
    /// Its environment, `NAME=value` each.
    pub env: &'a [Vec<u8>],
    /// Its working directory, absolute.
    pub cwd: &'a [u8],
}

/// An open regular file. The last reference closes it.
pub trait File: Send + Sync {
    /// Reads at an offset until `buf` is full or the file ends: fewer bytes mean the end of the file. Under
    /// [`Effort::Cached`] everything comes from memory, or the answer is `AGAIN` and nothing counts as read.
    fn read_at(&self, buf: &mut [u8], offset: u64, effort: Effort) -> Result<usize, Errno>;

    /// What the open file is now (`fstat`): link count 0 once its last name is gone.
    fn meta(&self) -> Result<Meta, Errno>;

    /// Whether [`File::meta`] is sure to tell, by a moved ctime or a link count of 0, that the path no longer leads to
    /// this file. It is not on overlay and network filesystems: there the path has to be resolved again.
    fn tells_replacement(&self) -> bool {
        true
    }
}

/// An open directory. The last reference closes it.
pub trait Dir: Send + Sync {
    /// Hands every name but `.` and `..` to `each`, in the order of the filesystem, from the beginning, until `each`
    /// says `false`. An error half-way is the error: what was seen by then is not a listing.
    fn names(&self, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Errno>;

    /// What stands under a name in this directory: the link itself if it is one.
    fn stat(&self, name: Name<'_>) -> Result<Meta, Errno>;
}

/// Who this process is.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Me {
    /// Process id: what `/pid` says, and where the daemon's own ancestry begins.
    pub pid: u32,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// What is known of a file.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Device number (`st_dev`).
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Birth time, where the filesystem keeps one.
    pub btime: Option<Time>,
    /// A hash of the file handle of name_to_handle_at(2) (inode and generation), 0 where there is none.
    pub handle: u64,
    /// Last change of content.
    pub mtime: Time,
    /// Last change of content or attributes.
    pub ctime: Time,
    /// Last access.
    pub atime: Time,
    /// Length in bytes.
    pub size: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// How many names lead to it; 0 once it has none.
    pub nlink: u32,
}

/// What a name stands for.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A fifo, socket or device. Never opened.
    Other,
}

/// A point in time, since 1970.
#[derive(Copy, Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Time {
    /// Seconds.
    pub sec: i64,
    /// Nanoseconds, below 10^9.
    pub nsec: u32,
}

impl Time {
    /// Nanoseconds since 1970, pinned to what 64 bits hold (the years 1677 to 2262).
    pub fn ns(self) -> i64 {
        self.sec.saturating_mul(1_000_000_000).saturating_add(i64::from(self.nsec))
    }
}
