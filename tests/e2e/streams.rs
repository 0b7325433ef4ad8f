//! Every way in but the posted name: descriptors the server was started with, and TCP.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;

use proto::Dialect;
use rustix::process::Signal;
use tests::check::Client;
use tests::line::Line;

use crate::binary::given;
use crate::daemon::{Daemon, attached, client};
use crate::home::Home;

#[test]
fn one_session_is_served_over_a_pair_of_pipes() {
    let home = Home::furnished();
    let mut daemon = Daemon::spawn(home.command(&["--fd", "0"]).stdin(Stdio::piped()).stdout(Stdio::piped()));
    let child = daemon.child();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    expect_one_session(&home, daemon, Line::pipes(OwnedFd::from(stdout), OwnedFd::from(stdin)));
}

#[test]
fn one_session_is_served_over_a_socket_as_standard_input() {
    let home = Home::furnished();
    let (theirs, ours) = UnixStream::pair().unwrap();
    let daemon =
        Daemon::spawn(home.command(&["--fd", "0"]).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()));
    expect_one_session(&home, daemon, Line::socket(ours));
}

#[test]
fn one_session_is_served_over_any_descriptor() {
    let home = Home::furnished();
    let (theirs, ours) = UnixStream::pair().unwrap();
    let command = home.command(&["--fd", "5"]);
    let daemon = Daemon::spawn(given(&command, "exec 5<&0 </dev/null;").stdin(OwnedFd::from(theirs)));
    expect_one_session(&home, daemon, Line::socket(ours));
}

#[test]
fn one_session_is_served_over_a_tcp_connection_that_was_passed() {
    let home = Home::furnished();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let daemon = Daemon::spawn(home.command(&["--fd", "0"]).stdin(OwnedFd::from(theirs)));
    expect_one_session(&home, daemon, Line::socket(ours));
}

#[test]
fn a_session_over_pipes_stops_when_told() {
    let home = Home::furnished();
    let mut daemon = Daemon::spawn(home.command(&["--fd", "0"]).stdin(Stdio::piped()).stdout(Stdio::piped()));
    let child = daemon.child();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut client = of(Line::pipes(OwnedFd::from(stdout), OwnedFd::from(stdin)));
    client.expect_alive();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn a_descriptor_that_will_not_do_is_told_of() {
    let home = Home::empty();
    let listener = UnixListener::bind(home.beside("s")).unwrap();
    for (arguments, stdin, words) in [
        (["--fd", "0"], Stdio::null(), "cannot serve on descriptor 0: it is neither a socket nor a pipe"),
        (["--fd", "0"], OwnedFd::from(listener).into(), "it listens"),
        (["--fd", "77"], Stdio::null(), "cannot use descriptor 77: Bad file descriptor"),
        (["--fd", "2"], Stdio::null(), "cannot serve on descriptor 2: a pipe goes one way only"),
    ] {
        let mut daemon = Daemon::spawn(home.command(&arguments).stdin(stdin));
        assert_eq!(daemon.wait().code(), Some(1), "{words}");
        assert!(daemon.log().contains(words), "{}", daemon.log());
    }
}

#[test]
fn sockets_of_systemd_are_served_and_left_where_they_are() {
    let home = Home::furnished();
    let path = home.beside("door");
    let door = UnixListener::bind(&path).unwrap();
    let (theirs, ours) = UnixStream::pair().unwrap();
    let start = "exec 3<&0 4>&1 </dev/null >&2; LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=door:line";
    let mut daemon = {
        let mut command = given(&home.command(&[]), start);
        Daemon::start(command.stdin(OwnedFd::from(door)).stdout(OwnedFd::from(theirs)))
    };
    of(Line::socket(ours)).expect_alive();
    for _ in 0..3 {
        assert_eq!(client(&path, Dialect::Unix).contents("codex/history"), b"{}\n");
    }
    assert!(!home.posted("agents").exists(), "it implies --no-post");
    for entry in fs::read_dir(format!("/proc/{}/fdinfo", daemon.pid())).unwrap() {
        let entry = entry.unwrap();
        let standard = ["0", "1", "2"].iter().any(|number| entry.file_name() == *number);
        let info = fs::read_to_string(entry.path()).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).map(str::trim);
        let flags = flags.map_or(O_CLOEXEC, |flags| u32::from_str_radix(flags, 8).unwrap());
        assert!(
            standard || flags & O_CLOEXEC != 0,
            "descriptor {:?} is for children, too",
            entry.file_name()
        );
    }
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(path.exists(), "it is systemd's");
}

