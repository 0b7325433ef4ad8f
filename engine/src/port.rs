//! The vocabulary between the engine and whatever answers it.
//!
//! Owns: asks and answers, the room an answer's payload is written into, jobs, and the [`Backend`] contract.
//! Must not know: what the tree holds, how bytes travel, or what time it is (time is handed in as [`Now`]).
//!
//! An *ask* is 9P-shaped (walk, stat, open, read, list, write on nodes), never shaped like a system call, so logic that
//! takes several system calls is never cut into re-entrant states. A payload is never carried in an answer: it is
//! written straight into a [`Room`] at the tail of the reply being gathered.

use alloc::boxed::Box;
use core::fmt::Debug;

use proto::stat::{Attr, Dirent, Stat as Record};
use proto::{DT_DIR, DT_REG, Dialect, MAX_WALK, QID_SIZE, Qid, Refusal, S_IFDIR, S_IFREG};

/// The time, read by the driver and handed down.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Now {
    /// Nanoseconds of a clock that never goes back (`CLOCK_MONOTONIC`).
    pub mono_ns: u64,
    /// Nanoseconds since 1970 (`CLOCK_REALTIME`).
    pub wall_ns: i64,
}

/// Names one ask of one session. A serial is never used twice, so a late answer cannot meet another request.
#[derive(Copy, Clone, Debug, Eq, Hash, PartialEq)]
pub struct Ticket {
    pub(crate) serial: u64,
    pub(crate) slot: u8,
}

/// What a backend stands behind: its node and its open handle. Both are owned values; dropping one releases it.
pub trait Kinds: Sized + Debug + 'static {
    /// A place in the tree. Cloning is a reference.
    type Node: Clone + Debug + Send + 'static;
    /// An open file or directory. Cloning is a reference; the last one dropped closes it.
    type Open: Clone + Debug + Send + 'static;
}

/// One request to the backend.
#[derive(Debug)]
pub enum Ask<K: Kinds> {
    /// Find the root of an attach (attach(5)).
    Attach {
        /// The user's name as the client spelt it.
        uname: Box<[u8]>,
        /// The tree asked for: empty or a path in the tree.
        aname: Box<[u8]>,
        /// Whether the connection came by a way on which requests may change something.
        local: bool,
    },
    /// Walk at least one name (walk(5)).
    Walk {
        /// Where the walk begins.
        from: K::Node,
        /// The names, at most 16.
        names: Path,
    },
    /// Write the node's record into the room with [`Room::stat`] (stat(5), getattr).
    Stat {
        /// Whose record.
        node: K::Node,
    },
    /// Change a node's attributes (wstat, setattr); never a change of nothing, which the engine answers.
    Change {
        /// Which node.
        node: K::Node,
        /// What to change.
        change: Change,
    },
    /// Open a node (open(5)); a directory is only ever opened for reading.
    Open {
        /// Which node.
        node: K::Node,
        /// How.
        mode: Mode,
    },
    /// Fill [`Room::bytes`] from an open file.
    Read {
        /// What [`Answer::Opened`] gave.
        open: K::Open,
        /// Byte offset, below 2^63.
        offset: u64,
    },
    /// Pack entries of an open directory into the room with [`Room::pack`].
    List {
        /// What [`Answer::Opened`] or the last [`Answer::Listed`] gave.
        open: K::Open,
        /// Index of the first entry; 0 takes the names anew.
        from: u32,
    },
    /// Write to an open file.
    Write {
        /// What [`Answer::Opened`] gave.
        open: K::Open,
        /// Byte offset, below 2^63.
        offset: u64,
        /// The bytes.
        data: Box<[u8]>,
    },
}

