//! The worker pool, behind the blocking driver: calls that never return, jobs that sleep, and what a hang-up leaves.
//!
//! The backend is one directory in which every walk finds a file. What a read of it does is said by its name.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use drivers::blocking::serve;
use drivers::listen::Listener;
use drivers::offload::{Key, Mailbox, Pool};
use drivers::pump::{End, Finished, Hand, finish, pump};
use drivers::server::Options;
use drivers::signals::Stop;
use engine::port::{Answer, Ask, Backend, Effort, Job, Kinds, Now, Progress, Qids, Room, Step, Ticket};
use engine::{Apart, Budget, Limits, Session};
use proto::{Dialect, NOFID, NOTAG, Names, QTDIR, Qid, Rmessage, Tmessage};

#[derive(Debug)]
enum Toy {}

impl Kinds for Toy {
    type Node = Arc<str>;
    type Open = Arc<str>;
}

/// What the test looks at and turns.
#[derive(Default)]
struct World {
    /// While true, calls for `stuck` do not return.
    stuck: Mutex<bool>,
    epoch: AtomicU64,
    steps: AtomicUsize,
    dropped: AtomicUsize,
}

#[derive(Clone)]
struct Backing(Arc<World>);

impl Backend<Toy> for Backing {
    fn perform(&self, ask: Ask<Toy>, mut room: Room<'_>, effort: Effort, now: Now) -> Progress<Toy> {
        let qid = |name: &str| Qid { kind: if name.is_empty() { QTDIR } else { 0 }, version: 0, path: 1 };
        let done = |answer| Progress::Done(Ok(answer));
        match ask {
            Ask::Attach { .. } => done(Answer::Attached { qid: qid(""), root: "".into() }),
            Ask::Walk { names, .. } => {
                let name = names.iter().next().map(|name| String::from_utf8_lossy(name).into_owned());
                let name: Arc<str> = name.unwrap_or_default().into();
                let mut qids = Qids::new();
                qids.push(qid(&name));
                done(Answer::Walked { qids, end: Some(name) })
            }
            Ask::Open { node, .. } => done(Answer::Opened { qid: qid(&node), open: node, list: false }),
            Ask::Read { open, .. } => match (&*open, effort) {
                ("inline", _) => done(fill(&mut room, b"inline")),
                ("stuck", Effort::Full) => {
                    while *lock(&self.0.stuck) {
                        thread::sleep(Duration::from_millis(5));
                    }
                    done(fill(&mut room, b"late"))
                }
                (_, Effort::Cached) => Progress::Cold(Ask::Read { open, offset: 0 }),
                ("cold", Effort::Full) => done(fill(&mut room, b"cold")),
                ("timer", Effort::Full) => later(&self.0, Wait::Until(now.mono_ns + 50_000_000)),
                ("ring", Effort::Full) => later(&self.0, Wait::Ring(self.epoch())),
                ("never", Effort::Full) => later(&self.0, Wait::Ring(u64::MAX)),
                ("stubborn", Effort::Full) => later(&self.0, Wait::Stubborn(now.mono_ns + 200_000_000)),
                ("quick", Effort::Full) => later(&self.0, Wait::Until(0)),
                ("hung", Effort::Full) => later(&self.0, Wait::Hung),
                (other, Effort::Full) => panic!("no such file: {other}"),
            },
            _ => panic!("not asked by these tests"),
        }
    }

    fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::SeqCst)
    }
}

fn fill(room: &mut Room<'_>, bytes: &[u8]) -> Answer<Toy> {
    room.bytes()[..bytes.len()].copy_from_slice(bytes);
    Answer::Bytes(bytes.len() as u32)
}

fn later(world: &Arc<World>, wait: Wait) -> Progress<Toy> {
    Progress::Later(Box::new(Sleeper { world: Arc::clone(world), wait }))
}

struct Sleeper {
    world: Arc<World>,
    wait: Wait,
}

enum Wait {
    Until(u64),
    Ring(u64),
    /// Past the point of no return: it cannot be abandoned.
    Stubborn(u64),
    /// The same, and its first step hangs while `stuck` is true.
    Hung,
}

