//! How many system calls a server makes for a request, with each driver. Exact numbers: each is the least there can be.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use proto::{Dialect, Tmessage};
use tests::check::{Client, pack};

use crate::binary::is_release;
use crate::daemon::{Daemon, client};
use crate::home::Home;
use crate::tell;

#[test]
fn no_request_takes_a_system_call_too_many() {
    let mut home = Home::furnished();
    home.serve(".hermes/logs/hot", "/hermes/logs/hot", &[b'x'; 64 << 10]);
    for driver in ["blocking", "uring"] {
        let name = format!("calls-{driver}");
        let daemon = Daemon::start(&mut home.command(&["--name", &name, "--driver", driver]));
        let mut client = client(&home.posted(&name), Dialect::Plain);
        let (file, directory) = (client.open_path("hermes/logs/hot"), client.go("hermes/logs"));
        client.read_from(file, 0, 8192);
        let Some(calls) = Calls::of(daemon.pid()) else {
            tests::fitness::skip("the system calls of a child cannot be counted here");
            return;
        };
        let read = |at: u64| Tmessage::Read { fid: file, offset: 4096 * (at % 8), count: 8192 };
        let one = calls.each(|| drop(client.call(&read(1))));
        // What receives waits, too: recv(2) or io_uring_enter(2), preadv2(2), send(2).
        assert_eq!(one, 3, "{driver}: a read");
        let eight = calls.each(|| {
            let requests: Vec<_> = (0..8).map(|at| (100 + at as u16, read(at))).collect();
            client.post(&requests);
            client.receive_all(8);
        });
        assert_eq!(eight, 10, "{driver}: eight reads that come together");
        let look = calls.each(|| look(&mut client, directory));
        // Three times receive and send; for the walk and the stat openat2(2), statx(2) and close(2). What is built for
        // debugging looks whether a descriptor is open before it closes it.
        let least = if is_release() { 12 } else { 14 };
        assert_eq!(look, least, "{driver}: a walk, a stat and a clunk");
        tell(&format!(
            "{driver}: a read is {one} system calls, eight at once {eight}; walk, stat and clunk {look}"
        ));
        drop(daemon);
        calls.join();
    }
}

fn look(client: &mut Client, directory: u32) {
    let mut space = Vec::new();
    let names = pack(&["agent.log"], &mut space);
    for request in [
        Tmessage::Walk { fid: directory, newfid: 999, names },
        Tmessage::Stat { fid: 999 },
        Tmessage::Clunk { fid: 999 },
    ] {
        assert!(client.call(&request).refused().is_none());
    }
}

/// Counts the system calls of a process by ptrace(2), from a thread that does nothing else, until that process ends.
struct Calls {
    /// Where a call begins, and where it ends.
    stops: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Calls {
    /// `None` where that is not allowed.
    fn of(pid: u32) -> Option<Self> {
        let stops = Arc::new(AtomicU64::new(0));
        let (counter, (ready, is_ready)) = (Arc::clone(&stops), channel());
        let thread = thread::spawn(move || trace(pid, &counter, &ready));
        is_ready.recv().unwrap_or(false).then_some(Self { stops, thread })
    }

    /// How many a request takes: the median of many, for now and then the server does something else beside it, or is late
    /// with what it does after its reply.
    fn each(&self, mut request: impl FnMut()) -> u64 {
        let mut counts = [0; TIMES];
        let mut before = self.settled();
        for count in &mut counts {
            request();
            let after = self.settled();
            *count = (after - before) / 2;
            before = after;
        }
        counts.sort_unstable();
        counts[TIMES / 2]
    }

    /// The number of stops once the server waits.
    fn settled(&self) -> u64 {
        loop {
            let before = self.stops.load(Ordering::SeqCst);
            thread::sleep(Duration::from_millis(3));
            if self.stops.load(Ordering::SeqCst) == before {
                return before;
            }
        }
    }

    fn join(self) {
        self.thread.join().expect("it ends with the process");
    }
}

/// Takes hold of every thread of a process, says whether it could, and counts.
fn trace(pid: u32, stops: &AtomicU64, ready: &Sender<bool>) {
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE;
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let tasks = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    let held = tasks.map(Pid::from_raw).try_for_each(|task| {
        ptrace::seize(task, options)?;
        ptrace::interrupt(task)
    });
    let _ = ready.send(held.is_ok());
    // Of this thread's alone: other tests wait for children of their own.
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    while let Ok(status) = waitpid(None, Some(flags)) {
        let goes_on = match status {
            WaitStatus::PtraceSyscall(task) => {
                stops.fetch_add(1, Ordering::SeqCst);
                ptrace::syscall(task, None::<Signal>)
            }
            WaitStatus::PtraceEvent(task, ..) => ptrace::syscall(task, None::<Signal>),
            WaitStatus::Stopped(task, signal) => ptrace::syscall(task, signal),
            _ => Ok(()),
        };
        // It can be killed at any time.
        let _ = goes_on;
    }
}

const TIMES: usize = 101;
