//! What a supervisor hears and gives: readiness, the end, and lines for its journal.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use proto::Dialect;
use rustix::process::{Pid, Signal, kill_process};

use tests::check::ROOT;

use crate::daemon::{Daemon, PATIENCE, client};
use crate::home::Home;

#[test]
fn the_supervisor_hears_when_clients_can_connect_and_when_it_stops() {
    for driver in ["auto", "blocking"] {
        let home = Home::furnished();
        let heard = home.beside("heard");
        let ear = listen(&heard);
        let mut command = home.command(&["--driver", driver]);
        let mut daemon = Daemon::spawn(command.env("NOTIFY_SOCKET", &heard));

        assert_eq!(next(&ear), "READY=1\n");
        // No waiting: whoever starts after us connects at once.
        client(&home.posted("agents"), Dialect::Plain).stat(ROOT).unwrap();

        daemon.signal(Signal::TERM);
        assert_eq!(next(&ear), "STOPPING=1\n");
        assert_eq!(daemon.wait().code(), Some(0));
    }
}

/// Where nobody listens any more, that is said, and no more.
#[test]
fn a_supervisor_that_does_not_hear_is_no_reason_not_to_serve() {
    let home = Home::furnished();
    let mut command = home.command(&[]);
    let daemon = Daemon::start(command.env("NOTIFY_SOCKET", home.beside("nobody")));
    daemon.await_line("warning: the supervisor could not be told of READY=1");
    client(&home.posted("agents"), Dialect::Plain).stat(ROOT).unwrap();
}

/// Where stderr is the journal's stream, lines have the journal's levels.
#[test]
fn lines_for_the_journal_begin_with_their_level() {
    let home = Home::furnished();
    let (path, heard) = (home.beside("journal"), home.beside("heard"));
    let ear = listen(&heard);
    let journal = File::create(&path).unwrap();
    let metadata = journal.metadata().unwrap();
    let mut command = home.command(&["--tcp", "0.0.0.0:0", "--allow-remote"]);
    command
        .env("JOURNAL_STREAM", format!("{}:{}", metadata.dev(), metadata.ino()))
        .env("NOTIFY_SOCKET", &heard);
    let mut daemon = command.stderr(journal).spawn().unwrap();
    assert_eq!(next(&ear), "READY=1\n");
    kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
    assert_eq!(daemon.wait().unwrap().code(), Some(0));

    let lines = std::fs::read_to_string(&path).unwrap();
    for start in ["<6>listening on unix!", "<6>serving with", "<4>0.0.0.0:0 is not a loopback address"] {
        assert!(lines.lines().any(|line| line.starts_with(start)), "{start}: {lines}");
    }
    assert!(lines.lines().all(|line| line.starts_with('<')), "{lines}");
}

fn listen(path: &Path) -> UnixDatagram {
    let ear = UnixDatagram::bind(path).unwrap();
    ear.set_read_timeout(Some(PATIENCE)).unwrap();
    ear
}

fn next(ear: &UnixDatagram) -> String {
    let mut buffer = [0; 1024];
    let length = ear.recv(&mut buffer).expect("it is told in time");
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}
