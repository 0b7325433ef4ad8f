//! What the README says to type, read out of it, so that neither can change without the other.
//!
//! Its mounts take root and a kernel to try them on: `tests/kernel/guest/recipes` runs those, word for word too.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use rustix::process::Signal;
use tests::fitness::skip;

use crate::binary::path;
use crate::daemon::Daemon;
use crate::home::Home;
use crate::moves::stage::{HARNESSES, Stage, Zmx, await_until};

/// Each command of a block has somebody who runs it.
#[test]
fn every_command_of_the_readme_is_run() {
    let guest = fs::read_to_string(source("tests/kernel/guest/recipes")).unwrap();
    let in_a_guest = ["trans=unix", "trans=tcp", "trans=fd", "9mount -iux 'unix", "9mount -iux -", "mkfifo"];
    for words in in_a_guest {
        assert!(guest.contains(words), "the guest looks for {words}");
    }
    for command in commands() {
        let here = [
            "9agents",
            "cargo run --release -- ",
            "socat ",
            "echo night | 9agents write ",
            "mkdir -p ~/.config",
            "cp packaging/",
            "sed -i ",
        ];
        // The first is this very run; the others are tried where there is a clean system.
        let elsewhere = [
            "cargo test --workspace",
            "cargo install cargo-deb",
            "cargo deb -p nineagents-drivers",
            "sudo apt install ./target/debian/9agents_*.deb",
            "systemctl --user enable --now 9agents.socket",
        ];
        let known = here.iter().any(|start| command.starts_with(start))
            || elsewhere.contains(&command.as_str())
            || in_a_guest.iter().any(|words| command.contains(words));
        assert!(known, "nobody runs `{command}`");
    }
}

/// One without a verb serves until it is told to stop, one with a verb ends well.
#[test]
fn the_commands_of_the_readme_work() {
    let (mut served, mut ended) = (0, 0);
    for command in commands() {
        let command = command.replace("cargo run --release -- ", "9agents ");
        let alone = command.starts_with("9agents") && !command.contains("unix!");
        if !alone {
            continue;
        }
        let place = Place::new();
        let mut shell = place.shell(&format!("exec {command}"));
        let verb = command.split(' ').skip(1).find(|word| !word.starts_with("--"));
        if verb.is_some_and(|verb| verb.starts_with(|first: char| first.is_ascii_lowercase())) {
            let output = shell.output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            // Nothing may be running here.
            assert!(
                output.status.success() || stderr.ends_with("/active/*/*: no match\n"),
                "{command}: {stderr}"
            );
            ended += 1;
        } else {
            let mut daemon = Daemon::start(&mut shell);
            daemon.signal(Signal::TERM);
            assert_eq!(daemon.wait().code(), Some(0), "{command}");
            served += 1;
        }
    }
    assert!(served >= 3 && ended >= 4, "{served} that serve and {ended} that end are too few");
}

/// The first command, which a newcomer runs.
#[test]
fn the_first_command_lists_transcripts() {
    let place = Place::new();
    let first = commands().remove(0).replace("cargo run --release -- ", "9agents ");
    let listed = printed(&place.shell(&first).output().unwrap());
    let line = listed.lines().find(|line| line.ends_with(" 5a1c.jsonl")).unwrap();
    assert!(line.starts_with("-r--r--r-- ") && line.contains(" 16 "), "{line}");
}

/// What the README shows is what is printed, at the width that it is shown in.
#[test]
fn the_readme_shows_what_is_printed() {
    let shown = blocks().into_iter().filter(|block| block[0].starts_with("$ ")).collect::<Vec<_>>();
    assert!(shown.len() >= 2);
    for block in shown {
        let width = block.iter().map(|line| line.chars().count()).max().unwrap();
        let place = Place::new();
        let mut shell = place.shell(&block[0]["$ ".len()..]);
        let printed = printed(&shell.env("COLUMNS", width.to_string()).output().unwrap());
        assert_eq!(printed.lines().collect::<Vec<_>>(), block[1..], "{}", block[0]);
    }
}

/// The units as they are installed without the package start the program that is found.
#[test]
fn the_units_are_installed_as_the_readme_says() {
    let place = Place::new();
    for words in ["mkdir -p ~/.config", "cp packaging/", "sed -i "] {
        printed(&place.shell(&the_command(words)).current_dir(source("")).output().unwrap());
    }
    let units = place.home.path(".config/systemd/user");
    let service = fs::read_to_string(units.join("9agents.service")).unwrap();
    let start = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let program = start.split(' ').next().unwrap();
    assert_eq!(Path::new(program), place.home.beside("bin/9agents"));
    assert!(units.join("9agents.socket").exists());
}

