//! What a server takes: memory and time at rest, memory of what clients hold, and the time to a first answer.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use proto::{Dialect, NOTAG, Tmessage};
use tests::check::{ROOT, encode, pack};

use crate::binary::is_release;
use crate::daemon::{Daemon, PATIENCE, client};
use crate::home::Home;
use crate::tell;

#[test]
fn a_server_takes_little_at_rest_and_little_for_each_fid() {
    let home = Home::furnished();
    for number in 0..100 {
        home.write(&format!(".hermes/{number:04}.txt"), b"{}\n");
    }
    // The least of a few: how much of the program the kernel maps beside what is used differs from start to start.
    let idle = (0..STARTS).map(|_| Daemon::start(&mut home.command(&[])).memory_kib("VmRSS"));
    let idle = idle.min().expect("there is a start");
    let daemon = Daemon::start(&mut home.command(&[]));
    let mut client = client(&home.posted("agents"), Dialect::Plain);
    let walk = |first: u32, client: &mut tests::check::Client| {
        let mut spaces: Vec<Vec<u8>> = vec![Vec::new(); FIDS_AT_ONCE as usize];
        let walks = (first..).zip(&mut spaces).map(|(fid, space)| {
            let names = pack(&["hermes", &format!("{:04}.txt", fid % 100)], space);
            (fid as u16, Tmessage::Walk { fid: ROOT, newfid: fid, names })
        });
        let walks: Vec<_> = walks.collect();
        client.post(&walks);
        assert!(client.receive_all(walks.len()).iter().all(|reply| reply.refused().is_none()));
    };
    // The buffers of a connection are not what a fid takes.
    walk(1, &mut client);
    let before = daemon.memory_kib("VmRSS");
    for first in (1 + FIDS_AT_ONCE..=FIDS).step_by(FIDS_AT_ONCE as usize) {
        walk(first, &mut client);
    }
    let after = daemon.memory_kib("VmRSS");
    let each = (after - before) * 1024 / u64::from(FIDS - FIDS_AT_ONCE);
    tell(&format!("memory: {idle} KiB at rest, {after} KiB with {FIDS} fids walked, {each} bytes each"));
    assert!(each <= FID_BYTES_MAX, "{each} bytes for each fid");
    let most = if is_release() { IDLE_KIB_MAX } else { IDLE_DEBUG_KIB_MAX };
    assert!(idle <= most, "{idle} KiB at rest");
}

#[test]
fn a_server_nobody_asks_does_nothing() {
    let home = Home::furnished();
    for driver in ["auto", "blocking"] {
        let name = format!("quiet-{driver}");
        let daemon = Daemon::start(&mut home.command(&["--name", &name, "--driver", driver]));
        let mut client = client(&home.posted(&name), Dialect::Linux);
        assert_eq!(client.contents("hermes/logs/agent.log"), b"started\n");
        // It tidies up a while after the last request, and is then to sleep for good.
        let start = Instant::now();
        let mut before = switches(&daemon);
        loop {
            thread::sleep(Duration::from_secs(3));
            let now = switches(&daemon);
            if now == before {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{driver}: threads wake up again and again");
            before = now;
        }
        client.expect_alive();
        let start = Instant::now();
        while switches(&daemon) == before {
            assert!(start.elapsed() < PATIENCE, "{driver}: this does not count wake-ups");
        }
    }
}

/// How often the threads of a server have gone to sleep.
fn switches(daemon: &Daemon) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
    let of_task = |task: PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let lines = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        lines
            .filter(|(before, _)| before.is_empty())
            .map(|(_, count)| count.trim().parse::<u64>().unwrap())
            .sum::<u64>()
    };
    tasks.map(|task| of_task(task.unwrap().path())).sum()
}

/// From exec(2) to the first bytes of a version, beside the same of true(1), which does nothing.
#[test]
fn the_first_answer_comes_soon_after_the_start() {
    let home = Home::furnished();
    let version = encode(Dialect::Plain, NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" });
    let answer = || {
        let (theirs, mut ours) = UnixStream::pair().unwrap();
        ours.write_all(&version).unwrap();
        let mut command = home.command(&["--fd", "0"]);
        command.stdin(std::os::fd::OwnedFd::from(theirs)).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        ours.read_exact(&mut [0; 19]).unwrap();
        let taken = start.elapsed();
        drop(ours);
        child.wait().unwrap();
        taken
    };
    let nothing = || {
        let start = Instant::now();
        Command::new("/bin/true").status().unwrap();
        start.elapsed()
    };
    // The shortest of several runs: what the machine does beside this only ever adds.
    let (mut answered, mut did_nothing) = (Duration::MAX, Duration::MAX);
    let start = Instant::now();
    for run in 1.. {
        answered = answered.min(answer());
        did_nothing = did_nothing.min(nothing());
        let soon = answered < did_nothing + START_MAX;
        if run >= RUNS && (soon || start.elapsed() > PATIENCE) {
            break;
        }
    }
    tell(&format!(
        "start: first answer {answered:.1?} after the start, true(1) ends after {did_nothing:.1?}"
    ));
    assert!(answered < did_nothing + START_MAX, "{answered:?}");
}

const FIDS: u32 = 10_000;
/// As many as may be in flight.
const FIDS_AT_ONCE: u32 = 50;
const FID_BYTES_MAX: u64 = 128;
const STARTS: usize = 5;
const IDLE_KIB_MAX: u64 = 4096;
/// The same of one that is not optimised.
const IDLE_DEBUG_KIB_MAX: u64 = 8192;
/// Of each program whose start is measured, at least.
const RUNS: usize = 20;
const START_MAX: Duration = Duration::from_millis(10);
