//! 9agents: every coding agent on this machine as files, over 9P.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
