//! The ways to run the server.

pub mod blocking;
pub mod child;
mod driver;
pub mod engine;
pub mod inproc;
pub mod liar;
pub mod simulation;
mod tree;
pub mod uring;

use crate::rig::Rig;

/// Every rig, in the order of the table.
pub fn all() -> Vec<Box<dyn Rig>> {
    vec![
        Box::new(engine::Engine),
        Box::new(simulation::Simulation),
        Box::new(inproc::InProcess),
        Box::new(blocking::Blocking),
        Box::new(uring::Uring),
    ]
}
