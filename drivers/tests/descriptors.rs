//! Running out of descriptors: in a process of its own, because they are the whole process's.

use std::fs::File;
use std::os::unix::net::UnixStream;

use drivers::listen::{Accepted, Gate, Listener};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::{Resource, Rlimit};

#[test]
fn without_descriptors_connections_are_refused_and_nothing_spins() {
    let path = std::env::temp_dir().join(format!("9agents-descriptors-{}", std::process::id()));
    let listener = Listener::unix(&path).unwrap();
    let mut gate = Gate::new().unwrap();
    let address = SocketAddrUnix::new(&path).unwrap();
    let socket = || rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let clients: Vec<_> = std::iter::repeat_with(socket).take(CLIENTS).collect();

    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).unwrap();
    let mut fill = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
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

fn is_ready(listener: &Listener) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
}

const CLIENTS: usize = 5;
