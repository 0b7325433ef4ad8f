//! A server in a process of its own, and what it says.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use proto::Dialect;
use rustix::process::{Pid, Signal, kill_process};
use tests::check::{Client, ROOT};
use tests::fitness::skip;
use tests::line::Line;

use crate::home::Home;

/// Does something with each driver, at the same time, where there can be a ring.
pub(crate) fn with_each_driver(work: impl Fn(&str) + Sync) {
    thread::scope(|scope| {
        scope.spawn(|| work("blocking"));
        let home = Home::empty();
        let probe = Daemon::spawn(&mut home.command(&["--driver", "uring"]));
        if probe.serves() { work("uring") } else { skip(&probe.log()) }
    });
}

/// A running server. Dropping it kills it.
pub(crate) struct Daemon {
    child: Child,
    log: Arc<Log>,
}

impl Daemon {
    /// Starts a server, and waits until it serves.
    pub(crate) fn start(command: &mut Command) -> Self {
        let daemon = Self::spawn(command);
        daemon.await_line("serving with");
        daemon
    }

    /// Starts a server, ready or not.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let log = Arc::new(Log::default());
        let (stderr, copy) = (child.stderr.take().expect("it is piped"), Arc::clone(&log));
        thread::spawn(move || copy.follow(stderr));
        Self { child, log }
    }

    /// Waits until it serves, or ends; says which.
    pub(crate) fn serves(&self) -> bool {
        self.log.find("serving with").is_some()
    }

    /// Its process.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it has not been waited for");
    }

    /// Waits for its end, and for the last it says.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                self.log.await_end();
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end; it said:\n{}", self.log.text());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// What it said so far; all of it after [`Daemon::wait`].
    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until it has said something; yields that line.
    #[track_caller]
    pub(crate) fn await_line(&self, part: &str) -> String {
        let line = self.log.find(part);
        line.unwrap_or_else(|| panic!("it never said `{part}`; it said:\n{}", self.log.text()))
    }

    /// Waits until it has said something so often.
    #[track_caller]
    pub(crate) fn await_lines(&self, part: &str, count: usize) {
        let start = Instant::now();
        while self.log().lines().filter(|line| line.contains(part)).count() < count {
            assert!(start.elapsed() < 2 * PATIENCE, "it did not say `{part}` {count} times:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Where it listens on TCP with this address.
    #[track_caller]
    pub(crate) fn tcp(&self, ip: &str) -> SocketAddr {
        let line = self.await_line(&format!("listening on tcp!{ip}!"));
        let port = line.rsplit('!').next().and_then(|port| port.parse().ok());
        SocketAddr::new(ip.parse().expect("an address"), port.expect("a port"))
    }

    /// A number of `/proc/PID/status`, in KiB.
    pub(crate) fn memory_kib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field of status");
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().expect("a number")
    }

    /// What its descriptors lead to.
    pub(crate) fn descriptors(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("it lives");
        // One may be closed meanwhile.
        entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect()
    }

    /// Waits until it holds no more descriptors than that.
    #[track_caller]
    pub(crate) fn await_descriptors(&self, most: usize) {
        let start = Instant::now();
        while self.descriptors().len() > most {
            assert!(start.elapsed() < PATIENCE, "{most} were to be left of {:?}", self.descriptors());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the server said:\n{}", self.log.text());
        }
    }
}

/// A client that has attached to the server at a unix socket.
pub(crate) fn client(socket: &Path, dialect: Dialect) -> Client {
    attached(Client::new(Box::new(Line::unix(socket)), dialect))
}

/// A client that has said nothing, made one that has attached.
pub(crate) fn attached(mut client: Client) -> Client {
    client.greet(MSIZE);
    client.attach(ROOT, "").expect("an attach to the root");
    client
}

/// The lines of a process's stderr.
#[derive(Default)]
struct Log {
    said: Mutex<Said>,
    more: Condvar,
}

#[derive(Default)]
struct Said {
    lines: Vec<String>,
    ended: bool,
}

impl Log {
    fn follow(&self, stderr: ChildStderr) {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            self.lock().lines.push(String::from_utf8_lossy(&line).into_owned());
            self.more.notify_all();
        }
        self.lock().ended = true;
        self.more.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> String {
        self.lock().lines.join("\n")
    }

    /// Waits until everything has been said.
    fn await_end(&self) {
        let said = self.more.wait_while(self.lock(), |said| !said.ended);
        drop(said.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for a line with this part; nothing if there is none before the end, or in time.
    fn find(&self, part: &str) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut said = self.lock();
        loop {
            if let Some(line) = said.lines.iter().find(|line| line.contains(part)) {
                return Some(line.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if said.ended || left.is_zero() {
                return None;
            }
            said = self.more.wait_timeout(said, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How long anything may take on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What clients agree on that do not care.
const MSIZE: u32 = 64 * 1024;
