//! The simulator and the corpora of the fuzz targets find every planted bug.
//!
//! A program of its own, because a bug is planted for the whole process; its tests take turns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use engine::planted::{Bug, plant};
use tests::choices::Seeded;
use tests::moves::run;
use tests::plan::Plan;
use tests::sim::Stage;
use tests::sim::shrink::{attempt, smallest};

mod corpora;

use corpora::{TARGETS, corpus, replay};

#[test]
fn every_planted_bug_is_found() {
    let _turn = TURN.lock();
    let stage = Stage::new();
    let mut missed = Vec::new();
    println!("{:<16} {:<7} {:>6} of at most {MOST_RUNS} runs", "bug", "in", "found");
    for &(bug, words) in Bug::ALL.iter().filter(|(bug, _)| !OF_TEXTS.contains(bug) && !OF_MOVES.contains(bug))
    {
        let scene = scene_of(bug);
        let plan = |seed| Plan::in_scene(seed, scene).expect("a scene of this name");
        plant(Some(bug));
        let found = (0..MOST_RUNS).find_map(|seed| Some((seed, attempt(&stage, &plan(seed)).err()?)));
        match found {
            Some((seed, why)) => {
                let (plan, _) = smallest(&plan(seed), |plan| attempt(&stage, plan).map(drop));
                let why: String = why.lines().next().unwrap_or_default().chars().take(90).collect();
                let name = format!("{bug:?}");
                println!("{name:<16} {scene:<7} {:>6}  {} {why}\n{plan} {bug:?}", seed + 1, words.trim());
            }
            None => missed.push(bug),
        }
        plant(None);
    }
    assert_eq!(missed, [], "not found in {MOST_RUNS} runs");
    // And without any, nothing is found.
    for scene in ["home", "agents", "chats"] {
        let plan = |seed| Plan::in_scene(seed, scene).expect("a scene of this name");
        assert!((0..MOST_RUNS / 5).all(|seed| attempt(&stage, &plan(seed)).is_ok()), "{scene}");
    }
}

/// Where a bug does harm.
fn scene_of(bug: Bug) -> &'static str {
    match bug {
        Bug::PidReused | Bug::RecordStale | Bug::AncestorListed => "agents",
        Bug::HalfLineTold | Bug::LineCut | Bug::RecordTwice | Bug::ChatStale => "chats",
        _ => "home",
    }
}

/// Each target's corpus finds the bugs of what it is about.
#[test]
fn every_planted_bug_is_found_by_a_corpus() {
    let _turn = TURN.lock();
    let mut missed = Vec::new();
    for &(bug, _) in Bug::ALL.iter().filter(|(bug, _)| !OF_MOVES.contains(bug) && scene_of(*bug) == "home") {
        plant(Some(bug));
        let finds = |(target, body): &&(&str, corpora::Body)| replay(&corpus(target), *body).is_err();
        let found: Vec<&str> = TARGETS.iter().filter(finds).map(|(target, _)| *target).collect();
        plant(None);
        println!("{:<16} {}", format!("{bug:?}"), found.join(", "));
        let who = match bug {
            Bug::NameCut | Bug::LockWaits => "host_text",
            Bug::LineTorn | Bug::PairSplit => "transcript",
            Bug::FidLeaked | Bug::BudgetLeaked | Bug::FlushEarly | Bug::FlushOrder => "session",
            _ => "world",
        };
        if !found.contains(&who) {
            missed.push((bug, who));
        }
    }
    assert_eq!(missed, [], "not found");
}

/// The simulation of moves finds those of moves.
#[test]
fn every_planted_bug_of_moves_is_found() {
    let _turn = TURN.lock();
    let mut missed = Vec::new();
    let broken = |seed| catch_unwind(AssertUnwindSafe(|| run(Box::new(Seeded::new(seed))))).is_err();
    for &bug in OF_MOVES {
        plant(Some(bug));
        let found = (0..MOST_RUNS).find(|seed| broken(*seed));
        plant(None);
        match found {
            Some(seed) => println!("{:<16} {:>6}", format!("{bug:?}"), seed + 1),
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, [], "not found in {MOST_RUNS} runs");
    assert!(!(0..MOST_RUNS / 10).any(broken));
}

/// What only an agent that is moved can show.
const OF_MOVES: &[Bug] = &[
    Bug::MoveEager,
    Bug::MoveHasty,
    Bug::MoveDropped,
    Bug::MoveTwice,
    Bug::MoveBlind,
    Bug::MoveDoubled,
    Bug::MoveCounted,
    Bug::MoveRemote,
];
/// What is in texts that no simulated machine holds.
const OF_TEXTS: &[Bug] = &[Bug::NameCut, Bug::LockWaits, Bug::LineTorn, Bug::PairSplit];
/// Runs in which each bug has to be found.
const MOST_RUNS: u64 = 5000;
/// One bug at a time.
static TURN: Mutex<()> = Mutex::new(());
