//! What a server takes: memory at rest, memory of what clients hold, and the time to a first answer.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proto::{Dialect, NOTAG, Tmessage};
use tests::check::{ROOT, encode, pack};

use crate::binary::is_release;
use crate::daemon::{Daemon, client};
use crate::home::Home;
use crate::tell;

#[test]
fn a_server_takes_little_at_rest_and_little_for_each_fid() {
    let home = Home::furnished();
    for number in 0..100 {
        home.write(&format!(".hermes/{number:04}.txt"), b"{}\n");
    }
    let daemon = Daemon::start(&mut home.command(&[]));
    let idle = daemon.memory_kib("VmRSS");
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
    let most = if is_release() { IDLE_KIB_MAX } else { 2 * IDLE_KIB_MAX };
    assert!(idle <= most, "{idle} KiB at rest");
}

/// From exec(2) to the first bytes of a version, beside the same of true(1), which does nothing.
#[test]
fn the_first_answer_comes_soon_after_the_start() {
    let home = Home::furnished();
    let version = encode(Dialect::Plain, NOTAG, &Tmessage::Version { msize: 8192, version: b"9P2000" });
    let answer = shortest(|| {
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
    });
    let nothing = shortest(|| {
        let start = Instant::now();
        Command::new("/bin/true").status().unwrap();
        start.elapsed()
    });
    tell(&format!("start: first answer {answer:?} after the start, true(1) ends after {nothing:?}"));
    assert!(answer < nothing + START_MAX, "{answer:?}");
}

/// The shortest of several runs: what the machine does beside this only ever adds.
fn shortest(run: impl Fn() -> Duration) -> Duration {
    (0..20).map(|_| run()).min().expect("more than none")
}

const FIDS: u32 = 10_000;
/// As many as may be in flight.
const FIDS_AT_ONCE: u32 = 50;
const FID_BYTES_MAX: u64 = 128;
const IDLE_KIB_MAX: u64 = 4096;
const START_MAX: Duration = Duration::from_millis(10);
