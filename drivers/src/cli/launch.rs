//! `launch`: what a server that starts a program becomes first, in the child.
//!
//! Owns: what a program is to have that the server does not: a session of its own, the limit of descriptors that the server was
//! started with, and no descriptor but the standard three. Rust does nothing of the kind between fork and exec without unsafe code,
//! so it is done after an exec of ourselves. (Ignored signals are restored by a shell: `limits`.)

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use drivers::client::Cause;
use drivers::{inherit, limits};

use super::desk::Desk;

/// Becomes the program; comes back only if that fails.
pub(super) fn run(descriptors: Option<u64>, words: &[OsString], desk: &mut Desk) -> ExitCode {
    inherit::close_on_exec();
    // Whoever leads a group already has a session that is as good: only a shell that somebody types to makes us one.
    let _ = rustix::process::setsid();
    let Some((program, arguments)) = words.split_first() else { return ExitCode::FAILURE };
    let prepared = announce().and_then(|()| descriptors.map_or(Ok(()), limits::lower_descriptors));
    let error = prepared.err().unwrap_or_else(|| Command::new(program).args(arguments).exec());
    desk.lament(&format_args!("{}: {}", program.display(), Cause(&error)));
    ExitCode::FAILURE
}

/// Tells the server that what is sent to its group is not for us any more: until then it would have ended us.
fn announce() -> io::Result<()> {
    rustix::io::write(rustix::stdio::stdout(), &[1])?;
    Ok(rustix::stdio::dup2_stdout(File::open("/dev/null")?)?)
}
