//! A directory to be a base, a host that serves it, and what tests do to both.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use backend::host::os::{Os, Resolving, Roots};
use backend::host::{Errno, Host, Meta};
use backend::name::{Name, Rel, Root};
use engine::port::Effort::Full;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::fitness::skip;

/// A base directory and a host that serves it as one of its roots.
pub(crate) struct World {
    pub(crate) os: Os,
    pub(crate) resolving: Resolving,
    /// The base of [`Root::Hermes`].
    pub(crate) base: PathBuf,
    /// A directory that is not below it.
    pub(crate) outside: PathBuf,
    pub(crate) top: PathBuf,
}

/// Runs a test with both ways of resolving.
pub(crate) fn both(test: impl Fn(&World)) {
    for resolving in [Resolving::Probed, Resolving::Stepwise] {
        let world = World::new(resolving);
        if resolving == Resolving::Probed && world.os.resolving() != "openat2" {
            skip("openat2 is not whole here");
        }
        test(&world);
    }
}

impl World {
    pub(crate) fn new(resolving: Resolving) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, SeqCst);
        let top = std::env::temp_dir().join(format!("host-os-{}-{serial}", std::process::id()));
        let (base, outside) = (top.join("base"), top.join("outside"));
        fs::create_dir_all(&base).unwrap();
        fs::create_dir(&outside).unwrap();
        let absent = top.join("absent");
        let roots = Roots {
            claude: absent.clone(),
            codex: absent.clone(),
            omp: absent.clone(),
            hermes: base.clone(),
            dsh: absent,
        };
        Self { os: Os::new(roots, PathBuf::from("/proc"), resolving), resolving, base, outside, top }
    }

    /// Whether the files lie in a filesystem that caches misses and reads with `RWF_NOWAIT`: ext4, XFS or btrfs.
    pub(crate) fn on_disk(&self) -> bool {
        let kind = rustix::fs::statfs(&self.top).unwrap().f_type as u32;
        [0xef53, 0x5846_5342, 0x9123_683e].contains(&kind)
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn stat(&self, path: &str) -> Result<Meta, Errno> {
        self.os.stat(Root::Hermes, &rel(path), Full)
    }

    pub(crate) fn walk(&self, path: &str, from: usize) -> (Result<(), Errno>, Vec<Meta>) {
        let mut seen = Vec::new();
        let answer = self.os.walk(Root::Hermes, &rel(path), from, Full, &mut |meta| seen.push(*meta));
        (answer, seen)
    }

    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let (file, meta) = self.os.open(Root::Hermes, &rel(path), Full)?;
        let mut content = vec![0; meta.size as usize + 1];
        let bytes = file.read_at(&mut content, 0, Full)?;
        content.truncate(bytes);
        Ok(content)
    }

    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let (dir, _) = self.os.open_dir(Root::Hermes, &rel(path))?;
        let mut names = Vec::new();
        dir.names(&mut |name| {
            names.push(String::from_utf8(name.to_vec()).unwrap());
            true
        })?;
        names.sort();
        Ok(names)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

/// A mount that ends with the test, however that ends.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// `None`, said aloud, where mounting is not allowed.
    pub(crate) fn fs(kind: &str, at: &Path) -> Option<Self> {
        match rustix::mount::mount(kind, at, kind, MountFlags::empty(), None) {
            Ok(()) => Some(Self(at.to_owned())),
            Err(Errno::PERM) => {
                skip("crossing of mounts needs the right to mount");
                None
            }
            Err(other) => panic!("mount of {kind}: {other}"),
        }
    }

    pub(crate) fn bind(source: &Path, at: &Path) -> Self {
        rustix::mount::mount_bind(source, at).unwrap();
        Self(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// A cached lookup may have to be asked twice: any rename on the machine can be in its way.
pub(crate) fn soon<T>(mut lookup: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..10_000 {
        match lookup() {
            Err(Errno::AGAIN) => {}
            answer => return answer,
        }
    }
    Err(Errno::AGAIN)
}

pub(crate) fn rel(path: &str) -> Rel {
    if path.is_empty() { Rel::base() } else { Rel::from_harness(path).unwrap() }
}

pub(crate) fn name(name: &str) -> Name<'_> {
    Name::of_harness(name).unwrap()
}

/// Gives up root's rights for this thread alone.
pub(crate) fn unprivileged() {
    if rustix::process::geteuid().is_root() {
        let nobody = rustix::fs::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
    }
}
