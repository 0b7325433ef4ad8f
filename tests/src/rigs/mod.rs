//! The ways to run the server.

pub mod engine;

use crate::rig::Rig;

/// Every rig, in the order of the table.
pub fn all() -> Vec<Box<dyn Rig>> {
    vec![Box::new(engine::Engine)]
}
