//! The tree of coding agents.

pub mod host;
pub mod name;
