//! What is known of each harness: one module for each, and what they share.
//!
//! Owns: the [`Harness`] contract, the table of harnesses, and the values a harness answers with. Must not know: the tree,
//! or how a process table is scanned. A new harness is one module and one line in [`of`].
//!
//! A harness says which program is one of its agents, which session such a process is in and by what route that is
//! known, and reads the records that tell title, model and subagents. It reads everything through the host, below its
//! pinned root, by names of its own grammar, a bounded piece at a time, and answers "not known" rather than guess: no
//! content of a file, and no failure to read one, is an error here.

pub(crate) mod claude;
pub(crate) mod codex;
mod dsh;
mod hermes;
mod json;
mod lines;
mod omp;
mod program;
mod text;

use crate::chat::Format;
use crate::host::{File, Host, Kind, Meta};
use crate::name::{Name, Rel, Root};
use crate::process::{Environ, Process};
use crate::tree::halt::Halt;
use engine::port::Effort;

pub(crate) use program::Program;

/// What a process is to a harness.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// An agent.
    Agent,
    /// A program that starts the agent as a child of its own, and is the agent only where it has none.
    Wrapper,
    /// The harness's program at other work: a server, a worker, maintenance.
    Helper,
}

/// One harness.
pub(crate) trait Harness: Sync {
    /// What a program is to this harness; `None` if it is none of its programs.
    fn role(&self, program: &Program<'_>) -> Option<Role>;

    /// The environment variable that moves the root.
    fn home_variable(&self) -> &'static str;

    /// Whether the environment of a process says that its files are below another root than the pinned one.
    fn is_elsewhere(&self, scene: &Scene<'_>, environ: &Environ) -> bool {
        environ.value(self.home_variable()).is_some_and(|path| !scene.host.is_base(scene.root, path))
    }

    /// The processes that the harness itself has on record as running, whatever their program is called, of those whose
    /// names `candidates` knows, and what they are.
    fn vouched(
        &self,
        _scene: &Scene<'_>,
        _candidates: &dyn Fn(u32) -> Option<Process>,
    ) -> Result<Vec<(Process, Role)>, Torn> {
        Ok(Vec::new())
    }

    /// Which session a process is in, and what else the harness has on record of it. Asked only of an agent whose
    /// environment names no other root.
    fn resolve(&self, scene: &Scene<'_>, process: Process) -> Result<Resolved, Torn>;

    /// The arguments that resume a session, for the harness's own program; `None` where it has none for such a session. Nothing in
    /// them is a client's, and none but the first few can begin with `-`.
    fn resume(&self, scene: &Scene<'_>, process: Process, session: &Session) -> Option<Vec<Vec<u8>>>;

    /// What a session is about.
    fn title(&self, scene: &Scene<'_>, session: &Session) -> Option<String>;

    /// The model a transcript used last.
    fn model(&self, scene: &Scene<'_>, transcript: &Rel) -> Option<String>;

    /// Whose records its transcripts hold, if they can be told as a chat.
    fn format(&self) -> Option<Format> {
        None
    }

    /// Whether its sessions may have subagents with transcripts of their own.
    fn has_subagents(&self) -> bool;

    /// The subagents of a session that have transcripts of their own, sorted, each name once; `only` the one of that name,
    /// if one is given: then no record of another is read.
    fn subagents(
        &self,
        scene: &Scene<'_>,
        session: &Session,
        only: Option<&str>,
    ) -> Result<Vec<Subagent>, Halt>;
}

/// The harness whose files are below a root. The process table belongs to none.
pub(crate) fn of(root: Root) -> Option<&'static dyn Harness> {
    match root {
        Root::Claude => Some(&claude::Claude),
        Root::Codex => Some(&codex::Codex),
        Root::Omp => Some(&omp::Omp),
        Root::Hermes => Some(&hermes::Hermes),
        Root::Dsh => Some(&dsh::Dsh),
        Root::Proc => None,
    }
}

/// What a harness needs to know beside a process: the machine, and the time.
pub(crate) struct Scene<'a> {
    pub(crate) host: &'a dyn Host,
    /// The root of the harness.
    pub(crate) root: Root,
    /// When the machine was started, in seconds since 1970.
    pub(crate) boot_s: i64,
    /// The agents of the same harness that the last scan saw, this one among them.
    pub(crate) peers: &'a [Process],
    /// A torn record has been waited for: what is still torn is not there.
    pub(crate) last_try: bool,
}

/// A record that is being rewritten in place this very moment: to be read again a little later.
#[derive(Debug)]
pub(crate) struct Torn;

/// What a harness knows of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolved {
    pub(crate) session: Option<Session>,
    pub(crate) registered: Option<Registered>,
}

/// A session, and how it was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Session {
    /// The harness's own id of it: a UUID, or 1 to 64 of `[A-Za-z0-9_-]`.
    pub(crate) id: String,
    pub(crate) via: Via,
    /// Its transcript below the harness's root, a regular file when it was found.
    pub(crate) transcript: Option<Rel>,
}

/// What a harness's registry of live processes says of one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registered {
    pub(crate) name: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) cwd: Option<String>,
    /// When the record was written, in nanoseconds since 1970.
    pub(crate) mtime_ns: i64,
}

