//! The tree as the contract tells it, looked up in the plainest way.
//!
//! Owns: what stands at a path of the tree while nothing changes: its record, its text, its entries. It is the oracle
//! beside the backend, written from the contract and sharing no code with it: where the two differ, one of them is wrong.
//! Must not know: sessions, fids, and how the backend does it.
//!
//! It looks at a copy of the machine, through the same calls but without faults. What is hidden it takes from the scene.

use std::collections::BTreeMap;

use backend::host::fixture::{Fixture, World};
use backend::host::{Errno, File, Host, Kind, Meta, Time};
use backend::name::{Rel, Root};
use engine::port::{Effort, Now};
use proto::{Attr, DMDIR, Dialect, QTDIR, QTFILE, Qid, Refusal, Stat};

use super::client::Held;
use super::truth::{Being, Spot, Truth};
use crate::plan::Prepared;

/// The tree over a machine as it is now.
pub(super) struct Oracle<'a> {
    prepared: &'a Prepared,
    machine: Fixture,
    /// When the daemon was started.
    start: Now,
}

/// What makes a file the file that it is.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Identity {
    /// Device, inode, birth time, handle.
    File(u64, u64, Option<Time>, u64),
    /// A path of the tree.
    Derived(String),
}

/// What moves when a file does.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Version {
    /// This number (contract 4).
    Is(u32),
    /// Some number, always the same for the same text and another for another.
    Of(String),
    /// Some number, always the same for the same text.
    By(String),
}

/// What stands at a path.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Which file it is.
    pub(super) identity: Identity,
    /// Which version of it.
    pub(super) version: Version,
    /// Whether it is a directory.
    pub(super) dir: bool,
    length: u64,
    mtime: Time,
    atime: Time,
    ctime: Time,
    btime: Option<Time>,
    uid: u32,
    gid: u32,
    /// It is there, empty, even where its target cannot be reached.
    always: bool,
}

/// Where a path leads.
enum Place {
    Derived { dir: bool, text: String },
    Mirror { mirror: &'static Mirror, root: Root, rel: Rel, top: bool },
}

/// A directory or file of a root, and where it is in the tree.
struct Mirror {
    path: &'static [&'static str],
    root: Root,
    target: &'static str,
    dir: bool,
    /// It is there, empty, even while its target is not.
    always: bool,
}

/// An entry of a directory: its number, its name, and what it is.
pub(super) type Entries = Vec<(u32, String, Result<Seen, Refusal>)>;

impl<'a> Oracle<'a> {
    /// Over a copy of a machine.
    pub(super) fn new(prepared: &'a Prepared, world: World, start: Now) -> Self {
        Self { prepared, machine: Fixture::new(world), start }
    }

    /// What stands at a path, given as names from the root.
    pub(super) fn see(&self, path: &[String]) -> Result<Seen, Refusal> {
        if let Some((being, below)) = self.agent(path) {
            return self.live(path, &being.ok_or(Refusal::NOT_FOUND)?, &below);
        }
        match self.place(path)? {
            Place::Derived { dir, text } => Ok(self.derived(path, dir, text)),
            Place::Mirror { mirror, root, rel, top } => match self.stat(root, &rel) {
                Ok(meta) if !top || (meta.kind == Kind::Dir) == mirror.dir => {
                    if top && !mirror.dir && meta.kind != Kind::File {
                        return Err(Refusal::NOT_FOUND);
                    }
                    Ok(Seen { always: top && mirror.always, ..of_file(&meta) })
                }
                _ if top && mirror.always => Ok(self.derived(path, true, String::new())),
                Ok(_) => Err(Refusal::NOT_FOUND),
                Err(errno) => Err(refusal(errno)),
            },
        }
    }

    /// Whether what stands at a path depends on more than can be seen now.
    pub(super) fn is_unsure(&self, path: &[String]) -> bool {
        let dozes = |being: &Being| being.dozes;
        match (self.agent(path), path) {
            (Some((being, below)), _) => {
                // A subagent is where it was found, whatever has become of the session since.
                let is_of_another =
                    below.first() == Some(&"agents") && below.len() > 1 && self.see(path).is_err();
                is_of_another || being.as_ref().is_some_and(dozes)
            }
            (None, [active, harness]) if active == "active" => self.truth().agents(harness).iter().any(dozes),
            _ => false,
        }
    }

