//! A decorator over a backend that takes the long way at will.
//!
//! Owns: when, and the job that plods. A backend may say of any ask that it takes more effort, and with every effort that
//! it takes a job, which from some step on cannot be undone. One that always could answer says and does so here, too: then
//! every ask meets every way of being answered. Must not know: the tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::port::{Ask, Backend, Effort, Job, Kinds, Now, Progress, Room, Step};

use super::Dice;

/// The decorator.
pub(super) struct Chill<K: Kinds> {
    inner: Arc<dyn Backend<K>>,
    dice: Dice,
    /// How many of [`Chill::OF`] asks are found cold.
    share: AtomicU32,
}

impl<K: Kinds> Chill<K> {
    /// What shares are of.
    pub(super) const OF: u32 = 1024;

    /// Leaves everything as it is, for now.
    pub(super) fn new(inner: Arc<dyn Backend<K>>, dice: Dice) -> Self {
        Self { inner, dice, share: AtomicU32::new(0) }
    }

    /// How many asks are found cold from now on. A quarter of them take a job.
    pub(super) fn set(&self, share: u32) {
        self.share.store(share, Ordering::Relaxed);
    }
}

impl<K: Kinds> Backend<K> for Chill<K> {
    fn perform(&self, ask: Ask<K>, room: Room<'_>, effort: Effort, now: Now) -> Progress<K> {
        let share = self.share.load(Ordering::Relaxed);
        match effort {
            Effort::Cached if share > 0 && self.dice.below(Self::OF) < share => Progress::Cold(ask),
            Effort::Full if share > 0 && self.dice.below(4) == 0 => {
                let steps = self.dice.below(MOST_STEPS);
                let work = Work::Ask(ask);
                Progress::Later(Box::new(Plod { inner: Arc::clone(&self.inner), steps, begun: false, work }))
            }
            Effort::Cached | Effort::Full => self.inner.perform(ask, room, effort, now),
        }
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }
}

/// An ask that takes some steps. Once it has taken one, nobody can hold it up.
struct Plod<K: Kinds> {
    inner: Arc<dyn Backend<K>>,
    steps: u32,
    begun: bool,
    work: Work<K>,
}

enum Work<K: Kinds> {
    Ask(Ask<K>),
    Job(Box<dyn Job<K>>),
    Over,
}

impl<K: Kinds> Job<K> for Plod<K> {
    fn step(&mut self, mut room: Room<'_>, now: Now) -> Step<K> {
        self.begun = true;
        if self.steps > 0 {
            self.steps -= 1;
            return if self.steps.is_multiple_of(2) {
                Step::Again
            } else {
                Step::At(now.mono_ns + 1_000_000)
            };
        }
        match std::mem::replace(&mut self.work, Work::Over) {
            Work::Ask(ask) => match self.inner.perform(ask, room.reborrow(), Effort::Full, now) {
                Progress::Done(outcome) => return Step::Done(outcome),
                Progress::Later(job) => self.work = Work::Job(job),
                Progress::Cold(_) => panic!("an ask is cold although every effort was allowed"),
            },
            work => self.work = work,
        }
        match &mut self.work {
            Work::Job(job) => job.step(room, now),
            Work::Ask(_) | Work::Over => panic!("a job was stepped after its end"),
        }
    }

    fn abandon(&mut self) -> bool {
        match &mut self.work {
            Work::Ask(_) => !self.begun,
            Work::Job(job) => job.abandon(),
            Work::Over => true,
        }
    }
}

/// How many steps a job takes before the last, at most.
const MOST_STEPS: u32 = 4;
