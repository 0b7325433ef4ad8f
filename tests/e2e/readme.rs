//! What the README says to type.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::binary::path;
use crate::daemon::Daemon;
use crate::home::Home;

/// Every line of the README that runs the program does what it says: one without a verb serves until it is told to stop, one
/// with a verb ends well.
#[test]
fn the_commands_of_the_readme_work() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let (mut served, mut ended) = (0, 0);
    for line in readme.lines().filter_map(|line| line.strip_prefix("    9agents")) {
        let home = Home::furnished();
        let line = line.split(" #").next().unwrap_or_default();
        let line = line.replace("/run/user/1000", home.runtime().to_str().unwrap()).replace(":5640", ":0");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("exec \"$0\" {line}")).arg(path());
        command.env_clear().env("HOME", home.path("")).env("XDG_RUNTIME_DIR", home.runtime());
        if line.trim_start().starts_with(|first: char| first.is_ascii_lowercase()) {
            let output = command.output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            // Nothing may be running here.
            assert!(
                output.status.success() || stderr.ends_with("/active/*/*: no match\n"),
                "{line}: {stderr}"
            );
            ended += 1;
        } else {
            let mut daemon = Daemon::start(&mut command);
            daemon.signal(Signal::TERM);
            assert_eq!(daemon.wait().code(), Some(0), "{line}");
            served += 1;
        }
    }
    assert!(served >= 3 && ended >= 2, "{served} that serve and {ended} that end are too few");
}

/// The first command, which a newcomer runs.
#[test]
fn the_first_command_lists_transcripts() {
    let home = Home::furnished();
    let output = home.command(&["ls", "-lR", "/claude/projects"]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    let line = listed.lines().find(|line| line.ends_with(" 5a1c.jsonl")).unwrap();
    assert!(line.starts_with("-r--r--r-- ") && line.contains(" 16 "), "{line}");
}