/// The route by which a session was found.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Via {
    /// The harness's registry of live processes names it.
    Registry,
    /// It succeeds the one the registry names.
    Clear,
    /// The process holds its transcript open.
    Fd,
    /// The process holds its lock.
    Lock,
    /// The breadcrumb of the process's terminal names it.
    Tty,
    /// It is the newest that was begun in the directory the process works in.
    Dir,
}

impl Via {
    /// As `/active/<harness>/<pid>/via` has it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::Clear => "clear",
            Self::Fd => "fd",
            Self::Lock => "lock",
            Self::Tty => "tty",
            Self::Dir => "dir",
        }
    }
}

/// A subagent with a transcript.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Subagent {
    /// Its entry in `agents/`.
    pub(crate) name: String,
    /// Its transcript below the harness's root.
    pub(crate) transcript: Rel,
}

impl Scene<'_> {
    /// When a process started, in milliseconds since 1970. The time of boot is known to the second.
    pub(crate) fn started_ms(&self, process: Process) -> i64 {
        let ticks = i64::try_from(process.start).unwrap_or(i64::MAX);
        self.boot_s.saturating_mul(1000).saturating_add(ticks.saturating_mul(1000 / USER_HZ))
    }

    /// Opens a regular file.
    fn open(&self, rel: &Rel) -> Option<(Box<dyn File>, Meta)> {
        self.host.open(self.root, rel, Effort::Full).ok()
    }

    /// What is known of a regular file.
    fn file(&self, rel: &Rel) -> Option<Meta> {
        self.host.stat(self.root, rel, Effort::Full).ok().filter(|meta| meta.kind == Kind::File)
    }

    /// The whole of a file of at most `limit` bytes, and what is known of it.
    fn read(&self, rel: &Rel, limit: usize) -> Option<(Vec<u8>, Meta)> {
        let (file, meta) = self.open(rel)?;
        let mut content = vec![0; usize::try_from(meta.size).ok()?.saturating_add(1).min(limit + 1)];
        let read = file.read_at(&mut content, 0, Effort::Full).ok()?;
        content.truncate(read);
        (read <= limit).then_some((content, meta))
    }

    /// The names in a directory that `keep` keeps; none if it cannot be listed whole or holds more than [`MOST_NAMES`].
    fn names(&self, rel: &Rel, keep: &dyn Fn(&str) -> bool) -> Vec<String> {
        let Ok((dir, _)) = self.host.open_dir(self.root, rel) else { return Vec::new() };
        let mut names = Vec::new();
        let listed = dir.names(&mut |name| {
            names.extend(str::from_utf8(name).ok().filter(|name| keep(name)).map(str::to_owned));
            names.len() <= MOST_NAMES
        });
        if listed.is_err() || names.len() > MOST_NAMES { Vec::new() } else { names }
    }

    /// The transcripts of the other agents that work in the same directory as `process`, by what `certain` says of each.
    /// `None` if it says nothing of one: then no transcript of that directory is anybody's for certain.
    fn rivals(
        &self,
        harness: &dyn Harness,
        process: Process,
        certain: &dyn Fn(Process) -> Option<Rel>,
    ) -> Option<Vec<Rel>> {
        let cwd = process.cwd(self.host)?;
        let is_rival = |peer: &Process| {
            *peer != process
                && peer.stat(self.host).is_ok()
                && peer.cwd(self.host).is_some_and(|theirs| theirs == cwd)
                && !peer.environ(self.host).is_some_and(|environ| harness.is_elsewhere(self, &environ))
        };
        self.peers.iter().copied().filter(is_rival).map(certain).collect()
    }
}

/// Whether a text is 1 to 64 letters, digits, `_` and `-`, with a letter or digit in front.
fn is_plain_id(text: &str) -> bool {
    (1..=PLAIN_ID_BYTES).contains(&text.len())
        && text.as_bytes()[0].is_ascii_alphanumeric()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A path of names that stand in this program or that a grammar has passed; `None` if one is malformed all the same.
fn path(names: &[&str]) -> Option<Rel> {
    names.iter().try_fold(Rel::base(), |dir, name| Some(dir.join(Name::of_harness(name)?)))
}

/// Arguments, as bytes.
fn arguments(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Whether a text is the 36 characters of a UUID.
fn is_uuid(text: &str) -> bool {
    text.len() == UUID_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Ticks a second in what the kernel tells processes (`include/asm-generic/param.h`).
const USER_HZ: i64 = 100;
const UUID_BYTES: usize = 36;
const PLAIN_ID_BYTES: usize = 64;
/// How many names of one directory are looked at.
const MOST_NAMES: usize = 65_536;
