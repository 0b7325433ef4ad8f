//! Runs that end in words, and failures that are made small.
//!
//! Owns: telling a run that fails from one that does not, and the smallest plan that still fails (a
//! [`ValueTree`], so that the search is proptest's). Must not know: what fails.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use super::{Report, Stage};
use crate::plan::Plan;

/// Runs a plan; yields what a broken invariant says.
///
/// # Errors
/// The words of the invariant, or of any other panic.
pub fn attempt(stage: &Stage, plan: &Plan) -> Result<Report, String> {
    quietly(|| stage.run(plan))
}

/// The smallest plan below one that fails which fails too, and what it fails with.
pub fn smallest(plan: &Plan, test: impl Fn(&Plan) -> Result<(), String>) -> (Plan, String) {
    let config = Config { failure_persistence: None, max_shrink_iters: MOST_TRIES, ..Config::default() };
    let mut runner = TestRunner::new(config);
    match runner.run_one(Tree::new(plan.clone()), |plan| test(&plan).map_err(TestCaseError::fail)) {
        Err(TestError::Fail(why, plan)) => (plan, why.to_string()),
        _ => (plan.clone(), "it failed once, and not again".to_owned()),
    }
}

/// Does something whose panic is a result and not a noise.
///
/// # Errors
/// What it said when it panicked.
pub fn quietly<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    INSTALL.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let done = catch_unwind(AssertUnwindSafe(run));
    QUIET.set(before);
    done.map_err(|panic| words(&*panic))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked without words".to_owned())
}

/// All plans.
#[derive(Copy, Clone, Debug, Default)]
pub struct Plans;

impl Strategy for Plans {
    type Tree = Tree;
    type Value = Plan;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        use proptest::prelude::Rng;
        Ok(Tree::new(Plan::seeded(runner.rng().next_u64())))
    }
}

/// A plan and the smaller ones below it: first without some of its steps, then with smaller numbers.
#[derive(Clone, Debug)]
pub struct Tree {
    plan: Plan,
    before: Option<Plan>,
    /// What is tried next.
    next: Try,
}

#[derive(Copy, Clone, Debug)]
enum Try {
    /// Without so many steps from this one on.
    Without { from: usize, count: usize },
    /// With the bits of a word below this one only, or without that one: words are the schedule, the setup, the steps.
    Clear { word: usize, bit: u32 },
    /// Nothing is left to try.
    Done,
}

impl Tree {
    /// Below this plan.
    pub fn new(plan: Plan) -> Self {
        let count = plan.steps.len();
        Self { plan, before: None, next: Try::Without { from: 0, count } }
    }

    fn word(plan: &mut Plan, at: usize) -> Option<&mut u64> {
        match at {
            0 => Some(&mut plan.setup),
            1 => Some(&mut plan.schedule),
            at => plan.steps.get_mut(at - 2),
        }
    }

    /// The next plan to try; `None` if this try changes nothing.
    fn tried(&mut self) -> Option<Plan> {
        let mut plan = self.plan.clone();
        match self.next {
            Try::Without { from, count } => {
                let end = (from + count).min(plan.steps.len());
                self.next = match count {
                    _ if end < plan.steps.len() => Try::Without { from: from + count, count },
                    0 | 1 => Try::Clear { word: 0, bit: 63 },
                    _ => Try::Without { from: 0, count: count / 2 },
                };
                (from < end).then(|| drop(plan.steps.drain(from..end)))?;
            }
            Try::Clear { word, bit } => {
                self.next = if bit > 0 {
                    Try::Clear { word, bit: bit - 1 }
                } else {
                    Try::Clear { word: word + 1, bit: 63 }
                };
                match Self::word(&mut plan, word) {
                    Some(number) => *number &= !(1 << bit),
                    None => self.next = Try::Done,
                }
            }
            Try::Done => return None,
        }
        (plan != self.plan).then_some(plan)
    }
}

impl ValueTree for Tree {
    type Value = Plan;

    fn current(&self) -> Plan {
        self.plan.clone()
    }

    fn simplify(&mut self) -> bool {
        while !matches!(self.next, Try::Done) {
            let kept = self.next;
            if let Some(plan) = self.tried() {
                if let Try::Without { from, count } = kept {
                    // What stood behind it stands there now.
                    self.next = Try::Without { from, count };
                }
                self.before = Some(std::mem::replace(&mut self.plan, plan));
                return true;
            }
        }
        false
    }

    fn complicate(&mut self) -> bool {
        let Some(before) = self.before.take() else { return false };
        self.plan = before;
        if let Try::Without { from, count } = self.next {
            // It is needed: the next ones.
            self.next = if from + count < self.plan.steps.len() {
                Try::Without { from: from + count, count }
            } else if count > 1 {
                Try::Without { from: 0, count: count / 2 }
            } else {
                Try::Clear { word: 0, bit: 63 }
            };
        }
        true
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}
static INSTALL: Once = Once::new();
/// Plans tried on the way to the smallest.
const MOST_TRIES: u32 = 20_000;

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;

    use super::Tree;
    use crate::plan::Plan;

    fn smallest(plan: Plan, fails: impl Fn(&Plan) -> bool) -> Plan {
        let mut tree = Tree::new(plan);
        let mut smallest = tree.current();
        // As proptest goes: simplify what fails, go back from what does not.
        while tree.simplify() {
            if fails(&tree.current()) {
                smallest = tree.current();
            } else if !tree.complicate() {
                break;
            }
        }
        smallest
    }

    #[test]
    fn what_matters_is_all_that_is_left() {
        for seed in 0..50 {
            let mut plan = Plan::seeded(seed);
            plan.steps.extend([0x1234, 7, 0xff00]);
            let fails = |plan: &Plan| {
                let first = plan.steps.iter().position(|step| step & 0x30 == 0x30);
                first.is_some_and(|at| plan.steps[at..].iter().any(|step| step & 0xff00 == 0xff00))
                    && plan.setup & 1 == seed & 1
            };
            plan.setup = plan.setup & !1 | seed & 1;
            let smallest = smallest(plan, fails);
            assert!(fails(&smallest));
            assert_eq!((smallest.setup, smallest.schedule), (seed & 1, 0));
            assert!(smallest.steps == [0x30, 0xff00] || smallest.steps == [0xff30], "{smallest}");
        }
    }
}
