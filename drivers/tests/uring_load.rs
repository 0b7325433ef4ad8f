//! The io_uring driver under a crowd that asks a lot and dies a lot: at the end nothing is left over.
//!
//! In a process of its own, because it counts the process's descriptors and memory. `NINEAGENTS_LOAD_SECONDS` says for how
//! long; by default it is short.

#[path = "../../tests/src/fitness.rs"]
mod fitness;
#[expect(dead_code, reason = "some of it is for another test")]
mod uring_world;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use drivers::server::Options;
use drivers::uring::Uring;
use peak_alloc::PeakAlloc;
use proto::{Names, Tmessage};

use uring_world::{FILE, Home, Peer, Served, encode};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

static SERVED: AtomicUsize = AtomicUsize::new(0);
static FAULTS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_crowd_leaves_nothing_behind() {
    if let Err(why) = Uring::open(&Options::default()) {
        return fitness::skip(&format!("no ring: {why}"));
    }
    let home = Home::new("load");
    // What is made once and kept for the life of the process is made here.
    load(&home, Duration::from_millis(300));
    await_workers();
    let (descriptors, bytes) = (descriptors(), ALLOCATOR.current_usage());
    let time = std::env::var("NINEAGENTS_LOAD_SECONDS").ok().and_then(|value| value.parse().ok());
    load(&home, Duration::from_secs_f64(time.unwrap_or(2.0)));
    await_workers();
    let (served, faults) = (SERVED.load(Ordering::Relaxed), FAULTS.load(Ordering::Relaxed));
    let left = ALLOCATOR.current_usage() as i64 - bytes as i64;
    println!("{served} requests served, {faults} faults, {left} bytes left");
    assert!(served > 1000 && faults > 50, "{served} requests, {faults} faults");
    assert_eq!(self::descriptors(), descriptors, "descriptors are left");
    assert!(left < SLACK, "{left} bytes are left");
}

/// A server from its start to its end, and what a crowd does to it.
fn load(home: &Home, time: Duration) {
    let options = Options::default();
    let budget = options.budget.clone();
    let mut served = Served::start(home, options);
    let (served_by, deadline) = (&served, Instant::now() + time);
    thread::scope(|scope| {
        for seed in 1..=THREADS {
            scope.spawn(move || crowd(served_by, seed, deadline));
        }
    });
    // A place that is not given up would be missed now.
    let peers: Vec<_> = (0..CONNECTIONS).map(|_| patiently(&served)).collect();
    drop(peers);
    served.end();
    assert_eq!(budget.taken(), (0, 0), "fids and bytes are left");
}

/// A client, as soon as the server has a place for one.
fn patiently(served: &Served) -> Peer {
    let start = Instant::now();
    loop {
        if let Ok(peer) = Peer::try_client(&served.socket) {
            return peer;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "the places stay taken");
        thread::sleep(Duration::from_millis(5));
    }
}

/// One thread's share of the crowd.
fn crowd(served: &Served, seed: u64, deadline: Instant) {
    let mut random = Random(seed);
    let mut peers: Vec<Peer> = (0..CONNECTIONS / THREADS as usize).map(|_| patiently(served)).collect();
    while Instant::now() < deadline {
        let burst = burst(&mut random);
        for peer in &mut peers {
            peer.stream.write_all(&burst).expect("a request is taken");
        }
        for peer in &mut peers {
            match random.below(8) {
                0 => die(&mut random, served, peer),
                _ => hear(peer),
            }
        }
    }
}

/// Takes the replies to a whole burst.
fn hear(peer: &mut Peer) {
    let mut tags = BTreeSet::new();
    for _ in 0..BURST {
        let (tag, _) = peer.reply().expect("a reply").expect("and no error");
        assert!(tags.insert(tag), "tag {tag} is answered twice");
    }
    assert!(tags.into_iter().eq(0..BURST), "some tag has no answer");
    SERVED.fetch_add(usize::from(BURST), Ordering::Relaxed);
}

/// Goes away in the middle of something, and comes back as another.
fn die(random: &mut Random, served: &Served, peer: &mut Peer) {
    FAULTS.fetch_add(1, Ordering::Relaxed);
    for _ in 0..random.below(u64::from(BURST)) {
        peer.reply().expect("a reply").expect("and no error");
    }
    match random.below(4) {
        // Half a request.
        0 => drop(peer.stream.write_all(&[23, 0, 0, 0, 116])),
        // What cannot be one: the server hangs up.
        1 => drop(peer.stream.write_all(&[0xff; 64])),
        // A direction closed, with answers on their way.
        2 => drop(peer.stream.shutdown(std::net::Shutdown::Write)),
        _ => {}
    }
    peer.stream.shutdown(std::net::Shutdown::Both).ok();
    *peer = patiently(served);
}

/// Requests of many kinds, one for each tag.
fn burst(random: &mut Random) -> Vec<u8> {
    let mut wire = [0; 64];
    let mut all = Vec::new();
    for tag in (0..BURST).step_by(4) {
        let newfid = 100 + u32::from(tag);
        let names = Names::pack([&b"hermes"[..], b"files"], &mut wire).expect("it fits");
        let (offset, count) = (random.below(FILE as u64), random.below(4096) as u32);
        all.extend(encode(tag, &Tmessage::Walk { fid: 0, newfid, names }));
        all.extend(encode(tag + 1, &Tmessage::Read { fid: 1, offset, count }));
        all.extend(match random.below(3) {
            0 => encode(tag + 2, &Tmessage::Stat { fid: newfid }),
            1 => encode(tag + 2, &Tmessage::Open { fid: newfid, mode: 0 }),
            _ => encode(tag + 2, &Tmessage::Flush { oldtag: 5000 }),
        });
        all.extend(encode(tag + 3, &Tmessage::Clunk { fid: newfid }));
    }
    all
}

/// Waits until the pool's threads, which nobody joins, have seen that it is gone.
fn await_workers() {
    let start = Instant::now();
    let names = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("it is there");
        tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
    };
    while names().any(|name| ["worker\n", "watcher\n"].contains(&&*name)) {
        assert!(start.elapsed() < Duration::from_secs(10), "a worker stays");
        thread::sleep(Duration::from_millis(5));
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("it is there").count()
}

/// Marsaglia's xorshift: the same load for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

const CONNECTIONS: usize = 256;
const THREADS: u64 = 8;
const BURST: u16 = 64;
/// Bytes that the allocator's and the test's own bookkeeping may move by.
const SLACK: i64 = 64 * 1024;
