//! The ways to run the server.

pub mod blocking;
pub mod child;
pub mod engine;
pub mod inproc;
mod tree;

use crate::rig::Rig;

/// Every rig, in the order of the table.
pub fn all() -> Vec<Box<dyn Rig>> {
    vec![Box::new(engine::Engine), Box::new(inproc::InProcess), Box::new(blocking::Blocking)]
}
