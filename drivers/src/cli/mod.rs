//! The command line.
//!
//! Owns: what the verbs and their flags are, what they print, and with what status they end. Must not know: how 9P travels
//! (`drivers`), or what the tree holds (`backend`): it only puts one on the other.
//!
//! A verb prints its result on stdout, and one line on stderr for each thing that went wrong, and does the rest. The status is
//! 0 if all went well, 1 if something did not, 2 if the command line makes no sense. A closed pipe ends a verb quietly.

mod arguments;
mod connect;
mod content;
mod desk;
#[cfg(test)]
mod generated;
mod glob;
mod help;
mod launch;
mod ls;
mod ps;
mod roots;
mod serve;
mod show;
mod stat;
mod table;
mod version;

use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::ErrorKind;

use self::arguments::{Arguments, Verb};
use self::desk::Desk;
use self::serve::ServeError;

/// Does what the command line says.
pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let mut desk = Desk::new();
    let verb = arguments.verb.unwrap_or(Verb::Serve(arguments.serve));
    let printed = match verb {
        Verb::Serve(options) => return serve(options, &mut desk),
        Verb::Ls(options) => ls::run(&mut desk, &options),
        Verb::Ps(options) => ps::run(&mut desk, &options),
        Verb::Cat(options) => content::cat(&mut desk, &options),
        Verb::Stat(options) => stat::run(&mut desk, &options),
        Verb::Read(options) => content::read(&mut desk, &options),
        Verb::Write(options) => content::write(&mut desk, &options),
        Verb::Launch { descriptors, words } => return launch::run(descriptors, &words, &mut desk),
        Verb::Version(options) => version::run(&mut desk, &options),
        Verb::Help(options) => help::run(&mut desk, &options),
        Verb::Completions { shell } => help::completions(&mut desk, shell),
    };
    desk.close(printed)
}

fn serve(options: arguments::Serve, desk: &mut Desk) -> ExitCode {
    match serve::run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ServeError::Usage(words)) => usage_error(words),
        Err(error) => {
            desk.lament(&error);
            ExitCode::FAILURE
        }
    }
}

/// Ends as clap does over a command line that makes no sense.
fn usage_error(words: &str) -> ! {
    Arguments::command().error(ErrorKind::ArgumentConflict, words).exit()
}
