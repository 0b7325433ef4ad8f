//! The test library: what every implementation of the server is held to.
//!
//! A [`rig::Rig`] is a way to run the server (in memory, in this process, behind a socket). A [`suite::Case`] is one thing
//! a 9P server must do, written against that trait alone, so that one suite runs over every driver and every dialect.
//!
//! ```text
//!   cases, more ──▶ suite ──▶ rig (trait) ◀── rigs
//!        │                      │
//!        └──▶ check (client)    └──▶ world (what is on the disk) ◀── disk, model
//! ```

pub mod cases;
pub mod check;
pub mod choices;
pub mod disk;
pub mod fitness;
pub mod fuzz;
pub mod line;
pub mod model;
pub mod more;
pub mod moves;
pub mod names;
pub mod plan;
pub mod rig;
pub mod rigs;
pub mod sim;
pub mod slow;
pub mod suite;
pub mod world;
