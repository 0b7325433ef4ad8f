//! A small tree to test sessions on.
//!
//! ```text
//!   /hello        "hello, world\n"
//!   /big          200,000 bytes, none like its neighbours
//!   /empty        nothing
//!   /dir/         f000 .. f299, and sub/deep
//!   /ctl          writable: a write replaces the text
//!   /gone         walks, but does not open
//!   /slow         a read is a job: it ends when it is told to
//!   /late         writable: a write is a job, with a point of no return
//! ```

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use engine::port::{
    Answer, Ask, Backend, Change, Effort, Job, Kinds, Mode, Now, Outcome, Path, Progress, Qids, Room, Stat,
    Step,
};
use proto::{QTDIR, Qid, Refusal};

/// The kinds of the toy: a node is an index into [`NODES`], an open handle remembers what it opened.
#[derive(Debug)]
pub(crate) struct Toy;

impl Kinds for Toy {
    type Node = usize;
    type Open = Arc<Handle>;
}

/// An open file or directory. Counted, so that tests see what is still open.
#[derive(Debug)]
pub(crate) struct Handle {
    node: usize,
    names: Vec<usize>,
    opens: Arc<AtomicU64>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.opens.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What tests see and steer.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// What `/ctl` holds.
    pub(crate) ctl: Vec<u8>,
    /// How many reads of `/slow` may end.
    pub(crate) reads: usize,
    /// How many writes to `/late` may pass the point of no return.
    pub(crate) commits: usize,
    /// How many of those may end.
    pub(crate) ends: usize,
    /// What has been written to `/late`, in order of commitment.
    pub(crate) committed: Vec<Vec<u8>>,
    /// Jobs that were told that nobody waits.
    pub(crate) abandoned: usize,
    /// Jobs that exist.
    pub(crate) jobs: usize,
}

/// The tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    state: Arc<Mutex<State>>,
    opens: Arc<AtomicU64>,
}

impl Tree {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds the state")
    }

    /// Open handles that are still somewhere.
    pub(crate) fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    fn walk(from: usize, names: &Path) -> Outcome<Toy> {
        let (mut qids, mut at) = (Qids::new(), from);
        for name in names.iter() {
            match step(at, name) {
                Ok(next) => at = next,
                Err(refusal) if qids.is_empty() => return Err(refusal),
                Err(_) => return Ok(Answer::Walked { qids, end: None }),
            }
            qids.push(qid(at));
        }
        Ok(Answer::Walked { qids, end: Some(at) })
    }

    fn open(&self, node: usize, mode: Mode) -> Outcome<Toy> {
        if node == GONE {
            return Err(Refusal::NOT_FOUND);
        }
        if (mode.write || mode.truncate) && !writable(node) {
            return Err(Refusal::PERMISSION_DENIED);
        }
        let list = is_directory(node);
        Ok(Answer::Opened { qid: qid(node), open: self.handle(node, Vec::new()), list })
    }

    fn handle(&self, node: usize, names: Vec<usize>) -> Arc<Handle> {
        self.opens.fetch_add(1, Ordering::Relaxed);
        Arc::new(Handle { node, names, opens: self.opens.clone() })
    }

    fn list(&self, open: &Arc<Handle>, from: u32, mut room: Room<'_>) -> Outcome<Toy> {
        let anew = (from == 0).then(|| self.handle(open.node, children(open.node)));
        let names = &anew.as_ref().unwrap_or(open).names;
        let mut next = from;
        while let Some(&node) = names.get(next as usize) {
            if !room.pack(&stat(node, &name(node)), next) {
                break;
            }
            next += 1;
        }
        Ok(Answer::Listed { bytes: room.used(), next, open: anew })
    }

    fn text(&self, node: usize) -> Cow<'static, [u8]> {
        match node {
            HELLO => b"hello, world\n".into(),
            BIG => big().into(),
            CTL => self.state().ctl.clone().into(),
            SLOW => b"at last\n".into(),
            _ => Cow::default(),
        }
    }
}

impl Backend<Toy> for Tree {
    fn perform(&self, ask: Ask<Toy>, mut room: Room<'_>, _: Effort, _: Now) -> Progress<Toy> {
        Progress::Done(match ask {
            Ask::Attach { aname, .. } => match &*aname {
                b"" | b"/" => Ok(Answer::Attached { qid: qid(ROOT), root: ROOT }),
                b"/dir" => Ok(Answer::Attached { qid: qid(DIR), root: DIR }),
                _ => Err(Refusal::NOT_FOUND),
            },
            Ask::Walk { from, names } => Self::walk(from, &names),
            Ask::Stat { node } => {
                if room.stat(&stat(node, &name(node))) {
                    Ok(Answer::Stat { bytes: room.used() })
                } else {
                    Err(Refusal::NAME_TOO_LONG)
                }
            }
            Ask::Change { node, change } => changed(node, change),
            Ask::Open { node, mode } => self.open(node, mode),
            Ask::Read { open, .. } if open.node == SLOW => {
                return Progress::Later(Box::new(SlowRead::new(self.clone())));
            }
            Ask::Read { open, offset } => Ok(fill(&self.text(open.node), offset, &mut room)),
            Ask::List { open, from } => self.list(&open, from, room),
            Ask::Write { open, data, .. } if open.node == LATE => {
                return Progress::Later(Box::new(LateWrite::new(self.clone(), data.into())));
            }
            Ask::Write { data, .. } => {
                self.state().ctl = data.to_vec();
                Ok(Answer::Wrote(data.len() as u32))
            }
        })
    }
}

