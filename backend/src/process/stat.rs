//! `/proc/<pid>/stat`: the one file of a process that everybody may read.

use engine::port::Effort;

use super::{Process, child, dir};
use crate::host::{Errno, File, Host, Meta};
use crate::name::Root;

/// What the kernel counts about a process (proc_pid_stat(5)).
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) struct Stat {
    pub(crate) process: Process,
    pub(crate) comm: Comm,
    /// One letter: `R` runs, `S` sleeps, `D` waits for a disk and cannot be asked for its arguments without waiting too.
    pub(crate) state: u8,
    pub(crate) ppid: u32,
    flags: u32,
    /// Where its code begins, its stack and its arguments: placed at random by each execve(2). Zeros where the kernel
    /// keeps them from us.
    pub(crate) image: [u64; 3],
}

/// The name of a process's main thread, at most 15 bytes: the last part of the path given to execve(2), until the thread
/// calls itself something else.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Comm {
    bytes: [u8; 16],
    len: u8,
}

impl Comm {
    /// As bytes.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    fn new(bytes: &[u8]) -> Self {
        let mut comm = Self::default();
        let len = bytes.len().min(comm.bytes.len());
        comm.bytes[..len].copy_from_slice(&bytes[..len]);
        comm.len = len as u8;
        comm
    }
}

impl Stat {
    /// Reads it, with what is known of the file: its owner is the user the process runs as, or root for a process that
    /// is not dumpable.
    pub(crate) fn read(host: &dyn Host, pid: u32) -> Result<(Self, Meta), Errno> {
        let (file, meta) = host.open(Root::Proc, &child(&dir(pid), "stat"), Effort::Full)?;
        Ok((Self::of_file(&*file, pid)?, meta))
    }

    /// Reads it from the open file.
    pub(crate) fn of_file(file: &dyn File, pid: u32) -> Result<Self, Errno> {
        let mut line = [0; LINE_BYTES];
        let read = file.read_at(&mut line, 0, Effort::Full)?;
        // Empty: the process ended after the open.
        Self::parse(&line[..read]).filter(|stat| stat.process.pid == pid).ok_or(Errno::NOENT)
    }

    /// Whether it still runs: a corpse that nobody has waited for does not.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether it is a thread of the kernel, which has no program.
    pub(crate) fn is_kernel(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// `pid (comm) state ppid …`. The name may hold anything, brackets and newlines too, so it ends at the last bracket.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let open = memchr::memchr(b'(', line)?;
        let close = memchr::memrchr(b')', line)?;
        #[cfg(feature = "planted")]
        let close = if engine::planted::is(engine::planted::Bug::NameCut) {
            memchr::memchr(b')', line)?
        } else {
            close
        };
        let comm = Comm::new(line.get(open + 1..close)?);
        let pid = super::decimal(str::from_utf8(&line[..open]).ok()?.trim_end())?;
        let mut fields = str::from_utf8(&line[close + 1..]).ok()?.split_ascii_whitespace();
        // Fields are counted from 1, and these begin with the third.
        let mut next = 3;
        let mut field = |number: usize| {
            let found = fields.nth(number - next);
            next = number + 1;
            found
        };
        let state = *field(3)?.as_bytes().first()?;
        let ppid = field(4)?.parse().ok()?;
        let flags = field(9)?.parse().ok()?;
        let start = field(22)?.parse().ok()?;
        let image = [26, 28, 48].map(|number| field(number).and_then(|at| at.parse().ok()).unwrap_or(0));
        Some(Self { process: Process { pid, start }, comm, state, ppid, flags, image })
    }
}

/// 52 numbers and a name: a line that is longer than this holds is none.
const LINE_BYTES: usize = 2048;
/// `include/linux/sched.h`.
const PF_KTHREAD: u32 = 0x0020_0000;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(comm: &str) -> String {
        format!(
            "4711 ({comm}) S 1 2 3 34816 5 4194304 100 200 0 0 7 8 9 10 20 0 11 0 987654 1000 200 18446744073709551615 \
             1001 2002 3003 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 4004 5005 6006 7007 8008 9009 10010 0\n"
        )
    }

    #[test]
    fn a_line_is_read_field_by_field() {
        let stat = Stat::parse(line("claude").as_bytes()).unwrap();
        assert_eq!(stat.process, Process { pid: 4711, start: 987_654 });
        assert_eq!((stat.comm.as_bytes(), stat.state, stat.ppid), (&b"claude"[..], b'S', 1));
        assert_eq!(stat.image, [1001, 3003, 7007]);
        assert!(stat.is_alive() && !stat.is_kernel());
    }

    #[test]
    fn a_name_may_hold_brackets_blanks_and_newlines() {
        for comm in ["a) S 9 (b", ") (", "tmux: server", "x\n) Z 1", ""] {
            let stat = Stat::parse(line(comm).as_bytes()).unwrap();
            assert_eq!((stat.comm.as_bytes(), stat.ppid), (comm.as_bytes(), 1), "{comm:?}");
        }
    }

    #[test]
    fn a_short_line_counts_once_it_tells_the_start() {
        let whole = line("claude");
        let cut = &whole[..whole.find(" 1000 200").unwrap()];
        assert_eq!(Stat::parse(cut.as_bytes()).unwrap().image, [0; 3]);
        for len in 0..cut.len() - "987654".len() {
            assert_eq!(Stat::parse(&cut.as_bytes()[..len]), None, "{len}");
        }
    }

    #[test]
    fn corpses_and_kernel_threads_are_told() {
        for (from, to) in [(") S ", ") Z "), (") S ", ") X "), (") S ", ") x ")] {
            assert!(!Stat::parse(line("claude").replace(from, to).as_bytes()).unwrap().is_alive(), "{to}");
        }
        let kernel = line("kworker/0:1").replace(" 4194304 ", " 69238880 ");
        assert!(Stat::parse(kernel.as_bytes()).unwrap().is_kernel());
    }
}
