//! The server fuzzed from outside: peers that say anything, in any order, over several connections at once, while a client
//! that behaves gets its answers all along.
//!
//! What peers say is made from a seed that is told, so that a burst comes again; when the server hears it is not. Peers that
//! believe what they are told (`believer`) hold it to every law of a session. Others (`savage`) break the frames themselves.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proto::Dialect;
use tests::choices::{Choices, Seeded};
use tests::line::Line;
use tests::world::fill;

use crate::daemon::{Daemon, client, with_each_driver};
use crate::home::Home;
use crate::tell;
use crate::units::environment;
use believer::Believer;
use savage::Savage;

mod believer;
mod savage;

#[test]
fn whatever_peers_say_the_server_lives_and_answers_others() {
    with_each_driver(fuzz);
}

/// Talks to a server with one driver for as long as is wanted, and looks after it.
fn fuzz(driver: &str) {
    let (mut home, long) = (Home::furnished(), long());
    home.serve(".hermes/long", "/hermes/long", &long);
    let mut command = home.command(&["--driver", driver, "--tcp", "127.0.0.1:0"]);
    // A sanitizer's own wishes.
    command.envs(environment()).envs(std::env::vars().filter(|(name, _)| name.ends_with("SAN_OPTIONS")));
    let mut daemon = Daemon::start(&mut command);
    let doors = Doors { unix: home.posted("agents"), tcp: daemon.tcp("127.0.0.1") };
    let mut sane = client(&doors.unix, Dialect::Linux);
    // The bases are kept open from the first request on.
    for (path, content) in home.served() {
        assert!(sane.contents(path) == *content, "{path}");
    }
    sane.names("active/claude");
    let idle = daemon.descriptors().len();
    let (start, mut tally, mut warm) = (Instant::now(), Tally::default(), None);
    for seed in first_seed().. {
        burst(seed, &doors, &mut tally);
        let asked = Instant::now();
        assert_eq!(sane.contents("claude/history"), b"{\"display\":\"hello\"}\n", "seed {seed}");
        assert!(client(&doors.unix, Dialect::Unix).contents("hermes/long") == long, "seed {seed}");
        tally.slowest = tally.slowest.max(asked.elapsed());
        tally.bursts += 1;
        let part = start.elapsed().as_secs_f64() / how_long().as_secs_f64();
        if part > WARM && warm.is_none() {
            warm = Some(daemon.memory_kib("VmRSS"));
        }
        if part > 1.0 && warm.is_some() {
            break;
        }
    }
    daemon.await_descriptors(idle);
    let (warm, now) = (warm.expect("it was looked at"), daemon.memory_kib("VmRSS"));
    tell(&format!("fuzz from outside, {driver}: {tally}, {warm} KiB after a while, {now} KiB at the end"));
    assert!(tally.slowest < ANSWER_MAX, "{:?}", tally.slowest);
    assert!(now < warm + GROWTH_KIB_MAX, "{warm} KiB, then {now} KiB");
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
    // A sanitizer has its say at the end.
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
}

/// Where the server can be reached.
struct Doors {
    unix: PathBuf,
    tcp: SocketAddr,
}

impl Doors {
    fn enter(&self, choices: &mut Seeded) -> Line {
        if choices.below(4) == 0 { Line::tcp(self.tcp) } else { Line::unix(&self.unix) }
    }
}

/// A few peers by turns, each with a script of its own.
fn burst(seed: u64, doors: &Doors, tally: &mut Tally) {
    let mut choices = Seeded::new(seed);
    let mut peers: Vec<Peer> = Vec::new();
    let mut left = TURNS;
    while left > 0 || !peers.is_empty() {
        if left > 0 && (peers.is_empty() || peers.len() < PEERS && choices.below(3) == 0) {
            let (line, script) = (doors.enter(&mut choices), script(&mut choices));
            tally.connections += 1;
            peers.push(match choices.below(3) {
                0 => Peer::Savage(Savage::new(line, script)),
                _ => Peer::Believer(Believer::new(line, script)),
            });
        }
        let at = choices.below(peers.len() as u32) as usize;
        let goes_on = match &mut peers[at] {
            Peer::Believer(peer) => peer.turn(),
            Peer::Savage(peer) => peer.turn(&mut choices),
        };
        left = left.saturating_sub(1);
        if !goes_on {
            match peers.swap_remove(at) {
                Peer::Believer(peer) => tally.add(peer.end(seed)),
                Peer::Savage(peer) => tally.add(peer.end()),
            }
        }
    }
}

