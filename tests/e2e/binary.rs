//! The program under test.
//!
//! Cargo builds the binaries of a package for the integration tests of that package alone, which this is not. But
//! `cargo test --workspace` builds them all before it runs anything, and puts this one beside the directory of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

/// A command that runs the program with nothing in its environment.
pub(crate) fn program() -> Command {
    let mut command = Command::new(path());
    command.env_clear().env("TZ", "UTC");
    command
}

/// Where the program is.
pub(crate) fn path() -> &'static Path {
    &BINARY
}

/// The same command, run by a shell that first does something to itself. That may end in variables to set.
pub(crate) fn given(command: &Command, first: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
        .arg("-c")
        .arg(format!("{first} exec \"$0\" \"$@\""))
        .arg(command.get_program())
        .args(command.get_args());
    shell
}

/// The same command with signals as an option of env(1) has them, and with variables as they are: a shell drops some.
pub(crate) fn signalled(command: &Command, option: &str) -> Command {
    let mut env = Command::new("/usr/bin/env");
    env.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    env.arg(option).arg(command.get_program()).args(command.get_args());
    env
}

/// Whether it was built for use, not for debugging.
pub(crate) fn is_release() -> bool {
    path().components().any(|part| part.as_os_str() == "release")
}

/// Where the program is: what `NINEAGENTS_BIN` says, else what was built with this test.
static BINARY: LazyLock<PathBuf> = LazyLock::new(|| match std::env::var_os("NINEAGENTS_BIN") {
    Some(chosen) => chosen.into(),
    None => built(),
});

/// The program in the directory that this test was built in.
///
/// # Panics
/// If it is not there, or older than what it is made of: then the test would be of something else.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    let directory = own.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST");
    let binary = directory.join("9agents");
    let advice = "run `cargo test --workspace`, or `cargo build` first";
    let built = modified(&binary).unwrap_or_else(|| panic!("{} is not there: {advice}", binary.display()));
    // Cargo leaves a rule for make(1) beside what it builds: all the sources there are.
    let rule = fs::read_to_string(binary.with_extension("d")).unwrap_or_default();
    for source in rule.split(' ').skip(1).map(str::trim) {
        let newer = modified(Path::new(source)).is_some_and(|changed| changed > built);
        assert!(!newer, "{} is older than {source}: {advice}", binary.display());
    }
    binary
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
