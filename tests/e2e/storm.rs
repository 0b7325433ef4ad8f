//! Peers that mean harm or know no better, many at once: memory stays bounded, others are served, and the log tells.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proto::{Dialect, NOFID, NOTAG, OREAD, Tmessage};
use tests::check::{ROOT, encode, pack};
use tests::line::Line;
use tests::rig::{Received, Wire};
use tests::world::fill;

use crate::binary::given;
use crate::daemon::{Daemon, PATIENCE, client, with_each_driver};
use crate::home::Home;
use crate::tell;
use crate::units::environment;

#[test]
fn noise_on_a_thousand_connections_hurts_nobody() {
    storm("noise", "", |_, posted| {
        for seed in 0..1000 {
            let mut line = Line::unix(posted);
            if seed % 2 == 0 {
                line.send(&version(64 * 1024), SHORT);
            }
            let mut noise = vec![0; 64 * 1024];
            fill(seed, 0, &mut noise);
            // What is not taken was refused.
            line.send(&noise, SHORT);
            while let Received::Bytes(_) = line.receive(Duration::from_millis(1)) {}
        }
    });
}

#[test]
fn peers_that_stall_and_peers_that_do_not_read_are_let_go_in_time() {
    storm("stalled and deaf peers", "", |daemon, posted| {
        let half = |cut| {
            let mut line = Line::unix(posted);
            line.send(&version(8192)[..cut], SHORT);
            line
        };
        // From nothing to all but the last byte.
        let stalled: Vec<_> = (0..version(8192).len()).map(half).collect();
        let deaf: Vec<_> = (0..40).map(|_| deaf(posted)).collect();
        let start = Instant::now();
        for mut line in stalled {
            assert_eq!(line.receive(HANDSHAKE + SLACK), Received::Closed, "no version, no connection");
        }
        assert!(start.elapsed() > HANDSHAKE / 2, "a peer has time");
        daemon.await_line("closed a connection that agreed on no version: the limit is 10 s");
        daemon.await_lines("closed a connection that left its replies unread: the limit is 30 s", deaf.len());
        for mut line in deaf {
            // Behind what was sent before.
            while let Received::Bytes(_) = line.receive(PATIENCE) {}
            assert_eq!(line.receive(PATIENCE), Received::Closed);
        }
    });
}

#[test]
fn connections_beyond_the_limit_are_closed_and_told_of() {
    storm("300 connections", "", |daemon, posted| {
        let mut crowd: Vec<_> = (0..300).map(|_| Line::unix(posted)).collect();
        daemon.await_line("refused a connection: the limit is 256 connections");
        // The one beside counts, too.
        assert_eq!(crowd.iter_mut().map(greet).filter(|served| *served).count(), 256 - 1);
    });
}

#[test]
fn a_server_without_descriptors_says_so_and_recovers() {
    storm("48 descriptors", "ulimit -n 48;", |daemon, posted| {
        let mut crowd: Vec<_> = (0..100).map(|_| Line::unix(posted)).collect();
        daemon.await_line("refused a connection");
        let served = crowd.iter_mut().map(greet).filter(|served| *served).count();
        assert!((1..48).contains(&served), "{served} with 48 descriptors");
    });
}

/// Each peer sends all of a large request but its end, by turns, so that nothing is whole that one of them holds. One that is
/// slow, but gets there in time, is answered.
#[test]
fn requests_that_never_end_are_paid_for_and_let_go_in_time() {
    storm("250 requests without an end", "", |daemon, posted| {
        let mut slow = Line::unix(posted);
        assert!(greet_with(&mut slow, 1 << 20));
        let mut crowd: Vec<_> = (0..250).map(|_| Line::unix(posted)).collect();
        assert!(crowd.iter_mut().all(|line| greet_with(line, 1 << 20)));
        let mut request = vec![0; 1 << 20];
        request[..7].copy_from_slice(b"\0\0\x10\0\x76\x01\0");
        let start = Instant::now();
        let (most, _) = request.split_at(request.len() - 1);
        for piece in most.chunks(1 << 16) {
            for line in &mut crowd {
                line.send(piece, SHORT);
            }
        }
        // Whoever has no place for a request says so, and goes on.
        let refused = |line: &mut Line| {
            let Received::Bytes(bytes) = line.receive(Duration::from_millis(1)) else { return false };
            assert!(String::from_utf8_lossy(&bytes).contains("the limit is 32 MiB"));
            true
        };
        let refused = crowd.iter_mut().filter_map(|line| refused(line).then_some(())).count();
        assert!((200..250).contains(&refused), "{refused} are refused");
        let clunk = encode(Dialect::Plain, 1, &Tmessage::Clunk { fid: 7 });
        for piece in clunk.chunks(1) {
            slow.send(piece, SHORT);
            thread::sleep(Duration::from_secs(2));
        }
        assert!(matches!(slow.receive(PATIENCE), Received::Bytes(_)), "in time is in time");
        daemon.await_lines("closed a connection whose request had no end: the limit is 30 s", crowd.len());
        assert!(start.elapsed() > UNREAD / 2, "a peer has time");
        for mut line in crowd {
            assert_eq!(line.receive(PATIENCE), Received::Closed);
        }
    });
}