#[test]
fn what_the_readme_writes_moves_an_agent() {
    let stage = Stage::new(Zmx::Posting);
    let _daemon = stage.serve(&[]);
    let mut client = stage.client();
    let agent = stage.start(HARNESSES[0]);
    stage.await_session(&mut client, &agent, HARNESSES[0].session);
    let command = the_command("| 9agents write ").replace("/3301/", &format!("/{}/", agent.pid()));
    assert!(command.contains(&agent.pid().to_string()), "{command}");

    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command.replace("9agents", &path().display().to_string()));
    printed(&shell.env_clear().env("XDG_RUNTIME_DIR", stage.home.runtime()).output().unwrap());

    assert_ne!(stage.await_moved(&mut client, "claude", "night"), agent.pid());
}

/// Over an ssh that goes no further than here.
#[test]
fn a_far_tree_is_read_over_ssh_as_the_readme_says() {
    if Command::new("socat").arg("-V").output().is_err() {
        return skip("there is no socat");
    }
    let place = Place::new();
    place.program("ssh", "#!/bin/sh\nshift\nexec \"$@\"\n");
    let far = place.home.beside("far");
    let here = |command: &str| command.replace("/tmp/far", far.to_str().unwrap());
    let relay = the_command("socat ");
    let relay = here(relay.strip_suffix(" &").expect("it goes on in the background"));
    let _relay = Killed(place.shell(&format!("exec {relay}")).spawn().unwrap());
    await_until("the relay listens", || far.exists());
    let read = here(&the_command("unix!/tmp/far"));
    // One after the other, and each is a session of its own.
    for _ in 0..2 {
        let listed = printed(&place.shell(&read).output().unwrap());
        assert!(listed.lines().any(|line| line.ends_with(" 5a1c.jsonl")), "{listed}");
    }
}

/// The lines of the README's blocks of code, without what sets them off.
fn blocks() -> Vec<Vec<String>> {
    let readme = fs::read_to_string(source("README.md")).unwrap();
    let mut blocks = vec![Vec::new()];
    for line in readme.lines() {
        match line.strip_prefix("    ") {
            Some(line) => blocks.last_mut().unwrap().push(line.to_owned()),
            None => blocks.push(Vec::new()),
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Every command there is to type, on one line and without its comment.
fn commands() -> Vec<String> {
    let typed = blocks().into_iter().filter(|block| !block[0].starts_with("$ "));
    let lines = typed.map(|block| block.join("\n").replace("\\\n", "")).collect::<Vec<_>>().join("\n");
    lines.lines().map(|line| line.split(" #").next().unwrap_or_default().trim_end().to_owned()).collect()
}

/// The one command that holds some words.
#[track_caller]
fn the_command(words: &str) -> String {
    let mut found = commands().into_iter().filter(|command| command.contains(words));
    let command = found.next().unwrap_or_else(|| panic!("the README has no command with `{words}`"));
    assert_eq!(found.next(), None, "one command has `{words}`");
    command
}

/// What a command that ended well has printed.
#[track_caller]
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Where commands are typed: a home, and a PATH that has the program.
struct Place {
    home: Home,
}

impl Place {
    fn new() -> Self {
        let home = Home::furnished();
        fs::create_dir(home.beside("bin")).unwrap();
        symlink(path(), home.beside("bin/9agents")).unwrap();
        Self { home }
    }

    /// Puts a program into the PATH.
    fn program(&self, name: &str, text: &str) {
        let program = self.home.beside("bin").join(name);
        fs::write(&program, text).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A shell that runs a command of the README's, where its places are this one's.
    fn shell(&self, command: &str) -> Command {
        let command = command.replace("/run/user/1000", self.home.runtime().to_str().unwrap());
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command.replace(":5640", ":0")).env_clear().env("TZ", "UTC");
        shell.env("PATH", format!("{}:/usr/bin:/bin", self.home.beside("bin").display()));
        shell.env("HOME", self.home.path("")).env("XDG_RUNTIME_DIR", self.home.runtime());
        shell
    }
}

/// A process that ends with this.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
