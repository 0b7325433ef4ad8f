//! Who may connect: the server's own user and root, by whatever door.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::thread;

use proto::Dialect;
use rustix::process::{Uid, geteuid};
use tests::check::Client;
use tests::fitness::skip;
use tests::line::Line;

use crate::binary::given;
use crate::daemon::{Daemon, attached, client};
use crate::home::Home;

#[test]
fn another_user_is_closed_without_a_byte() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    for (peer, words) in
        [(STRANGER, "the peer's uid is 12345"), (NOBODY, "the peer's uid is unknown here (65534)")]
    {
        let home = Home::furnished();
        let posted = home.posted("agents");
        let daemon = Daemon::start(&mut home.command(&[]));
        for directory in [home.runtime(), home.runtime().join("9p")] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let refused = as_user(peer, || UnixStream::connect(&posted)).unwrap_err();
        assert_eq!(
            refused.kind(),
            std::io::ErrorKind::PermissionDenied,
            "the mode of the socket keeps them out"
        );
        fs::set_permissions(&posted, fs::Permissions::from_mode(0o666)).unwrap();
        let stream = as_user(peer, || UnixStream::connect(&posted)).unwrap();
        expect_closed(stream);
        daemon.await_line(&format!("refused a connection to unix!{}: {words}", posted.display()));
        client(&posted, Dialect::Plain).expect_alive();

        let daemon = Daemon::start(&mut home.command(&["--no-post", "--tcp", "127.0.0.1:0"]));
        let address = daemon.tcp("127.0.0.1");
        expect_closed(as_user(peer, || TcpStream::connect(address)).unwrap());
        daemon.await_line(&format!("refused a connection to tcp!127.0.0.1!{}: {words}", address.port()));
        of(Line::tcp(address)).expect_alive();
    }
}

#[test]
fn root_is_let_in_to_another_user_s_server_and_others_are_not() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let home = Home::furnished();
    chown(home.runtime(), Some(STRANGER), None).unwrap();
    let mut command = home.command(&["--tcp", "127.0.0.1:0"]);
    let daemon = Daemon::start(command.uid(STRANGER).gid(STRANGER));
    let (posted, address) = (home.posted("agents"), daemon.tcp("127.0.0.1"));
    assert_eq!(client(&posted, Dialect::Linux).contents("codex/history"), b"{}\n");
    of(Line::tcp(address)).expect_alive();
    let own = as_user(STRANGER, || UnixStream::connect(&posted)).unwrap();
    of(Line::socket(own)).expect_alive();
    of(Line::socket(as_user(STRANGER, || TcpStream::connect(address)).unwrap())).expect_alive();
    expect_closed(as_user(STRANGER + 1, || TcpStream::connect(address)).unwrap());
    daemon.await_line("the peer's uid is 12346");
}

#[test]
fn a_connection_that_was_passed_is_held_to_the_same() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let home = Home::furnished();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tcp = as_user(STRANGER, || TcpStream::connect(address)).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let mut daemon = Daemon::spawn(home.command(&["--fd", "0"]).stdin(OwnedFd::from(theirs)));
    assert_eq!(daemon.wait().code(), Some(1));
    assert_eq!(daemon.log(), "9agents: refused the connection that was passed: the peer's uid is 12345");
    expect_closed(tcp);

    let (theirs, unix) = as_user(STRANGER, UnixStream::pair).unwrap();
    let start = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1";
    let mut daemon = Daemon::spawn(given(&home.command(&[]), start).stdin(OwnedFd::from(theirs)));
    assert_eq!(daemon.wait().code(), Some(1));
    expect_closed(unix);
}

/// Acts as another user, on a thread that stays one.
fn as_user<T: Send>(user: u32, act: impl FnOnce() -> T + Send) -> T {
    let become_and_act = || {
        let uid = Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(uid, uid, uid).expect("root may");
        act()
    };
    thread::scope(|scope| scope.spawn(become_and_act).join().expect("an act"))
}

/// Sees that a connection ends, and that nothing came before.
#[track_caller]
fn expect_closed(mut stream: impl Read) {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut bytes);
    assert_eq!(bytes, b"");
}

fn of(line: Line) -> Client {
    attached(Client::new(Box::new(line), Dialect::Plain))
}

const STRANGER: u32 = 12345;
/// The overflow uid.
const NOBODY: u32 = 65534;
