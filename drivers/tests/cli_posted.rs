//! The verbs of the command line, where a server is posted that does not serve.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, listen, socket};

#[test]
fn a_posted_server_that_accepts_nothing_is_told_of_and_not_waited_for() {
    let home = Home::new("full");
    let (listener, waiting) = (unix(), unix());
    let address = SocketAddrUnix::new(home.posted()).unwrap();
    bind(&listener, &address).unwrap();
    listen(&listener, 0).unwrap();
    connect(&waiting, &address).unwrap();
    home.assert_serves_itself("cannot connect: the server accepts no connections, and its backlog is full");
    home.assert_fails("cannot connect: the server accepts no connections, and its backlog is full");
}

#[test]
fn a_posted_server_that_says_nothing_is_told_of_and_not_waited_for() {
    let home = Home::new("silent");
    let _listener = UnixListener::bind(home.posted()).unwrap();
    home.assert_serves_itself("the server does not answer");
    home.assert_fails("the server does not answer");
}

#[test]
fn a_posted_server_that_takes_no_more_connections_is_told_of() {
    let home = Home::new("crowded");
    let mut daemon = home.command(&["serve"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(daemon.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line.contains("serving with")));
    let crowd: Vec<_> = (0..300).map(|_| UnixStream::connect(home.posted()).unwrap()).collect();
    for mut refused in &crowd[256..] {
        // All of them have been looked at once the last has been refused.
        assert!(refused.read(&mut [0]).is_ok_and(|count| count == 0));
    }
    let words = "the server closed the connection at once: it has as many as it takes (9agents: 256), or is not for this user";
    home.assert_serves_itself(words);
    home.assert_fails(words);
    drop(crowd);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

fn unix() -> rustix::fd::OwnedFd {
    socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap()
}

/// A home directory with a file of a harness, and a runtime directory.
struct Home(PathBuf);

impl Home {
    fn new(test: &str) -> Self {
        let home = std::env::temp_dir().join(format!("9agents-posted-{test}-{}", std::process::id()));
        fs::create_dir_all(home.join(".hermes")).unwrap();
        fs::write(home.join(".hermes/notes"), "read here\n").unwrap();
        fs::create_dir_all(home.join("run/9p")).unwrap();
        Self(home)
    }

    fn posted(&self) -> PathBuf {
        self.0.join("run/9p/agents")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_9agents"));
        command.args(args).env_clear().env("HOME", &self.0).env("XDG_RUNTIME_DIR", self.0.join("run"));
        command
    }

    /// A verb that asks whoever is posted gets its answer all the same, soon, and says why not from the server.
    fn assert_serves_itself(&self, why: &str) {
        let output = self.ask(&["cat", "/hermes/notes"]);
        let noted = format!("9agents: {}: {why}; the files are read here instead\n", self.address());
        assert_eq!(String::from_utf8_lossy(&output.stderr), noted);
        assert_eq!(output.stdout, b"read here\n");
        assert_eq!(output.status.code(), Some(0));
    }

    /// One that asks this server and no other fails, for that reason.
    fn assert_fails(&self, why: &str) {
        let output = self.ask(&["ls", "-a", &self.address(), "/hermes"]);
        let told = format!("9agents: {}: {why}\n", self.address());
        assert_eq!(String::from_utf8_lossy(&output.stderr), told);
        assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
    }

    fn ask(&self, args: &[&str]) -> Output {
        let start = Instant::now();
        let output = self.command(args).output().unwrap();
        assert!(start.elapsed() < Duration::from_secs(20), "{args:?} took {:?}", start.elapsed());
        output
    }

    fn address(&self) -> String {
        format!("unix!{}", self.posted().display())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
