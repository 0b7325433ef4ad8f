//! What is made of the command line and of the tree's own README, and lies in `packaging`: manual pages and completions.
//!
//! Owns what the files are, and that they are what they should be: a test writes them if it is told to. Must not know: what the
//! verbs do. It is built for tests alone, so that the program carries no generator.

mod pages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory;
use clap_complete::Shell;

use super::arguments::Arguments;
use crate::fitness::skip;

#[test]
fn what_is_generated_is_current() {
    let writes = std::env::var_os(WRITE).is_some_and(|value| value == "1");
    for (name, text) in files() {
        let path = packaging().join(name);
        if writes {
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{name} is not current: {WRITE}=1 cargo test -p nineagents-drivers generated");
    }
}

/// Every verb and every flag that is shown has its place in the page.
#[test]
fn the_page_of_the_program_is_whole() {
    let page = pages::program();
    let command = Arguments::command();
    for verb in command.get_subcommands() {
        let heading = format!(".SS {}\n", verb.get_name());
        assert_eq!(page.matches(&heading).count(), usize::from(!verb.is_hide_set()), "{}", verb.get_name());
    }
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    for flag in verbs.chain([&command]).flat_map(|command| command.get_arguments()) {
        let Some(long) = flag.get_long() else { continue };
        let escaped = format!("\\fB\\-\\-{}\\fR", long.replace('-', "\\-"));
        assert!(page.contains(&escaped), "--{long}");
    }
}

#[test]
fn programs_that_read_manual_pages_find_no_fault() {
    for page in ["man/9agents.1", "man/9agents.4"].map(|name| packaging().join(name)) {
        for (program, flags) in [
            ("mandoc", &["-T", "lint", "-W", "warning"][..]),
            ("groff", &["-man", "-Tutf8", "-ww", "-z", "-rLL=80n"]),
        ] {
            let Ok(output) = Command::new(program).args(flags).arg(&page).output() else {
                skip(&format!("there is no {program}"));
                continue;
            };
            let said = [output.stdout, output.stderr].concat();
            assert_eq!(String::from_utf8_lossy(&said), "", "{program}");
        }
    }
}

/// Each file below `packaging`.
fn files() -> Vec<(&'static str, String)> {
    let complete = |shell| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Arguments::command(), "9agents", &mut script);
        String::from_utf8(script).unwrap()
    };
    vec![
        ("man/9agents.1", pages::program()),
        ("man/9agents.4", pages::tree()),
        ("completions/9agents.bash", complete(Shell::Bash)),
        ("completions/_9agents", complete(Shell::Zsh)),
        ("completions/9agents.fish", complete(Shell::Fish)),
    ]
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging")
}

/// Set to `1`, it has the files written.
const WRITE: &str = "NINEAGENTS_WRITE_GENERATED";
