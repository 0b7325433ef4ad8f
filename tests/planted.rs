//! The simulator finds every planted bug.
//!
//! A program of its own with one test, because a bug is planted for the whole process.

use engine::planted::{Bug, plant};
use tests::plan::Plan;
use tests::sim::Stage;
use tests::sim::shrink::{attempt, smallest};

#[test]
fn every_planted_bug_is_found() {
    let stage = Stage::new();
    let mut missed = Vec::new();
    println!("{:<16} {:>6} of at most {MOST_RUNS} runs", "bug", "found");
    for &(bug, words) in Bug::ALL {
        plant(Some(bug));
        let found = (0..MOST_RUNS).find_map(|seed| Some((seed, attempt(&stage, &Plan::seeded(seed)).err()?)));
        plant(None);
        match found {
            Some((seed, why)) => {
                plant(Some(bug));
                let (plan, _) = smallest(&Plan::seeded(seed), |plan| attempt(&stage, plan).map(drop));
                plant(None);
                let why: String = why.lines().next().unwrap_or_default().chars().take(90).collect();
                println!(
                    "{:<16} {:>6}  {} {why}\n{plan} {bug:?}",
                    format!("{bug:?}"),
                    seed + 1,
                    words.trim()
                );
            }
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, [], "not found in {MOST_RUNS} runs");
    // And without any, nothing is found.
    assert!((0..MOST_RUNS).all(|seed| attempt(&stage, &Plan::seeded(seed)).is_ok()));
}

/// Runs in which each bug has to be found.
const MOST_RUNS: u64 = 5000;
