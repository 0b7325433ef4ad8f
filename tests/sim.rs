//! Many short runs of the whole server over machines in memory.
//!
//! `NINEAGENTS_SIM_RUNS` says how many, `NINEAGENTS_SIM_SEED` from which seed on. A failure prints one command that does it
//! again, shrunk to what matters: it runs the plan in `NINEAGENTS_SIM_PLAN` and tells what happens.

use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tests::plan::Plan;
use tests::sim::shrink::{Tree, attempt};
use tests::sim::{Report, Stage};

/// The one command's test. Without a plan there is nothing to replay.
#[test]
fn replay() {
    if let Some(plan) = variable::<Plan>("NINEAGENTS_SIM_PLAN") {
        println!("{plan}");
        println!("{:?}", Stage::new().telling().run(&plan));
    }
}

#[test]
fn runs_keep_every_invariant() {
    let runs = variable("NINEAGENTS_SIM_RUNS").unwrap_or(RUNS);
    let first = variable("NINEAGENTS_SIM_SEED").unwrap_or(SEED);
    let begun = Instant::now();
    let total = run_all(first, runs);
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{runs} runs from seed {first} on, each twice: {seconds:.1} s, {:.0} a second; {} events, {} calls of the machine, {} \
         of them failed, {} answers compared; hash {:016x}",
        runs as f64 / seconds,
        total.events,
        total.calls,
        total.faults,
        total.compared,
        total.hash
    );
    assert!(total.compared > runs && total.faults > runs / 10, "the runs have seen too little: {total:?}");
}

/// Runs the plan of every seed, each twice, on as many threads as there are processors.
fn run_all(first: u64, runs: u64) -> Report {
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let total = Mutex::new(Report::default());
    let threads = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        let work = || {
            let stage = Stage::new();
            while !failed.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= runs {
                    break;
                }
                let plan = Plan::seeded(first.wrapping_add(number));
                match twice(&stage, &plan) {
                    Ok(report) => add(&mut total.lock().expect("no thread panics with it"), number, report),
                    Err(words) => {
                        if !failed.swap(true, Ordering::Relaxed) {
                            tell(&stage, plan, &words);
                        }
                    }
                }
            }
        };
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    assert!(!failed.load(Ordering::Relaxed), "a run broke an invariant: see above");
    total.into_inner().expect("no thread panics with it")
}

fn add(total: &mut Report, number: u64, report: Report) {
    // In whatever order they come, each counts in its own way.
    total.hash = total.hash.wrapping_add(report.hash.wrapping_mul(2 * number + 1));
    total.events += report.events;
    total.calls += report.calls;
    total.faults += report.faults;
    total.compared += report.compared;
}

/// Runs a plan twice, which has to come to the same.
fn twice(stage: &Stage, plan: &Plan) -> Result<Report, String> {
    let report = attempt(stage, plan)?;
    let again = attempt(stage, plan)?;
    if report == again { Ok(report) } else { Err(format!("it ran in two ways: {report:?}, {again:?}")) }
}

/// Prints a failure, shrunk, with the command that does it again.
fn tell(stage: &Stage, plan: Plan, words: &str) {
    let config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let test = |plan| twice(stage, &plan).map(drop).map_err(TestCaseError::fail);
    let (plan, words) = match runner.run_one(Tree::new(plan.clone()), test) {
        Err(TestError::Fail(why, plan)) => (plan, why.to_string()),
        _ => (plan, words.to_owned()),
    };
    println!("\nan invariant is broken: {words}\nto see it again:\n");
    println!("NINEAGENTS_SIM_PLAN={plan} cargo test -p nineagents-tests --test sim replay -- --nocapture\n");
}

fn variable<T: FromStr<Err: Debug>>(name: &str) -> Option<T> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}: {error:?}")))
}

/// Runs of a plain `cargo test`.
const RUNS: u64 = 2000;
/// Where they begin.
const SEED: u64 = 0;
