//! Signals, sent for real: in a process of its own, because they are the whole process's.

use std::process::Command;

use drivers::limits::Inherited;
use drivers::signals::{Stop, ignore_hangups};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Resource, Signal, getpid, getrlimit, kill_process};

#[test]
fn signals_are_heard_survived_and_kept_from_children() {
    let inherited = Inherited::record().unwrap();
    ignore_hangups(&inherited).unwrap();
    let stop = Stop::on_signals().unwrap();

    for signal in [Signal::HUP, Signal::PIPE] {
        kill_process(getpid(), signal).unwrap();
    }
    assert!(!stop.is_asked());
    assert!(!is_readable(&stop));

    kill_process(getpid(), Signal::TERM).unwrap();
    // Another thread may be the one to handle it.
    wait_until(|| stop.is_asked() && is_readable(&stop));
    assert!(is_readable(&stop), "and stays so");

    // More signals than the pipe has room for.
    for _ in 0..70_000 {
        stop.ask();
    }
    kill_process(getpid(), Signal::INT).unwrap();
    assert!(is_readable(&stop));

    let status = Command::new("cat").arg("/proc/self/status").output().unwrap().stdout;
    let status = String::from_utf8(status).unwrap();
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    let mask = |name: &str| u64::from_str_radix(&field(name), 16).unwrap();
    // What is handled here is as nobody had touched it there, even if it was ignored at the start: who is to ignore it again is
    // started through a shell (`limits`).
    for (signal, ignored) in [
        (Signal::HUP, inherited.ignored.has(Signal::HUP.as_raw())),
        (Signal::INT, false),
        (Signal::TERM, false),
    ] {
        assert_eq!(mask("SigIgn:") >> (signal.as_raw() - 1) & 1 == 1, ignored, "{signal:?}");
    }
    assert_eq!(mask("SigCgt:"), 0);
}

#[test]
fn the_soft_limit_of_descriptors_is_raised() {
    let inherited = Inherited::record().unwrap();
    let raised = inherited.raise_descriptors().unwrap();
    let now = getrlimit(Resource::Nofile);
    assert_eq!(now.current, now.maximum);
    assert_eq!(now.maximum, inherited.descriptors.maximum);
    assert_eq!(now.current.unwrap_or(u64::MAX), raised);
}

#[test]
fn a_stop_can_be_asked_without_a_signal() {
    let stop = Stop::new().unwrap();
    assert!(!is_readable(&stop) && !stop.is_asked());
    stop.ask();
    assert!(is_readable(&stop) && stop.is_asked());
}

fn is_readable(stop: &Stop) -> bool {
    let mut polled = [PollFd::new(stop, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed().as_secs() < 10, "it did not happen");
        std::thread::yield_now();
    }
}
