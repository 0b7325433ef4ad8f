//! A decorator that makes chosen requests wait.
//!
//! Owns: three names that make a walk, an open or a read wait, and the [`Gate`] that lets them go. Must not know: what
//! tree it stands before.
//!
//! A held request is a [`Job`], as every wait in this server is, so cases about flushes and hang-ups exercise the very
//! path that a long read of a transcript takes. Until the gate opens the job has done nothing, and may be abandoned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use engine::port::{Answer, Ask, Backend, Effort, Job, Kinds, Now, Outcome, Progress, Room, Step};

/// A walk to this name waits.
pub const LATE_WALK: &str = "late-walk";
/// An open of a file of this name waits.
pub const LATE_OPEN: &str = "late-open";
/// A read of a file of this name waits.
pub const LATE_READ: &str = "late-read";

/// Holds requests back until it is opened. Cloning is a reference.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<State>);

#[derive(Debug, Default)]
struct State {
    open: AtomicBool,
    held: AtomicUsize,
    passed: AtomicUsize,
}

impl Gate {
    /// Lets every held request go, and every later one through.
    pub fn open(&self) {
        self.0.open.store(true, Ordering::SeqCst);
    }

    /// Holds requests back again.
    pub fn shut(&self) {
        self.0.open.store(false, Ordering::SeqCst);
    }

    /// How many requests are held back now.
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::SeqCst)
    }

    /// How many requests were held back and then really done.
    pub fn passed(&self) -> usize {
        self.0.passed.load(Ordering::SeqCst)
    }

    fn is_open(&self) -> bool {
        self.0.open.load(Ordering::SeqCst)
    }
}

/// The decorator.
pub struct Slow<K: Kinds> {
    inner: Arc<dyn Backend<K>>,
    gate: Gate,
}

impl<K: Kinds> Slow<K> {
    /// Stands before `inner`, with a gate that is shut.
    pub fn new(inner: Arc<dyn Backend<K>>, gate: Gate) -> Self {
        Self { inner, gate }
    }
}

/// The kinds of a tree behind the decorator.
#[derive(Debug)]
pub struct Slowed<K>(std::marker::PhantomData<K>);

impl<K: Kinds> Kinds for Slowed<K> {
    type Node = Marked<K::Node>;
    type Open = Marked<K::Open>;
}

/// A node or handle, and whether it has one of the names.
#[derive(Clone, Debug)]
pub struct Marked<T> {
    inner: T,
    mark: Mark,
}

/// Which requests on a node wait.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Mark {
    None,
    Open,
    Read,
}

impl Mark {
    fn of(name: &[u8]) -> Self {
        match name {
            name if name == LATE_OPEN.as_bytes() => Self::Open,
            name if name == LATE_READ.as_bytes() => Self::Read,
            _ => Self::None,
        }
    }
}

