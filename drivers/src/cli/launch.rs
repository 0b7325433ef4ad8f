//! `launch`: what a server that starts a program becomes first, in the child.
//!
//! Owns: what a program is to have that the server does not: a session of its own, and no descriptor but the standard three. Rust
//! does nothing of the kind between fork and exec without unsafe code, so it is done after an exec of ourselves. (Ignored signals
//! and the limit of descriptors are restored by a shell: `limits`.)

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use drivers::client::Cause;
use drivers::inherit;

use super::desk::Desk;

/// Becomes the program; comes back only if that fails.
pub(super) fn run(words: &[OsString], desk: &mut Desk) -> ExitCode {
    inherit::close_on_exec();
    // Whoever leads a group already has a session that is as good: only a shell that somebody types to makes us one.
    let _ = rustix::process::setsid();
    let Some((program, arguments)) = words.split_first() else { return ExitCode::FAILURE };
    let error = Command::new(program).args(arguments).exec();
    desk.lament(&format_args!("{}: {}", program.display(), Cause(&error)));
    ExitCode::FAILURE
}
