//! The posted name, from the start of a server to its end, whichever it comes to.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use proto::{Dialect, NOTAG, Tmessage};
use rustix::process::Signal;
use tests::check::{Client, ROOT};
use tests::line::Line;

use crate::daemon::{Daemon, client};
use crate::home::Home;

#[test]
fn the_name_of_a_killed_server_is_taken_over() {
    let home = Home::empty();
    let socket = home.posted("agents");
    let mut killed = Daemon::start(&mut home.command(&[]));
    let (directory, file) = (fs::metadata(socket.parent().unwrap()).unwrap(), fs::metadata(&socket).unwrap());
    assert_eq!((directory.mode() & 0o777, file.mode() & 0o777), (0o700, 0o600));
    killed.signal(Signal::KILL);
    assert_eq!(killed.wait().code(), None);
    assert!(socket.exists(), "nobody took it away");
    let heir = Daemon::start(&mut home.command(&[]));
    assert!(heir.log().contains("replacing the socket of a server that is gone"), "{}", heir.log());
    assert_eq!(client(&socket, Dialect::Plain).contents("pid"), format!("{}\n", heir.pid()).as_bytes());
}

#[test]
fn of_two_that_start_at_once_on_a_stale_name_one_wins() {
    for _ in 0..10 {
        let home = Home::empty();
        let socket = home.posted("agents");
        let mut killed = Daemon::start(&mut home.command(&[]));
        killed.signal(Signal::KILL);
        killed.wait();
        let mut rivals: Vec<Daemon> = (0..4).map(|_| Daemon::spawn(&mut home.command(&[]))).collect();
        let mut winners = Vec::new();
        while let Some(mut rival) = rivals.pop() {
            if rival.serves() {
                winners.push(rival);
            } else {
                assert_eq!(rival.wait().code(), Some(1));
                assert_eq!(rival.log().lines().last(), Some(TAKEN));
            }
        }
        let [winner] = &winners[..] else { panic!("{} won", winners.len()) };
        assert_eq!(client(&socket, Dialect::Plain).contents("pid"), format!("{}\n", winner.pid()).as_bytes());
    }
}

#[test]
fn a_name_that_lives_is_left_to_its_server() {
    let home = Home::empty();
    let first = Daemon::start(&mut home.command(&[]));
    let mut second = Daemon::spawn(&mut home.command(&[]));
    assert_eq!(second.wait().code(), Some(1));
    assert_eq!(second.log(), TAKEN);
    let _other = Daemon::start(&mut home.command(&["--name", "other"]));
    for (name, same) in [("agents", true), ("other", false)] {
        let pid = client(&home.posted(name), Dialect::Plain).contents("pid");
        assert_eq!(pid == format!("{}\n", first.pid()).as_bytes(), same);
    }
}

#[test]
fn a_place_that_is_taken_is_left_alone() {
    let home = Home::empty();
    let socket = home.posted("agents");
    fs::create_dir(socket.parent().unwrap()).unwrap();
    fs::write(&socket, "precious").unwrap();
    let mut daemon = Daemon::spawn(&mut home.command(&[]));
    assert_eq!(daemon.wait().code(), Some(1));
    let words = "taken by a file that is not a socket: left alone";
    assert_eq!(daemon.log(), format!("9agents: {}: {words}", socket.display()));
    assert_eq!(fs::read(&socket).unwrap(), b"precious");
}

#[test]
fn a_stop_answers_what_is_in_flight_and_unposts() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut home = Home::empty();
        home.serve(".hermes/long", "/hermes/long", &vec![b'x'; 4 << 20]);
        let (posted, beside) = (home.posted("agents"), home.beside("s"));
        let mut daemon = Daemon::start(&mut home.command(&["--unix", beside.to_str().unwrap()]));
        let mut client = client(&posted, Dialect::Plain);
        let fid = client.open_path("hermes/long");
        // More than fits the socket, so that the server is in the middle of it.
        let reads: Vec<_> =
            (1..=60).map(|tag| (tag, Tmessage::Read { fid, offset: 0, count: 60_000 })).collect();
        client.post(&reads);
        thread::sleep(Duration::from_millis(50));
        daemon.signal(signal);
        for _ in &reads {
            assert_eq!(client.receive().data().len(), 60_000);
        }
        client.expect_closed();
        assert_eq!(daemon.wait().code(), Some(0), "{signal:?}");
        assert!(!posted.exists() && !beside.exists());
        assert!(posted.parent().unwrap().join(".agents.lock").exists(), "a lock is never taken away");
    }
}

#[test]
fn a_stop_waits_for_no_peer_longer_than_two_seconds() {
    let mut home = Home::empty();
    home.serve(".hermes/long", "/hermes/long", &vec![b'x'; 4 << 20]);
    let posted = home.posted("agents");
    let mut daemon = Daemon::start(&mut home.command(&[]));
    let _idle = UnixStream::connect(&posted).unwrap();
    let mut deaf = client(&posted, Dialect::Plain);
    let fid = deaf.open_path("hermes/long");
    let reads: Vec<_> = (1..=60).map(|tag| (tag, Tmessage::Read { fid, offset: 0, count: 60_000 })).collect();
    deaf.post(&reads);
    thread::sleep(Duration::from_millis(50));
    let start = std::time::Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert!(!posted.exists());
}

#[test]
fn hangups_and_closed_pipes_end_nothing() {
    let home = Home::empty();
    let posted = home.posted("agents");
    let mut daemon = Daemon::start(&mut home.command(&[]));
    let mut before = client(&posted, Dialect::Plain);
    for _ in 0..3 {
        for signal in [Signal::HUP, Signal::PIPE] {
            daemon.signal(signal);
            before.expect_alive();
        }
    }
    client(&posted, Dialect::Linux).expect_alive();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn a_server_nobody_can_hear_serves() {
    let home = Home::empty();
    let mut child = home.command(&[]).stderr(Stdio::piped()).spawn().unwrap();
    // Its log goes nowhere from the first line on.
    drop(child.stderr.take());
    let posted = home.posted("agents");
    for _ in 0..2000 {
        if UnixStream::connect(&posted).is_ok() {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    let mut stranger = Client::new(Box::new(Line::unix(&posted)), Dialect::Plain);
    stranger.send(NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" });
    stranger.receive();
    client(&posted, Dialect::Plain).stat(ROOT).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn without_a_runtime_directory_the_error_says_what_to_do() {
    let home = Home::empty();
    for empty in [false, true] {
        let mut command = home.command(&[]);
        command.env_remove("XDG_RUNTIME_DIR");
        if empty {
            command.env("XDG_RUNTIME_DIR", "");
        }
        let mut daemon = Daemon::spawn(&mut command);
        assert_eq!(daemon.wait().code(), Some(1));
        let text = "9agents: XDG_RUNTIME_DIR is not set, so no name can be posted: set it, or use --unix PATH --no-post";
        assert_eq!(daemon.log(), text);
    }
    // The advice works.
    let socket = home.beside("s");
    let mut command = home.command(&["--unix", socket.to_str().unwrap(), "--no-post"]);
    let daemon = Daemon::start(command.env_remove("XDG_RUNTIME_DIR"));
    assert_eq!(client(&socket, Dialect::Plain).contents("pid"), format!("{}\n", daemon.pid()).as_bytes());
}

const TAKEN: &str = "9agents: the name `agents` is already posted by a live server";
