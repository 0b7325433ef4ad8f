//! What the type of a filesystem allows.
//!
//! Owns: the table from a filesystem's type to its [`Traits`], and how the type of a mount is found. Must not know:
//! paths and bases.
//!
//! The type is read from `/proc/self/mountinfo`, by the mount id that `/proc/self/fdinfo` tells of a descriptor
//! (proc_pid_mountinfo(5), proc_pid_fdinfo(5)). Both ask the kernel's mount table and never the filesystem itself, as
//! statfs(2) and stat(2) would: a 9P mount may be served by this very process, and on a hung network mount they hang. A
//! mount id is only ever looked up while a descriptor lies in that mount, as the kernel hands ids out again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::DecInt;

/// How files of a filesystem may be used.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) struct Traits {
    /// A mount of it below a base may be entered.
    pub(super) enterable: bool,
    /// What the kernel has cached of a path is answered without waiting for another machine or process.
    pub(super) local: bool,
    /// What a read does where `RWF_NOWAIT` is not supported.
    pub(super) unless_nowait: Reads,
    /// How many spellings a name has.
    pub(super) names: Names,
    /// It holds nothing but directories, links and files that may be opened, so an open needs no look first.
    pub(super) opens_plainly: bool,
    /// fstat(2) of an open file tells, by ctime or link count, that its name was taken away.
    pub(super) tells_replacement: bool,
}

/// Where a read is done that may not be tried with `RWF_NOWAIT`.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Reads {
    /// At once: it comes from memory.
    Inline,
    /// Where it may wait.
    Full,
}

/// How many spellings of one name a directory may find.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Names {
    /// One: the listed one.
    Exact,
    /// One, except in directories that are marked as folding case (`FS_CASEFOLD_FL`).
    PerDirectory,
    /// Several, everywhere: folded case, short names.
    Several,
}

impl Traits {
    /// A type that is not in the table, or that cannot be learnt: whatever is slow and sure.
    pub(super) const UNKNOWN: Self = Self { names: Names::PerDirectory, ..REMOTE };

    /// The traits of a type as mountinfo spells it.
    fn of(kind: &[u8]) -> Self {
        match kind {
            b"ext4" | b"f2fs" | b"bcachefs" => Self { names: Names::PerDirectory, ..LOCAL },
            b"btrfs" | b"xfs" | b"zfs" | b"ext2" | b"ext3" | b"jfs" | b"nilfs2" | b"squashfs" | b"erofs" => {
                LOCAL
            }
            b"tmpfs" | b"ramfs" => Self { unless_nowait: Reads::Inline, names: Names::PerDirectory, ..LOCAL },
            // A copy-up moves a file to another inode and leaves the open one as it was.
            b"overlay" => Self { names: Names::PerDirectory, tells_replacement: false, ..LOCAL },
            b"vfat" | b"msdos" | b"exfat" | b"ntfs" | b"ntfs3" | b"hfs" | b"hfsplus" | b"iso9660" => {
                Self { names: Names::Several, ..LOCAL }
            }
            b"fuseblk" | b"cifs" | b"smb3" | b"vboxsf" => Self { names: Names::Several, ..REMOTE },
            b"9p" => Self { enterable: false, names: Names::Several, ..REMOTE },
            b"nfs" | b"nfs4" | b"ceph" | b"virtiofs" | b"afs" => REMOTE,
            b"proc" => Self { enterable: false, local: false, opens_plainly: true, ..LOCAL },
            _ if PSEUDO.contains(&kind) => Self { enterable: false, local: false, ..LOCAL },
            _ if kind.starts_with(b"fuse") => REMOTE,
            _ => Self::UNKNOWN,
        }
    }
}

/// A disk of this machine.
const LOCAL: Traits = Traits {
    enterable: true,
    local: true,
    unless_nowait: Reads::Full,
    names: Names::Exact,
    opens_plainly: false,
    tells_replacement: true,
};

/// Another machine, or a process of this one. A file server decides about names by itself; those that keep short names
/// have a type of their own.
const REMOTE: Traits = Traits { local: false, tells_replacement: false, ..LOCAL };

/// The kernel's own, which hold no one's data, and where a look may already have an effect.
const PSEUDO: [&[u8]; 19] = [
    b"sysfs",
    b"devpts",
    b"devtmpfs",
    b"cgroup",
    b"cgroup2",
    b"debugfs",
    b"tracefs",
    b"securityfs",
    b"selinuxfs",
    b"smackfs",
    b"configfs",
    b"bpf",
    b"binfmt_misc",
    b"fusectl",
    b"mqueue",
    b"pstore",
    b"efivarfs",
    b"autofs",
    b"rpc_pipefs",
];

/// This process's own directory in the real `/proc`, whatever directory processes are read from.
#[derive(Debug)]
pub(super) struct OwnProc {
    /// `/proc/self`.
    process: OwnedFd,
    /// `/proc/self/fd`.
    descriptors: OwnedFd,
    mounts: Mutex<Mounts>,
}

