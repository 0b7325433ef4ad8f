//! A machine in memory, small and honest: names lead to inodes, an open file keeps its inode.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use backend::host::{Dir, Errno, File, Held, Host, Kind, Launch, Me, Meta, Time};
use backend::name::{Name, Rel, Root};
use engine::port::{Effort, Now};

pub(crate) const UID: u32 = 1000;
pub(crate) const START: Now = Now { mono_ns: 5_000_000_000, wall_ns: 1_700_000_000_000_000_000 };

/// The machine. A path is spelt `root/names/below/it`.
#[derive(Clone)]
pub(crate) struct Machine(Arc<Mutex<World>>);

pub(crate) struct World {
    paths: BTreeMap<String, Shared>,
    next_ino: u64,
    /// Moved on by every change.
    pub(crate) clock: Time,
    /// Calls so far, by name.
    pub(crate) calls: Vec<&'static str>,
    /// Whether anything is answered without waiting.
    pub(crate) cached: bool,
    /// Whether ctime and link count tell of a replacement.
    pub(crate) tells: bool,
    /// Run once, at the next call of this name, before it is answered.
    trap: Option<(&'static str, Trap)>,
}

type Shared = Arc<Mutex<Inode>>;
type Trap = Box<dyn FnOnce() + Send>;

pub(crate) struct Inode {
    pub(crate) meta: Meta,
    pub(crate) bytes: Vec<u8>,
    /// What any look at it fails with.
    pub(crate) broken: Option<Errno>,
}

impl Machine {
    /// Five empty homes.
    pub(crate) fn new() -> Self {
        let machine = Self::bare();
        for root in Root::HARNESSES {
            machine.dir(root.as_str());
        }
        machine
    }

