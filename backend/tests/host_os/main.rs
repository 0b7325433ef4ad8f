//! The kernel host against real directories, by both of its ways of resolving a path.
//!
//! What needs the right to mount, or a filesystem of a certain kind, is skipped where that is missing, and says so. With
//! `NINEAGENTS_HAMMER_SECS` set, the race between a directory and a link runs for that long instead of 2 seconds.

#![allow(clippy::disallowed_methods, reason = "the test makes the world that the host is asked about")]

mod bases;
#[path = "../../../tests/src/fitness.rs"]
mod fitness;
mod machine;
mod paths;
mod race;
mod reads;
mod world;
