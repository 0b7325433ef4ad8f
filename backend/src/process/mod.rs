//! Processes, as the kernel shows them below [`Root::Proc`].
//!
//! Owns: which files of `/proc` say what, and how they are read within bounds. Must not know: harnesses, or the tree.
//!
//! A process is a pid *and* the time it started: a pid alone comes again. Every file here may refuse to be read on its
//! own (another user's process, another user namespace, one that is not dumpable), and the process may end between any
//! two reads, so each function answers for one file and `None` is "not known". Who puts several answers together asks
//! [`Stat::read`] again afterwards: if pid and start are still the same, all of them were about one process, because a
//! start time never comes again.

mod environ;
mod stat;

use engine::port::Effort;

use crate::host::{Errno, Host, Meta};
use crate::name::{Name, Rel, Root};

pub(crate) use environ::Environ;
pub(crate) use stat::Stat;

/// One process: while it runs, and for ever after, nothing else is called this.
#[derive(Copy, Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Process {
    /// Process id.
    pub(crate) pid: u32,
    /// When it started, in ticks since boot: field 22 of `/proc/<pid>/stat` (proc_pid_stat(5)).
    pub(crate) start: u64,
}

impl Process {
    /// What it is now; `NOENT` once it has ended, even if its pid is taken by another or it has not been waited for.
    pub(crate) fn stat(self, host: &dyn Host) -> Result<Stat, Errno> {
        let (stat, _) = Stat::read(host, self.pid)?;
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::PidReused) {
            return Ok(stat);
        }
        if stat.process == self && stat.is_alive() { Ok(stat) } else { Err(Errno::NOENT) }
    }

    /// Its directory in `/proc`.
    fn dir(self) -> Rel {
        dir(self.pid)
    }

    /// Its arguments, each ended by NUL, the first [`ARGUMENT_BYTES`] of them. A process may have written over them.
    pub(crate) fn cmdline(self, host: &dyn Host) -> Option<Vec<u8>> {
        read(host, &child(&self.dir(), "cmdline"), ARGUMENT_BYTES).ok()
    }

    /// The file it runs, as a path; what the kernel adds to the path of a deleted one is taken off.
    pub(crate) fn exe(self, host: &dyn Host) -> Option<Vec<u8>> {
        let mut path = self.link(host, "exe")?;
        if path.ends_with(DELETED) {
            path.truncate(path.len() - DELETED.len());
        }
        Some(path)
    }

    /// The directory it works in, as a path.
    pub(crate) fn cwd(self, host: &dyn Host) -> Option<Vec<u8>> {
        self.link(host, "cwd")
    }

    /// What is known of that directory itself.
    pub(crate) fn cwd_meta(self, host: &dyn Host) -> Option<Meta> {
        host.stat_link(&child(&self.dir(), "cwd")).ok()
    }

    /// Its environment as it was when it started.
    pub(crate) fn environ(self, host: &dyn Host) -> Option<Environ> {
        read(host, &child(&self.dir(), "environ"), ENVIRONMENT_BYTES).ok().map(Environ::new)
    }

    /// The name of its pid namespace: `pid:[<inode>]`.
    pub(crate) fn pid_namespace(self, host: &dyn Host) -> Option<Vec<u8>> {
        let ns = child(&self.dir(), "ns");
        host.read_link(&child(&ns, "pid")).ok()
    }

    /// What its standard input is, as a path.
    pub(crate) fn stdin(self, host: &dyn Host) -> Option<Vec<u8>> {
        let fds = child(&self.dir(), "fd");
        host.read_link(&child(&fds, "0")).ok()
    }

    /// Hands every descriptor it holds to `each`, with what its link says.
    ///
    /// The text is a path in the *process's* mount namespace, and it may be of a file that is gone. Believe it only of a
    /// file that [`Descriptor::is`] the one the descriptor holds.
    pub(crate) fn descriptors(self, host: &dyn Host, each: &mut dyn FnMut(&Descriptor<'_>, &[u8])) {
        let fds = child(&self.dir(), "fd");
        let Ok((dir, _)) = host.open_dir(Root::Proc, &fds) else { return };
        let mut numbers = Vec::new();
        let complete = dir.names(&mut |name| {
            numbers.extend(str::from_utf8(name).ok().and_then(decimal));
            numbers.len() < MOST_DESCRIPTORS
        });
        if complete.is_err() {
            return;
        }
        for number in numbers {
            let link = child(&fds, &number.to_string());
            if let Ok(text) = host.read_link(&link) {
                each(&Descriptor { host, link }, &text);
            }
        }
    }

    fn link(self, host: &dyn Host, name: &str) -> Option<Vec<u8>> {
        host.read_link(&child(&self.dir(), name)).ok()
    }
}

/// A descriptor of another process.
pub(crate) struct Descriptor<'a> {
    host: &'a dyn Host,
    link: Rel,
}

impl Descriptor<'_> {
    /// Whether it holds the file that was found.
    pub(crate) fn is(&self, found: &Meta) -> bool {
        self.host.stat_link(&self.link).is_ok_and(|held| (held.dev, held.ino) == (found.dev, found.ino))
    }
}

