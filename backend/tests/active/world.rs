//! The two machines that everything here is asked of: one of files, as `--proc` serves one, and one in memory.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use backend::host::Host;
use backend::host::fixture::{self, Edit, Fixture, LockKind, Refuses, Special, State};
use backend::host::os::{Os, Resolving, Roots};
use backend::host::wrap::Traced;
use backend::name::Root;
use backend::{Agents, Limits};
use rustix::fs::{CWD, Mode};

use crate::client::Client;

/// Runs a test on both.
pub(crate) fn on_both(test: impl Fn()) {
    for in_memory in [false, true] {
        IN_MEMORY.set(in_memory);
        test();
    }
}

thread_local! {
    static IN_MEMORY: Cell<bool> = const { Cell::new(false) };
}

pub(crate) enum World {
    /// Five homes in a directory, beside one that looks like `/proc`.
    Files(Files),
    Memory(Fixture),
}

/// A process as it is to look like.
#[derive(Clone)]
pub(crate) struct Proc {
    pub(crate) pid: u32,
    pub(crate) ppid: u32,
    pub(crate) comm: String,
    pub(crate) state: char,
    pub(crate) start: u64,
    pub(crate) args: Vec<String>,
    pub(crate) exe: String,
    pub(crate) cwd: String,
    pub(crate) env: Vec<String>,
    pub(crate) fds: Vec<(u32, String)>,
    /// Which of `cwd`, `environ`, `exe` and `fd` cannot be looked at.
    pub(crate) refuses: &'static str,
    /// Another user's.
    pub(crate) foreign: bool,
}

/// What a process does with a lock.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Holds {
    Write,
    Read,
    /// Waits for it: somebody else has it.
    Not,
    /// A lock of fcntl(2).
    Posix,
}

