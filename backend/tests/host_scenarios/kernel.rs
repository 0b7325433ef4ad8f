//! Edits on real files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, UNIX_EPOCH};
use std::{ffi::OsStr, thread};

use backend::host::fixture::{Edit, Special};
use backend::host::os::{Os, Resolving, Roots};
use backend::host::{Errno, Host};
use rustix::fs::{CWD, Mode};

use crate::Rig;

/// The kernel, and a directory of its own for what the scenarios call `/w`.
pub(crate) struct Kernel {
    os: Os,
    top: PathBuf,
}

impl Kernel {
    pub(crate) fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, SeqCst);
        let top = std::env::temp_dir().join(format!("host-scenarios-{}-{serial}", std::process::id()));
        fs::create_dir_all(top.join("base")).unwrap();
        fs::create_dir(top.join("outside")).unwrap();
        let absent = top.join("absent");
        let roots = Roots {
            claude: absent.clone(),
            codex: absent.clone(),
            omp: absent.clone(),
            hermes: top.join("base"),
            dsh: absent,
        };
        Self { os: Os::new(roots, PathBuf::from("/proc"), Resolving::Probed), top }
    }

    fn path(&self, path: &[u8]) -> PathBuf {
        match path.strip_prefix(b"/w") {
            Some(below) => self.top.join(OsStr::from_bytes(below.strip_prefix(b"/").unwrap_or(below))),
            None => Path::new(OsStr::from_bytes(path)).to_owned(),
        }
    }

    fn edit(&self, edit: &Edit) -> io::Result<()> {
        match edit {
            Edit::Mkdir { path } => fs::create_dir(self.path(path)),
            Edit::MkdirAll { path } => fs::create_dir_all(self.path(path)),
            Edit::Rmdir { path } => fs::remove_dir(self.path(path)),
            Edit::Write { path, bytes } => fs::write(self.path(path), &**bytes),
            Edit::Append { path, bytes } => self.append(path, bytes),
            Edit::AppendHalf { path, bytes } => self.append(path, &bytes[..bytes.len() / 2]),
            Edit::Overwrite { path, offset, bytes, keep_mtime } => {
                let file = OpenOptions::new().write(true).open(self.path(path))?;
                let before = file.metadata()?.modified()?;
                file.write_all_at(bytes, *offset)?;
                if *keep_mtime { file.set_modified(before) } else { Ok(()) }
            }
            Edit::Truncate { path, bytes } => {
                OpenOptions::new().write(true).open(self.path(path))?.set_len(*bytes)
            }
            Edit::Replace { path, bytes } => {
                let path = self.path(path);
                if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
                    return Err(Errno::ISDIR.into());
                }
                let temporary = path.with_file_name(".replacing");
                fs::write(&temporary, &**bytes)?;
                fs::rename(&temporary, &path)
            }
            Edit::Rename { from, to } => fs::rename(self.path(from), self.path(to)),
            Edit::Symlink { path, target } => symlink(self.path(target), self.path(path)),
            Edit::HardLink { from, to } => fs::hard_link(self.path(from), self.path(to)),
            Edit::Unlink { path } => fs::remove_file(self.path(path)),
            Edit::Special { path, kind: Special::Fifo } => {
                Ok(rustix::fs::mkfifoat(CWD, self.path(path), Mode::RUSR | Mode::WUSR)?)
            }
            Edit::Special { path, kind: Special::Socket } => UnixListener::bind(self.path(path)).map(drop),
            Edit::Chmod { path, mode } => {
                fs::set_permissions(self.path(path), fs::Permissions::from_mode(u32::from(*mode)))
            }
            Edit::Touch { path, mtime_ns } => {
                let time = UNIX_EPOCH + Duration::from_nanos(mtime_ns.unsigned_abs());
                File::open(self.path(path))?.set_modified(time)
            }
            other => panic!("{other:?} is not done on a real machine"),
        }
    }

    fn append(&self, path: &[u8], bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().create(true).append(true).open(self.path(path))?.write_all(bytes)
    }
}

impl Rig for Kernel {
    fn host(&self) -> &dyn Host {
        &self.os
    }

    fn apply(&self, edit: &Edit) -> Result<(), Errno> {
        self.edit(edit).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// The clock of files moves in steps of up to 10 ms.
    fn tick(&self) {
        thread::sleep(Duration::from_millis(11));
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}