/// What a successful ask comes to.
#[derive(Debug)]
pub enum Answer<K: Kinds> {
    /// To [`Ask::Attach`].
    Attached {
        /// The root's identity; a directory.
        qid: Qid,
        /// The root.
        root: K::Node,
    },
    /// To [`Ask::Walk`]: one qid for each name that resolved, and the end if all did. When the first name does not
    /// resolve the backend refuses instead.
    Walked {
        /// The qids, in order.
        qids: Qids,
        /// Where the walk ended; `None` for a partial one.
        end: Option<K::Node>,
    },
    /// To [`Ask::Stat`]: the room holds the record.
    Stat {
        /// What [`Room::used`] said.
        bytes: u32,
    },
    /// To [`Ask::Change`].
    Changed,
    /// To [`Ask::Open`].
    Opened {
        /// Equal to the qid the walk gave, unless the file moved on.
        qid: Qid,
        /// The handle.
        open: K::Open,
        /// Whether it is read with [`Ask::List`].
        list: bool,
    },
    /// To [`Ask::Read`]: how much of the room was filled. Fewer than the room holds means the end of the file.
    Bytes(u32),
    /// To [`Ask::List`].
    Listed {
        /// What [`Room::used`] said.
        bytes: u32,
        /// Index of the first entry that was not packed.
        next: u32,
        /// A handle that replaces the fid's, when the names were taken anew.
        open: Option<K::Open>,
    },
    /// To [`Ask::Write`]: how many bytes were taken.
    Wrote(u32),
}

/// An answer, or the reason there is none.
pub type Outcome<K> = Result<Answer<K>, Refusal>;

/// How a file is opened (open(5), `Tlopen`), reduced to what a tree of agents can mean by it.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Mode {
    /// Reads will follow.
    pub read: bool,
    /// Writes will follow.
    pub write: bool,
    /// Cut the file to nothing first.
    pub truncate: bool,
}

/// A change of attributes.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// The length is set to 0.
    pub truncate: bool,
    /// A time is set.
    pub times: bool,
    /// Anything else is set: name, mode, owner, group, another length.
    pub other: bool,
}

/// The names of a walk: owned, so that the ask may go to another thread. Usual ones take no allocation.
#[derive(Clone, Debug)]
pub struct Path {
    count: u16,
    wire: Wire,
}

/// Names as they travelled.
#[derive(Clone, Debug)]
enum Wire {
    Short { len: u8, bytes: [u8; SHORT_PATH] },
    Long(Box<[u8]>),
}

impl Path {
    /// Keeps a copy of a message's names.
    pub fn copy(names: proto::Names<'_>) -> Self {
        let wire = names.wire();
        let mut bytes = [0; SHORT_PATH];
        let wire = match (bytes.get_mut(..wire.len()), u8::try_from(wire.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(wire);
                Wire::Short { len, bytes }
            }
            _ => Wire::Long(wire.into()),
        };
        Self { count: names.count(), wire }
    }

    /// The names, in order. They are a client's bytes: nothing has been checked but their lengths.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let wire = match &self.wire {
            Wire::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Wire::Long(wire) => wire,
        };
        proto::Names::new(self.count, wire).into_iter().flatten()
    }

    /// How many there are: 1 to 16.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }
}

/// Bytes of names that are kept in place: a directory of sessions and a file in it, more than once. The qids of the answer
/// take more.
const SHORT_PATH: usize = 126;

/// At most 16 qids, in place, as they will travel.
#[derive(Clone, Debug)]
pub struct Qids {
    len: u8,
    wire: [[u8; QID_SIZE]; MAX_WALK],
}

impl Qids {
    /// None yet.
    pub const fn new() -> Self {
        Self { len: 0, wire: [[0; QID_SIZE]; MAX_WALK] }
    }

    /// Adds one. A seventeenth is dropped: a walk has at most 16 names.
    pub fn push(&mut self, qid: Qid) {
        if let Some(place) = self.wire.get_mut(usize::from(self.len)) {
            *place = qid.to_bytes();
            self.len += 1;
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The last one.
    pub fn last(&self) -> Option<Qid> {
        self.wire().last().map(|bytes| Qid::from_bytes(*bytes))
    }

    /// Those there are, as they travel.
    pub fn wire(&self) -> &[[u8; QID_SIZE]] {
        &self.wire[..usize::from(self.len)]
    }
}

impl Default for Qids {
    fn default() -> Self {
        Self::new()
    }
}

/// What is known of a file or directory, in no dialect.
#[derive(Clone, Debug)]
pub struct Stat<'a> {
    /// Identity and version (contract 4).
    pub qid: Qid,
    /// Last component; `/` for the root.
    pub name: &'a str,
    /// Permission bits, without the kind.
    pub perm: u16,
    /// Length in bytes; 0 for a directory.
    pub length: u64,
    /// Nanoseconds since 1970 of the last change of content.
    pub mtime_ns: i64,
    /// Nanoseconds since 1970 of the last access.
    pub atime_ns: i64,
    /// Nanoseconds since 1970 of the last change of content or attributes.
    pub ctime_ns: i64,
    /// Nanoseconds since 1970 of birth, where the filesystem says.
    pub btime_ns: Option<i64>,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// The owner's name, or its number in words.
    pub user: &'a str,
    /// The group's name, or its number in words.
    pub group: &'a str,
}

/// Where an answer's payload goes: bounded by what the client asked for and by msize.
///
/// The space belongs to whoever lends the room; what has been written counts only once the answer says how much.
#[derive(Debug)]
pub struct Room<'a> {
    form: Form,
    dialect: Dialect,
    space: &'a mut [u8],
    used: usize,
}

