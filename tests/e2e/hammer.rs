//! Directories and files that are exchanged for links while eight clients read: what comes is from inside, or nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proto::Dialect;
use rustix::fs::{RenameFlags, renameat_with};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use tests::check::{BULK, Client};

use crate::daemon::{Daemon, client};
use crate::home::Home;
use crate::tell;

#[test]
fn nothing_from_outside_is_read_while_links_are_swapped_in() {
    hammer("openat2", Daemon::start);
}

#[test]
fn nothing_from_outside_is_read_where_openat2_is_missing() {
    hammer("name by name", |command| {
        // The filter is the thread's, and what it starts has it too.
        let start = || {
            seccompiler::apply_filter(&no_openat2()).expect("a filter");
            Daemon::start(command)
        };
        thread::scope(|scope| scope.spawn(start).join().expect("a server"))
    });
}

/// What readers found.
#[derive(Debug, Default)]
struct Tally {
    inside: u64,
    refused: BTreeMap<String, u64>,
    foreign: Vec<String>,
}

fn hammer(resolving: &str, start: impl FnOnce(&mut std::process::Command) -> Daemon) {
    let home = Home::empty();
    furnish(&home);
    let daemon = start(&mut home.command(&[]));
    daemon.await_line(&format!("; {resolving}"));
    let socket = home.posted("agents");
    let stop = AtomicBool::new(false);
    let (swaps, taken, seen, tallies) = thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|at| {
                let (socket, stop) = (&socket, &stop);
                scope.spawn(move || read(socket, Dialect::ALL[at % Dialect::ALL.len()], stop))
            })
            .collect();
        let careless = scope.spawn(|| follow(&home, &stop));
        let (swaps, taken) = swap(&home);
        stop.store(true, Ordering::SeqCst);
        let tallies: Vec<_> = readers.into_iter().map(|reader| reader.join().expect("a reader")).collect();
        (swaps, taken, careless.join().expect("a reader"), tallies)
    });
    let inside: u64 = tallies.iter().map(|tally| tally.inside).sum();
    let refused: u64 = tallies.iter().flat_map(|tally| tally.refused.values()).sum();
    let foreign: Vec<_> = tallies.iter().flat_map(|tally| &tally.foreign).collect();
    tell(&format!(
        "hammer, {resolving}: {swaps} swaps in {taken:.1?}, {READERS} readers: {inside} answers from inside, \
         {refused} refused, {} from outside",
        foreign.len()
    ));
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(seen > 0, "a reader that follows links was never led out, so this shows nothing");
    assert!(inside > 100 && refused > 100, "both sides of the race were met");
    for words in tallies.iter().flat_map(|tally| tally.refused.keys()) {
        assert!(EXPECTED.contains(&words.as_str()), "{words}");
    }
}

/// Makes `.hermes/p` with a directory and a file, beside links that lead out to namesakes.
fn furnish(home: &Home) {
    let outside = home.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), [OUTSIDE; 5000]).unwrap();
    fs::write(outside.join("foreign"), "").unwrap();
    home.write(".hermes/p/dir/f", &[INSIDE; 3000]);
    home.write(".hermes/p/file", &[INSIDE; 3000]);
    symlink(&outside, home.path(".hermes/p/dir-link")).unwrap();
    symlink(outside.join("f"), home.path(".hermes/p/file-link")).unwrap();
    // A relative link, which stays beneath the base and still may not be followed.
    home.write(".hermes/q/f", &[OUTSIDE; 5000]);
    symlink("../q", home.path(".hermes/p/near-link")).unwrap();
}

