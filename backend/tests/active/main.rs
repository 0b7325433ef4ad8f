//! `/active` over a machine of files: a home directory and a process table of a test's own, as `--proc` serves one.

#![allow(clippy::disallowed_methods, reason = "the test makes the machine that the host is asked about")]

mod chat;
mod churn;
mod claude;
mod client;
mod codex;
mod dsh;
mod hermes;
mod impostors;
mod omp;
mod process;
mod races;
mod samples;
mod subagents;
mod world;
