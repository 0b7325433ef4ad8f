//! The real tree over a machine in memory, served by the links of the simulator.
//!
//! Everything happens on the caller's thread, inside `send` and `receive`: what is cold is asked again, jobs are stepped,
//! and time passes only here, up to the moment that the earliest job waits for. So a wait for nothing takes no time and is
//! certain.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backend::host::fixture::{self, Fixture, Process};
use backend::host::{Host, fixture::Edit as Happening};
use backend::name::Root;
use backend::{Agents, Limits as Machine, Moving, Tree};
use engine::port::Backend;
use engine::{Budget, Limits};

use crate::disk::AGENT;
use crate::rig::{Need, Received, Rig, Wire, World};
use crate::sim::link::{Link, When};
use crate::slow::{Gate, Slow, Slowed};
use crate::world::{Edit, Entry, WorldSpec};

/// The rig.
#[derive(Debug)]
pub struct Simulation;

impl Rig for Simulation {
    fn name(&self) -> &'static str {
        "simulation"
    }

    fn declines(&self) -> &'static [(Need, &'static str)] {
        &[
            (Need::Stream, "there is no stream: bytes are handed over by a call"),
            (Need::Process, "there is no server process: the tree is served in the test"),
            (Need::Sparse, "a file in memory takes all the space that it has"),
        ]
    }

    fn start(&self, spec: &WorldSpec) -> Box<dyn World> {
        let machine = machine(spec);
        let gate = Gate::default();
        let host: Arc<dyn Host> = Arc::new(machine.clone());
        let moving = Moving::find(&*host, &[], None, []);
        let tree = Agents::moving(host, Machine { pinned_descriptors: PINNED }, moving);
        let backend = Arc::new(Slow::new(Arc::new(tree) as Arc<dyn Backend<Tree>>, gate.clone()));
        Box::new(Served { machine, gate, backend, budget: Budget::default() })
    }
}

/// The machine that holds the files of a world.
///
/// # Panics
/// If the world contradicts itself.
pub fn machine(spec: &WorldSpec) -> Fixture {
    let machine = Fixture::default();
    for root in Root::HARNESSES {
        let path = at(root.as_str().as_bytes());
        apply(&machine, Happening::Root { root, path: path.clone() });
        apply(&machine, Happening::Mkdir { path });
    }
    for (path, entry) in spec.entries() {
        make(&machine, path, entry);
    }
    machine
}

struct Served {
    machine: Fixture,
    gate: Gate,
    backend: Arc<dyn Backend<Slowed<Tree>>>,
    budget: Budget,
}

impl World for Served {
    fn connect(&self) -> Box<dyn Wire> {
        let link = Link::new(Arc::clone(&self.backend), Limits::DEFAULT, self.budget.clone(), 1).local();
        Box::new(Queue { machine: self.machine.clone(), unread: Vec::new(), link: Mutex::new(link) })
    }

    fn edit(&self, edit: &Edit) {
        change(&self.machine, edit);
    }

    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn control(&self) -> &'static str {
        // Once is enough.
        let _ = self.machine.apply(&Happening::Start(Box::new(Process::new(10, "claude"))));
        AGENT
    }

    fn fids(&self) -> usize {
        self.budget.taken().0
    }
}

struct Queue {
    machine: Fixture,
    /// What the session does not want yet.
    unread: Vec<u8>,
    /// A link stays on one thread, but what it carries need not be shared among several.
    link: Mutex<Link<Slowed<Tree>>>,
}

impl Wire for Queue {
    fn send(&mut self, bytes: &[u8], _: Duration) -> usize {
        if self.link().has_hung_up() {
            return 0;
        }
        self.unread.extend_from_slice(bytes);
        while self.read() {}
        bytes.len()
    }

    fn receive(&mut self, within: Duration) -> Received {
        let end_ns = self.machine.now().mono_ns.saturating_add(within.as_nanos() as u64);
        loop {
            let replies = self.replies();
            if !replies.is_empty() {
                return Received::Bytes(replies);
            }
            if self.link().has_hung_up() {
                return Received::Closed;
            }
            if !self.read() && !self.work(end_ns) {
                return Received::Nothing;
            }
        }
    }
}

