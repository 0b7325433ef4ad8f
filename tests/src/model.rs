//! The naive tree: the server's tree as a few maps in memory.
//!
//! Owns: a world in memory, and the plainest backend that serves it. It is the oracle beside the real backend: where the
//! two differ, one of them is wrong. Must not know: sessions, dialects, drivers, or the real backend's code, but for the
//! boundary's one decision, which is tested by itself.
//!
//! Every request looks its path up anew under one lock; nothing is cached and nothing waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use backend::name::{DATABASE_HEAD_BYTES, Name, Root, is_database};
use engine::port::{
    Answer, Ask, Backend, Change, Effort, Kinds, Mode, Now, Outcome, Path, Progress, Qids, Room, Stat,
};
use proto::{QTDIR, QTFILE, Qid, Refusal};

use crate::world::{Content, Edit, Entry, WorldSpec, mix};

/// The kinds of the naive tree.
#[derive(Debug)]
pub struct Naive;

impl Kinds for Naive {
    type Node = Arc<Spot>;
    type Open = Arc<Handle>;
}

/// A place in the tree: names, of which the first `base` were the attach's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spot {
    base: usize,
    path: Vec<String>,
    is_dir: bool,
}

/// An open file or directory.
#[derive(Debug)]
pub struct Handle {
    spot: Arc<Spot>,
    /// Of a directory: the names taken by the last read from the start.
    names: Vec<String>,
}

/// The tree.
#[derive(Debug)]
pub struct Model {
    disk: Mutex<Disk>,
}

impl Model {
    /// The tree over a world.
    pub fn new(spec: &WorldSpec) -> Self {
        let mut disk = Disk::new();
        for (path, entry) in spec.entries() {
            disk.make(path, entry);
        }
        Self { disk: Mutex::new(disk) }
    }

    /// Changes the world.
    pub fn edit(&self, edit: &Edit) {
        self.disk(|disk| disk.edit(edit));
    }