impl<'a> Room<'a> {
    /// A room of one form over borrowed space.
    pub(crate) fn new(form: Form, dialect: Dialect, space: &'a mut [u8]) -> Self {
        Self { form, dialect, space, used: 0 }
    }

    /// A room for [`Ask::Read`] outside a session, such as for a test of a backend.
    pub fn of_bytes(space: &'a mut [u8]) -> Self {
        Self::new(Form::Bytes, Dialect::Plain, space)
    }

    /// A room for [`Ask::List`] outside a session.
    pub fn of_entries(dialect: Dialect, space: &'a mut [u8]) -> Self {
        Self::new(Form::Entries, dialect, space)
    }

    /// A room for [`Ask::Stat`] outside a session.
    pub fn of_stat(dialect: Dialect, space: &'a mut [u8]) -> Self {
        Self::new(Form::Stat, dialect, space)
    }

    /// The whole space, for [`Ask::Read`]; empty in a room of another form.
    pub fn bytes(&mut self) -> &mut [u8] {
        if self.form == Form::Bytes { self.space } else { &mut [] }
    }

    /// Appends one directory entry, as a stat record or a `Treaddir` entry as the dialect has it. `number` is the
    /// entry's index. Answers whether it fitted; if not, nothing was written.
    pub fn pack(&mut self, stat: &Stat<'_>, number: u32) -> bool {
        if self.form != Form::Entries {
            return false;
        }
        let rest = &mut self.space[self.used..];
        let written = match self.dialect {
            Dialect::Linux => entry(stat, number).encode(rest),
            Dialect::Plain | Dialect::Unix => record(stat).encode(self.dialect, rest),
        };
        match written {
            Ok(bytes) => {
                self.used += bytes;
                true
            }
            Err(_) => false,
        }
    }

    /// Writes the record that answers [`Ask::Stat`]. Answers whether it fitted: it does not when names are so long
    /// that the record passes msize.
    pub fn stat(&mut self, stat: &Stat<'_>) -> bool {
        if self.form != Form::Stat {
            return false;
        }
        let written = match self.dialect {
            Dialect::Linux => attr(stat).encode(self.space),
            Dialect::Plain | Dialect::Unix => record(stat).encode(self.dialect, self.space),
        };
        self.used = written.unwrap_or(0);
        written.is_ok()
    }

    /// How many bytes [`Room::pack`] or [`Room::stat`] have written.
    pub fn used(&self) -> u32 {
        self.used as u32
    }

    /// The same room, lent on for a shorter time.
    pub fn reborrow(&mut self) -> Room<'_> {
        Room { form: self.form, dialect: self.dialect, space: self.space, used: self.used }
    }
}

/// What a room is for.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// The answer has no payload.
    Nothing,
    /// Bytes of a file.
    Bytes,
    /// Entries of a directory.
    Entries,
    /// One record.
    Stat,
}

/// How much trouble the backend may go to.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Effort {
    /// Only what is answered without waiting for a disk or another process; else [`Progress::Cold`].
    Cached,
    /// Whatever it takes; on a worker's thread.
    Full,
}

/// How far an ask came.
pub enum Progress<K: Kinds> {
    /// Answered.
    Done(Outcome<K>),
    /// Only [`Effort::Full`] can answer it: the ask comes back unchanged, and nothing has been done.
    Cold(Ask<K>),
    /// It takes long: step this.
    Later(Box<dyn Job<K>>),
}

/// What one step of a job came to.
#[expect(
    clippy::large_enum_variant,
    reason = "it is returned and looked at once; a box would cost an allocation"
)]
pub enum Step<K: Kinds> {
    /// Answered.
    Done(Outcome<K>),
    /// Step again as soon as others have had their turn.
    Again,
    /// Step again at this [`Now::mono_ns`].
    At(u64),
    /// Step again once [`Backend::epoch`] differs from this.
    WhenRung(u64),
}

