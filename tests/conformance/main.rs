//! Runs every case in every dialect on every rig, and prints the table.
//!
//! Each cell is a test of its own (`engine::9P2000.L::36`), so a filter on the command line chooses cells, and a runner that
//! gives every test a process can. A cell that its rig declined counts as ignored, under the reason the rig declared.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use proto::Dialect;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tests::suite::{Case, Table, Verdict};
use tests::{cases, more, rigs, suite};

fn main() -> ExitCode {
    if rigs::child::play() {
        return ExitCode::SUCCESS;
    }
    raise_descriptors();
    let arguments = Arguments::from_args();
    let table = Arc::new(Mutex::new(Table::default()));
    let cases: &'static [Case] = [cases::all(), more::all()].concat().leak();
    let rigs = rigs::all();
    let mut trials = Vec::new();
    for (at, rig) in rigs.iter().enumerate() {
        for case in cases {
            for dialect in case.dialects {
                trials.push(trial(at, rig.name(), case, *dialect, &table));
            }
        }
    }
    let listing = arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !listing {
        let table = table.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{}", table.print(cases, &rigs));
    }
    conclusion.exit_code()
}

/// A crowd of clients and the server they crowd live in this one process.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .expect("the hard limit may be had");
}

fn trial(
    at: usize,
    rig: &'static str,
    case: &'static Case,
    dialect: Dialect,
    table: &Arc<Mutex<Table>>,
) -> Trial {
    let table = Arc::clone(table);
    Trial::ignorable_test(format!("{rig}::{}::{}", dialect.name(), case.id), move || {
        let verdict = suite::run(case, &*rigs::all()[at], dialect);
        table.lock().unwrap_or_else(PoisonError::into_inner).note(case, dialect, rig, verdict.clone());
        match verdict {
            Verdict::Passed => Ok(libtest_mimic::Completion::Completed),
            Verdict::Declined(why) => Ok(libtest_mimic::Completion::ignored_with(why)),
            Verdict::Failed(how) => Err(Failed::from(format!("{}: {how}", case.title))),
        }
    })
}
