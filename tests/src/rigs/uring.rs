//! The real tree behind a unix socket, served by the io_uring driver: what the daemon is where the kernel lets it.

use std::sync::OnceLock;

use drivers::server::Options;
use drivers::uring;

use crate::rig::{Rig, World};
use crate::rigs::blocking;
use crate::rigs::driver::Driver;
use crate::world::WorldSpec;

/// The rig.
#[derive(Debug)]
pub struct Uring;

impl Rig for Uring {
    fn name(&self) -> &'static str {
        Driver::Uring.name()
    }

    fn absent(&self) -> Option<&'static str> {
        static ABSENT: OnceLock<Option<String>> = OnceLock::new();
        let probe = || uring::Uring::open(&Options::default()).err().map(|why| why.to_string());
        ABSENT.get_or_init(probe).as_deref()
    }

    fn start(&self, spec: &WorldSpec) -> Box<dyn World> {
        blocking::start(spec, Driver::Uring)
    }
}