/// Work that outlasts a turn: stepped by the driver, never sleeping, each step bounded.
pub trait Job<K: Kinds>: Send {
    /// Does a bounded piece of the work. The room is a fresh one at every step, and may be smaller than the one
    /// [`Backend::perform`] had.
    fn step(&mut self, room: Room<'_>, now: Now) -> Step<K>;

    /// The client no longer waits. `true`: the job has undone or never begun its effect, and is to be dropped.
    /// `false`: it is past the point of no return and must be stepped to its end.
    fn abandon(&mut self) -> bool;
}

/// Answers asks about one tree. Any number of threads may call at once; no lock is held across a call of the system.
pub trait Backend<K: Kinds>: Send + Sync {
    /// Answers an ask, or says who can.
    fn perform(&self, ask: Ask<K>, room: Room<'_>, effort: Effort, now: Now) -> Progress<K>;

    /// Moves whenever something happened that a [`Step::WhenRung`] may wait for. It moves only inside
    /// [`Backend::perform`], [`Job::step`] and [`Job::abandon`] (or a drop of one of their values), so a driver looks after each of them.
    fn epoch(&self) -> u64 {
        0
    }

    /// Whether a job is past its point of no return. Whoever stops serving waits for its end, within bounds.
    fn must_finish(&self) -> bool {
        false
    }
}

fn record<'a>(stat: &Stat<'a>) -> Record<'a> {
    let directory = stat.qid.kind & proto::QTDIR != 0;
    Record {
        kind: 0,
        dev: 0,
        qid: stat.qid,
        mode: u32::from(stat.perm) | if directory { proto::DMDIR } else { 0 },
        atime: seconds(stat.atime_ns),
        mtime: seconds(stat.mtime_ns),
        length: stat.length,
        name: stat.name.as_bytes(),
        uid: stat.user.as_bytes(),
        gid: stat.group.as_bytes(),
        muid: stat.user.as_bytes(),
        extension: b"",
        n_uid: stat.uid,
        n_gid: stat.gid,
        n_muid: stat.uid,
    }
}

fn entry<'a>(stat: &Stat<'a>, number: u32) -> Dirent<'a> {
    let directory = stat.qid.kind & proto::QTDIR != 0;
    Dirent {
        qid: stat.qid,
        offset: u64::from(number) + 1,
        kind: if directory { DT_DIR } else { DT_REG },
        name: stat.name.as_bytes(),
    }
}

fn attr(stat: &Stat<'_>) -> Attr {
    let directory = stat.qid.kind & proto::QTDIR != 0;
    let (btime_sec, btime_nsec) = stat.btime_ns.map_or((0, 0), split);
    let (atime_sec, atime_nsec) = split(stat.atime_ns);
    let (mtime_sec, mtime_nsec) = split(stat.mtime_ns);
    let (ctime_sec, ctime_nsec) = split(stat.ctime_ns);
    Attr {
        valid: proto::GETATTR_BASIC | if stat.btime_ns.is_some() { proto::GETATTR_BTIME } else { 0 },
        qid: stat.qid,
        mode: u32::from(stat.perm) | if directory { S_IFDIR } else { S_IFREG },
        uid: stat.uid,
        gid: stat.gid,
        nlink: 1,
        rdev: 0,
        size: stat.length,
        blksize: BLOCK,
        blocks: stat.length.div_ceil(512),
        atime_sec,
        atime_nsec,
        mtime_sec,
        mtime_nsec,
        ctime_sec,
        ctime_nsec,
        btime_sec,
        btime_nsec,
        generation: 0,
        data_version: 0,
    }
}

/// 9P2000 counts seconds in 32 bits without a sign: what lies outside is pinned to the nearest end.
fn seconds(ns: i64) -> u32 {
    ns.div_euclid(NS).clamp(0, i64::from(u32::MAX)) as u32
}

/// Seconds and nanoseconds, as a `struct timespec` on the wire: the seconds of a time before 1970 are negative, in two's
/// complement.
fn split(ns: i64) -> (u64, u64) {
    (ns.div_euclid(NS) as u64, ns.rem_euclid(NS) as u64)
}

const NS: i64 = 1_000_000_000;
/// The block size reported: what a page is.
const BLOCK: u64 = 4096;