/// One request of each peer is answered at a time, whatever the others do; and all those answers together are paid for, too.
#[test]
fn a_crowd_that_asks_for_large_things_and_does_not_read_is_paid_for() {
    storm("250 deaf peers", "", |daemon, posted| {
        let mut crowd: Vec<_> = (0..250).map(|_| Line::unix(posted)).collect();
        for line in &mut crowd {
            line.send(&reads(1 << 20, 200, 1_000_000), SHORT);
        }
        daemon
            .await_lines("closed a connection that left its replies unread: the limit is 30 s", crowd.len());
    });
}

/// Does something to a server of each driver, both at once, which a shell starts after it did something `first`: memory stays
/// bounded, another client is served all the while, and a new one afterwards.
fn storm(what: &str, first: &str, act: impl Fn(&Daemon, &Path) + Sync) {
    let one = |driver: &str| {
        let mut home = Home::furnished();
        home.serve(".hermes/long", "/hermes/long", &vec![b'x'; 1 << 20]);
        let posted = home.posted("agents");
        let mut command = home.command(&["--driver", driver]);
        let daemon = Daemon::start(&mut given(command.envs(environment()), first));
        let idle = daemon.memory_kib("VmRSS");
        let slowest = beside(&posted, !first.is_empty(), || act(&daemon, &posted));
        let (most, now) = (daemon.memory_kib("VmHWM"), daemon.memory_kib("VmRSS"));
        tell(&format!(
            "storm, {what}, {driver}: {idle} KiB before, {most} KiB at most, {now} KiB after; others waited {slowest:.1?} \
             at most"
        ));
        assert!(most < idle + GROWTH_KIB_MAX, "{most} KiB");
        assert!(now < idle + LEFT_KIB_MAX, "{now} KiB");
        assert!(slowest < SLACK, "others waited {slowest:?}");
        // The places that are given up by now are given out again.
        let start = Instant::now();
        while !greet(&mut Line::unix(&posted)) {
            assert!(start.elapsed() < PATIENCE, "it does not recover");
        }
        assert_eq!(client(&posted, Dialect::Plain).contents("hermes/logs/agent.log"), b"started\n");
    };
    with_each_driver(one);
}

/// Acts while another client goes on as always; yields how long that one had to wait at most. Where descriptors are `scarce`
/// its reads may be refused for that, and nowhere else.
fn beside(socket: &Path, scarce: bool, act: impl FnOnce()) -> Duration {
    let mut bystander = client(socket, Dialect::Linux);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let work = scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            while !done.load(Ordering::SeqCst) {
                let start = Instant::now();
                // Without a free descriptor a read may be refused, in words.
                if let Ok(fid) = bystander.try_go("hermes/logs/agent.log") {
                    if bystander.open(fid).is_ok() {
                        match bystander.read(fid, 0, 100) {
                            Ok(bytes) => assert_eq!(bytes, b"started\n"),
                            // Whether the file still is the one of that name cannot be asked without a descriptor either.
                            Err(refused) => assert_eq!((scarce, refused.errno), (true, Some(EMFILE))),
                        }
                    }
                    bystander.clunk(fid).expect("a bound fid is clunked");
                }
                slowest = slowest.max(start.elapsed());
                thread::sleep(Duration::from_millis(1));
            }
            slowest
        });
        // Whatever comes of it, the other is to end.
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        done.store(true, Ordering::SeqCst);
        let slowest = work.join().expect("it is served");
        acted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        slowest
    })
}

/// A client that asks for much and reads none of it.
fn deaf(socket: &Path) -> Line {
    let mut line = Line::unix(socket);
    line.send(&reads(256 * 1024, 200, 250_000), SHORT);
    line
}

/// What a client sends that agrees on a version and reads so much of a file, so many times.
fn reads(msize: u32, times: u16, count: u32) -> Vec<u8> {
    let mut space = Vec::new();
    let names = pack(&["hermes", "long"], &mut space);
    let requests = [
        Tmessage::Attach { fid: ROOT, afid: NOFID, uname: b"", aname: b"", n_uname: None },
        Tmessage::Walk { fid: ROOT, newfid: 1, names },
        Tmessage::Open { fid: 1, mode: OREAD },
    ];
    let reads = (0..times).map(|_| Tmessage::Read { fid: 1, offset: 0, count });
    let requests = (1..).zip(requests.into_iter().chain(reads));
    let bytes = requests.flat_map(|(tag, request)| encode(Dialect::Plain, tag, &request));
    version(msize).into_iter().chain(bytes).collect()
}

/// Agrees on a version; `false` if the server has closed.
fn greet(line: &mut Line) -> bool {
    greet_with(line, 8192)
}

fn greet_with(line: &mut Line, msize: u32) -> bool {
    line.send(&version(msize), SHORT);
    matches!(line.receive(PATIENCE), Received::Bytes(_))
}

fn version(msize: u32) -> Vec<u8> {
    encode(Dialect::Plain, NOTAG, &Tmessage::Version { msize, version: b"9P2000" })
}

/// How long a peer is asked to take what it may not want.
const SHORT: Duration = Duration::from_millis(500);
/// How long the server waits for a version.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the server waits for the rest of a request, and for replies to be read.
const UNREAD: Duration = Duration::from_secs(30);
/// What a busy machine may add.
const SLACK: Duration = Duration::from_secs(20);
/// What requests and replies of all connections may take together, and what each of 256 has for itself: a stack, buffers, and
/// one small thing at a time.
const GROWTH_KIB_MAX: u64 = 64 * 1024 + 256 * 96;
/// What may be left of 256 that are just going.
const LEFT_KIB_MAX: u64 = 256 * 96;
/// "Too many open files", as 9P2000.L has it.
const EMFILE: u32 = 24;
