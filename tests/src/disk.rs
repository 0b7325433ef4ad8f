//! A world on a real filesystem.
//!
//! Owns: a temporary directory with a subdirectory for each root, and what edits do to it. Must not know: who serves it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use backend::host::os::Roots;
use backend::name::Root;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::world::{Content, Edit, Entry, WorldSpec};

/// A world in a directory of its own, which goes when whoever made it drops it.
#[derive(Debug)]
pub struct Disk {
    base: PathBuf,
    is_ours: bool,
}

impl Disk {
    /// Makes the files of a world.
    ///
    /// # Panics
    /// If the filesystem refuses: no case can run then.
    pub fn new(spec: &WorldSpec) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Short, because the path of a socket is at most 107 bytes long.
        let name = format!("9t-{}-{number}", std::process::id());
        let in_memory = Path::new(MEMORY).join(&name);
        let base = if spec.may_be_in_memory() && fs::create_dir(&in_memory).is_ok() {
            in_memory
        } else {
            let base = std::env::temp_dir().join(name);
            fs::create_dir(&base).expect("a temporary directory");
            base
        };
        let disk = Self { base, is_ours: true };
        for root in Root::HARNESSES.iter().map(|root| root.as_str()).chain(["proc"]) {
            fs::create_dir(disk.base.join(root)).expect("a root");
        }
        for (path, entry) in spec.entries() {
            disk.make(path, entry).unwrap_or_else(|error| panic!("{}: {error}", path.escape_ascii()));
        }
        disk
    }

    /// The world that another process has made.
    pub fn of_another(base: PathBuf) -> Self {
        Self { base, is_ours: false }
    }

    /// The directory that holds the world.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The roots.
    pub fn roots(&self) -> Roots {
        let root = |root: Root| self.base.join(root.as_str());
        Roots {
            claude: root(Root::Claude),
            codex: root(Root::Codex),
            omp: root(Root::Omp),
            hermes: root(Root::Hermes),
            dsh: root(Root::Dsh),
        }
    }

    /// A process table without a process, so that no test depends on what runs beside it.
    pub fn proc(&self) -> PathBuf {
        self.base.join("proc")
    }

    /// Puts an agent into the process table, by its name in the tree. It is nobody's process: there is no zmx to move it with.
    pub fn add_agent(&self) -> &'static str {
        let dir = self.proc().join("10");
        let stat = "10 (claude) S 1 10 10 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 1000 1 1\n";
        let made = fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join("stat"), stat));
        made.and_then(|()| fs::write(dir.join("cmdline"), "claude\0")).expect("a process in a directory");
        AGENT
    }

    /// Where a socket may be posted.
    pub fn socket(&self) -> PathBuf {
        self.base.join("s")
    }

    /// Changes the files.
    ///
    /// # Panics
    /// If the filesystem refuses.
    pub fn edit(&self, edit: &Edit) {
        self.try_edit(edit).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
    }

    fn try_edit(&self, edit: &Edit) -> io::Result<()> {
        match edit {
            Edit::Make(path, entry) => self.make(path, entry),
            Edit::Write(path, bytes) => fs::write(self.at(path), bytes),
            Edit::Append(path, bytes) => {
                OpenOptions::new().append(true).open(self.at(path))?.write_all(bytes)
            }
            Edit::Rename(from, to) => fs::rename(self.at(from), self.at(to)),
            Edit::Remove(path) => {
                let path = self.at(path);
                if path.symlink_metadata()?.is_dir() {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                }
            }
            Edit::Touch(path, seconds) => {
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(*seconds));
                File::open(self.at(path))?.set_modified(time)
            }
        }
    }

    fn make(&self, path: &[u8], entry: &Entry) -> io::Result<()> {
        let path = self.at(path);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        match entry {
            Entry::Dir => fs::create_dir_all(path),
            Entry::File(content) => write_content(&path, content),
            Entry::Link(to) => symlink(OsStr::from_bytes(to), path),
            Entry::HardLink(to) => fs::hard_link(self.at(to), path),
            Entry::Fifo => Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?),
            // The file stays when the socket closes.
            Entry::Socket => UnixListener::bind(path).map(drop),
        }
    }

    fn at(&self, path: &[u8]) -> PathBuf {
        self.base.join(OsStr::from_bytes(path))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_ours {
            // What cannot be removed is left to whoever cleans the temporary directory.
            let _ = fs::remove_dir_all(&self.base);
        }
    }
}

fn write_content(path: &Path, content: &Content) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut at =
        if let Content::Sparse { hole, .. } = content { file.seek(SeekFrom::Start(*hole))? } else { 0 };
    let mut piece = vec![0; PIECE];
    loop {
        let count = content.read_at(at, &mut piece);
        if count == 0 {
            return Ok(());
        }
        file.write_all(&piece[..count])?;
        at += count as u64;
    }
}

/// What an agent of a process table is called.
pub const AGENT: &str = "active/claude/10/zmx";
/// Numbers the worlds of a process.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Where Linux has a filesystem in memory that everybody may write (shm_overview(7)).
const MEMORY: &str = "/dev/shm";

/// Bytes written at a time.
const PIECE: usize = 1 << 20;
