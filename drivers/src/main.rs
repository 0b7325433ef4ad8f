//! 9agents: every coding agent on this machine as files, over 9P.

mod cli;
#[cfg(test)]
#[path = "../../tests/src/fitness.rs"]
mod fitness;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
