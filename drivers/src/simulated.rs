//! The tree of a machine in memory, in which time passes.
//!
//! Owns: that its clocks go as fast as ours. Must not know: what happens there, or who asks.
//!
//! A [`Fixture`] changes by edits alone, its clocks too. Before each request it is advanced by as much as has passed here, so that
//! what was put off until then has happened. Between requests nothing is done.

use std::sync::Arc;

use backend::Tree;
use backend::host::Host;
use backend::host::fixture::{Edit, Fixture, World};
use engine::port::{Ask, Backend, Effort, Job, Now, Progress, Room, Step};

use crate::clock;

/// A backend over a simulated machine.
pub struct Simulated<B> {
    machine: Machine,
    tree: B,
}

impl<B: Backend<Tree>> Simulated<B> {
    /// The machine that begins as `world` now, and its tree, as `make` makes it.
    pub fn new(world: World, make: impl FnOnce(Arc<dyn Host>) -> B) -> Self {
        let ahead_ns = world.now().mono_ns.wrapping_sub(clock::now().mono_ns);
        let fixture = Fixture::new(world);
        let tree = make(Arc::new(fixture.clone()));
        Self { machine: Machine { fixture, ahead_ns }, tree }
    }
}

impl<B: Backend<Tree>> Backend<Tree> for Simulated<B> {
    fn perform(&self, ask: Ask<Tree>, room: Room<'_>, effort: Effort, now: Now) -> Progress<Tree> {
        match self.tree.perform(ask, room, effort, self.machine.reach(now)) {
            Progress::Later(job) => Progress::Later(Box::new(Work { machine: self.machine.clone(), job })),
            progress => progress,
        }
    }

    fn epoch(&self) -> u64 {
        self.tree.epoch()
    }

    fn must_finish(&self) -> bool {
        self.tree.must_finish()
    }
}

/// A job, in the time of its machine.
struct Work {
    machine: Machine,
    job: Box<dyn Job<Tree>>,
}

impl Job<Tree> for Work {
    fn step(&mut self, room: Room<'_>, now: Now) -> Step<Tree> {
        let step = self.job.step(room, self.machine.reach(now));
        self.machine.step_here(step)
    }

    fn abandon(&mut self) -> bool {
        self.job.abandon()
    }
}

#[derive(Clone)]
struct Machine {
    fixture: Fixture,
    /// How far its monotonic clock is ahead of ours, modulo 2^64: both begin when they like.
    ahead_ns: u64,
}

impl Machine {
    /// Lets everything happen that has by now, and yields what the machine's clocks say then.
    fn reach(&self, now: Now) -> Now {
        self.fixture.with(|world| {
            let passed_ns = now.mono_ns.wrapping_add(self.ahead_ns).saturating_sub(world.now().mono_ns);
            // Another thread may have come from a later time.
            if passed_ns > 0 {
                let advanced = world.apply(&Edit::Advance { ns: passed_ns });
                debug_assert_eq!(advanced, Ok(()), "time passes");
            }
            world.now()
        })
    }

    /// What a step in its time is in ours.
    fn step_here(&self, step: Step<Tree>) -> Step<Tree> {
        match step {
            Step::At(at_ns) => Step::At(at_ns.wrapping_sub(self.ahead_ns)),
            step => step,
        }
    }
}

#[cfg(test)]
mod tests {
    use backend::host::fixture::Script;

    use super::*;

    #[test]
    fn time_passes_there_as_it_does_here() {
        let script = Script::parse("clock 7s 1000\nafter 5s mkdir /x\n").unwrap();
        let fixture = Fixture::new(script.world().unwrap());
        let here = Now { mono_ns: 3, wall_ns: 99 };
        let machine = Machine { ahead_ns: fixture.now().mono_ns.wrapping_sub(here.mono_ns), fixture };
        let after = |ns| machine.reach(Now { mono_ns: here.mono_ns + ns, ..here });
        assert_eq!(after(0), Now { mono_ns: 7_000_000_000, wall_ns: 1_000_000_000_000 });
        let is_made = || machine.fixture.apply(&Edit::Mkdir { path: "/x/y".into() }).is_ok();
        assert_eq!(after(4_000_000_000).wall_ns, 1_004_000_000_000);
        assert!(!is_made());
        assert_eq!(after(5_000_000_000).mono_ns, 12_000_000_000);
        assert!(is_made());
        // Who comes late from an earlier time turns nothing back.
        assert_eq!(after(1).mono_ns, 12_000_000_000);
    }

    #[test]
    fn a_job_waits_in_our_time() {
        let world = World::new();
        let machine = Machine { ahead_ns: world.now().mono_ns.wrapping_sub(3), fixture: Fixture::new(world) };
        let there = machine.reach(Now { mono_ns: 5, wall_ns: 0 }).mono_ns;
        assert!(matches!(machine.step_here(Step::At(there + 1)), Step::At(6)));
        assert!(matches!(machine.step_here(Step::Again), Step::Again));
    }
}
