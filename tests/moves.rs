//! Many short runs of moves that go wrong in every way, at every state.
//!
//! `NINEAGENTS_MOVE_RUNS` says how many, `NINEAGENTS_MOVE_SEED` from which seed on; with one run, that seed alone is done again.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use proto::Refusal;
use tests::choices::Seeded;
use tests::moves::{Seen, run};

#[test]
fn moves_keep_every_invariant() {
    let runs = variable("NINEAGENTS_MOVE_RUNS").unwrap_or(RUNS);
    let first: u64 = variable("NINEAGENTS_MOVE_SEED").unwrap_or(0);
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let total: Mutex<Seen> = Mutex::new(BTreeMap::new());
    let begun = Instant::now();
    let threads = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= runs {
                        break;
                    }
                    let seed = first.wrapping_add(number);
                    let attempt = || run(Box::new(Seeded::new(seed)));
                    match catch_unwind(AssertUnwindSafe(attempt)) {
                        Ok(seen) => {
                            let mut total = total.lock().expect("no thread panics with it");
                            seen.into_iter().for_each(|(what, count)| *total.entry(what).or_default() += count);
                        }
                        Err(_) => {
                            failed.store(true, Ordering::Relaxed);
                            println!(
                                "\nan invariant is broken; to see it again:\n\nNINEAGENTS_MOVE_RUNS=1 NINEAGENTS_MOVE_SEED={seed} \
                                 cargo test -p nineagents-tests --test moves -- --nocapture\n"
                            );
                        }
                    }
                }
            });
        }
    });
    assert!(!failed.load(Ordering::Relaxed), "a run broke an invariant: see above");
    let total = total.into_inner().expect("no thread panics with it");
    println!("{runs} runs from seed {first} on in {:.1} s", begun.elapsed().as_secs_f64());
    for (what, count) in &total {
        println!("{count:>8} {what}");
    }
    if runs >= RUNS {
        for what in wanted() {
            assert!(total.get(&what).is_some_and(|count| *count > 0), "never seen: {what}");
        }
    }
}

/// What runs have to have seen to be worth anything: each thing that clients and others do at each state of a move, and every way
/// in which one ends.
fn wanted() -> Vec<String> {
    let states = ["Check", "Term", "Kill", "Spawn", "Await"];
    // Between the end of an agent and the start of its program there is a single step.
    let acts = ["flush", "hang-up", "version", "stop", "read"];
    let acts = acts.iter().flat_map(|act| states.iter().map(move |state| format!("{act} at {state}")));
    let told = [
        Refusal::MOVE_NAME_TAKEN,
        Refusal::MOVE_NO_CWD,
        Refusal::MOVE_NO_ZMX,
        Refusal::MOVE_NO_HARNESS,
        Refusal::MOVE_GONE,
        Refusal::MOVE_BUSY,
        Refusal::MOVE_SURVIVED,
        Refusal::MOVE_LOST,
        Refusal::MOVE_NAME_LOST,
        Refusal::MOVE_NOT_STARTED,
    ];
    let told = told.iter().map(|refusal| refusal.plain.to_owned());
    acts.chain(told).chain(["moved".to_owned(), "flushed".to_owned()]).collect()
}

fn variable<T: FromStr<Err: Debug>>(name: &str) -> Option<T> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}: {error:?}")))
}

/// Runs of a plain `cargo test`.
const RUNS: u64 = 3000;
