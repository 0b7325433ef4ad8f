//! What needs a process of its own: dying without a farewell, running out of descriptors, being started with
//! some.
//!
//! Such a process is this test binary again, asked to play one of the roles at the end of this file.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use drivers::inherit::{self, Given};
use drivers::listen::{Accepted, Gate, Listener, Transport};
use drivers::post::{Post, PostError};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::{Resource, Rlimit};

#[test]
fn the_name_of_a_killed_server_is_taken_over() {
    let dir = Scratch::new("killed");
    let mut server = play("poster").env("XDG_RUNTIME_DIR", &dir.0).stdout(Stdio::piped()).spawn().unwrap();
    let _output = await_line(&mut server, "posted");
    let name = "agents".parse().unwrap();
    let error = Post::name(Some(dir.0.as_os_str()), &name).unwrap_err();
    assert!(matches!(error, PostError::LiveName { .. }), "{error}");

    server.kill().unwrap();
    server.wait().unwrap();
    assert!(dir.0.join("9p/agents").exists(), "nobody took it away");
    let (_listener, post) = Post::name(Some(dir.0.as_os_str()), &name).unwrap();
    UnixStream::connect(post.location()).unwrap();
}

#[test]
fn without_descriptors_connections_are_refused_and_nothing_spins() {
    let dir = Scratch::new("crowd");
    let status = play("crowd").env("AT", dir.0.join("s")).status().unwrap();
    assert!(status.success());
}

#[test]
fn sockets_of_systemd_are_taken_over() {
    let dir = Scratch::new("activated");
    let path = dir.0.join("door");
    let door = UnixListener::bind(&path).unwrap();
    let (line, mut ours) = UnixStream::pair().unwrap();
    let role = play("activated");
    let mut server = Command::new("sh")
        .arg("-c")
        .arg("exec 3<&0 4>&1 </dev/null >&2; LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=door:line exec \"$0\" \"$@\"")
        .arg(role.get_program())
        .args(role.get_args())
        .stdin(OwnedFd::from(door))
        .stdout(OwnedFd::from(line))
        .spawn()
        .unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    let mut said = String::new();
    ours.read_to_string(&mut said).unwrap();
    assert_eq!(said, "on the line");
    said.clear();
    client.read_to_string(&mut said).unwrap();
    assert_eq!(said, "at the door");
    assert!(server.wait().unwrap().success());
    assert!(path.exists(), "it is systemd's");
}

#[test]
fn a_stream_on_two_pipes_is_served() {
    let mut server = play("piped").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    server.stdin.take().unwrap().write_all(b"hello").unwrap();
    let _output = await_line(&mut server, "hello, pipe");
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_stream_on_a_standard_input_that_is_a_socket_is_served() {
    let (theirs, mut ours) = UnixStream::pair().unwrap();
    let mut server = play("piped").stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn().unwrap();
    ours.write_all(b"hello").unwrap();
    let mut said = String::new();
    ours.read_to_string(&mut said).unwrap();
    assert_eq!(said, "hello, socket\n");
    assert!(server.wait().unwrap().success());
}

/// The command that plays a role.
fn play(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", &format!("role::{role}")]);
    command
}

/// Reads what a child prints until this line, which must come. The child prints more, so the rest is not to
/// be closed before its end.
fn await_line(child: &mut Child, line: &str) -> ChildStdout {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut found = String::new();
    while found.trim_end_matches('\n') != line {
        found.clear();
        assert_ne!(output.read_line(&mut found).unwrap(), 0, "no line `{line}`");
    }
    output.into_inner()
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("9agents-processes-{}-{test}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

mod role {
    use super::*;

    /// Posts, says so, and waits for its end.
    #[test]
    #[ignore = "played by another test"]
    fn poster() {
        let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR");
        let _posted = Post::name(runtime_dir.as_deref(), &"agents".parse().unwrap()).unwrap();
        println!("\nposted");
        std::thread::sleep(std::time::Duration::from_secs(60));
    }

    /// Listens with no descriptor free while clients connect.
    #[test]
    #[ignore = "played by another test"]
    fn crowd() {
        const CLIENTS: usize = 5;
        let path = std::env::var_os("AT").unwrap();
        let listener = Listener::unix(Path::new(&path)).unwrap();
        let mut gate = Gate::new().unwrap();
        let address = SocketAddrUnix::new(Path::new(&path)).unwrap();
        let socket = || rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let clients: Vec<_> = std::iter::repeat_with(socket).take(CLIENTS).collect();

        let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
        rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).unwrap();
        let mut fill = Vec::new();
        while let Ok(file) = fs::File::open("/dev/null") {
            fill.push(file);
        }
        for client in &clients {
            rustix::net::connect(client, &address).unwrap();
        }
        let accept = || rustix::net::accept(&listener).map(drop);
        assert_eq!(accept(), Err(Errno::MFILE), "there is a crowd");

        let mut turns = 0;
        while is_ready(&listener) {
            assert!(matches!(gate.accept(&listener), Accepted::Nothing));
            turns += 1;
        }
        assert_eq!(turns, CLIENTS, "each connection costs one turn");
        for client in &clients {
            assert_eq!(rustix::io::read(client, &mut [0]), Ok(0), "and is closed without a byte");
        }

        fill.pop();
        let another = UnixStream::connect(&path);
        assert!(another.is_ok());
        fill.pop();
        assert!(matches!(gate.accept(&listener), Accepted::Stream(_)), "with room again, all is well");
    }

    /// Takes systemd's sockets, one that listens and one that is connected, and says something on each.
    #[test]
    #[ignore = "played by another test"]
    fn activated() {
        inherit::close_on_exec();
        let given = inherit::activated(false).unwrap();
        let [Given::Listener(door), Given::Stream(line)] = given.as_slice() else { panic!("{given:?}") };
        assert!(matches!(line.transport(), Transport::Unix { .. }));
        for descriptor in [door.as_fd(), line.input()] {
            assert!(rustix::io::fcntl_getfd(descriptor).unwrap().contains(FdFlags::CLOEXEC));
        }
        assert!(inherit::activated(false).unwrap().is_empty(), "they are taken once");
        assert_eq!(std::env::var_os("LISTEN_FDS"), None);
        rustix::io::write(line.output(), b"on the line").unwrap();
        while !is_ready(door) {
            std::thread::yield_now();
        }
        let Accepted::Stream(stream) = Gate::new().unwrap().accept(door) else { panic!("refused") };
        rustix::io::write(stream.output(), b"at the door").unwrap();
    }

    /// Answers on the stream that is its standard input, or input and output.
    #[test]
    #[ignore = "played by another test"]
    fn piped() {
        let stream = inherit::stream(0, false).unwrap();
        let mut heard = [0; 5];
        assert_eq!(rustix::io::read(stream.input(), &mut heard).unwrap(), 5);
        let kind = if stream.is_socket() { "socket" } else { "pipe" };
        let answer = format!("{}, {kind}\n", str::from_utf8(&heard).unwrap());
        let answer = if stream.is_socket() { answer } else { format!("\n{answer}") };
        rustix::io::write(stream.output(), answer.as_bytes()).unwrap();
    }

    fn is_ready(listener: &Listener) -> bool {
        let mut polled = [PollFd::new(listener, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
    }
}
