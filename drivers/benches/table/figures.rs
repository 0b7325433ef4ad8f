//! What the kernel tells of processes: time, memory, wake-ups.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Nanoseconds of processor time of all threads that live.
pub(crate) fn cpu_ns(pid: u32) -> u64 {
    threads(pid, |task| {
        let stat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        stat.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
    })
}

/// How often the threads have gone to sleep.
pub(crate) fn naps(pid: u32) -> u64 {
    threads(pid, |task| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    })
}

fn threads(pid: u32, figure: impl Fn(PathBuf) -> u64) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    tasks.flatten().map(|task| figure(task.path())).sum()
}

/// A number of `/proc/PID/status` that is told in KiB.
pub(crate) fn kib(pid: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field of status");
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().expect("a number")
}

/// What a command took.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Took {
    /// Processor time, in seconds.
    pub(crate) cpu: f64,
    /// From its start to its end, in seconds.
    pub(crate) wall: f64,
}

/// Runs a command whose output nobody wants.
pub(crate) fn time(command: &mut Command) -> Took {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a program");
    // A process that nobody has waited for still has its figures.
    let pid = Pid::from_child(&child);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("a child of ours");
    let took = Took { wall: start.elapsed().as_secs_f64(), cpu: cpu_ns(child.id()) as f64 / 1e9 };
    assert!(child.wait().is_ok_and(|status| status.success()), "{command:?} failed");
    took
}

/// The least of several turns.
pub(crate) fn least(turns: usize, mut measure: impl FnMut() -> f64) -> f64 {
    (0..turns.max(1)).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

/// Keeps this thread, and what it starts from now on, on some processors.
pub(crate) fn pin(processors: &[usize]) {
    let mut set = CpuSet::new();
    processors.iter().for_each(|processor| set.set(*processor));
    // Where there is one processor, there is nothing to choose.
    let _ = sched_setaffinity(None, &set);
}

/// The processors of clients and of servers.
pub(crate) const CLIENT: usize = 1;
pub(crate) const SERVER: usize = 0;