    /// Whether a fid that leads to something of an agent leads to the one that is there now; `None` if that is not known.
    /// Of all that is no agent's there is only one.
    pub(super) fn is_same_agent(&self, qids: &Qids, held: &Held) -> Option<bool> {
        let Some((being, _)) = self.agent(&held.path) else { return Some(true) };
        let Some(being) = being else { return Some(false) };
        let (known, agent) = (qids.paths.get(&of_agent(&being, &held.path[..3])), held.agent?);
        match known {
            Some(known) => Some(*known == agent),
            None => qids.files.contains_key(&agent).then_some(false),
        }
    }

    /// The agent that a path leads to or into, and what is behind its directory.
    fn agent<'p>(&self, path: &'p [String]) -> Option<(Option<Being>, Vec<&'p str>)> {
        let [active, harness, pid, below @ ..] = path else { return None };
        if active != "active" || !HARNESSES.contains(&harness.as_str()) {
            return None;
        }
        let number = pid.parse().ok().filter(|number: &u32| number.to_string() == *pid);
        let being =
            number.and_then(|pid| self.truth().being(pid)).filter(|being| being.life.harness == harness);
        Some((being, below.iter().map(String::as_str).collect()))
    }

    /// Whose session a path is a part of; 0 if of nobody's. `None`: a part of no session.
    pub(super) fn session(&self, path: &[String]) -> Option<u64> {
        let (being, below) = self.agent(path)?;
        matches!(below[..], [.., "transcript"] | ["chat", _]).then(|| {
            let found = being.and_then(|being| self.truth().found(&being.life));
            found.map_or(0, |found| found.whose.serial)
        })
    }

    fn truth(&self) -> Truth<'_> {
        Truth::new(&self.machine, &self.prepared.lives)
    }

    fn live(&self, path: &[String], being: &Being, below: &[&str]) -> Result<Seen, Refusal> {
        let (spot, at_ns) = self.truth().spot(being, below)?;
        let seen = match spot {
            Spot::File(_, _, meta) => return Ok(of_file(&meta)),
            Spot::Dir => self.derived(path, true, String::new()),
            Spot::Text(text) => self.derived(path, false, text),
            Spot::Message(text, from) => {
                let length = text.len() as u64;
                Seen { length, version: Version::By(from), ..self.derived(path, false, String::new()) }
            }
        };
        let time =
            Time { sec: at_ns.div_euclid(1_000_000_000), nsec: at_ns.rem_euclid(1_000_000_000) as u32 };
        let identity = of_agent(being, path);
        Ok(Seen { identity, mtime: time, atime: time, ctime: time, ..seen })
    }

    /// The qid that opening a file for reading tells.
    pub(super) fn open(&self, path: &[String]) -> Result<Seen, Refusal> {
        if let Ok(Place::Mirror { mirror: Mirror { dir: false, .. }, root, rel, top: true }) =
            self.place(path)
        {
            // It has no entry any more once it is no file, but opening what is not regular is refused in words of its own.
            self.content_of(root, &rel)?;
        }
        let seen = self.see(path)?;
        if let Some((being, below)) = self.agent(path) {
            if let Spot::File(root, rel, _) = self.truth().spot(&being.ok_or(Refusal::NOT_FOUND)?, &below)?.0
            {
                self.content_of(root, &rel)?;
            }
            return Ok(seen);
        }
        if let Place::Mirror { root, rel, .. } = self.place(path)?
            && !seen.dir
        {
            self.content_of(root, &rel)?;
        }
        Ok(seen)
    }

    /// All that a file holds.
    pub(super) fn content(&self, path: &[String]) -> Result<Vec<u8>, Refusal> {
        if let Some((being, below)) = self.agent(path) {
            return match self.truth().spot(&being.ok_or(Refusal::NOT_FOUND)?, &below)?.0 {
                Spot::Dir => Err(Refusal::IS_A_DIRECTORY),
                Spot::Text(text) | Spot::Message(text, _) => Ok(text.into_bytes()),
                Spot::File(root, rel, _) => self.content_of(root, &rel),
            };
        }
        match self.place(path)? {
            Place::Derived { text, .. } => Ok(text.into_bytes()),
            Place::Mirror { root, rel, .. } => self.content_of(root, &rel),
        }
    }

    /// Whether a path leads to a file whose text this program makes.
    pub(super) fn is_derived(&self, path: &[String]) -> bool {
        if let Some((_, below)) = self.agent(path) {
            return !matches!(below[..], [.., "transcript"] | ["chat", _]);
        }
        matches!(self.place(path), Ok(Place::Derived { .. }))
    }

    /// The entries of a directory, sorted. One that is not there (any more) is left out; its number is not.
    pub(super) fn entries(&self, path: &[String]) -> Result<Entries, Refusal> {
        if let Some((being, below)) = self.agent(path) {
            let being = being.ok_or(Refusal::NOT_FOUND)?;
            self.live(path, &being, &below)?;
            return Ok(self.entries_of(path, self.truth().names(&being, &below)));
        }
        let names = match self.place(path)? {
            Place::Derived { .. } if path.len() == 2 && path[0] == "active" => {
                let agents = self.truth().agents(&path[1]);
                agents.iter().map(|being| being.life.pid.to_string()).collect()
            }
            Place::Derived { .. } => children(path),
            Place::Mirror { mirror, root, rel, top } => match self.names(root, &rel) {
                Ok(names) => names,
                Err(Errno::NOENT | Errno::NOTDIR) if top && mirror.always => Vec::new(),
                Err(Errno::NOTDIR) => return Err(Refusal::NOT_FOUND),
                Err(errno) => return Err(refusal(errno)),
            },
        };
        Ok(self.entries_of(path, names))
    }

    fn entries_of(&self, path: &[String], names: Vec<String>) -> Entries {
        let mut entries = Vec::new();
        for (number, name) in names.into_iter().enumerate() {
            let below = [path, std::slice::from_ref(&name)].concat();
            match self.see(&below) {
                Err(why) if why == Refusal::NOT_FOUND || why == Refusal::NOT_A_DIRECTORY => {}
                seen => entries.push((number as u32, name, seen)),
            }
        }
        entries
    }

    fn names(&self, root: Root, rel: &Rel) -> Result<Vec<String>, Errno> {
        let (dir, _) = self.machine.open_dir(root, rel)?;
        let mut names = Vec::new();
        dir.names(&mut |name| {
            if let Ok(name) = str::from_utf8(name)
                && !self.prepared.scene.hides(name)
            {
                names.push(name.to_owned());
            }
            true
        })?;
        names.sort();
        Ok(names)
    }

    fn content_of(&self, root: Root, rel: &Rel) -> Result<Vec<u8>, Refusal> {
        let (file, meta) = self.machine.open(root, rel, Effort::Full).map_err(|errno| match errno {
            Errno::PERM => Refusal::NOT_REGULAR,
            Errno::ISDIR => Refusal::NOT_FOUND,
            errno => refusal(errno),
        })?;
        let mut bytes = vec![0; meta.size as usize];
        File::read_at(&*file, &mut bytes, 0, Effort::Full).map_err(refusal)?;
        let listed =
            rel.name().is_some_and(|name| self.prepared.scene.databases.contains(&(root.as_str(), name)));
        if bytes.starts_with(b"SQLite format 3\0") && !listed {
            return Err(Refusal::HIDDEN_DATABASE);
        }
        Ok(bytes)
    }

    fn place(&self, path: &[String]) -> Result<Place, Refusal> {
        if let Some(mirror) = MIRRORS.iter().find(|mirror| begins(path, mirror.path)) {
            let below = &path[mirror.path.len()..];
            let plain = |name: &String| {
                !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
            };
            if below.iter().any(|name| !plain(name) || self.prepared.scene.hides(name)) {
                return Err(Refusal::NOT_FOUND);
            }
            let target = (!mirror.target.is_empty()).then_some(mirror.target);
            let rel =
                target.into_iter().chain(below.iter().map(String::as_str)).collect::<Vec<_>>().join("/");
            let rel = if rel.is_empty() { Some(Rel::base()) } else { Rel::from_harness(&rel) };
            let rel = rel.ok_or(Refusal::NOT_FOUND)?;
            return Ok(Place::Mirror { mirror, root: mirror.root, rel, top: below.is_empty() });
        }
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = match names[..] {
            [] | ["claude" | "codex" | "skills" | "active"] => None,
            ["active", harness] if HARNESSES.contains(&harness) => None,
            ["README"] => Some(README.to_owned()),
            ["pid"] => Some(format!("{}\n", self.machine.me().pid)),
            ["uptime"] => {
                let ns = self.machine.now().mono_ns - self.start.mono_ns;
                Some(format!("{}\n", ns / 1_000_000_000))
            }
            _ => return Err(Refusal::NOT_FOUND),
        };
        Ok(Place::Derived { dir: text.is_none(), text: text.unwrap_or_default() })
    }

    fn derived(&self, path: &[String], dir: bool, text: String) -> Seen {
        let me = self.machine.me();
        let time = Time {
            sec: self.start.wall_ns.div_euclid(1_000_000_000),
            nsec: self.start.wall_ns.rem_euclid(1_000_000_000) as u32,
        };
        Seen {
            identity: Identity::Derived(path.join("/")),
            length: text.len() as u64,
            version: Version::Of(text),
            dir,
            mtime: time,
            atime: time,
            ctime: time,
            btime: None,
            uid: me.uid,
            gid: me.gid,
            always: false,
        }
    }

    fn stat(&self, root: Root, rel: &Rel) -> Result<Meta, Errno> {
        match self.machine.stat(root, rel, Effort::Full)? {
            meta if meta.kind == Kind::Link => Err(Errno::NOENT),
            meta => Ok(meta),
        }
    }

    /// The stat record of something, as it travels in 9P2000 and 9P2000.u.
    pub(super) fn record(&self, seen: &Seen, name: &str, qid: Qid, dialect: Dialect, into: &mut Vec<u8>) {
        let user = self.machine.user(seen.uid).map_or_else(|| seen.uid.to_string(), |name| name.to_string());
        let group =
            self.machine.group(seen.gid).map_or_else(|| seen.gid.to_string(), |name| name.to_string());
        let seconds = |time: Time| time.sec.clamp(0, i64::from(u32::MAX)) as u32;
        let stat = Stat {
            kind: 0,
            dev: 0,
            qid,
            mode: if seen.dir { DMDIR | 0o555 } else { 0o444 },
            atime: seconds(seen.atime),
            mtime: seconds(seen.mtime),
            length: seen.length,
            name: name.as_bytes(),
            uid: user.as_bytes(),
            gid: group.as_bytes(),
            muid: user.as_bytes(),
            extension: b"",
            n_uid: seen.uid,
            n_gid: seen.gid,
            n_muid: seen.uid,
        };
        let start = into.len();
        into.resize(start + stat.encoded_len(dialect), 0);
        stat.encode(dialect, &mut into[start..]).expect("a record that fits");
    }
}

