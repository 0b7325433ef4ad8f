//! The program as its users run it: the real binary, started as a process and spoken to over its sockets.
//!
//! What can be shown of a driver in the test's own process is a case of the conformance suite. Here is what takes a
//! process: signals, exit codes, the log, memory, other users, descriptors it was started with, and what a kill leaves.

use std::io::Write;

mod binary;
mod calls;
mod daemon;
mod files;
mod hammer;
mod home;
mod hostile;
mod live;
mod memory;
mod moves;
mod outside;
mod plan9;
mod posting;
mod readme;
mod soak;
mod storm;
mod streams;
mod supervised;
mod units;
mod users;

/// Says something past the test runner, which keeps what a passing test prints.
fn tell(what: &str) {
    // A closed stderr is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{what}");
}
