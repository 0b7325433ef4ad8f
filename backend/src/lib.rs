//! The tree of coding agents.

mod active;
mod agents;
mod budget;
pub mod chat;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod harness;
pub mod host;
mod listing;
mod mirror;
mod moves;
pub mod name;
mod pins;
mod process;
mod qid;
mod text;
mod tree;

pub use agents::{Agents, Limits};
pub use moves::Moving;
pub use text::is_unprintable;
pub use tree::{Node, Open, Tree};