/// Exchanges until there was enough of it.
fn swap(home: &Home) -> (u64, Duration) {
    let seconds =
        std::env::var("NINEAGENTS_HAMMER_SECS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let parent = File::open(home.path(".hermes/p")).unwrap();
    let (start, mut swaps) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(seconds) || swaps < seconds * SWAPS_PER_SECOND {
        // Twice each, so that everything is as it was.
        for (name, link) in [("dir", "dir-link"), ("file", "file-link"), ("dir", "near-link")] {
            for _ in 0..2 {
                renameat_with(&parent, name, &parent, link, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
        }
        assert!(start.elapsed() < Duration::from_secs(20 * seconds), "only {swaps} swaps");
    }
    (swaps, start.elapsed())
}

/// Goes through the swapped names by every request there is, until told to stop.
fn read(socket: &Path, dialect: Dialect, stop: &AtomicBool) -> Tally {
    let mut client = client(socket, dialect);
    let mut tally = Tally::default();
    while !stop.load(Ordering::SeqCst) {
        for path in ["hermes/p/dir/f", "hermes/p/file", "hermes/p/dir/foreign", "hermes/p/dir"] {
            match client.try_go(path) {
                Err(refused) => tally.refuse(refused),
                Ok(fid) => {
                    look(&mut client, fid, path, &mut tally);
                    client.clunk(fid).expect("a bound fid is clunked");
                }
            }
        }
    }
    tally
}

/// Reads the same as a program that follows links; yields how often that led it out.
fn follow(home: &Home, stop: &AtomicBool) -> u64 {
    let mut seen = 0;
    while !stop.load(Ordering::SeqCst) {
        for path in [".hermes/p/dir/f", ".hermes/p/file"] {
            seen += u64::from(fs::read(home.path(path)).is_ok_and(|bytes| bytes.contains(&OUTSIDE)));
        }
        thread::sleep(Duration::from_millis(1));
    }
    seen
}

fn look(client: &mut Client, fid: u32, path: &str, tally: &mut Tally) {
    if path.ends_with("foreign") {
        tally.foreign.push(path.to_owned());
    }
    match client.stat(fid) {
        Ok(stat) if [0, 3000].contains(&stat.length) => tally.inside += 1,
        Ok(stat) => tally.foreign.push(format!("{path}: {stat:?}")),
        Err(refused) => tally.refuse(refused),
    }
    if let Err(refused) = client.open(fid) {
        return tally.refuse(refused);
    }
    if path.ends_with("dir") {
        match client.list(fid, 0, BULK) {
            Ok((entries, _)) if entries.iter().all(|entry| entry.name == b"f") => tally.inside += 1,
            Ok((entries, _)) => tally.foreign.push(format!("{path}: {entries:?}")),
            Err(refused) => tally.refuse(refused),
        }
        return;
    }
    for offset in [0, 1500, 3000] {
        match client.read(fid, offset, 4000) {
            Ok(bytes) if bytes.iter().all(|byte| *byte == INSIDE) => tally.inside += 1,
            Ok(bytes) => tally.foreign.push(format!("{path}: {} bytes", bytes.len())),
            Err(refused) => tally.refuse(refused),
        }
    }
}

impl Tally {
    fn refuse(&mut self, refused: tests::check::Refused) {
        // A walk that goes part of the way gives no reason.
        let words = refused.words.or_else(|| refused.errno.map(|errno| errno.to_string()));
        *self.refused.entry(words.unwrap_or_else(|| "part of the way".to_owned())).or_default() += 1;
    }
}

/// Lets openat2(2) fail with ENOSYS, and everything else be.
fn no_openat2() -> BpfProgram {
    let arch = std::env::consts::ARCH.try_into().expect("an architecture that has filters");
    let rules = [(OPENAT2, Vec::new())].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(ENOSYS), arch);
    filter.and_then(TryInto::try_into).expect("a filter that makes sense")
}

const READERS: usize = 8;
const SWAPS_PER_SECOND: u64 = 10_000;
const INSIDE: u8 = b'i';
const OUTSIDE: u8 = b'o';
/// What a swapped name may be refused with, in words or numbers.
const EXPECTED: [&str; 3] = ["file does not exist", "2", "part of the way"];
/// Its number on every architecture that Linux has had since it exists.
const OPENAT2: i64 = 437;
const ENOSYS: u32 = 38;
