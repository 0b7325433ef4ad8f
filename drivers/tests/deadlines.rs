//! What a peer owes a server, and by when: on every driver, over sockets and over pipes.
//!
//! The backend is one directory in which every walk finds a file; a read of it says nothing but zeros, or never ends.

#[path = "../../tests/src/fitness.rs"]
mod fitness;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use drivers::choose::{Chosen, Driver};
use drivers::listen::Listener;
use drivers::server::Options;
use drivers::signals::Stop;
use drivers::uring::Uring;
use engine::port::{Answer, Ask, Backend, Effort, Job, Kinds, Now, Progress, Qids, Room, Step};
use proto::{Dialect, NOFID, NOTAG, Names, QTDIR, Qid, Tmessage};

#[test]
fn a_version_is_agreed_on_in_time_however_slowly_it_comes() {
    on_each_driver("version", |driver, served| {
        let (mut silent, mut slow, start) = (served.connect(), served.connect(), Instant::now());
        trickle(&mut slow, &encode(NOTAG, &VERSION));
        assert!(is_closed(&mut silent) && is_closed(&mut slow));
        assert_in_time(driver, start, HANDSHAKE);
    });
}

#[test]
fn a_request_that_has_begun_is_finished_in_time_however_slowly_it_comes() {
    on_each_driver("request", |driver, served| {
        let (mut stalled, mut slow, start) = (served.client(), served.client(), Instant::now());
        stalled.write_all(&[200, 0]).unwrap();
        trickle(&mut slow, &[200, 0, 0, 0, 110, 1, 0, 1, 1, 1]);
        assert!(is_closed(&mut stalled) && is_closed(&mut slow));
        assert_in_time(driver, start, LIMIT);
    });
}

#[test]
fn what_a_peer_waits_for_does_not_excuse_it() {
    on_each_driver("parked", |driver, served| {
        let mut peer = served.client();
        open(&mut peer, b"never");
        let start = Instant::now();
        peer.write_all(&encode(1, &Tmessage::Read { fid: 1, offset: 0, count: 10 })).unwrap();
        peer.write_all(&[23, 0, 0]).unwrap();
        assert!(is_closed(&mut peer));
        assert_in_time(driver, start, LIMIT);
    });
}

/// What comes never ends with the end of a request, and yet each one ends in time.
#[test]
fn a_peer_that_is_slow_and_goes_on_is_served() {
    on_each_driver("steady", |driver, served| {
        let mut peer = served.client();
        let clunk = encode(1, &Tmessage::Clunk { fid: 7 });
        let bytes = clunk.repeat(12);
        let (pieces, start) = (bytes.chunks(5), Instant::now());
        let count = pieces.len() as u32;
        for piece in pieces {
            peer.write_all(piece).unwrap();
            thread::sleep(4 * LIMIT / count);
        }
        for _ in 0..12 {
            reply(&mut peer).unwrap_or_else(|| panic!("{driver:?} has closed"));
        }
        assert!(start.elapsed() > 3 * LIMIT);
    });
}

#[test]
fn a_peer_that_is_quiet_between_requests_is_served() {
    on_each_driver("quiet", |driver, served| {
        let mut peer = served.client();
        for _ in 0..2 {
            thread::sleep(2 * LIMIT);
            peer.write_all(&encode(1, &Tmessage::Clunk { fid: 7 })).unwrap();
            reply(&mut peer).unwrap_or_else(|| panic!("{driver:?} has closed"));
        }
    });
}

/// One that reads all the time is served, however long it takes; one that has stopped is closed, however much it has read.
#[test]
fn replies_are_read_in_time() {
    on_each_driver("replies", |driver, served| {
        let mut peer = served.client();
        open(&mut peer, b"zeros");
        peer.set_write_timeout(Some(LIMIT / 10)).unwrap();
        let read = encode(1, &Tmessage::Read { fid: 1, offset: 0, count: 60_000 });
        let (mut data, start) = (vec![0; 1 << 20], Instant::now());
        // The more is asked the longer there is something to read.
        while start.elapsed() < 3 * LIMIT {
            if let Err(error) = peer.write_all(&read.repeat(500)) {
                assert!(is_timeout(error.kind()), "{driver:?}: {error}");
                break;
            }
        }
        while start.elapsed() < 3 * LIMIT {
            let count = peer.read(&mut data).unwrap();
            assert!(count > 0, "{driver:?} has closed");
            thread::sleep(LIMIT / 50);
        }
        let stopped = Instant::now();
        thread::sleep(LIMIT);
        // What is on its way can still be read.
        while let Ok(1..) = peer.read(&mut data) {}
        assert_in_time(driver, stopped, LIMIT);
    });
}

fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Sends a byte at a time, never waiting for as long as the server would, until the server has closed or all is sent.
fn trickle(peer: &mut UnixStream, bytes: &[u8]) {
    for byte in bytes {
        if peer.write_all(&[*byte]).is_err() {
            return;
        }
        thread::sleep(HANDSHAKE / 6);
    }
}

