//! What happens in one simulated run, as data.
//!
//! Owns: the plan, its parts, and how it is spelt on a command line. Must not know: who carries it out, and in which order
//! what is ready goes on: only the schedule and the faults are drawn while it runs.
//!
//! A plan is a few numbers. Each step is one of 64 bits, whose bytes say what happens, so that any numbers are a plan: a
//! generator draws them, a fuzzer spells them, and what shrinks a failure takes steps out and makes numbers smaller. Zero
//! is the simplest step there is, and the setup of zero the simplest setup: one client of 9P2000 and no faults.

mod scene;
mod setup;
mod step;

use std::fmt;
use std::str::FromStr;

pub use scene::{BOOT_S, CANARY, Change, Life, Prepared, SCENES, Scene, Spot};
pub use setup::{Cut, Setup};
pub use step::{Happening, How, Mood, Near, Request, Route, Step, What, Which};

use crate::choices::{Choices, Seeded};

/// One run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    /// What the schedule and the faults are drawn from.
    pub schedule: u64,
    /// Everything that holds for the whole run: see [`Setup`].
    pub setup: u64,
    /// What happens, one after the other: see [`Step`].
    pub steps: Vec<u64>,
}

impl Plan {
    /// The plan of a seed.
    pub fn seeded(seed: u64) -> Self {
        let mut choices = Seeded::new(seed);
        let steps = 1 + choices.below(MOST_STEPS);
        Self {
            schedule: choices.word(),
            setup: choices.word(),
            steps: (0..steps).map(|_| choices.word()).collect(),
        }
    }

    /// The plan of a seed, in the scene of this name.
    pub fn in_scene(seed: u64, name: &str) -> Option<Self> {
        let plan = Self::seeded(seed);
        Some(Self { setup: Setup::in_scene(plan.setup, name)?, ..plan })
    }

    /// The plan that a fuzzer's bytes spell, and the rest of them, for the schedule.
    pub fn spelt(bytes: &[u8]) -> (Self, &[u8]) {
        let mut rest = bytes;
        let mut word = || {
            let (word, after) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
            rest = after;
            u64::from_le_bytes(*word)
        };
        let setup = word();
        let count = word() % u64::from(MOST_STEPS);
        let steps = (0..count).map(|_| word()).collect();
        (Self { schedule: 0, setup, steps }, rest)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}/{:x}", self.schedule, self.setup)?;
        self.steps.iter().try_for_each(|step| write!(out, "/{step:x}"))
    }
}

impl FromStr for Plan {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Result<Vec<_>, _> =
            text.trim().split('/').map(|word| u64::from_str_radix(word, 16)).collect();
        let words = words?;
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        Ok(Self { schedule: word(0), setup: word(1), steps: words.iter().skip(2).copied().collect() })
    }
}

/// Bytes of a word that are taken off one by one, or bits of it.
#[derive(Copy, Clone, Debug)]
struct Bits(u64);

impl Bits {
    /// The next so many bits, the lowest first.
    fn take(&mut self, count: u32) -> u32 {
        let taken = self.0 & ((1 << count) - 1);
        self.0 >>= count;
        taken as u32
    }

    /// One of several, by the next so many bits.
    fn pick<T: Copy>(&mut self, count: u32, from: &[T]) -> T {
        from[self.take(count) as usize % from.len()]
    }
}

/// Runs are short: many short runs meet more than few long ones, and are easier to read.
const MOST_STEPS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn a_plan_is_spelt_and_read_back() {
        for seed in 0..100 {
            let plan = Plan::seeded(seed);
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
        assert!("12/xyz".parse::<Plan>().is_err());
    }
}