impl Proc {
    /// A process that was started by these words, `pid` seconds after boot.
    pub(crate) fn new(pid: u32, cmdline: &str) -> Self {
        let args: Vec<String> = cmdline.split_ascii_whitespace().map(str::to_owned).collect();
        let comm = args.first().and_then(|arg| arg.rsplit('/').next()).unwrap_or_default().to_owned();
        Self {
            pid,
            ppid: 1,
            comm,
            state: 'S',
            start: u64::from(pid) * 100,
            args,
            exe: String::new(),
            cwd: "/home/me/work".into(),
            env: Vec::new(),
            fds: Vec::new(),
            refuses: "",
            foreign: false,
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        if !IN_MEMORY.get() {
            return Self::Files(Files::new());
        }
        Self::Memory(memory())
    }

    /// A client of a tree over it.
    pub(crate) fn client(&self) -> Client {
        Client::new(Agents::new(self.host(), LIMITS))
    }

    /// A client of a tree for one command.
    pub(crate) fn command(&self) -> Client {
        Client::new(Agents::for_command(self.host(), LIMITS))
    }

    /// A client of a tree over it, and what that asks of the machine.
    pub(crate) fn traced(&self) -> (Client, Arc<Traced>) {
        let traced = Arc::new(Traced::with_lines(self.host()));
        (Client::new(Agents::new(Arc::clone(&traced) as Arc<dyn Host>, LIMITS)), traced)
    }

    fn host(&self) -> Arc<dyn Host> {
        match self {
            Self::Files(files) => Arc::new(files.host()),
            Self::Memory(fixture) => Arc::new(fixture.clone()),
        }
    }

    /// When it was started, in seconds since 1970.
    pub(crate) fn boot_s(&self) -> u64 {
        match self {
            Self::Files(_) => BOOT_S,
            Self::Memory(fixture) => {
                let now = fixture.with(|world| world.now());
                (now.wall_ns as u64 - now.mono_ns) / 1_000_000_000
            }
        }
    }

    pub(crate) fn machine_id(&self) -> String {
        match self {
            Self::Files(_) => fs::read_to_string("/etc/machine-id").unwrap_or_default().trim().to_owned(),
            Self::Memory(_) => "0123456789abcdef0123456789abcdef".into(),
        }
    }

    /// The absolute path of something below the homes.
    pub(crate) fn path(&self, path: &str) -> String {
        match self {
            Self::Files(files) => files.top.join(path).display().to_string(),
            Self::Memory(_) => format!("/w/{path}"),
        }
    }

    fn apply(fixture: &Fixture, edit: Edit) {
        fixture.apply(&edit).unwrap_or_else(|errno| panic!("{edit:?}: {errno}"));
    }

    fn make_dirs(&self, path: &str) {
        let path = self.path(path);
        let dir = path.rsplit_once('/').unwrap().0;
        match self {
            Self::Files(_) => fs::create_dir_all(dir).unwrap(),
            Self::Memory(fixture) => Self::apply(fixture, Edit::MkdirAll { path: dir.into() }),
        }
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        self.write_bytes(path, content.as_bytes());
    }

    pub(crate) fn write_bytes(&self, path: &str, content: &[u8]) {
        self.make_dirs(path);
        let path = self.path(path);
        match self {
            Self::Files(_) => fs::write(path, content).unwrap(),
            Self::Memory(fixture) => {
                Self::apply(fixture, Edit::Write { path: path.into(), bytes: content.into() });
            }
        }
    }

    /// Writes a file later, from wherever that may be.
    pub(crate) fn writer(&self, path: &str, content: &str) -> Box<dyn FnOnce()> {
        let (path, content) = (self.path(path), content.to_owned());
        match self {
            Self::Files(_) => Box::new(move || fs::write(path, content).unwrap()),
            Self::Memory(fixture) => {
                let fixture = fixture.clone();
                let edit = Edit::Write { path: path.into(), bytes: content.into() };
                Box::new(move || Self::apply(&fixture, edit))
            }
        }
    }

    /// Writes a file that was last changed so long before now.
    pub(crate) fn write_aged(&self, path: &str, content: &str, age_s: u64) {
        self.write(path, content);
        self.age(path, age_s);
    }

    pub(crate) fn age(&self, path: &str, age_s: u64) {
        let path = self.path(path);
        match self {
            Self::Files(_) => {
                let file = fs::File::options().write(true).open(path).unwrap();
                file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
            }
            Self::Memory(fixture) => {
                let mtime_ns = fixture.with(|world| world.now()).wall_ns - age_s as i64 * 1_000_000_000;
                Self::apply(fixture, Edit::Touch { path: path.into(), mtime_ns });
            }
        }
    }

    pub(crate) fn append(&self, path: &str, content: &str) {
        use std::io::Write;
        let path = self.path(path);
        match self {
            Self::Files(_) => {
                fs::File::options().append(true).open(path).unwrap().write_all(content.as_bytes()).unwrap();
            }
            Self::Memory(fixture) => {
                Self::apply(fixture, Edit::Append { path: path.into(), bytes: content.into() });
                // Time passes between what one does and the next.
                Self::apply(fixture, Edit::Advance { ns: 10_000_000 });
            }
        }
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        match self {
            Self::Files(_) => fs::remove_file(path).unwrap(),
            Self::Memory(fixture) => Self::apply(fixture, Edit::Unlink { path: path.into() }),
        }
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        self.make_dirs(to);
        let (from, to) = (self.path(from), self.path(to));
        match self {
            Self::Files(_) => fs::rename(from, to).unwrap(),
            Self::Memory(fixture) => Self::apply(fixture, Edit::Rename { from: from.into(), to: to.into() }),
        }
    }

    /// A symbolic link, in place of whatever has its name.
    pub(crate) fn link(&self, path: &str, target: &str) {
        self.make_dirs(path);
        let path = self.path(path);
        match self {
            Self::Files(_) => {
                _ = fs::remove_file(&path);
                symlink(target, path).unwrap();
            }
            Self::Memory(fixture) => {
                _ = fixture.apply(&Edit::Unlink { path: path.clone().into() });
                Self::apply(fixture, Edit::Symlink { path: path.into(), target: target.into() });
            }
        }
    }

    pub(crate) fn hard_link(&self, from: &str, to: &str) {
        self.make_dirs(to);
        let (from, to) = (self.path(from), self.path(to));
        match self {
            Self::Files(_) => fs::hard_link(from, to).unwrap(),
            Self::Memory(fixture) => {
                Self::apply(fixture, Edit::HardLink { from: from.into(), to: to.into() })
            }
        }
    }

    pub(crate) fn fifo(&self, path: &str) {
        self.make_dirs(path);
        let path = self.path(path);
        match self {
            Self::Files(_) => rustix::fs::mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap(),
            Self::Memory(fixture) => {
                Self::apply(fixture, Edit::Special { path: path.into(), kind: Special::Fifo });
            }
        }
    }

    /// Starts a process, or changes what it looks like.
    pub(crate) fn run(&self, proc: &Proc) {
        match self {
            Self::Files(files) => files.run(proc),
            Self::Memory(fixture) => {
                _ = fixture.apply(&Edit::Exit { pid: proc.pid });
                start(fixture, proc);
            }
        }
    }

    pub(crate) fn end(&self, pid: u32) {
        match self {
            Self::Files(files) => fs::remove_dir_all(files.top.join(format!("proc/{pid}"))).unwrap(),
            Self::Memory(fixture) => Self::apply(fixture, Edit::Exit { pid }),
        }
    }

    /// Makes these all the locks there are.
    pub(crate) fn locks(&self, locks: &[(u32, &str, Holds)]) {
        for (_, path, _) in locks {
            self.write(path, "");
        }
        match self {
            Self::Files(files) => files.locks(locks),
            Self::Memory(fixture) => {
                const OTHER: u32 = 99;
                _ = fixture.apply(&Edit::Start(Box::new(fixture::Process::new(OTHER, "other"))));
                for (pid, path, holds) in locks {
                    let path: fixture::Bytes = self.path(path).into();
                    let lock =
                        |pid, kind, exclusive| Edit::HoldLock { pid, path: path.clone(), kind, exclusive };
                    for pid in [*pid, OTHER] {
                        _ = fixture.apply(&Edit::DropLock { pid, path: path.clone() });
                    }
                    if *holds == Holds::Not {
                        Self::apply(fixture, lock(OTHER, LockKind::Flock, true));
                    }
                    _ = fixture.apply(&Edit::Start(Box::new(fixture::Process::new(*pid, "other"))));
                    let kind = if *holds == Holds::Posix { LockKind::Posix } else { LockKind::Flock };
                    Self::apply(fixture, lock(*pid, kind, *holds != Holds::Read));
                }
            }
        }
    }

    /// The pid of the process that asks, and where its own line of ancestors begins.
    pub(crate) fn me(&self) -> u32 {
        match self {
            Self::Files(_) => std::process::id(),
            Self::Memory(_) => 4000,
        }
    }

    /// Makes our own pid namespace this one; the machine in memory has it from the start.
    pub(crate) fn own_namespace(&self) {
        if let Self::Files(files) = self {
            let ns = files.top.join(format!("proc/{}/ns", self.me()));
            fs::create_dir_all(&ns).unwrap();
            symlink("pid:[4026531836]", ns.join("pid")).unwrap();
        }
    }
}

/// The machine in memory: its homes are below `/w`.
pub(crate) fn memory() -> Fixture {
    let fixture = Fixture::default();
    for root in Root::HARNESSES {
        let path = format!("/w/{}", root.as_str());
        World::apply(&fixture, Edit::MkdirAll { path: path.clone().into() });
        World::apply(&fixture, Edit::Root { root, path: path.into() });
    }
    fixture
}

fn start(fixture: &Fixture, proc: &Proc) {
    let refuses = Refuses {
        fd: proc.refuses == "fd",
        cwd: proc.refuses == "cwd",
        exe: proc.refuses == "exe",
        environ: proc.refuses == "environ",
        all: false,
    };
    let bytes = |words: &[String]| words.iter().map(|word| word.as_str().into()).collect();
    let pid = proc.pid;
    let process = fixture::Process {
        ppid: proc.ppid,
        uid: if proc.foreign { 1001 } else { 1000 },
        args: bytes(&proc.args),
        env: bytes(&proc.env),
        cwd: proc.cwd.as_str().into(),
        exe: proc.exe.as_str().into(),
        start_ticks: Some(proc.start),
        refuses,
        ..fixture::Process::new(pid, proc.comm.as_str())
    };
    World::apply(fixture, Edit::Start(Box::new(process)));
    for (fd, path) in &proc.fds {
        let path = path.as_str().into();
        World::apply(fixture, Edit::OpenFd { pid, fd: *fd, path, says: None });
    }
    match proc.state {
        'Z' | 'X' | 'x' => World::apply(fixture, Edit::Zombie { pid }),
        'D' => World::apply(fixture, Edit::State { pid, state: State::DiskSleep }),
        _ => {}
    }
}

pub(crate) struct Files {
    top: PathBuf,
}

impl Files {
    fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::SeqCst);
        let top = std::env::temp_dir().join(format!("active-{}-{serial}", std::process::id()));
        for dir in ["proc", "claude", "codex", "omp", "hermes", "dsh"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        fs::write(top.join("proc/stat"), format!("cpu 1 2 3\nbtime {BOOT_S}\nprocesses 9\n")).unwrap();
        fs::write(top.join("proc/locks"), "").unwrap();
        Self { top }
    }