enum Peer {
    Believer(Believer),
    Savage(Savage),
}

/// What a peer chooses by: evenly mixed, or few bytes again and again, which leads deeper into the same.
fn script(choices: &mut Seeded) -> Vec<u8> {
    let mut bytes = vec![0; 1 + choices.below(SCRIPT_BYTES_MAX) as usize];
    fill(choices.word(), 0, &mut bytes);
    if choices.below(3) == 0 {
        let few: Vec<u8> = bytes.iter().take(8).copied().collect();
        bytes.iter_mut().for_each(|byte| *byte = few[usize::from(*byte) % few.len()]);
    }
    bytes
}

/// What was done.
#[derive(Default)]
struct Tally {
    bursts: u64,
    connections: u64,
    sent: u64,
    answered: u64,
    /// Connections that the server has closed.
    closed: u64,
    /// How long the client that behaves has waited, at most.
    slowest: Duration,
}

/// What one peer has done: frames it sent, replies it got, and whether the server has closed.
struct Done {
    sent: u64,
    answered: u64,
    closed: bool,
}

impl Tally {
    fn add(&mut self, done: Done) {
        self.sent += done.sent;
        self.answered += done.answered;
        self.closed += u64::from(done.closed);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { bursts, connections, sent, answered, closed, slowest } = self;
        write!(
            out,
            "{bursts} bursts, {connections} connections, {sent} frames sent, {answered} replies checked, {closed} \
             closed by the server; the client that behaves waited {slowest:.1?} at most"
        )
    }
}

/// The file that the client that behaves reads, in several replies.
fn long() -> Vec<u8> {
    let mut bytes = vec![0; 150_000];
    fill(7, 0, &mut bytes);
    bytes
}

fn how_long() -> Duration {
    Duration::from_secs(number("NINEAGENTS_OUTSIDE_FUZZ_SECS").unwrap_or(SECONDS))
}

fn first_seed() -> u64 {
    number("NINEAGENTS_OUTSIDE_FUZZ_SEED").unwrap_or(1)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// What walks go along: places that are there, that may not be, and that cannot be.
const PATHS: &[&[u8]] = &[
    b"hermes/long",
    b"hermes/long",
    b"hermes",
    b"..",
    b"../..",
    b"long",
    b"claude/projects/-home-me-shop",
    b"claude/projects/-home-me-shop/5a1c.jsonl",
    b"5a1c.jsonl",
    b"skills/claude/draw/SKILL.md",
    b"README",
    b"pid",
    b"active",
    b"active/claude",
    b"active/claude/1/chat/00000000-user",
    b"hermes/.env",
    b"hermes/long/x",
    b"codex/sessions/2025/01/31/../../x",
    b"a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p",
    b"a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q",
    b"",
    b".",
    b"\xff\xfe",
    b"a\0b",
];

/// Peers at once.
const PEERS: usize = 12;
/// Turns in which peers may come.
const TURNS: u32 = 400;
const SCRIPT_BYTES_MAX: u32 = 600;
/// How long it goes on if nobody says otherwise.
const SECONDS: u64 = 4;
/// The part of the time after which memory is not to grow.
const WARM: f64 = 0.4;
/// What peers that came and went may leave: arenas that differ from moment to moment, no more with time.
const GROWTH_KIB_MAX: u64 = 16 * 1024;
/// How long anybody else may wait on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(10);
