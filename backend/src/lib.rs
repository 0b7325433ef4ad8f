//! The tree of coding agents.

pub mod name;