impl<K: Kinds> Backend<Slowed<K>> for Slow<K> {
    fn perform(&self, ask: Ask<Slowed<K>>, room: Room<'_>, effort: Effort, now: Now) -> Progress<Slowed<K>> {
        let waits = !self.gate.is_open() && waits(&ask);
        let marks = marks(&ask);
        let ask = lower(ask);
        if waits {
            return Progress::Later(Box::new(Held::new(
                Arc::clone(&self.inner),
                self.gate.clone(),
                ask,
                marks,
            )));
        }
        match self.inner.perform(ask, room, effort, now) {
            Progress::Done(outcome) => Progress::Done(raise(outcome, marks)),
            Progress::Cold(ask) => Progress::Cold(restore(ask, marks)),
            Progress::Later(job) => Progress::Later(Box::new(Passing { job, marks })),
        }
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    fn must_finish(&self) -> bool {
        self.inner.must_finish()
    }
}

/// A request that waits at the gate.
struct Held<K: Kinds> {
    inner: Arc<dyn Backend<K>>,
    gate: Gate,
    state: Waiting<K>,
    marks: Marks,
}

enum Waiting<K: Kinds> {
    Held(Ask<K>),
    Running(Box<dyn Job<K>>),
    Over,
}

impl<K: Kinds> Held<K> {
    fn new(inner: Arc<dyn Backend<K>>, gate: Gate, ask: Ask<K>, marks: Marks) -> Self {
        gate.0.held.fetch_add(1, Ordering::SeqCst);
        Self { inner, gate, state: Waiting::Held(ask), marks }
    }
}

impl<K: Kinds> Drop for Held<K> {
    fn drop(&mut self) {
        self.gate.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<K: Kinds> Job<Slowed<K>> for Held<K> {
    fn step(&mut self, mut room: Room<'_>, now: Now) -> Step<Slowed<K>> {
        if let Waiting::Held(_) = self.state {
            if !self.gate.is_open() {
                return Step::At(now.mono_ns + LOOK_AGAIN_NS);
            }
            self.gate.0.passed.fetch_add(1, Ordering::SeqCst);
            if let Waiting::Held(ask) = std::mem::replace(&mut self.state, Waiting::Over) {
                match self.inner.perform(ask, room.reborrow(), Effort::Full, now) {
                    Progress::Done(outcome) => return Step::Done(raise(outcome, self.marks)),
                    Progress::Cold(_) => panic!("an ask is cold although every effort was allowed"),
                    Progress::Later(job) => self.state = Waiting::Running(job),
                }
            }
        }
        match &mut self.state {
            Waiting::Running(job) => raise_step(job.step(room, now), self.marks),
            Waiting::Held(_) | Waiting::Over => panic!("a job was stepped after its end"),
        }
    }

    fn abandon(&mut self) -> bool {
        match &mut self.state {
            Waiting::Held(_) | Waiting::Over => true,
            Waiting::Running(job) => job.abandon(),
        }
    }
}

/// A job of the tree itself.
struct Passing<K: Kinds> {
    job: Box<dyn Job<K>>,
    marks: Marks,
}

impl<K: Kinds> Job<Slowed<K>> for Passing<K> {
    fn step(&mut self, room: Room<'_>, now: Now) -> Step<Slowed<K>> {
        raise_step(self.job.step(room, now), self.marks)
    }

    fn abandon(&mut self) -> bool {
        self.job.abandon()
    }
}

/// The marks of what an ask comes from and of what it leads to.
#[derive(Copy, Clone)]
struct Marks {
    from: Mark,
    to: Mark,
}

fn waits<K: Kinds>(ask: &Ask<Slowed<K>>) -> bool {
    match ask {
        Ask::Walk { names, .. } => names.iter().any(|name| name == LATE_WALK.as_bytes()),
        Ask::Open { node, .. } => node.mark == Mark::Open,
        Ask::Read { open, .. } => open.mark == Mark::Read,
        _ => false,
    }
}

fn marks<K: Kinds>(ask: &Ask<Slowed<K>>) -> Marks {
    match ask {
        Ask::Attach { .. } => Marks { from: Mark::None, to: Mark::None },
        Ask::Walk { from, names } => {
            Marks { from: from.mark, to: names.iter().last().map_or(Mark::None, Mark::of) }
        }
        Ask::Stat { node } | Ask::Change { node, .. } | Ask::Open { node, .. } => {
            Marks { from: node.mark, to: node.mark }
        }
        Ask::Read { open, .. } | Ask::List { open, .. } | Ask::Write { open, .. } => {
            Marks { from: open.mark, to: open.mark }
        }
    }
}

fn lower<K: Kinds>(ask: Ask<Slowed<K>>) -> Ask<K> {
    match ask {
        Ask::Attach { uname, aname, local } => Ask::Attach { uname, aname, local },
        Ask::Walk { from, names } => Ask::Walk { from: from.inner, names },
        Ask::Stat { node } => Ask::Stat { node: node.inner },
        Ask::Change { node, change } => Ask::Change { node: node.inner, change },
        Ask::Open { node, mode } => Ask::Open { node: node.inner, mode },
        Ask::Read { open, offset } => Ask::Read { open: open.inner, offset },
        Ask::List { open, from } => Ask::List { open: open.inner, from },
        Ask::Write { open, offset, data } => Ask::Write { open: open.inner, offset, data },
    }
}

/// What [`lower`] undid.
fn restore<K: Kinds>(ask: Ask<K>, marks: Marks) -> Ask<Slowed<K>> {
    let mark = marks.from;
    match ask {
        Ask::Attach { uname, aname, local } => Ask::Attach { uname, aname, local },
        Ask::Walk { from, names } => Ask::Walk { from: Marked { inner: from, mark }, names },
        Ask::Stat { node } => Ask::Stat { node: Marked { inner: node, mark } },
        Ask::Change { node, change } => Ask::Change { node: Marked { inner: node, mark }, change },
        Ask::Open { node, mode } => Ask::Open { node: Marked { inner: node, mark }, mode },
        Ask::Read { open, offset } => Ask::Read { open: Marked { inner: open, mark }, offset },
        Ask::List { open, from } => Ask::List { open: Marked { inner: open, mark }, from },
        Ask::Write { open, offset, data } => Ask::Write { open: Marked { inner: open, mark }, offset, data },
    }
}

fn raise<K: Kinds>(outcome: Outcome<K>, marks: Marks) -> Outcome<Slowed<K>> {
    let mark = marks.to;
    Ok(match outcome? {
        Answer::Attached { qid, root } => Answer::Attached { qid, root: Marked { inner: root, mark } },
        Answer::Walked { qids, end } => Answer::Walked { qids, end: end.map(|inner| Marked { inner, mark }) },
        Answer::Stat { bytes } => Answer::Stat { bytes },
        Answer::Changed => Answer::Changed,
        Answer::Opened { qid, open, list } => {
            Answer::Opened { qid, open: Marked { inner: open, mark }, list }
        }
        Answer::Bytes(count) => Answer::Bytes(count),
        Answer::Listed { bytes, next, open } => {
            Answer::Listed { bytes, next, open: open.map(|inner| Marked { inner, mark }) }
        }
        Answer::Wrote(count) => Answer::Wrote(count),
    })
}

fn raise_step<K: Kinds>(step: Step<K>, marks: Marks) -> Step<Slowed<K>> {
    match step {
        Step::Done(outcome) => Step::Done(raise(outcome, marks)),
        Step::Again => Step::Again,
        Step::At(at) => Step::At(at),
        Step::WhenRung(epoch) => Step::WhenRung(epoch),
    }
}

/// A held request looks at the gate this often.
const LOOK_AGAIN_NS: u64 = 1_000_000;
