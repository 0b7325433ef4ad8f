//! The simulator.

pub mod link;
