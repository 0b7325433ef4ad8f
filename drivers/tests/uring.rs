//! The io_uring driver, and what serves where there can be none.

#[path = "../../tests/src/fitness.rs"]
mod fitness;
mod uring_world;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use drivers::choose::Driver;
use drivers::server::Options;
use drivers::uring::Uring;
use engine::Budget;
use proto::{NOTAG, Tmessage};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use uring_world::{FILE, Home, Peer, Served, encode};

/// Whether there can be a ring; a test that needs one is skipped otherwise.
fn has_ring() -> bool {
    Uring::open(&Options::default()).inspect_err(|why| fitness::skip(&format!("no ring: {why}"))).is_ok()
}

#[test]
fn a_peer_that_agrees_on_no_version_is_closed() {
    if !has_ring() {
        return;
    }
    let home = Home::new("handshake");
    let served =
        Served::start(&home, Options { handshake: Duration::from_millis(200), ..Options::default() });
    let mut client = served.client();
    let (mut silent, mut slow, start) = (served.connect(), served.connect(), Instant::now());
    slow.stream
        .write_all(&encode(NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" })[..9])
        .unwrap();
    assert!(silent.is_closed() && slow.is_closed());
    assert!((Duration::from_millis(150)..Duration::from_secs(5)).contains(&start.elapsed()));
    client.ask(1, &Tmessage::Stat { fid: 0 });
}

#[test]
fn a_peer_that_leaves_its_replies_unread_is_closed() {
    if !has_ring() {
        return;
    }
    let home = Home::new("unread");
    let served = Served::start(&home, Options { unread: Duration::from_millis(300), ..Options::default() });
    let (mut deaf, mut client) = (served.client(), served.client());
    let read = encode(1, &Tmessage::Read { fid: 1, offset: 0, count: FILE as u32 });
    deaf.stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    // The server stops reading long before this is all sent, and then it closes.
    let flooded = (0..1_000_000).try_for_each(|_| deaf.stream.write_all(&read));
    let kind = flooded.unwrap_err().kind();
    assert!(matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{kind}");
    client.ask(1, &Tmessage::Stat { fid: 0 });
}

#[test]
fn a_slow_reader_gets_everything() {
    if !has_ring() {
        return;
    }
    let home = Home::new("slow");
    let served = Served::start(&home, Options::default());
    let mut client = served.client();
    let count = FILE as u32 - 100;
    for tag in 0..60 {
        client.stream.write_all(&encode(tag, &Tmessage::Read { fid: 1, offset: 0, count })).unwrap();
    }
    client.stream.shutdown(Shutdown::Write).unwrap();
    thread::sleep(Duration::from_millis(300));
    for tag in 0..60 {
        let (got, data) = client.reply().unwrap().unwrap();
        assert_eq!((got, data.len()), (tag, FILE - 100));
        assert!(data.iter().all(|byte| *byte == b'x'));
    }
    assert!(client.is_closed());
}

#[test]
fn a_daemon_without_memory_to_spare_answers_one_thing_at_a_time() {
    for driver in [Driver::Blocking, Driver::Uring] {
        if driver == Driver::Uring && !has_ring() {
            return;
        }
        let home = Home::new(&format!("budget-{driver:?}"));
        let budget = Budget::new(1000, 0);
        let served = Served::start_with(driver, &home, Options { budget, ..Options::default() });
        let mut client = served.client();
        let requests: Vec<_> =
            (0..50).flat_map(|tag| encode(tag, &Tmessage::Read { fid: 1, offset: 0, count: 5000 })).collect();
        client.stream.write_all(&requests).unwrap();
        for tag in 0..50 {
            assert_eq!(client.reply().unwrap().unwrap().0, tag, "{driver:?}");
        }
    }
}

#[test]
fn beyond_the_limit_a_connection_is_closed() {
    if !has_ring() {
        return;
    }
    let home = Home::new("limit");
    let served = Served::start(&home, Options { connections: 2, ..Options::default() });
    let (mut one, two) = (served.client(), served.client());
    assert!(served.connect().is_closed());
    drop(two);
    one.ask(1, &Tmessage::Stat { fid: 0 });
    let start = Instant::now();
    // The place is free once the server has seen the end.
    let mut peer = served.connect();
    peer.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    while peer.stream.read(&mut [0]).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(10), "the place stays taken");
        peer = served.connect();
        peer.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    }
    assert!(served.connect().is_closed(), "and now there are two again");
}

#[test]
fn a_stop_answers_what_has_been_asked() {
    if !has_ring() {
        return;
    }
    let home = Home::new("stop");
    let mut served = Served::start(&home, Options::default());
    let mut client = served.client();
    let mut idle = served.client();
    for tag in 0..20 {
        client.stream.write_all(&encode(tag, &Tmessage::Read { fid: 1, offset: 0, count: 1000 })).unwrap();
    }
    let start = Instant::now();
    served.end();
    assert!(start.elapsed() < Duration::from_secs(2), "nobody was waited for");
    for tag in 0..20 {
        assert_eq!(client.reply().unwrap().unwrap().0, tag);
    }
    assert!(client.is_closed() && idle.is_closed());
}

#[test]
fn nobody_asks_and_nothing_wakes() {
    if !has_ring() {
        return;
    }
    let home = Home::new("idle");
    let server = Daemon::start(&home, &["--driver", "uring"]);
    let socket = home.0.join("run/9p/agents");
    let clients: Vec<_> = (0..100).map(|_| Peer::client(&socket)).collect();
    // A second after the last request memory is given back; five seconds after the last ask of a worker nobody watches it
    // any more.
    thread::sleep(Duration::from_secs(7));
    let before = server.switches();
    thread::sleep(Duration::from_secs_f64(seconds("NINEAGENTS_IDLE_SECONDS", 2.0)));
    assert_eq!(server.switches() - before, 0, "context switches of a server that nobody asks anything");
    drop(clients);
}

#[test]
fn one_session_is_served_over_pipes() {
    if !has_ring() {
        return;
    }
    let home = Home::new("pipes");
    let mut child = command(&home, &["--driver", "uring", "--fd", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let version = encode(NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" });
    for _ in 0..3 {
        child.stdin.as_mut().unwrap().write_all(&version).unwrap();
        let mut reply = [0; 19];
        child.stdout.as_mut().unwrap().read_exact(&mut reply).unwrap();
        assert_eq!(&reply[13..], b"9P2000");
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_session_over_pipes_stops_when_told_to() {
    if !has_ring() {
        return;
    }
    let home = Home::new("pipes-stop");
    let mut child = command(&home, &["--driver", "uring", "--fd", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let version = encode(NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" });
    child.stdin.as_mut().unwrap().write_all(&version).unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 19]).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let start = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(2), "it did not wait for a peer that says nothing");
}

#[test]
fn where_there_can_be_no_ring_threads_serve_and_the_reason_is_told() {
    for (filter, reason) in [
        (Filter(SETUP, Errno::NOSYS), "io_uring_setup answers ENOSYS"),
        (Filter(SETUP, Errno::PERM), "io_uring_setup answers EPERM: a seccomp filter"),
        (Filter(SETUP, Errno::NOMEM), "io_uring_setup answers ENOMEM"),
        (Filter(REGISTER, Errno::PERM), "io_uring_register: "),
        (Filter(ENTER, Errno::NOSYS), "io_uring_enter: "),
    ] {
        let home = Home::new(&format!("no-ring-{}-{}", filter.0, filter.1.raw_os_error()));
        let output = filter.around(|| command(&home, &["version", "--verbose"]).output().unwrap());
        let told = told(&output);
        assert!(told.contains(&format!("driver    blocking, because {reason}")), "{filter:?}: {told}");

        let mut daemon = filter.around(|| Daemon::start(&home, &[]));
        assert!(daemon.line.contains(&format!("the driver blocking, because {reason}")), "{}", daemon.line);
        assert_serves(&home);
        assert!(daemon.stop());

        let refused = filter.around(|| command(&home, &["--driver", "uring"]).output().unwrap());
        assert_eq!(refused.status.code(), Some(1));
        let words = String::from_utf8(refused.stderr).unwrap();
        assert!(words.contains(&format!("--driver uring cannot be had: {reason}")), "{filter:?}: {words}");
        assert!(!home.0.join("run/9p/agents").exists(), "nothing is posted");
    }
}

#[test]
fn each_driver_serves_when_wished_for() {
    for (wish, shown) in [
        ("auto", "the driver uring ("),
        ("uring", "the driver uring ("),
        ("blocking", "the driver blocking, as asked"),
    ] {
        if wish != "blocking" && !has_ring() {
            return;
        }
        let home = Home::new(wish);
        let mut daemon = Daemon::start(&home, &["--driver", wish]);
        assert!(daemon.line.contains(shown), "{}", daemon.line);
        assert_serves(&home);
        assert!(daemon.stop());
    }
}

#[test]
fn files_are_served_where_openat2_is_forbidden() {
    for driver in ["auto", "blocking"] {
        let home = Home::new(&format!("openat2-{driver}"));
        let filter = Filter(OPENAT2, Errno::PERM);
        let mut daemon = filter.around(|| Daemon::start(&home, &["--driver", driver]));
        assert!(daemon.line.contains("name by name"), "{}", daemon.line);
        assert_serves(&home);
        assert!(daemon.stop());
    }
}

/// Has the posted daemon read and list.
fn assert_serves(home: &Home) {
    let read = command(home, &["cat", "/hermes/files/file"]).output().unwrap();
    assert_eq!(read.stdout.len(), FILE, "{}", String::from_utf8_lossy(&read.stderr));
    let listed = told(&command(home, &["ls", "/hermes/files"]).output().unwrap());
    assert_eq!(listed.lines().count(), 21, "{listed}");
}

fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The program, with a home of its own.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_9agents"));
    command.args(arguments).env("HOME", &home.0).env("XDG_RUNTIME_DIR", home.0.join("run"));
    for variable in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "HERMES_HOME", "LISTEN_PID", "LISTEN_FDS"] {
        command.env_remove(variable);
    }
    command
}

/// A seccomp filter that answers one system call with an error. The numbers of these calls are the same on every
/// architecture.
#[derive(Copy, Clone, Debug)]
struct Filter(i64, Errno);

impl Filter {
    /// Does something on a thread behind the filter. A child that it starts is behind it, too.
    fn around<T: Send>(self, action: impl FnOnce() -> T + Send) -> T {
        let filter = SeccompFilter::new(
            BTreeMap::from([(self.0, Vec::new())]),
            SeccompAction::Allow,
            SeccompAction::Errno(self.1.raw_os_error().cast_unsigned()),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        let filtered = || {
            seccompiler::apply_filter(&program).unwrap();
            action()
        };
        thread::scope(|scope| scope.spawn(filtered).join().unwrap())
    }
}

const OPENAT2: i64 = 437;
const SETUP: i64 = 425;
const ENTER: i64 = 426;
const REGISTER: i64 = 427;

/// The program as a daemon.
struct Daemon {
    child: Child,
    /// What it said when it began to serve.
    line: String,
}

impl Daemon {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut child = command(home, arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("serving with") {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "it does not serve");
        }
        // What else it says is for nobody, but is to be read.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, line }
    }

    fn switches(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |task: fs::DirEntry| {
            let status = fs::read_to_string(task.path().join("status")).unwrap();
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            counts.map(|line| line.split_whitespace().last().unwrap().parse::<u64>().unwrap()).sum::<u64>()
        };
        tasks.map(|task| of(task.unwrap())).sum()
    }

    fn stop(&mut self) -> bool {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap().success()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn seconds(variable: &str, default: f64) -> f64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