impl Seen {
    /// Whether an empty directory stands in for it where it cannot be reached.
    pub(super) fn may_stand_in(&self) -> bool {
        self.always
    }

    /// The attributes, as 9P2000.L tells them.
    pub(super) fn attr(&self, qid: Qid) -> Attr {
        let seconds = |time: Time| time.sec as u64;
        let nanoseconds = |time: Time| u64::from(time.nsec);
        let btime = self.btime.unwrap_or_default();
        Attr {
            valid: proto::GETATTR_BASIC | if self.btime.is_some() { proto::GETATTR_BTIME } else { 0 },
            qid,
            mode: if self.dir { proto::S_IFDIR | 0o555 } else { proto::S_IFREG | 0o444 },
            uid: self.uid,
            gid: self.gid,
            nlink: 1,
            rdev: 0,
            size: self.length,
            blksize: 4096,
            blocks: self.length.div_ceil(512),
            atime_sec: seconds(self.atime),
            atime_nsec: nanoseconds(self.atime),
            mtime_sec: seconds(self.mtime),
            mtime_nsec: nanoseconds(self.mtime),
            ctime_sec: seconds(self.ctime),
            ctime_nsec: nanoseconds(self.ctime),
            btime_sec: seconds(btime),
            btime_nsec: nanoseconds(btime),
            generation: 0,
            data_version: 0,
        }
    }
}

