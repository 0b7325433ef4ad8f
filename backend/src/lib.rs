//! The tree of coding agents.