/// A read that ends when a test says so.
struct SlowRead(Tree);

impl SlowRead {
    fn new(tree: Tree) -> Self {
        tree.state().jobs += 1;
        Self(tree)
    }
}

impl Job<Toy> for SlowRead {
    fn step(&mut self, mut room: Room<'_>, _: Now) -> Step<Toy> {
        let reads = self.0.state().reads;
        if reads == 0 {
            return Step::WhenRung(0);
        }
        self.0.state().reads -= 1;
        Step::Done(Ok(fill(&self.0.text(SLOW), 0, &mut room)))
    }

    fn abandon(&mut self) -> bool {
        self.0.state().abandoned += 1;
        true
    }
}

impl Drop for SlowRead {
    fn drop(&mut self) {
        self.0.state().jobs -= 1;
    }
}

/// A write with a point of no return.
struct LateWrite {
    tree: Tree,
    data: Vec<u8>,
    committed: bool,
}

impl LateWrite {
    fn new(tree: Tree, data: Vec<u8>) -> Self {
        tree.state().jobs += 1;
        Self { tree, data, committed: false }
    }
}

impl Job<Toy> for LateWrite {
    fn step(&mut self, _: Room<'_>, _: Now) -> Step<Toy> {
        let mut state = self.tree.state();
        if !self.committed && state.commits > 0 {
            state.commits -= 1;
            state.committed.push(self.data.clone());
            self.committed = true;
        }
        if !self.committed || state.ends == 0 {
            return Step::WhenRung(0);
        }
        state.ends -= 1;
        Step::Done(Ok(Answer::Wrote(self.data.len() as u32)))
    }

    fn abandon(&mut self) -> bool {
        self.tree.state().abandoned += 1;
        !self.committed
    }
}

impl Drop for LateWrite {
    fn drop(&mut self) {
        self.tree.state().jobs -= 1;
    }
}

/// What `/big` holds.
pub(crate) fn big() -> &'static [u8] {
    static TEXT: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..200_000_u32).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect());
    &TEXT
}

/// The qid of a node.
pub(crate) fn qid(node: usize) -> Qid {
    let kind = if is_directory(node) { QTDIR } else { 0 };
    Qid { kind, version: 7, path: 1000 + node as u64 }
}

/// The last component of a node's path.
pub(crate) fn name(node: usize) -> String {
    match node.checked_sub(FILES) {
        Some(number) => format!("f{number:03}"),
        None => NODES[node].0.into(),
    }
}

/// The members of a directory, in order.
pub(crate) fn children(node: usize) -> Vec<usize> {
    (0..FILES + COUNT).filter(|&child| child != ROOT && parent(child) == node).collect()
}

fn parent(node: usize) -> usize {
    NODES.get(node).map_or(DIR, |node| node.1)
}

fn is_directory(node: usize) -> bool {
    matches!(node, ROOT | DIR | SUB)
}

fn writable(node: usize) -> bool {
    matches!(node, CTL | LATE)
}

fn step(at: usize, part: &[u8]) -> Result<usize, Refusal> {
    if !is_directory(at) {
        return Err(Refusal::NOT_A_DIRECTORY);
    }
    if part == b".." {
        return Ok(parent(at));
    }
    children(at).into_iter().find(|&child| name(child).as_bytes() == part).ok_or(Refusal::NOT_FOUND)
}

fn stat<'a>(node: usize, name: &'a str) -> Stat<'a> {
    Stat {
        qid: qid(node),
        name,
        perm: if is_directory(node) {
            0o555
        } else if writable(node) {
            0o644
        } else {
            0o444
        },
        length: if node == BIG { 200_000 } else { 0 },
        mtime_ns: 1_700_000_000_123_456_789,
        atime_ns: 0,
        ctime_ns: 0,
        btime_ns: None,
        uid: 1000,
        gid: 1000,
        user: "glenda",
        group: "glenda",
    }
}

fn changed(node: usize, change: Change) -> Outcome<Toy> {
    if writable(node) && !change.other { Ok(Answer::Changed) } else { Err(Refusal::VIEW) }
}

fn fill(text: &[u8], offset: u64, room: &mut Room<'_>) -> Answer<Toy> {
    let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or_default();
    let space = room.bytes();
    let count = rest.len().min(space.len());
    space[..count].copy_from_slice(&rest[..count]);
    Answer::Bytes(count as u32)
}

const ROOT: usize = 0;
const HELLO: usize = 1;
const BIG: usize = 2;
const DIR: usize = 4;
const SUB: usize = 5;
const CTL: usize = 7;
const GONE: usize = 8;
const SLOW: usize = 9;
const LATE: usize = 10;
/// Where the files of `/dir` begin.
const FILES: usize = 11;
/// How many files `/dir` has, besides `sub`.
pub(crate) const COUNT: usize = 300;

/// Names and parents.
const NODES: [(&str, usize); FILES] = [
    ("/", ROOT),
    ("hello", ROOT),
    ("big", ROOT),
    ("empty", ROOT),
    ("dir", ROOT),
    ("sub", DIR),
    ("deep", SUB),
    ("ctl", ROOT),
    ("gone", ROOT),
    ("slow", ROOT),
    ("late", ROOT),
];
