//! Many short runs of the whole server over machines in memory.
//!
//! `NINEAGENTS_SIM_RUNS` says how many, `NINEAGENTS_SIM_SEED` from which seed on, `NINEAGENTS_SIM_SCENE` in which scene alone
//! (`home`, `agents`, `chats`). A failure prints one command that does it
//! again, shrunk to what matters: it runs the plan in `NINEAGENTS_SIM_PLAN` and tells what happens.

use std::fmt::Debug;
use std::process::Command;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use tests::choices::{Choices, Exhaustive, Seeded};
use tests::plan::{Cut, Mood, Plan, Request, Route, Setup, Step, Which};
use tests::sim::shrink::{attempt, smallest};
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

/// Nothing of a run comes from outside: another process, with threads of its own, comes to the same.
#[test]
fn the_same_seed_gives_the_same_hash() {
    let mut again = Command::new(std::env::current_exe().expect("this program has a path"));
    again.args(["runs_keep_every_invariant", "--exact", "--nocapture"]);
    again.env("NINEAGENTS_SIM_RUNS", "300").env("NINEAGENTS_SIM_SEED", "77");
    let said = again.output().expect("this program runs again").stdout;
    let hash = |first| format!("hash {:016x}\n", run_all(first, 300).hash);
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains(&hash(77)), "{said}");
    assert!(!said.contains(&hash(78)), "every hash is the same");
}

/// Plans that once were taken for broken, or that a planted bug was found by: a line each.
#[test]
fn plans_of_old_keep_every_invariant() {
    let stage = Stage::new();
    let plans = PLANS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in plans.clone() {
        let plan = line.split(' ').next().unwrap_or_default().parse().expect("a plan");
        if let Err(words) = twice(&stage, &plan) {
            panic!("{line}: {words}");
        }
    }
    assert!(plans.count() > 10);
}

#[test]
fn whatever_is_spelt_runs() {
    let stage = Stage::new();
    let mut bytes = Seeded::new(1);
    for length in 0..200 {
        let bytes: Vec<u8> = (0..length * 3).map(|_| bytes.below(256) as u8).collect();
        assert_eq!(stage.run_spelt(&bytes), stage.run_spelt(&bytes));
    }
}

/// A walk, an open, a listing that waits, its flush and a clunk: whatever comes first, in every order there is.
#[test]
fn every_order_of_a_few_requests_keeps_every_invariant() {
    let stage = Stage::new();
    let ask = |request| Step::Ask { client: 0, mood: Mood::Busy, twice: false, request };
    let grab = ask(Request::Grab { fid: 1, route: Route::Path(1) });
    let list = ask(Request::List { fid: 1, goes_on: false, count: 8192 });
    let (flush, clunk) = (ask(Request::Flush(Which::Last)), ask(Request::Clunk { fid: 1 }));
    for steps in [&[grab, list, flush, clunk][..], &[grab, list, ask(Request::Version { dialect: 1 })]] {
        let (mut orders, mut all) = (0, Exhaustive::default());
        loop {
            let choices = Arc::new(Mutex::new(all));
            let setup = Setup { cut: Cut::Frames, pace: 0, ..Setup::of(0) };
            stage.run_with(setup, steps.iter().copied(), Box::new(Shared(Arc::clone(&choices))));
            all = choices.lock().expect("nobody else has it").clone();
            orders += 1;
            if !all.advance() {
                break;
            }
        }
        println!("{orders} orders of {steps:?}");
        assert!(orders > 300, "only {orders} orders of {steps:?}");
    }
}

/// Choices that are still there after a run.
struct Shared(Arc<Mutex<Exhaustive>>);

impl Choices for Shared {
    fn below(&mut self, count: u32) -> u32 {
        self.0.lock().expect("nobody else has it").below(count)
    }
}

/// Runs the plan of every seed, each twice, on as many threads as there are processors.
fn run_all(first: u64, runs: u64) -> Report {
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let total = Mutex::new(Report::default());
    let scene = variable::<String>("NINEAGENTS_SIM_SCENE");
    let threads = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        let work = || {
            let stage = Stage::new();
            while !failed.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= runs {
                    break;
                }
                let plan = planned(first.wrapping_add(number), scene.as_deref());
                match twice(&stage, &plan) {
                    Ok(report) => add(&mut total.lock().expect("no thread panics with it"), number, report),
                    Err(_) => {
                        if !failed.swap(true, Ordering::Relaxed) {
                            tell(&stage, &plan);
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

/// The plan of a seed, in some scene or in whichever it says.
fn planned(seed: u64, scene: Option<&str>) -> Plan {
    match scene {
        Some(name) => Plan::in_scene(seed, name).expect("a scene of this name"),
        None => Plan::seeded(seed),
    }
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
fn tell(stage: &Stage, plan: &Plan) {
    let (plan, words) = smallest(plan, |plan| twice(stage, plan).map(drop));
    println!("\nan invariant is broken: {words}\nto see it again:\n");
    println!("NINEAGENTS_SIM_PLAN={plan} cargo test -p nineagents-tests --test sim replay -- --nocapture\n");
}

fn variable<T: FromStr<Err: Debug>>(name: &str) -> Option<T> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}: {error:?}")))
}

const PLANS: &str = include_str!("seeds/plans.txt");
/// Runs of a plain `cargo test`.
const RUNS: u64 = 2000;
/// Where they begin.
const SEED: u64 = 0;