    /// No homes at all.
    pub(crate) fn bare() -> Self {
        Self(Arc::new(Mutex::new(World {
            paths: BTreeMap::new(),
            next_ino: 100,
            // Long before the start: a young ctime has rules of its own.
            clock: Time { sec: 1_600_000_000, nsec: 500 },
            calls: Vec::new(),
            cached: true,
            tells: true,
            trap: None,
        })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    pub(crate) fn dir(&self, path: &str) {
        self.make(path, Kind::Dir, b"");
    }

    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        self.make(path, Kind::File, bytes.as_ref());
    }

    /// Makes something anew, in place of whatever had the name.
    pub(crate) fn make(&self, path: &str, kind: Kind, bytes: &[u8]) {
        self.remove(path);
        let mut world = self.world();
        let (ino, now) = (world.next_ino, world.tick());
        world.next_ino += 1;
        let meta = Meta {
            kind,
            dev: 1,
            ino,
            btime: Some(now),
            handle: 0,
            mtime: now,
            ctime: now,
            atime: now,
            size: bytes.len() as u64,
            uid: UID,
            gid: 77,
            nlink: 1,
        };
        let inode = Inode { meta, bytes: bytes.to_vec(), broken: None };
        world.paths.insert(path.to_owned(), Arc::new(Mutex::new(inode)));
    }

    pub(crate) fn append(&self, path: &str, bytes: &[u8]) {
        self.write(path, |content| content.extend_from_slice(bytes));
    }

    /// Changes a file in place.
    pub(crate) fn write(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let now = self.world().tick();
        self.inode(path, |inode| {
            change(&mut inode.bytes);
            inode.meta.size = inode.bytes.len() as u64;
            inode.meta.mtime = now;
            inode.meta.ctime = now;
        });
    }

    /// Changes whatever is known of something.
    pub(crate) fn inode(&self, path: &str, change: impl FnOnce(&mut Inode)) {
        let inode = Arc::clone(&self.world().paths[path]);
        change(&mut inode.lock().unwrap());
    }

    pub(crate) fn meta(&self, path: &str) -> Meta {
        let inode = Arc::clone(&self.world().paths[path]);
        inode.lock().unwrap().meta
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        self.remove(to);
        let mut world = self.world();
        let now = world.tick();
        let moved = world.at_and_below(from);
        for path in moved {
            let inode = world.paths.remove(&path).unwrap();
            if path == from {
                inode.lock().unwrap().meta.ctime = now;
            }
            world.paths.insert(format!("{to}{}", &path[from.len()..]), inode);
        }
    }

    /// A second name for one file.
    pub(crate) fn link(&self, from: &str, to: &str) {
        let mut world = self.world();
        let inode = Arc::clone(&world.paths[from]);
        world.paths.insert(to.to_owned(), inode);
    }

    pub(crate) fn remove(&self, path: &str) {
        let mut world = self.world();
        let now = world.tick();
        for path in world.at_and_below(path) {
            let inode = world.paths.remove(&path).unwrap();
            let mut inode = inode.lock().unwrap();
            inode.meta.nlink -= 1;
            inode.meta.ctime = now;
        }
    }

    /// Does something at the next call of a name, just before it is answered.
    pub(crate) fn trap(&self, call: &'static str, then: impl FnOnce() + Send + 'static) {
        self.world().trap = Some((call, Box::new(then)));
    }

    fn called(&self, call: &'static str, effort: Option<Effort>) -> Result<(), Errno> {
        let trap = {
            let mut world = self.world();
            world.calls.push(call);
            if effort == Some(Effort::Cached) && !world.cached {
                return Err(Errno::AGAIN);
            }
            if world.trap.as_ref().is_some_and(|(at, _)| *at == call) { world.trap.take() } else { None }
        };
        if let Some((_, then)) = trap {
            then();
        }
        Ok(())
    }

    fn find(&self, root: Root, rel: &Rel) -> Result<Shared, Errno> {
        let world = self.world();
        let mut path = root.as_str().to_owned();
        let mut at = world.look(&path)?;
        for name in rel.components() {
            match at.lock().unwrap().meta.kind {
                Kind::Dir => {}
                Kind::Link => return Err(Errno::NOENT),
                Kind::File | Kind::Other => return Err(Errno::NOTDIR),
            }
            path = format!("{path}/{}", name.as_str());
            at = world.look(&path)?;
        }
        Ok(at)
    }
}

impl World {
    fn tick(&mut self) -> Time {
        self.clock.nsec += 1000;
        self.clock
    }

    fn at_and_below(&self, path: &str) -> Vec<String> {
        // `0` is what follows `/`.
        let below = self.paths.range(format!("{path}/")..format!("{path}0")).map(|(path, _)| path);
        self.paths.get_key_value(path).map(|(path, _)| path).into_iter().chain(below).cloned().collect()
    }

    fn look(&self, path: &str) -> Result<Shared, Errno> {
        let inode = self.paths.get(path).ok_or(Errno::NOENT)?;
        match inode.lock().unwrap().broken {
            Some(errno) => Err(errno),
            None => Ok(Arc::clone(inode)),
        }
    }
}

fn meta_of(inode: &Shared) -> Meta {
    inode.lock().unwrap().meta
}

impl Host for Machine {
    fn now(&self) -> Now {
        START
    }

    fn stat(&self, root: Root, rel: &Rel, effort: Effort) -> Result<Meta, Errno> {
        self.called("stat", Some(effort))?;
        Ok(meta_of(&self.find(root, rel)?))
    }

    fn walk(
        &self,
        root: Root,
        rel: &Rel,
        from: usize,
        effort: Effort,
        each: &mut dyn FnMut(&Meta),
    ) -> Result<(), Errno> {
        self.called("walk", Some(effort))?;
        let mut at = Rel::base();
        self.find(root, &at)?;
        for (index, name) in rel.components().enumerate() {
            at = at.join(name);
            let meta = meta_of(&self.find(root, &at)?);
            if meta.kind == Kind::Link {
                return Err(Errno::NOENT);
            }
            if index >= from {
                each(&meta);
            }
        }
        Ok(())
    }

    fn open(&self, root: Root, rel: &Rel, effort: Effort) -> Result<(Box<dyn File>, Meta), Errno> {
        self.called("open", Some(effort))?;
        let inode = self.find(root, rel)?;
        let meta = meta_of(&inode);
        match meta.kind {
            Kind::File => Ok((Box::new(Opened { machine: self.clone(), inode }), meta)),
            Kind::Dir => Err(Errno::ISDIR),
            Kind::Link => Err(Errno::NOENT),
            Kind::Other => Err(Errno::PERM),
        }
    }

    fn open_dir(&self, root: Root, rel: &Rel) -> Result<(Box<dyn Dir>, Meta), Errno> {
        self.called("open_dir", None)?;
        let inode = self.find(root, rel)?;
        let meta = meta_of(&inode);
        match meta.kind {
            Kind::Dir => Ok((Box::new(Opened { machine: self.clone(), inode }), meta)),
            Kind::Link => Err(Errno::NOENT),
            Kind::File | Kind::Other => Err(Errno::NOTDIR),
        }
    }

    fn read_link(&self, _: &Rel) -> Result<Vec<u8>, Errno> {
        Err(Errno::INVAL)
    }

    fn stat_link(&self, _: &Rel) -> Result<Meta, Errno> {
        Err(Errno::INVAL)
    }

    fn user(&self, uid: u32) -> Option<Arc<str>> {
        (uid == UID).then(|| "glenda".into())
    }

    fn group(&self, _: u32) -> Option<Arc<str>> {
        None
    }

    fn me(&self) -> Me {
        Me { pid: 4242, uid: UID, gid: 77 }
    }

    fn is_base(&self, _: Root, _: &[u8]) -> bool {
        false
    }

    fn machine_id(&self) -> Option<Arc<str>> {
        None
    }

    fn base(&self, _: Root) -> Vec<u8> {
        Vec::new()
    }

    fn look_up(&self, _: &[u8]) -> Result<Meta, Errno> {
        Err(Errno::NOENT)
    }

    fn may_run(&self, _: &[u8]) -> bool {
        false
    }

    fn is_live(&self, _: &[u8]) -> bool {
        false
    }

    fn hold(&self, _: u32, _: u64) -> Result<Box<dyn Held>, Errno> {
        Err(Errno::SRCH)
    }

    fn spawn(&self, _: &Launch<'_>) -> Result<(), Errno> {
        Err(Errno::NOENT)
    }
}

struct Opened {
    machine: Machine,
    inode: Shared,
}

impl Opened {
    /// Where an open directory is now.
    fn path(&self) -> Result<String, Errno> {
        let world = self.machine.world();
        let here = world.paths.iter().find(|(_, inode)| Arc::ptr_eq(inode, &self.inode));
        here.map(|(path, _)| path.clone()).ok_or(Errno::NOENT)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.machine.world().calls.push("close");
    }
}

impl File for Opened {
    fn read_at(&self, buf: &mut [u8], offset: u64, effort: Effort) -> Result<usize, Errno> {
        self.machine.called("read", Some(effort))?;
        let inode = self.inode.lock().unwrap();
        let rest = inode.bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn meta(&self) -> Result<Meta, Errno> {
        self.machine.called("meta", None)?;
        Ok(meta_of(&self.inode))
    }

    fn tells_replacement(&self) -> bool {
        self.machine.world().tells
    }
}

impl Dir for Opened {
    fn names(&self, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Errno> {
        self.machine.called("names", None)?;
        let path = self.path()?;
        let below = self.machine.world().at_and_below(&path);
        let names = below.iter().filter_map(|at| at.strip_prefix(&path)?.strip_prefix('/'));
        // Backwards: a directory's order is nobody's.
        let names: Vec<&str> = names.filter(|name| !name.contains('/')).rev().collect();
        names.iter().all(|name| each(name.as_bytes()));
        Ok(())
    }

    fn stat(&self, name: Name<'_>) -> Result<Meta, Errno> {
        self.machine.called("entry", None)?;
        let path = format!("{}/{}", self.path()?, name.as_str());
        Ok(meta_of(&self.machine.world().look(&path)?))
    }
}