/// That it was about now that the time was up.
#[track_caller]
fn assert_in_time(driver: Driver, start: Instant, limit: Duration) {
    let taken = start.elapsed();
    assert!((limit / 2..2 * limit).contains(&taken), "{driver:?} closed after {taken:?}");
}

/// Does something to a server of each driver, to all of them at once.
fn on_each_driver(test: &str, act: impl Fn(Driver, &Served) + Sync) {
    thread::scope(|scope| {
        scope.spawn(|| act(Driver::Blocking, &Served::start(Driver::Blocking, test)));
        match Uring::open(&Options::default()) {
            Ok(_) => drop(scope.spawn(|| act(Driver::Uring, &Served::start(Driver::Uring, test)))),
            Err(why) => fitness::skip(&format!("no ring: {why}")),
        }
    });
}

struct Served {
    path: PathBuf,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn start(driver: Driver, test: &str) -> Self {
        let name = format!("9agents-deadlines-{test}-{driver:?}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = Listener::unix(&path).unwrap();
        let stop = Arc::new(Stop::new().unwrap());
        let asked = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let backend: Arc<dyn Backend<Toy>> = Arc::new(Directory);
            let options = Options { handshake: HANDSHAKE, unread: LIMIT, ..Options::default() };
            let driver = Chosen::new(driver, false, &options).unwrap();
            driver.serve(&backend, &[listener], Vec::new(), &asked, &options).unwrap();
        });
        Self { path, stop, thread: Some(thread) }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// A peer with the root as fid 0.
    fn client(&self) -> UnixStream {
        let mut peer = self.connect();
        let attach = Tmessage::Attach { fid: 0, afid: NOFID, uname: b"", aname: b"", n_uname: None };
        for (tag, message) in [(NOTAG, VERSION), (1, attach)] {
            peer.write_all(&encode(tag, &message)).unwrap();
            reply(&mut peer).unwrap();
        }
        peer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.ask();
        let ended = self.thread.take().is_some_and(|thread| thread.join().is_ok());
        assert!(ended || thread::panicking());
    }
}

/// Opens a file as fid 1.
fn open(peer: &mut UnixStream, name: &[u8]) {
    let mut wire = [0; 64];
    let names = Names::pack([name], &mut wire).unwrap();
    for message in [Tmessage::Walk { fid: 0, newfid: 1, names }, Tmessage::Open { fid: 1, mode: 0 }] {
        peer.write_all(&encode(1, &message)).unwrap();
        reply(peer).unwrap();
    }
}

fn encode(tag: u16, message: &Tmessage<'_>) -> Vec<u8> {
    let mut frame = vec![0; 512];
    let size = message.encode(tag, Dialect::Plain, &mut frame).unwrap();
    frame.truncate(size);
    frame
}

/// The next reply; `None` at the end.
fn reply(peer: &mut UnixStream) -> Option<Vec<u8>> {
    let mut size = [0; 4];
    peer.read_exact(&mut size).ok()?;
    let mut rest = vec![0; u32::from_le_bytes(size) as usize - 4];
    peer.read_exact(&mut rest).ok()?;
    Some(rest)
}

/// Whether the server has closed, or does so soon.
fn is_closed(peer: &mut UnixStream) -> bool {
    match peer.read(&mut [0; 100]) {
        Ok(count) => count == 0,
        Err(error) => !is_timeout(error.kind()),
    }
}

#[derive(Debug)]
enum Toy {}

impl Kinds for Toy {
    /// Whether a read ends.
    type Node = bool;
    type Open = bool;
}

struct Directory;

impl Backend<Toy> for Directory {
    fn perform(&self, ask: Ask<Toy>, mut room: Room<'_>, _: Effort, _: Now) -> Progress<Toy> {
        let qid = Qid { kind: QTDIR, version: 0, path: 1 };
        Progress::Done(Ok(match ask {
            Ask::Attach { .. } => Answer::Attached { qid, root: true },
            Ask::Walk { names, .. } => {
                let mut qids = Qids::new();
                qids.push(Qid { kind: 0, ..qid });
                Answer::Walked { qids, end: Some(!names.iter().any(|name| name == b"never")) }
            }
            Ask::Open { node, .. } => Answer::Opened { qid: Qid { kind: 0, ..qid }, open: node, list: false },
            Ask::Read { open: false, .. } => return Progress::Later(Box::new(Never)),
            Ask::Read { .. } => Answer::Bytes(room.bytes().len() as u32),
            _ => panic!("not asked by these tests"),
        }))
    }

    fn epoch(&self) -> u64 {
        0
    }
}

struct Never;

impl Job<Toy> for Never {
    fn step(&mut self, _: Room<'_>, _: Now) -> Step<Toy> {
        Step::WhenRung(u64::MAX)
    }

    fn abandon(&mut self) -> bool {
        true
    }
}

const VERSION: Tmessage<'_> = Tmessage::Version { msize: 64 * 1024, version: b"9P2000" };
const HANDSHAKE: Duration = Duration::from_millis(900);
const LIMIT: Duration = Duration::from_millis(1500);
