//! The same scenarios on the kernel host and on the machine in memory: the same answers.
//!
//! A scenario is a small directory tree, a path below its base, and edits. Before the edits and after each of them every
//! call is made for the path, and the handles opened before are asked again. What comes back is written down without
//! what no two machines share: inode numbers become "first seen as", times become "moved since last seen".

#![allow(clippy::disallowed_methods, reason = "the real machine is one of the two")]

mod held;
mod kernel;
mod look;
mod permissions;
mod processes;

mod scenarios;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use backend::host::fixture::{Edit, Fixture, World};
use backend::host::{Errno, Host};
use backend::name::Root;

use crate::kernel::Kernel;
use crate::look::Looker;
use crate::scenarios::Scenario;

/// A machine on which edits are done for real, or as though.
pub(crate) trait Rig {
    fn host(&self) -> &dyn Host;
    fn apply(&self, edit: &Edit) -> Result<(), Errno>;

    /// Waits until the times of files have moved on.
    fn tick(&self) {}
}

impl Rig for Fixture {
    fn host(&self) -> &dyn Host {
        self
    }

    fn apply(&self, edit: &Edit) -> Result<(), Errno> {
        Self::apply(self, edit)
    }
}

#[test]
fn both_hosts_give_the_same_answers() {
    let scenarios = scenarios::all();
    assert!(scenarios.len() >= 300, "{} scenarios", scenarios.len());
    let (next, answers) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let differences = Mutex::new(Vec::new());
    // Most of the time goes into waiting for the kernel's clock of files to move on.
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, SeqCst)) {
                    let kernel = run(&Kernel::new(), scenario);
                    let fixture = run(&fixture(), scenario);
                    answers.fetch_add(kernel.len(), SeqCst);
                    differences.lock().unwrap().extend(difference(&scenario.name, &kernel, &fixture));
                }
            });
        }
    });
    println!("{} scenarios, {} answers", scenarios.len(), answers.into_inner());
    let differences = differences.into_inner().unwrap();
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences[..differences.len().min(10)].join("\n")
    );
}

/// A machine whose base of [`Root::Hermes`] is where the scenarios have it.
pub(crate) fn fixture() -> Fixture {
    let mut world = World::new();
    for edit in [
        Edit::MkdirAll { path: "/w/base".into() },
        Edit::MkdirAll { path: "/w/outside".into() },
        Edit::Root { root: Root::Hermes, path: "/w/base".into() },
    ] {
        world.apply(&edit).unwrap();
    }
    Fixture::new(world)
}

fn run(rig: &dyn Rig, scenario: &Scenario) -> Vec<String> {
    for edit in &scenario.setup {
        rig.apply(edit).unwrap_or_else(|error| panic!("{}: {edit:?}: {error}", scenario.name));
    }
    let mut looker = Looker::new(rig.host());
    let path = &scenario.path;
    looker.look(path);
    for edit in &scenario.edits {
        rig.tick();
        let done = rig.apply(edit);
        looker.note(format!("{edit:?}: {}", look::said(done)));
        looker.look(path);
    }
    looker.finish()
}

/// The first answer that the two gave differently, and the few before it.
pub(crate) fn difference(name: &str, kernel: &[String], fixture: &[String]) -> Option<String> {
    let at = (0..kernel.len().max(fixture.len())).find(|&at| kernel.get(at) != fixture.get(at))?;
    let before = kernel[at.saturating_sub(4)..at].join("\n  ");
    let line = |log: &[String]| log.get(at).cloned().unwrap_or_else(|| "nothing".to_owned());
    Some(format!("{name}:\n  {before}\nkernel:  {}\nfixture: {}\n", line(kernel), line(fixture)))
}