/// The qids seen in a run: which file each path stands for, and which text each version of a derived file.
#[derive(Debug, Default)]
pub(super) struct Qids {
    paths: BTreeMap<Identity, u64>,
    files: BTreeMap<u64, Identity>,
    versions: BTreeMap<(Identity, String), u32>,
    texts: BTreeMap<(Identity, u32), String>,
}

impl Qids {
    /// Holds a qid to what it should be of.
    ///
    /// # Panics
    /// If it says something else.
    pub(super) fn hold(&mut self, seen: &Seen, qid: Qid) {
        assert_eq!(qid.kind, if seen.dir { QTDIR } else { QTFILE }, "the kind of {seen:?}");
        let derived = matches!(seen.identity, Identity::Derived(_));
        assert_eq!(qid.path >> 63 == 1, derived, "the space of qid paths of {seen:?}");
        let path = *self.paths.entry(seen.identity.clone()).or_insert(qid.path);
        assert_eq!(path, qid.path, "one file has two qid paths: {seen:?}");
        let file = self.files.entry(qid.path).or_insert_with(|| seen.identity.clone());
        assert_eq!(*file, seen.identity, "two files have one qid path");
        match &seen.version {
            Version::Is(version) => assert_eq!(qid.version, *version, "the version of {seen:?}"),
            Version::Of(text) | Version::By(text) => {
                let version =
                    *self.versions.entry((seen.identity.clone(), text.clone())).or_insert(qid.version);
                assert_eq!(version, qid.version, "one text has two versions: {seen:?}");
                if matches!(seen.version, Version::By(_)) {
                    return;
                }
                let of = self.texts.entry((seen.identity.clone(), version)).or_insert_with(|| text.clone());
                assert_eq!(of, text, "two texts have one version: {seen:?}");
            }
        }
    }
}

