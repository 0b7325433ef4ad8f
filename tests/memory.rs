//! What a run of the simulator takes of memory, and what it leaves.
//!
//! A program of its own with one test, because the allocator counts for the whole process.

use peak_alloc::PeakAlloc;
use tests::plan::Plan;
use tests::sim::Stage;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

#[test]
fn a_run_stays_small_and_leaves_nothing() {
    let stage = Stage::new();
    stage.run(&Plan::seeded(0));
    let mut most = (0, 0);
    for seed in 0..RUNS {
        let plan = Plan::seeded(seed);
        let before = HEAP.current_usage();
        HEAP.reset_peak_usage();
        stage.run(&plan);
        most = most.max((HEAP.peak_usage() - before, seed));
        let left = HEAP.current_usage().saturating_sub(before);
        assert_eq!(left, 0, "{left} bytes are left of seed {seed}");
    }
    let (bytes, seed) = most;
    println!("at most {bytes} bytes, of seed {seed}");
    assert!(bytes <= MOST_BYTES, "{bytes} bytes, seed {seed}");
}

const RUNS: u64 = 500;
/// Four connections with their rooms and replies, and the copy of a machine.
const MOST_BYTES: usize = 2 << 20;
