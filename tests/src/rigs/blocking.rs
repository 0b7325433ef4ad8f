//! The real tree behind a unix socket, served by the blocking driver: what the daemon is on a machine without io_uring.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use backend::Tree;
use drivers::listen::Listener;
use drivers::server::Options;
use drivers::signals::Stop;
use engine::Budget;
use engine::port::Backend;

use crate::disk::Disk;
use crate::line::Line;
use crate::rig::{Rig, Wire, World};
use crate::rigs::child::Child;
use crate::rigs::driver::Driver;
use crate::rigs::tree::{PINNED, tree};
use crate::slow::{Gate, Slow, Slowed};
use crate::world::{Edit, WorldSpec};

/// The rig.
#[derive(Debug)]
pub struct Blocking;

impl Rig for Blocking {
    fn name(&self) -> &'static str {
        "blocking"
    }

    fn start(&self, spec: &WorldSpec) -> Box<dyn World> {
        start(spec, Driver::Blocking)
    }
}

/// Serves a world over a unix socket, on a thread of its own, or in a process of its own if that is to have few descriptors.
pub(super) fn start(spec: &WorldSpec, driver: Driver) -> Box<dyn World> {
    if let Some(limit) = spec.descriptor_limit() {
        return Box::new(Child::start(Disk::new(spec), limit, driver));
    }
    let disk = Disk::new(spec);
    let (gate, budget) = (Gate::default(), Budget::default());
    let slow: Arc<dyn Backend<Slowed<Tree>>> = Arc::new(Slow::new(tree(&disk, PINNED), gate.clone()));
    let socket = disk.socket();
    let stop = Arc::new(Stop::new().expect("a pipe"));
    let listener = Listener::unix(&socket).expect("a socket");
    let options = Options { budget: budget.clone(), ..Options::default() };
    let asked = Arc::clone(&stop);
    let thread = thread::spawn(move || driver.serve(&slow, &[listener], &asked, &options));
    Box::new(Served { stop, thread: Some(thread), gate, budget, socket, disk })
}

struct Served {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
    gate: Gate,
    budget: Budget,
    socket: PathBuf,
    disk: Disk,
}

impl World for Served {
    fn connect(&self) -> Box<dyn Wire> {
        Box::new(Line::unix(&self.socket))
    }

    fn edit(&self, edit: &Edit) {
        self.disk.edit(edit);
    }

    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn control(&self) -> &'static str {
        self.disk.add_agent()
    }

    fn fids(&self) -> usize {
        self.budget.taken().0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // What still waits should not hold the end up.
        self.gate.open();
        self.stop.ask();
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(matches!(ended, Some(Ok(()))), "the server ended by a panic");
        }
    }
}