    fn host(&self) -> Os {
        let roots = Roots {
            claude: self.top.join("claude"),
            codex: self.top.join("codex"),
            omp: self.top.join("omp"),
            hermes: self.top.join("hermes"),
            dsh: self.top.join("dsh"),
        };
        Os::new(roots, self.top.join("proc"), Resolving::Probed)
    }

    fn run(&self, proc: &Proc) {
        let dir = self.top.join(format!("proc/{}", proc.pid));
        _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("fd")).unwrap();
        let Proc { pid, ppid, comm, state, start, .. } = proc;
        let stat = format!(
            "{pid} ({comm}) {state} {ppid} {pid} {pid} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {start} 1 1\n"
        );
        fs::write(dir.join("stat"), stat).unwrap();
        let join = |words: &[String]| words.iter().map(|word| format!("{word}\0")).collect::<String>();
        // Whoever asks for what would hang finds nothing.
        if *state != 'D' {
            fs::write(dir.join("cmdline"), join(&proc.args)).unwrap();
            fs::write(dir.join("environ"), join(&proc.env)).unwrap();
        }
        symlink(&proc.cwd, dir.join("cwd")).unwrap();
        if !proc.exe.is_empty() {
            symlink(&proc.exe, dir.join("exe")).unwrap();
        }
        for (number, target) in &proc.fds {
            symlink(target, dir.join(format!("fd/{number}"))).unwrap();
        }
        match proc.refuses {
            "" => {}
            "fd" => fs::remove_dir_all(dir.join("fd")).unwrap(),
            name => fs::remove_file(dir.join(name)).unwrap(),
        }
        if proc.foreign {
            for path in [dir.join("stat"), dir] {
                rustix::fs::chown(path, Some(rustix::fs::Uid::from_raw(1001)), None).unwrap();
            }
        }
    }

    fn locks(&self, locks: &[(u32, &str, Holds)]) {
        let mut table = String::from("1: POSIX  ADVISORY  WRITE 1 00:01:7 0 EOF\n");
        for (index, (pid, path, holds)) in locks.iter().enumerate() {
            let number = index + 2;
            let inode = fs::metadata(self.top.join(path)).unwrap().ino();
            let mut line = |arrow: &str, kind: &str, access: &str, pid: u32| {
                table += &format!("{number}: {arrow}{kind}  ADVISORY  {access} {pid} fe:00:{inode} 0 EOF\n");
            };
            match holds {
                Holds::Write => line("", "FLOCK", "WRITE", *pid),
                Holds::Read => line("", "FLOCK", "READ ", *pid),
                Holds::Posix => line("", "POSIX", "WRITE", *pid),
                Holds::Not => {
                    line("", "FLOCK", "WRITE", 99);
                    line("-> ", "FLOCK", "WRITE", *pid);
                }
            }
        }
        fs::write(self.top.join("proc/locks"), table).unwrap();
    }

    /// Without a process table.
    pub(crate) fn forget_processes(&self) {
        fs::remove_dir_all(self.top.join("proc")).unwrap();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.top);
    }
}

/// Whether this test may make files of other users.
pub(crate) fn may_chown() -> bool {
    IN_MEMORY.get() || rustix::process::geteuid().is_root()
}

pub(crate) fn files_only(world: &World) -> Option<&Files> {
    match world {
        World::Files(files) => Some(files),
        World::Memory(_) => None,
    }
}

const LIMITS: Limits = Limits { pinned_descriptors: 64 };
/// The time of boot that the machine of files tells.
const BOOT_S: u64 = 1_700_000_000;
