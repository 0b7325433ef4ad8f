//! The real tree, and the driver that serves it to a caller in the same process.

use std::sync::Arc;
use std::time::Duration;

use backend::Tree;
use drivers::inproc::Inproc;
use engine::Limits;
use engine::port::Backend;

use crate::disk::Disk;
use crate::rig::{Need, Received, Rig, Wire, World};
use crate::rigs::tree::{PINNED, tree};
use crate::world::{Edit, WorldSpec};

/// The rig.
#[derive(Debug)]
pub struct InProcess;

impl Rig for InProcess {
    fn name(&self) -> &'static str {
        "in-process"
    }

    fn declines(&self) -> &'static [(Need, &'static str)] {
        &[
            (Need::Waiting, "it serves one caller, who gets no turn before what waits has ended"),
            (Need::Control, "no file is writable without an agent that may be moved"),
            (Need::Counts, "each connection has a budget of its own, which nobody can look at"),
            (Need::Stream, "there is no stream: bytes are handed over by a call"),
            (Need::Process, "there is no server process: the tree is served in the test"),
        ]
    }

    fn start(&self, spec: &WorldSpec) -> Box<dyn World> {
        assert_eq!(spec.descriptor_limit(), None, "the case did not declare that it needs a process");
        let disk = Disk::new(spec);
        Box::new(Served { backend: tree(&disk, PINNED), disk })
    }
}

struct Served {
    backend: Arc<dyn Backend<Tree>>,
    disk: Disk,
}

impl World for Served {
    fn connect(&self) -> Box<dyn Wire> {
        Box::new(Call { server: Inproc::new(Arc::clone(&self.backend), Limits::DEFAULT) })
    }

    fn edit(&self, edit: &Edit) {
        self.disk.edit(edit);
    }
}

struct Call {
    server: Inproc<Tree>,
}

impl Wire for Call {
    fn send(&mut self, bytes: &[u8], _: Duration) -> usize {
        if self.server.send(bytes).is_ok() { bytes.len() } else { 0 }
    }

    fn receive(&mut self, _: Duration) -> Received {
        let mut bytes = Vec::new();
        match self.server.receive(&mut bytes) {
            0 if self.server.is_closed() => Received::Closed,
            0 => Received::Nothing,
            _ => Received::Bytes(bytes),
        }
    }
}