#[test]
fn one_connection_of_systemd_is_served_to_its_end() {
    let home = Home::furnished();
    let (theirs, ours) = UnixStream::pair().unwrap();
    let start = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1";
    let daemon = Daemon::spawn(given(&home.command(&[]), start).stdin(OwnedFd::from(theirs)));
    expect_one_session(&home, daemon, Line::socket(ours));
}

#[test]
fn sockets_of_systemd_that_are_for_another_are_not_ours() {
    let home = Home::empty();
    let door = UnixListener::bind(home.beside("door")).unwrap();
    let start = "exec 3<&0 </dev/null; LISTEN_PID=1 LISTEN_FDS=1";
    let _daemon = Daemon::start(given(&home.command(&[]), start).stdin(OwnedFd::from(door)));
    client(&home.posted("agents"), Dialect::Plain).expect_alive();
}

#[test]
fn tcp_ports_are_told_as_they_are() {
    let home = Home::furnished();
    let mut command = home.command(&["--no-post", "--tcp", "127.0.0.1:0", "--tcp", "[::1]:0"]);
    let daemon = Daemon::start(&mut command);
    for ip in ["127.0.0.1", "::1"] {
        let address = daemon.tcp(ip);
        assert_ne!(address.port(), 0);
        assert_eq!(of(Line::tcp(address)).contents("codex/history"), b"{}\n");
        let dial = format!("tcp!{ip}!{}", address.port());
        let output = home.command(&["cat", "-a", &dial, "/codex/history"]).output().unwrap();
        assert_eq!(output.stdout, b"{}\n");
    }
    assert!(!home.posted("agents").exists());
}

#[test]
fn other_machines_are_let_in_only_aloud() {
    let home = Home::furnished();
    let mut daemon = Daemon::spawn(&mut home.command(&["--no-post", "--tcp", "0.0.0.0:0"]));
    assert_eq!(daemon.wait().code(), Some(1));
    let words = "9agents: 0.0.0.0:0 is not a loopback address: \
                 --allow-remote would let everybody who can reach it read everything";
    assert_eq!(daemon.log(), words);
    let daemon = Daemon::start(&mut home.command(&["--no-post", "--tcp", "0.0.0.0:0", "--allow-remote"]));
    let words =
        "warning: 0.0.0.0:0 is not a loopback address: everybody who can reach it can read everything";
    daemon.await_line(words);
    let port = daemon.tcp("0.0.0.0").port();
    of(Line::tcp(SocketAddr::new([127, 0, 0, 1].into(), port))).expect_alive();
}

/// A session that reads something, and with whose end the server ends.
#[track_caller]
fn expect_one_session(home: &Home, mut daemon: Daemon, line: Line) {
    let mut client = of(line);
    for (path, content) in home.served() {
        assert_eq!(client.contents(path), *content, "{path}");
    }
    assert!(!home.runtime().join("9p").exists(), "nothing is posted");
    client.wire().half_close();
    client.expect_closed();
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!daemon.log().contains("warning"), "{}", daemon.log());
}

fn of(line: Line) -> Client {
    attached(Client::new(Box::new(line), Dialect::Plain))
}

/// Of `/proc/PID/fdinfo`, proc_pid_fdinfo(5).
const O_CLOEXEC: u32 = 0o2_000_000;