/// All process ids there are, in the order of `/proc`. `None` where there is no such directory.
pub(crate) fn pids(host: &dyn Host) -> Result<Option<Vec<u32>>, Errno> {
    let dir = match host.open_dir(Root::Proc, &Rel::base()) {
        Ok((dir, _)) => dir,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let mut pids = Vec::new();
    dir.names(&mut |name| {
        pids.extend(str::from_utf8(name).ok().and_then(decimal));
        true
    })?;
    Ok(Some(pids))
}

/// The user a process runs as. Its directory says so even where its files, because it is not dumpable, say root
/// (`task_dump_owner` in `fs/proc/base.c`).
pub(crate) fn uid(host: &dyn Host, pid: u32) -> Result<u32, Errno> {
    Ok(host.stat(Root::Proc, &dir(pid), Effort::Full)?.uid)
}

/// This process and those it descends from. `known`: the parent of a process, where it need not be asked for.
///
/// Of a process that `/proc` hides from this user (`hidepid=` of proc(5)) the parent cannot be known, and the line ends there.
///
/// # Errors
/// The parent of this process itself cannot be learnt, or that of another for a reason that is not that process's.
pub(crate) fn ancestry(host: &dyn Host, known: &dyn Fn(u32) -> Option<u32>) -> Result<Vec<u32>, Errno> {
    let me = host.me().pid;
    let mut line = vec![me];
    let mut pid = me;
    while line.len() < MOST_ANCESTORS {
        let parent = match known(pid).map_or_else(|| Stat::read(host, pid).map(|(stat, _)| stat.ppid), Ok) {
            Ok(parent) => parent,
            // Another machine's processes, as `--proc` has them, or one that has ended.
            Err(Errno::NOENT | Errno::SRCH) => break,
            Err(errno) if pid != me && is_of_process(errno) => break,
            Err(errno) => return Err(errno),
        };
        if parent == 0 || line.contains(&parent) {
            break;
        }
        line.push(parent);
        pid = parent;
    }
    Ok(line)
}

/// Whether an error is about one process, which is gone or not ours to look at, and not about us.
pub(crate) fn is_of_process(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::SRCH | Errno::NOTDIR | Errno::ACCESS | Errno::PERM)
}

/// When the machine was started, in seconds since 1970: `btime` of `/proc/stat`.
pub(crate) fn boot_time_s(host: &dyn Host) -> Option<i64> {
    boot_time_of(&read(host, &child(&Rel::base(), "stat"), SYSTEM_STAT_BYTES).ok()?)
}

/// What a `/proc/stat` says of it.
pub(crate) fn boot_time_of(stat: &[u8]) -> Option<i64> {
    let line = stat.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"btime "))?;
    str::from_utf8(line).ok()?.trim().parse().ok()
}

/// The inodes of the files on which a process holds a whole-file lock of flock(2) for writing.
///
/// A line of `/proc/locks` is `1: FLOCK  ADVISORY  WRITE 4711 08:01:131073 0 EOF`; one that waits has `->` after its number
/// and holds nothing. The device is left alone: on btrfs and overlayfs it is not the one stat(2) tells.
pub(crate) fn write_locks(host: &dyn Host, pid: u32) -> Vec<u64> {
    let table = read(host, &child(&Rel::base(), "locks"), LOCKS_BYTES);
    table.map_or_else(|_| Vec::new(), |table| write_locks_of(&table, pid))
}

/// What a `/proc/locks` says of them.
pub(crate) fn write_locks_of(table: &[u8], pid: u32) -> Vec<u64> {
    let inode = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::LockWaits) && words.clone().next() == Some("->") {
            words.next();
        }
        let held = words.next()? == "FLOCK" && words.next().is_some() && words.next()? == "WRITE";
        let of_pid = decimal(words.next()?)? == pid;
        let inode = words.next()?.rsplit(':').next()?.parse().ok()?;
        (held && of_pid).then_some(inode)
    };
    String::from_utf8_lossy(table).lines().filter_map(inode).collect()
}

/// A number as the kernel spells it: no sign, no zero in front.
pub(crate) fn decimal(text: &str) -> Option<u32> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

fn dir(pid: u32) -> Rel {
    child(&Rel::base(), &pid.to_string())
}

/// A file of `/proc`, by a name that is well-formed as it stands here.
fn child(dir: &Rel, name: &str) -> Rel {
    Name::of_harness(name).map_or_else(|| dir.clone(), |name| dir.join(name))
}

/// The first `limit` bytes of a file of `/proc`. The kernel makes them as they are read, and tells no size before.
fn read(host: &dyn Host, rel: &Rel, limit: usize) -> Result<Vec<u8>, Errno> {
    let (file, _) = host.open(Root::Proc, rel, Effort::Full)?;
    let mut bytes = Vec::new();
    loop {
        let from = bytes.len();
        bytes.resize((from * 2).clamp(PAGE_BYTES, limit), 0);
        let got = file.read_at(&mut bytes[from..], from as u64, Effort::Full)?;
        let full = from + got == bytes.len();
        bytes.truncate(from + got);
        if !full || bytes.len() == limit {
            return Ok(bytes);
        }
    }
}

/// What the kernel adds to the path of a file that has no name any more (`d_path` in `fs/d_path.c`).
const DELETED: &[u8] = b" (deleted)";
/// How far up the ancestry is followed.
const MOST_ANCESTORS: usize = 1024;
const PAGE_BYTES: usize = 4 << 10;
/// How much of the arguments is looked at. What a program is and what it is to do stand in front.
const ARGUMENT_BYTES: usize = PAGE_BYTES;
/// How much of an environment is looked at.
const ENVIRONMENT_BYTES: usize = 256 << 10;
/// How much of `/proc/stat` is looked at: `btime` stands behind a line for each processor and the counts of interrupts.
const SYSTEM_STAT_BYTES: usize = 1 << 20;
/// How much of `/proc/locks` is looked at: some 60 bytes a lock.
const LOCKS_BYTES: usize = 4 << 20;
/// How many descriptors of a process are looked at.
const MOST_DESCRIPTORS: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(decimal("0"), Some(0));
        assert_eq!(decimal("4711"), Some(4711));
        for other in ["", "01", "+1", "-1", " 1", "1 ", "4294967296", "1.json", "self", "١"] {
            assert_eq!(decimal(other), None, "{other}");
        }
    }
}