    fn disk<T>(&self, then: impl FnOnce(&mut Disk) -> T) -> T {
        // A case that failed while it held the lock has said so; what it left behind is still a disk.
        then(&mut self.disk.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Backend<Naive> for Model {
    fn perform(&self, ask: Ask<Naive>, room: Room<'_>, _: Effort, _: Now) -> Progress<Naive> {
        Progress::Done(self.disk(|disk| disk.answer(ask, room)))
    }
}

/// A world in memory.
#[derive(Debug)]
struct Disk {
    files: BTreeMap<u64, File>,
    /// Path to file number.
    paths: BTreeMap<Vec<u8>, u64>,
    next: u64,
    /// What was last written to the control file.
    control: Vec<u8>,
}

#[derive(Debug)]
struct File {
    kind: Kind,
    content: Content,
    mtime_s: u32,
    revision: u32,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Kind {
    Dir,
    File,
    Link,
    Other,
}

/// What a path of the tree leads to.
#[derive(Copy, Clone, Debug)]
enum Found<'a> {
    /// The root of all.
    Top,
    /// The file that may be written.
    Control,
    /// Something on the disk.
    File(u64, &'a File),
}

impl Disk {
    fn new() -> Self {
        let mut disk = Self { files: BTreeMap::new(), paths: BTreeMap::new(), next: 1, control: Vec::new() };
        for root in Root::HARNESSES {
            disk.make(root.as_str().as_bytes(), &Entry::Dir);
        }
        // These are in the tree whether or not there is anything behind them.
        for always in ["claude/projects", "codex/sessions"] {
            disk.make(always.as_bytes(), &Entry::Dir);
        }
        disk
    }

    fn make(&mut self, path: &[u8], entry: &Entry) {
        if let Some(slash) = path.iter().rposition(|&byte| byte == b'/') {
            if !self.paths.contains_key(&path[..slash]) {
                self.make(&path[..slash], &Entry::Dir);
            }
            self.touch_directory(&path[..slash]);
        }
        if let Entry::HardLink(to) = entry {
            let number = self.paths[to];
            self.paths.insert(path.to_vec(), number);
            return;
        }
        let (kind, content) = match entry {
            Entry::Dir if self.paths.contains_key(path) => return,
            Entry::Dir => (Kind::Dir, Content::Bytes(Vec::new())),
            Entry::File(content) => (Kind::File, content.clone()),
            Entry::Link(_) => (Kind::Link, Content::Bytes(Vec::new())),
            Entry::Fifo | Entry::Socket => (Kind::Other, Content::Bytes(Vec::new())),
            Entry::HardLink(_) => unreachable!("handled above"),
        };
        assert!(!self.paths.contains_key(path), "{} is there already", path.escape_ascii());
        self.files.insert(self.next, File { kind, content, mtime_s: START_S, revision: 1 });
        self.paths.insert(path.to_vec(), self.next);
        self.next += 1;
    }

    fn touch_directory(&mut self, path: &[u8]) {
        let number = self.paths[path];
        self.files.entry(number).and_modify(|file| file.revision += 1);
    }

    fn edit(&mut self, edit: &Edit) {
        match edit {
            Edit::Make(path, entry) => self.make(path, entry),
            Edit::Write(path, bytes) => self.change(path, |_| bytes.clone()),
            Edit::Append(path, bytes) => self.change(path, |old| [&old[..], bytes].concat()),
            Edit::Touch(path, seconds) => {
                let number = self.paths[path];
                self.files.entry(number).and_modify(|file| {
                    file.mtime_s = *seconds;
                    file.revision += 1;
                });
            }
            Edit::Remove(path) => {
                let below = [&path[..], b"/"].concat();
                self.paths.retain(|other, _| other != path && !other.starts_with(&below));
            }
            Edit::Rename(from, to) => {
                self.edit(&Edit::Remove(to.clone()));
                let below = [&from[..], b"/"].concat();
                let (moved, stayed): (BTreeMap<_, _>, _) = std::mem::take(&mut self.paths)
                    .into_iter()
                    .partition(|(path, _)| path == from || path.starts_with(&below));
                self.paths = stayed;
                assert!(!moved.is_empty(), "{} is not there", from.escape_ascii());
                let renamed = |path: Vec<u8>| [to, &path[from.len()..]].concat();
                self.paths.extend(moved.into_iter().map(|(path, number)| (renamed(path), number)));
            }
        }
    }

    fn change(&mut self, path: &[u8], change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
        let number = self.paths[path];
        if let Some(file) = self.files.get_mut(&number) {
            file.content = Content::Bytes(change(file.content.to_bytes()));
            file.mtime_s += 1;
            file.revision += 1;
        }
    }

    fn answer(&mut self, ask: Ask<Naive>, room: Room<'_>) -> Outcome<Naive> {
        match ask {
            Ask::Attach { aname, .. } => self.attach(&aname),
            Ask::Walk { from, names } => self.walk(&from, &names),
            Ask::Stat { node } => self.stat(&node, room),
            Ask::Change { node, change } => self.set(&node, change),
            Ask::Open { node, mode } => self.open(node, mode),
            Ask::Read { open, offset } => self.read(&open, offset, room),
            Ask::List { open, from } => self.list(&open, from, room),
            Ask::Write { open, data, .. } => {
                self.at(&open.spot)?;
                self.control = data.to_vec();
                Ok(Answer::Wrote(data.len() as u32))
            }
        }
    }

    fn attach(&self, aname: &[u8]) -> Outcome<Naive> {
        let mut names = aname.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
        if names.clone().any(|name| name == b"..") {
            return Err(Refusal::NOT_FOUND);
        }
        let top = Spot { base: 0, path: Vec::new(), is_dir: true };
        let spot = names.try_fold(top, |at, name| self.step(&at, name))?;
        let qid = self.find(&spot.path)?.qid();
        if qid.kind != QTDIR {
            return Err(Refusal::NOT_A_DIRECTORY);
        }
        Ok(Answer::Attached { qid, root: Arc::new(Spot { base: spot.path.len(), ..spot }) })
    }

    fn walk(&self, from: &Spot, names: &Path) -> Outcome<Naive> {
        self.at(from)?;
        let mut qids = Qids::new();
        let mut at = from.clone();
        for name in names.iter() {
            let next = self.step(&at, name).and_then(|next| Ok((self.find(&next.path)?.qid(), next)));
            match next {
                Ok((qid, next)) => {
                    qids.push(qid);
                    at = next;
                }
                Err(refusal) if qids.is_empty() => return Err(refusal),
                Err(_) => return Ok(Answer::Walked { qids, end: None }),
            }
        }
        Ok(Answer::Walked { qids, end: Some(Arc::new(at)) })
    }

    fn step(&self, at: &Spot, name: &[u8]) -> Result<Spot, Refusal> {
        if self.at(at)?.qid().kind != QTDIR {
            return Err(Refusal::NOT_A_DIRECTORY);
        }
        let mut next = at.clone();
        if name == b".." {
            if next.path.len() > next.base {
                next.path.pop();
                next.is_dir = true;
            }
            return Ok(next);
        }
        next.path.push(String::from_utf8(name.to_vec()).map_err(|_| Refusal::NOT_FOUND)?);
        next.is_dir = self.find(&next.path)?.qid().kind == QTDIR;
        Ok(next)
    }

    /// What stands at a place, if it still is a directory or still is none.
    fn at(&self, spot: &Spot) -> Result<Found<'_>, Refusal> {
        let found = self.find(&spot.path)?;
        if (found.qid().kind == QTDIR) == spot.is_dir { Ok(found) } else { Err(Refusal::NOT_FOUND) }
    }

    /// What a path leads to, if every step of it may be seen.
    fn find(&self, path: &[String]) -> Result<Found<'_>, Refusal> {
        let Some((first, below)) = path.split_first() else { return Ok(Found::Top) };
        if first == CONTROL && below.is_empty() {
            return Ok(Found::Control);
        }
        let (root, path) = on_disk(first, below).ok_or(Refusal::NOT_FOUND)?;
        if path.iter().skip(1).any(|name| Name::vet(name.as_bytes(), root).is_none()) {
            return Err(Refusal::NOT_FOUND);
        }
        let number = self.paths.get(path.join("/").as_bytes()).ok_or(Refusal::NOT_FOUND)?;
        match self.files.get(number) {
            Some(file) if file.kind != Kind::Link => Ok(Found::File(*number, file)),
            _ => Err(Refusal::NOT_FOUND),
        }
    }

    fn stat(&self, spot: &Spot, mut room: Room<'_>) -> Outcome<Naive> {
        let name = spot.path.last().map_or("/", String::as_str);
        if room.stat(&self.at(spot)?.stat(name)) {
            Ok(Answer::Stat { bytes: room.used() })
        } else {
            Err(Refusal::NAME_TOO_LONG)
        }
    }

    fn set(&self, spot: &Spot, change: Change) -> Outcome<Naive> {
        match self.at(spot)? {
            Found::Control if !change.other => Ok(Answer::Changed),
            _ => Err(Refusal::VIEW),
        }
    }

    fn open(&self, spot: Arc<Spot>, mode: Mode) -> Outcome<Naive> {
        let found = self.at(&spot)?;
        if let Found::File(_, file) = found
            && file.kind != Kind::Dir
        {
            file.may_be_read(&spot.path)?;
        }
        if (mode.write || mode.truncate) && !matches!(found, Found::Control) {
            return Err(Refusal::PERMISSION_DENIED);
        }
        let qid = found.qid();
        let open = Arc::new(Handle { spot, names: Vec::new() });
        Ok(Answer::Opened { qid, open, list: qid.kind == QTDIR })
    }

    fn read(&self, open: &Handle, offset: u64, mut room: Room<'_>) -> Outcome<Naive> {
        let Found::File(_, file) = self.at(&open.spot)? else {
            return Ok(Answer::Bytes(0));
        };
        file.may_be_read(&open.spot.path)?;
        Ok(Answer::Bytes(file.content.read_at(offset, room.bytes()) as u32))
    }

    fn list(&self, open: &Arc<Handle>, from: u32, mut room: Room<'_>) -> Outcome<Naive> {
        let taken = if from == 0 {
            self.at(&open.spot)?;
            let names = self.names(&open.spot.path)?;
            Some(Arc::new(Handle { spot: Arc::clone(&open.spot), names }))
        } else {
            None
        };
        let names = &taken.as_ref().unwrap_or(open).names;
        let mut next = from;
        for name in names.iter().skip(from as usize) {
            let path: Vec<_> = open.spot.path.iter().chain([name]).cloned().collect();
            if let Ok(found) = self.find(&path)
                && !room.pack(&found.stat(name), next)
            {
                break;
            }
            next += 1;
        }
        Ok(Answer::Listed { bytes: room.used(), next, open: taken })
    }

    /// The names in a directory, sorted by their bytes.
    fn names(&self, path: &[String]) -> Result<Vec<String>, Refusal> {
        self.find(path)?;
        let candidates: Vec<String> = match path {
            [] => {
                Root::HARNESSES.iter().map(|root| root.as_str()).chain([CONTROL]).map(str::to_owned).collect()
            }
            [root] if parts(root).is_some() => {
                parts(root).unwrap_or_default().iter().map(|part| part.0.to_owned()).collect()
            }
            path => {
                let below = [path.join("/").as_bytes(), b"/"].concat();
                let inside =
                    self.paths.range(below.clone()..).map_while(|(other, _)| other.strip_prefix(&below[..]));
                let names = inside.filter(|rest| !rest.contains(&b'/'));
                names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect()
            }
        };
        let is_there = |name: &String| self.find(&[path, std::slice::from_ref(name)].concat()).is_ok();
        let mut names: Vec<String> = candidates.into_iter().filter(is_there).collect();
        names.sort();
        Ok(names)
    }
}

/// Where a path of the tree lies on the disk, if it is served at all.
fn on_disk(first: &str, below: &[String]) -> Option<(Root, Vec<String>)> {
    let root = Root::HARNESSES.into_iter().find(|root| root.as_str() == first)?;
    let mut path = vec![first.to_owned()];
    path.extend_from_slice(below);
    if let (Some(parts), Some(name)) = (parts(first), path.get_mut(1)) {
        *name = parts.iter().find(|part| part.0 == name)?.1.to_owned();
    }
    Some((root, path))
}

/// What is served of a root that is not served whole: name in the tree, name on the disk.
fn parts(root: &str) -> Option<&'static [(&'static str, &'static str)]> {
    match root {
        "claude" => Some(&[("projects", "projects"), ("skills", "skills"), ("history", "history.jsonl")]),
        "codex" => Some(&[
            ("sessions", "sessions"),
            ("session-index", "session_index.jsonl"),
            ("history", "history.jsonl"),
        ]),
        _ => None,
    }
}

impl File {
    /// Whether the file, under the name it has in the tree, may be opened and read.
    fn may_be_read(&self, path: &[String]) -> Result<(), Refusal> {
        match self.kind {
            Kind::File => {}
            Kind::Dir => return Err(Refusal::IS_A_DIRECTORY),
            Kind::Link | Kind::Other => return Err(Refusal::NOT_REGULAR),
        }
        let mut head = [0; DATABASE_HEAD_BYTES];
        let count = self.content.read_at(0, &mut head);
        let root =
            Root::HARNESSES.into_iter().find(|root| path.first().is_some_and(|first| root.as_str() == first));
        let name =
            path.last().zip(root).and_then(|(name, root)| Some((Name::vet(name.as_bytes(), root)?, root)));
        let is_served = name.is_some_and(|(name, root)| name.is_served_database(root));
        if is_database(&head[..count]) && !is_served { Err(Refusal::HIDDEN_DATABASE) } else { Ok(()) }
    }
}

impl Found<'_> {
    fn qid(&self) -> Qid {
        match *self {
            Self::Top => Qid { kind: QTDIR, version: 1, path: mix(0) },
            Self::Control => Qid { kind: QTFILE, version: 1, path: mix(u64::MAX) },
            Self::File(number, file) => Qid {
                kind: if file.kind == Kind::Dir { QTDIR } else { QTFILE },
                version: file.revision,
                path: mix(number),
            },
        }
    }

    fn stat<'n>(&self, name: &'n str) -> Stat<'n> {
        let qid = self.qid();
        let (length, mtime_s) = match self {
            Self::Top | Self::Control => (0, START_S),
            Self::File(_, file) if file.kind == Kind::File => (file.content.len(), file.mtime_s),
            Self::File(_, file) => (0, file.mtime_s),
        };
        let time_ns = i64::from(mtime_s) * 1_000_000_000;
        Stat {
            qid,
            name,
            perm: match self {
                Self::Control => 0o644,
                _ if qid.kind == QTDIR => 0o555,
                _ => 0o444,
            },
            length,
            mtime_ns: time_ns,
            atime_ns: time_ns,
            ctime_ns: time_ns,
            btime_ns: None,
            uid: 1000,
            gid: 1000,
            user: "glenda",
            group: "glenda",
        }
    }
}

/// The name, at the root, of the one file that may be written.
pub const CONTROL: &str = "control";

/// When every file was made.
const START_S: u32 = 1_700_000_000;