impl Queue {
    fn link(&self) -> MutexGuard<'_, Link<Slowed<Tree>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over as many bytes as are wanted at a time.
    fn read(&mut self) -> bool {
        let wanted = self.unread.len().min(CHUNK);
        let reads = wanted > 0 && self.link().wants_input();
        if reads {
            let now = self.machine.now();
            self.link().receive(&self.unread[..wanted], now);
            self.unread.drain(..wanted);
        }
        reads
    }

    /// Does the first piece of work that can be done; if none can, lets time pass until one can, but not beyond `end_ns`.
    fn work(&self, end_ns: u64) -> bool {
        let now = self.machine.now();
        let mut link = self.link();
        let at = |when: When| match when {
            When::Now | When::Rung(_) => now.mono_ns,
            When::At(at) => at.max(now.mono_ns),
        };
        let next = link.tasks().iter().enumerate().map(|(index, task)| (at(task.when()), index)).min();
        let Some((at_ns, index)) = next.filter(|(at_ns, _)| *at_ns <= end_ns) else { return false };
        apply(&self.machine, Happening::Advance { ns: at_ns - now.mono_ns });
        link.work(index, self.machine.now());
        true
    }

    fn replies(&self) -> Vec<u8> {
        let mut link = self.link();
        let mut replies = Vec::new();
        while let Some(bytes) = link.outgoing() {
            replies.extend_from_slice(bytes);
            link.sent(self.machine.now());
        }
        replies
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.link().disconnect(self.machine.now());
        // A panic in a drop while a case fails would hide the case's own words.
        if !std::thread::panicking() {
            let end_ns = self.machine.now().mono_ns;
            while self.work(end_ns) {}
            assert!(
                self.link().session().is_drained(),
                "a session kept something after its connection was gone"
            );
        }
    }
}

fn change(machine: &Fixture, edit: &Edit) {
    match edit {
        Edit::Make(path, entry) => make(machine, path, entry),
        Edit::Write(path, bytes) => {
            apply(machine, Happening::Write { path: at(path), bytes: (&bytes[..]).into() });
        }
        Edit::Append(path, bytes) => {
            apply(machine, Happening::Append { path: at(path), bytes: (&bytes[..]).into() });
        }
        Edit::Rename(from, to) => {
            apply(machine, Happening::Rename { from: at(from), to: at(to) });
        }
        Edit::Remove(path) => remove(machine, at(path)),
        Edit::Touch(path, seconds) => {
            let mtime_ns = i64::from(*seconds) * 1_000_000_000;
            apply(machine, Happening::Touch { path: at(path), mtime_ns });
        }
    }
}

fn make(machine: &Fixture, path: &[u8], entry: &Entry) {
    let path = at(path);
    if let Some(slash) = path.iter().rposition(|&byte| byte == b'/') {
        apply(machine, Happening::MkdirAll { path: (&path[..slash]).into() });
    }
    let made = match entry {
        Entry::Dir => Happening::MkdirAll { path },
        Entry::File(content) => Happening::Write { path, bytes: content.to_bytes().into() },
        Entry::Link(target) => Happening::Symlink { path, target: (&target[..]).into() },
        Entry::HardLink(to) => Happening::HardLink { from: at(to), to: path },
        Entry::Fifo => Happening::Special { path, kind: fixture::Special::Fifo },
        Entry::Socket => Happening::Special { path, kind: fixture::Special::Socket },
    };
    apply(machine, made);
}

/// Removes a file, or a directory with all that is in it.
fn remove(machine: &Fixture, path: fixture::Bytes) {
    let Ok(names) = machine.with(|world| world.names(&path)) else {
        return apply(machine, Happening::Unlink { path });
    };
    for name in names {
        remove(machine, [&path, &b"/"[..], &name].concat().into());
    }
    apply(machine, Happening::Rmdir { path });
}

/// Where a path of a world is on the machine.
fn at(path: &[u8]) -> fixture::Bytes {
    [b"/home/me/", path].concat().into()
}

fn apply(machine: &Fixture, edit: Happening) {
    machine.apply(&edit).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
}

/// Few, so that cases meet both ways of reading.
const PINNED: usize = 8;
/// Bytes handed to the session at a time.
const CHUNK: usize = 4096;
