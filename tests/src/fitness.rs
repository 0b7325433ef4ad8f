//! What is done about a test that the machine is unfit for.
//!
//! Owns: the words that say so, and when it is a failure. The other packages' tests take this file in as it is, because they
//! may not use this package. Must not know: any test.

#![allow(unreachable_pub, reason = "it is public in its own package only")]

use std::io::Write;

/// Says, past the test runner, which keeps what a passing test prints, that something was not tested, and why.
///
/// # Panics
/// If `NINEAGENTS_NO_SKIPS` is `1`: then everything is to be tested.
#[track_caller]
pub fn skip(why: &str) {
    let forbidden = std::env::var_os("NINEAGENTS_NO_SKIPS").is_some_and(|value| value == "1");
    assert!(!forbidden, "NINEAGENTS_NO_SKIPS is set, and this machine is unfit for a test: {why}");
    // A closed stderr is no reason to fail.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
