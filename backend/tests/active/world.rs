//! A machine of files: five homes, and a directory that looks like `/proc`.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use backend::host::os::{Os, Resolving, Roots};
use backend::{Agents, Limits};

use crate::client::Client;

/// The time of boot that the machine tells.
pub(crate) const BOOT_S: u64 = 1_700_000_000;

pub(crate) struct World {
    pub(crate) top: PathBuf,
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
}

impl Proc {
    /// A process that was started by these words, `start` ticks after boot.
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
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::SeqCst);
        let top = std::env::temp_dir().join(format!("active-{}-{serial}", std::process::id()));
        for dir in ["proc", "claude", "codex", "omp", "hermes", "dsh"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        let world = Self { top };
        world.write("proc/stat", &format!("cpu 1 2 3\nbtime {BOOT_S}\nprocesses 9\n"));
        world.write("proc/locks", "");
        world
    }

    /// The machine as a host.
    pub(crate) fn host(&self) -> Os {
        let roots = Roots {
            claude: self.top.join("claude"),
            codex: self.top.join("codex"),
            omp: self.top.join("omp"),
            hermes: self.top.join("hermes"),
            dsh: self.top.join("dsh"),
        };
        Os::new(roots, self.top.join("proc"), Resolving::Probed)
    }

    /// A client of a tree over it.
    pub(crate) fn client(&self) -> Client {
        Client::new(Agents::new(Arc::new(self.host()), Limits { pinned_descriptors: 64 }))
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        self.write_bytes(path, content.as_bytes());
    }

    pub(crate) fn write_bytes(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Writes a file that was last changed so long before now.
    pub(crate) fn write_aged(&self, path: &str, content: &str, age_s: u64) {
        self.write(path, content);
        self.age(path, age_s);
    }

    pub(crate) fn age(&self, path: &str, age_s: u64) {
        let file = fs::File::options().write(true).open(self.path(path)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
    }

    pub(crate) fn append(&self, path: &str, content: &str) {
        use std::io::Write;
        fs::File::options()
            .append(true)
            .open(self.path(path))
            .unwrap()
            .write_all(content.as_bytes())
            .unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    pub(crate) fn link(&self, path: &str, target: &Path) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    pub(crate) fn inode(&self, path: &str) -> u64 {
        fs::metadata(self.path(path)).unwrap().ino()
    }

    /// Starts a process, or changes what it looks like.
    pub(crate) fn run(&self, proc: &Proc) {
        let dir = format!("proc/{}", proc.pid);
        let Proc { pid, ppid, comm, state, start, .. } = proc;
        self.write(
            &format!("{dir}/stat"),
            &format!("{pid} ({comm}) {state} {ppid} {pid} {pid} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {start} 1 1\n"),
        );
        let join =
            |strings: &[String]| strings.iter().map(|string| format!("{string}\0")).collect::<String>();
        self.write(&format!("{dir}/cmdline"), &join(&proc.args));
        self.write(&format!("{dir}/environ"), &join(&proc.env));
        self.link(&format!("{dir}/cwd"), Path::new(&proc.cwd));
        if !proc.exe.is_empty() {
            self.link(&format!("{dir}/exe"), Path::new(&proc.exe));
        }
        _ = fs::remove_dir_all(self.path(&format!("{dir}/fd")));
        fs::create_dir_all(self.path(&format!("{dir}/fd"))).unwrap();
        for (number, target) in &proc.fds {
            self.link(&format!("{dir}/fd/{number}"), Path::new(target));
        }
    }

    pub(crate) fn end(&self, pid: u32) {
        self.remove(&format!("proc/{pid}"));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.top);
    }
}