/// The identity of an agent's directory, or of what is in it: of this process, and no other that has its pid.
fn of_agent(being: &Being, path: &[String]) -> Identity {
    Identity::Derived(format!("{}@{}", path.join("/"), being.life.serial))
}

fn of_file(meta: &Meta) -> Seen {
    let dir = meta.kind == Kind::Dir;
    Seen {
        identity: Identity::File(meta.dev, meta.ino, meta.btime, meta.handle),
        version: Version::Is(meta.mtime.sec as u32 ^ meta.mtime.nsec ^ (meta.size << 8) as u32),
        dir,
        length: if meta.kind == Kind::File { meta.size } else { 0 },
        mtime: meta.mtime,
        atime: meta.atime,
        ctime: meta.ctime,
        btime: meta.btime,
        uid: meta.uid,
        gid: meta.gid,
        always: false,
    }
}

fn refusal(errno: Errno) -> Refusal {
    match errno {
        Errno::LOOP | Errno::NAMETOOLONG => Refusal::NOT_FOUND,
        errno => Refusal::from_errno(errno.raw_os_error().unsigned_abs()),
    }
}

fn begins(path: &[String], with: &[&str]) -> bool {
    path.len() >= with.len() && path.iter().zip(with).all(|(name, of)| name == of)
}

/// What a directory of the tree's own may have in it, sorted.
fn children(path: &[String]) -> Vec<String> {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let names: &[&str] = match names[..] {
        [] => &["README", "active", "claude", "codex", "dsh", "hermes", "omp", "pid", "skills", "uptime"],
        ["claude"] => &["history", "projects", "skills"],
        ["codex"] => &["history", "session-index", "sessions"],
        ["skills"] => &["claude", "codex", "omp"],
        ["active"] => &HARNESSES,
        _ => &[],
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

const HARNESSES: [&str; 5] = ["claude", "codex", "dsh", "hermes", "omp"];

const MIRRORS: &[Mirror] = &[
    dir(&["omp"], Root::Omp, "", true),
    dir(&["hermes"], Root::Hermes, "", true),
    dir(&["dsh"], Root::Dsh, "", true),
    dir(&["claude", "projects"], Root::Claude, "projects", true),
    dir(&["claude", "skills"], Root::Claude, "skills", false),
    file(&["claude", "history"], Root::Claude, "history.jsonl"),
    dir(&["codex", "sessions"], Root::Codex, "sessions", true),
    file(&["codex", "session-index"], Root::Codex, "session_index.jsonl"),
    file(&["codex", "history"], Root::Codex, "history.jsonl"),
    dir(&["skills", "claude"], Root::Claude, "skills", false),
    dir(&["skills", "codex"], Root::Codex, "skills", false),
    dir(&["skills", "omp"], Root::Omp, "skills", false),
];

const fn dir(path: &'static [&'static str], root: Root, target: &'static str, always: bool) -> Mirror {
    Mirror { path, root, target, dir: true, always }
}

const fn file(path: &'static [&'static str], root: Root, target: &'static str) -> Mirror {
    Mirror { path, root, target, dir: false, always: false }
}

/// What it says is the tree's own business; that it is said whole is ours.
const README: &str = include_str!("../../../backend/src/tree/README.txt");