/// The mount table as it was last read. poll(2) of mountinfo tells whether it has changed since (proc_pid_mounts(5)), so
/// that crossing a mount does not mean to read it each time.
#[derive(Debug)]
struct Mounts {
    file: File,
    /// By mount id; `None` while the table is not read.
    known: Option<BTreeMap<u64, Traits>>,
}

impl OwnProc {
    /// `None` where no procfs is mounted at `/proc`.
    pub(super) fn open() -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let process = rustix::fs::openat(CWD, "/proc/self", flags, Mode::empty()).ok()?;
        let genuine = rustix::fs::fstatfs(&process).ok()?.f_type == rustix::fs::PROC_SUPER_MAGIC;
        let descriptors = rustix::fs::openat(&process, "fd", flags, Mode::empty()).ok()?;
        let mounts = Mounts { file: file(&process, "mountinfo").ok()?, known: None };
        genuine.then_some(Self { process, descriptors, mounts: Mutex::new(mounts) })
    }

    /// Opens the very file that an `O_PATH` descriptor holds, whatever stands under its name by now.
    pub(super) fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.descriptors, DecInt::from_fd(fd), flags, Mode::empty())
    }

    /// The traits of the mount that a descriptor lies in; `None` if its type cannot be found.
    pub(super) fn traits(&self, fd: BorrowedFd<'_>) -> Option<Traits> {
        let id = self.mount_id(fd)?;
        let mut mounts = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
        mounts.refresh();
        mounts.known.as_ref()?.get(&id).copied()
    }

    /// The id of the mount that a descriptor lies in.
    pub(super) fn mount_id(&self, fd: BorrowedFd<'_>) -> Option<u64> {
        let mut path = String::from("fdinfo/");
        path.push_str(DecInt::from_fd(fd).as_str());
        let mut text = [0; PAGE_BYTES];
        let bytes = rustix::io::read(&file(&self.process, &path).ok()?, &mut text).ok()?;
        let at = memmem::find(&text[..bytes], b"mnt_id:")?;
        number(text[at + 7..bytes].trim_ascii_start())
    }
}

impl Mounts {
    fn refresh(&mut self) {
        // What changes while the table is read is told by the next poll.
        if self.changed() || self.known.is_none() {
            self.known = self.read();
        }
    }

    fn changed(&self) -> bool {
        let mut polled = [PollFd::new(&self.file, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let answer = rustix::event::poll(&mut polled, Some(&now));
        answer.is_err() || polled[0].revents().intersects(PollFlags::PRI | PollFlags::ERR)
    }

    fn read(&mut self) -> Option<BTreeMap<u64, Traits>> {
        let mut table = Vec::with_capacity(PAGE_BYTES);
        self.file.rewind().ok()?;
        (&self.file).take(TABLE_BYTES).read_to_end(&mut table).ok()?;
        Some(table.split(|&byte| byte == b'\n').filter_map(mount).collect())
    }
}

/// The id and the traits of a mount: the first field of its line, and the one behind the separator.
fn mount(line: &[u8]) -> Option<(u64, Traits)> {
    let kind = line[memmem::find(line, b" - ")? + 3..].split(|&byte| byte == b' ').next()?;
    Some((number(line)?, Traits::of(kind)))
}

fn file(process: &OwnedFd, path: &str) -> Result<File, Errno> {
    rustix::fs::openat(process, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map(File::from)
}

/// The decimal number that text begins with.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// More than the mount table of any machine that still works.
const TABLE_BYTES: u64 = 16 << 20;
/// What procfs hands out at once; the lines of fdinfo that every descriptor has fit several times over.
const PAGE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_type_of_a_mount_is_learnt_from_the_mount_table() {
        let own = OwnProc::open().expect("a procfs at /proc");
        let dir = |path: &str| {
            rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect(path)
        };
        let (proc, below) = (dir("/proc"), dir("/proc/self/task"));
        assert_eq!(own.traits(proc.as_fd()), Some(Traits::of(b"proc")));
        assert_eq!(own.mount_id(proc.as_fd()), own.mount_id(below.as_fd()));
        assert_ne!(own.mount_id(proc.as_fd()), own.mount_id(dir("/").as_fd()));
    }

    #[test]
    fn what_may_not_be_entered() {
        for kind in ["proc", "sysfs", "devpts", "9p", "cgroup2", "autofs"] {
            let traits = Traits::of(kind.as_bytes());
            assert!(!traits.enterable && !traits.local, "{kind}");
        }
        for kind in ["ext4", "btrfs", "xfs", "tmpfs", "overlay", "nfs4", "fuse.sshfs", "something new"] {
            assert!(Traits::of(kind.as_bytes()).enterable, "{kind}");
        }
    }

    #[test]
    fn what_folds_case_or_keeps_short_names() {
        for kind in ["vfat", "exfat", "ntfs", "ntfs3", "fuseblk", "cifs", "smb3"] {
            assert_eq!(Traits::of(kind.as_bytes()).names, Names::Several, "{kind}");
        }
        for kind in ["ext4", "f2fs", "tmpfs", "something new"] {
            assert_eq!(Traits::of(kind.as_bytes()).names, Names::PerDirectory, "{kind}");
        }
    }
}