impl Job<Toy> for Sleeper {
    fn step(&mut self, mut room: Room<'_>, now: Now) -> Step<Toy> {
        self.world.steps.fetch_add(1, Ordering::SeqCst);
        match self.wait {
            Wait::Until(at) | Wait::Stubborn(at) if now.mono_ns < at => Step::At(at),
            Wait::Hung => {
                while *lock(&self.world.stuck) {
                    thread::sleep(Duration::from_millis(5));
                }
                self.wait = Wait::Stubborn(now.mono_ns);
                Step::Again
            }
            Wait::Ring(u64::MAX) => Step::WhenRung(self.world.epoch.load(Ordering::SeqCst)),
            Wait::Ring(seen) if self.world.epoch.load(Ordering::SeqCst) == seen => Step::WhenRung(seen),
            _ => Step::Done(Ok(fill(&mut room, b"slept"))),
        }
    }

    fn abandon(&mut self) -> bool {
        !matches!(self.wait, Wait::Stubborn(_) | Wait::Hung)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.world.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server on a socket of its own, until dropped.
struct Served {
    world: Arc<World>,
    path: std::path::PathBuf,
    stop: Arc<Stop>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Served {
    fn start(name: &str, stuck_after: Duration) -> Self {
        let path = std::env::temp_dir().join(format!("9agents-offload-{name}-{}", std::process::id()));
        let world = Arc::new(World::default());
        let backend: Arc<dyn Backend<Toy>> = Arc::new(Backing(Arc::clone(&world)));
        let listener = Listener::unix(&path).expect("a socket");
        let stop = Arc::new(Stop::new().expect("a pipe"));
        let (asked, options) = (Arc::clone(&stop), Options { stuck_after, ..Options::default() });
        let thread = thread::spawn(move || {
            serve(&backend, &[listener], Vec::new(), &asked, &options).expect("it serves");
        });
        Self { world, path, stop, thread: Some(thread) }
    }

    /// A connection with an attached root, fid 0.
    fn connect(&self) -> Peer {
        let mut peer = Peer { stream: UnixStream::connect(&self.path).expect("a connection") };
        peer.stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        peer.send(NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" });
        peer.reply(NOTAG);
        peer.send(0, &Tmessage::Attach { fid: 0, afid: NOFID, uname: b"", aname: b"", n_uname: None });
        peer.reply(0);
        peer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.ask();
        self.thread.take().map(thread::JoinHandle::join);
        let _ = std::fs::remove_file(&self.path);
    }
}

struct Peer {
    stream: UnixStream,
}

impl Peer {
    fn send(&mut self, tag: u16, message: &Tmessage<'_>) {
        let mut frame = [0; 512];
        let size = message.encode(tag, Dialect::Plain, &mut frame).expect("it fits");
        self.stream.write_all(&frame[..size]).expect("sent");
    }

    /// Opens a file as a fid.
    fn open(&mut self, fid: u32, name: &str) {
        let mut wire = [0; 64];
        let names = Names::pack([name.as_bytes()], &mut wire).expect("it fits");
        self.send(1, &Tmessage::Walk { fid: 0, newfid: fid, names });
        self.reply(1);
        self.send(1, &Tmessage::Open { fid, mode: 0 });
        self.reply(1);
    }

    fn ask(&mut self, tag: u16, fid: u32) {
        self.send(tag, &Tmessage::Read { fid, offset: 0, count: 100 });
    }

    /// The next reply.
    fn next(&mut self) -> (u16, String) {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size).expect("a reply");
        let mut frame = size.to_vec();
        frame.resize(u32::from_le_bytes(size) as usize, 0);
        self.stream.read_exact(&mut frame[4..]).expect("the rest of it");
        told(&frame)
    }

    fn reply(&mut self, tag: u16) -> String {
        let (got, text) = self.next();
        assert_eq!(got, tag, "{text}");
        text
    }
}

/// A reply, as its tag and text: the data of an Rread, the words of an Rerror, `flush`, or nothing.
fn told(frame: &[u8]) -> (u16, String) {
    let (tag, message) = Rmessage::decode(frame, Dialect::Plain).expect("a good reply");
    let text = match message {
        Rmessage::Read { data } => String::from_utf8_lossy(data).into_owned(),
        Rmessage::Error { ename, .. } => String::from_utf8_lossy(ename).into_owned(),
        Rmessage::Flush => "flush".into(),
        _ => String::new(),
    };
    (tag, text)
}

#[test]
fn what_is_cold_is_answered_by_a_worker() {
    let served = Served::start("cold", Duration::from_secs(5));
    let mut peer = served.connect();
    peer.open(1, "cold");
    peer.ask(7, 1);
    assert_eq!(peer.reply(7), "cold");
}

#[test]
fn a_job_sleeps_until_its_time() {
    let served = Served::start("timer", Duration::from_secs(5));
    let mut peer = served.connect();
    peer.open(1, "timer");
    let began = Instant::now();
    peer.ask(7, 1);
    assert_eq!(peer.reply(7), "slept");
    assert!(began.elapsed() >= Duration::from_millis(50));
    assert!(served.world.steps.load(Ordering::SeqCst) <= 3, "it was stepped while it slept");
}

#[test]
fn a_job_sleeps_until_the_epoch_moves() {
    let served = Served::start("ring", Duration::from_secs(5));
    let mut peer = served.connect();
    peer.open(1, "ring");
    peer.open(2, "inline");
    peer.ask(7, 1);
    thread::sleep(Duration::from_millis(100));
    let steps = served.world.steps.load(Ordering::SeqCst);
    served.world.epoch.fetch_add(1, Ordering::SeqCst);
    // The epoch moves inside of a call of the backend; here the next call stands for that.
    peer.ask(8, 2);
    let mut replies = [peer.next(), peer.next()];
    replies.sort();
    assert_eq!(replies, [(7, "slept".into()), (8, "inline".into())]);
    assert_eq!(served.world.steps.load(Ordering::SeqCst), steps + 1);
}

#[test]
fn a_flush_ends_a_job_that_waits() {
    let served = Served::start("flush", Duration::from_secs(5));
    let mut peer = served.connect();
    peer.open(1, "never");
    peer.ask(7, 1);
    thread::sleep(Duration::from_millis(50));
    peer.send(8, &Tmessage::Flush { oldtag: 7 });
    assert_eq!(peer.reply(8), "flush");
    assert_eq!(served.world.dropped.load(Ordering::SeqCst), 1);
}

#[test]
fn a_flush_waits_for_a_job_past_undoing() {
    let served = Served::start("stubborn", Duration::from_secs(5));
    let mut peer = served.connect();
    peer.open(1, "stubborn");
    peer.ask(7, 1);
    thread::sleep(Duration::from_millis(50));
    peer.send(8, &Tmessage::Flush { oldtag: 7 });
    assert_eq!(peer.reply(7), "slept");
    assert_eq!(peer.reply(8), "flush");
}

#[test]
fn a_hang_up_drops_jobs_and_lets_the_stubborn_finish() {
    let served = Served::start("hangup", Duration::from_secs(5));
    let mut peer = served.connect();
    peer.open(1, "never");
    peer.open(2, "stubborn");
    peer.ask(7, 1);
    peer.ask(8, 2);
    thread::sleep(Duration::from_millis(50));
    drop(peer);
    wait_until(|| served.world.dropped.load(Ordering::SeqCst) == 2);
}

#[test]
fn a_call_that_does_not_return_costs_its_client_an_error_and_nobody_else_anything() {
    let served = Served::start("stuck", Duration::from_millis(300));
    *lock(&served.world.stuck) = true;
    let mut peer = served.connect();
    for fid in 1..=5 {
        peer.open(fid, "stuck");
    }
    peer.open(6, "cold");
    for fid in 1..=5 {
        peer.ask(fid as u16, fid);
    }
    // All four workers hang by now, and a fifth call waits for one of them.
    peer.ask(6, 6);
    let mut replies: Vec<_> = (0..6).map(|_| peer.next()).collect();
    replies.sort();
    let lost = "i/o error".to_owned();
    let expected = [1, 2, 3, 4, 5].map(|tag| (tag, lost.clone()));
    assert_eq!(replies[..5], expected);
    assert_eq!(replies[5], (6, "cold".into()));
    // The late results are thrown away, and the threads are of use again.
    *lock(&served.world.stuck) = false;
    thread::sleep(Duration::from_millis(50));
    peer.ask(7, 1);
    assert_eq!(peer.reply(7), "late");
}

#[test]
fn when_too_many_calls_hang_further_ones_are_refused_in_words() {
    let served = Served::start("lost", Duration::from_millis(50));
    *lock(&served.world.stuck) = true;
    let mut peer = served.connect();
    for fid in 1..=13 {
        peer.open(fid, "stuck");
    }
    for fid in 1..=13 {
        peer.ask(fid as u16, fid);
    }
    let replies: Vec<_> = (0..13).map(|_| peer.next().1).collect();
    assert!(replies.iter().filter(|text| *text == "i/o error").count() >= 12, "{replies:?}");
    peer.open(20, "cold");
    peer.ask(20, 20);
    assert!(peer.reply(20).contains("workers hang"));
    // What needs no worker is served all the same.
    peer.open(21, "inline");
    peer.ask(21, 21);
    assert_eq!(peer.reply(21), "inline");
    *lock(&served.world.stuck) = false;
    thread::sleep(Duration::from_millis(50));
    peer.ask(20, 20);
    assert_eq!(peer.reply(20), "cold");
}

/// What has ended has had its effect: the reply comes first, though it was not taken out of the mailbox before the flush.
#[test]
fn a_flush_of_a_job_whose_answer_is_on_its_way_waits_for_it() {
    let mut seat = Seat::new();
    seat.open(1, "quick");
    seat.ask(7, 1);
    // The ask turned out to be a job, and the job is done.
    seat.take_letter();
    seat.await_letter();
    seat.send(8, &Tmessage::Flush { oldtag: 7 });
    assert_eq!(seat.replies(), [], "the flush waits");
    seat.take_letter();
    assert_eq!(seat.replies(), [(7, "slept".into()), (8, "flush".into())]);
}

/// What has not begun does not begin for nobody, though it was on its way when the flush came.
#[test]
fn a_flush_ends_a_job_that_is_on_its_way() {
    let mut seat = Seat::new();
    seat.open(1, "quick");
    seat.ask(7, 1);
    seat.await_letter();
    assert!(matches!(lock(&seat.letters.0)[0].end, End::Job(_)));
    seat.send(8, &Tmessage::Flush { oldtag: 7 });
    seat.take_letter();
    assert_eq!(seat.replies(), [(8, "flush".into())]);
    let world = &seat.world;
    assert_eq!((world.steps.load(Ordering::SeqCst), world.dropped.load(Ordering::SeqCst)), (0, 1));
}

/// The same when there is nobody any more who could have flushed it.
#[test]
fn a_job_that_comes_for_a_session_that_is_gone_never_begins() {
    let mut seat = Seat::new();
    seat.open(1, "quick");
    seat.ask(7, 1);
    seat.await_letter();
    seat.session.disconnect();
    seat.turn();
    seat.take_letter();
    assert!(seat.session.is_drained());
    assert_eq!(seat.world.steps.load(Ordering::SeqCst), 0);
}

/// A step that does not return costs the client its answer; a job past undoing comes to its end all the same.
#[test]
fn a_job_past_undoing_outlives_a_step_that_was_written_off() {
    let served = Served::start("hung", Duration::from_millis(100));
    *lock(&served.world.stuck) = true;
    let mut peer = served.connect();
    peer.open(1, "hung");
    peer.ask(7, 1);
    assert_eq!(peer.reply(7), "i/o error");
    assert_eq!(served.world.dropped.load(Ordering::SeqCst), 0);
    *lock(&served.world.stuck) = false;
    wait_until(|| served.world.dropped.load(Ordering::SeqCst) == 1);
    assert_eq!(served.world.steps.load(Ordering::SeqCst), 2, "its second step is its last");
}

/// A session whose mailbox is looked at when a test says so.
struct Seat {
    session: Session<Toy>,
    world: Arc<World>,
    backend: Arc<dyn Backend<Toy>>,
    pool: Pool<Toy>,
    letters: Arc<Letters>,
}

#[derive(Default)]
struct Letters(Mutex<Vec<Finished<Toy>>>);

impl Mailbox<Toy> for Letters {
    fn deliver(&self, finished: Finished<Toy>) {
        lock(&self.0).push(finished);
    }
}

struct Handed<'a>(&'a Pool<Toy>, Arc<dyn Mailbox<Toy>>);

impl Hand<Toy> for Handed<'_> {
    fn cold(&mut self, ticket: Ticket, ask: Ask<Toy>, apart: Apart) {
        self.0.ask(Key { connection: 1, ticket }, ask, apart, &self.1);
    }

    fn job(&mut self, ticket: Ticket, job: Box<dyn Job<Toy>>, apart: Apart) {
        self.0.job(Key { connection: 1, ticket }, job, apart, &self.1);
    }

    fn abandon(&mut self, ticket: Ticket) -> bool {
        self.0.abandon(Key { connection: 1, ticket })
    }
}

impl Seat {
    fn new() -> Self {
        let world = Arc::new(World::default());
        let backend: Arc<dyn Backend<Toy>> = Arc::new(Backing(Arc::clone(&world)));
        let session = Session::new(Limits::DEFAULT, Budget::default(), 1);
        let pool = Pool::new(Arc::clone(&backend), Duration::from_secs(5));
        let mut seat = Self { session, world, backend, pool, letters: Arc::default() };
        seat.send(NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" });
        seat.send(0, &Tmessage::Attach { fid: 0, afid: NOFID, uname: b"", aname: b"", n_uname: None });
        assert_eq!(seat.replies().len(), 2);
        seat
    }

    fn turn(&mut self) {
        let mut hand = Handed(&self.pool, Arc::<Letters>::clone(&self.letters));
        pump(&mut self.session, &*self.backend, Effort::Cached, Now::default(), &mut hand);
    }

    fn send(&mut self, tag: u16, message: &Tmessage<'_>) {
        let mut frame = [0; 512];
        let size = message.encode(tag, Dialect::Plain, &mut frame).expect("it fits");
        self.session.receive(&frame[..size]);
        self.turn();
    }

    fn open(&mut self, fid: u32, name: &str) {
        let mut wire = [0; 64];
        let names = Names::pack([name.as_bytes()], &mut wire).expect("it fits");
        self.send(1, &Tmessage::Walk { fid: 0, newfid: fid, names });
        self.send(1, &Tmessage::Open { fid, mode: 0 });
        assert_eq!(self.replies().len(), 2);
    }

    fn ask(&mut self, tag: u16, fid: u32) {
        self.send(tag, &Tmessage::Read { fid, offset: 0, count: 100 });
    }

    fn await_letter(&self) {
        wait_until(|| !lock(&self.letters.0).is_empty());
    }

    fn take_letter(&mut self) {
        self.await_letter();
        let finished = lock(&self.letters.0).remove(0);
        let mut hand = Handed(&self.pool, Arc::<Letters>::clone(&self.letters));
        finish(&mut self.session, finished, &mut hand);
        self.turn();
    }

    /// What has been answered.
    fn replies(&mut self) -> Vec<(u16, String)> {
        let mut bytes = Vec::new();
        while let Some(buf) = self.session.take() {
            bytes.extend_from_slice(buf.as_slice());
            self.session.sent(buf);
        }
        let mut replies = Vec::new();
        let mut rest = &bytes[..];
        while let Some(size) = rest.first_chunk().map(|size| u32::from_le_bytes(*size) as usize) {
            replies.push(told(&rest[..size]));
            rest = &rest[size..];
        }
        replies
    }
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < deadline, "it did not come");
        thread::sleep(Duration::from_millis(5));
    }
}
