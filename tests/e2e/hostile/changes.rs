//! Names that are another kind of thing from one moment to the next, while clients list, ask and read them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proto::{Dialect, QTDIR};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tests::check::{Answer, Client};
use tests::choices::{Choices, Seeded};

use super::house::{CANARY, INNOCENT};
use super::listed;
use crate::daemon::{Daemon, client};
use crate::home::Home;
use crate::tell;

#[test]
fn names_that_change_their_kind_while_they_are_read_show_one_of_them_or_nothing() {
    let home = Home::empty();
    home.write("outside/f", CANARY);
    home.write(".hermes/change/stays", INNOCENT);
    let daemon = Daemon::start(&mut home.command(&["--proc", "/nonexistent"]));
    client(&home.posted("agents"), Dialect::Plain).contents("hermes/change/stays");
    let before = daemon.descriptors().len();
    let done = AtomicBool::new(false);
    let (changes, tallies) = thread::scope(|scope| {
        let look = |dialect| {
            let (home, done) = (&home, &done);
            scope.spawn(move || look(&mut client(&home.posted("agents"), dialect), done))
        };
        let readers = Dialect::ALL.map(look);
        let changes = change(&home);
        done.store(true, Ordering::SeqCst);
        (changes, readers.map(|reader| reader.join().expect("a reader")))
    });
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for (what, count) in tallies.into_iter().flatten() {
        *all.entry(what).or_default() += count;
    }
    tell(&format!("hostile home: {changes} changes of kind, and readers met {all:?}"));
    // Each of them was met: files that opened, directories that were entered, pipes and databases that were not opened.
    for met in ["file", "directory", "errno 1", "errno 2", "errno 13"] {
        assert!(all.contains_key(met) || met == "errno 13" && rustix::process::geteuid().is_root(), "{met}");
    }
    daemon.await_descriptors(before);
}

/// Makes one thing out of another, for a while; yields how often.
fn change(home: &Home) -> u64 {
    let (mut choices, start, mut changes) = (Seeded::new(1), Instant::now(), 0);
    while start.elapsed() < LONG {
        let at = home.path(&format!(".hermes/change/{}", choices.below(NAMES)));
        let _ = fs::remove_file(&at).or_else(|_| fs::remove_dir_all(&at));
        make(home, &at, choices.below(8));
        changes += 1;
    }
    changes
}

/// Makes the thing of a number.
fn make(home: &Home, at: &Path, kind: u32) {
    match kind {
        0 => fs::write(at, INNOCENT).expect("a file"),
        1 => {
            fs::create_dir(at).expect("a directory");
            fs::write(at.join("f"), INNOCENT).expect("a file");
        }
        2 => mknodat(CWD, at, FileType::Fifo, Mode::RWXU, 0).expect("a pipe"),
        3 => mknodat(CWD, at, FileType::Socket, Mode::RWXU, 0).expect("a socket"),
        4 => symlink(home.path("outside"), at).expect("a link"),
        5 => symlink(home.path("outside/f"), at).expect("a link"),
        6 => fs::write(at, [b"SQLite format 3\0", CANARY].concat()).expect("a file"),
        _ => {
            // Made where it does not show, so that it never shows open.
            let aside = home.path("aside");
            fs::write(&aside, INNOCENT).expect("a file");
            fs::set_permissions(&aside, fs::Permissions::from_mode(0o000)).expect("it is ours");
            fs::rename(&aside, at).expect("a rename");
        }
    }
}

/// Lists and reads everything, again and again; yields what was met how often.
fn look(client: &mut Client, done: &AtomicBool) -> BTreeMap<String, u64> {
    let mut met: BTreeMap<String, u64> = BTreeMap::new();
    while !done.load(Ordering::SeqCst) {
        let fid = client.open_path("hermes/change");
        let entries = listed(client, fid).expect("the directory stays");
        client.clunk(fid).expect("a bound fid is clunked");
        assert!(entries.iter().any(|entry| entry.name == b"stays"), "what does not change is listed");
        for entry in entries {
            assert!([0, QTDIR].contains(&entry.qid.kind), "{entry:?}");
            let path = [b"hermes/change/", &entry.name[..]].concat();
            for path in [&path[..], &[&path, &b"/f"[..]].concat()] {
                let what = match client.try_go(path) {
                    Ok(fid) => {
                        let what = read(client, fid);
                        client.clunk(fid).expect("a bound fid is clunked");
                        what
                    }
                    Err(refused) => Err(refused),
                };
                let what = what.unwrap_or_else(|refused| match (refused.errno, refused.words) {
                    (Some(errno), _) => format!("errno {errno}"),
                    (None, words) => words.unwrap_or_else(|| "part of the way".to_owned()),
                });
                *met.entry(what).or_default() += 1;
            }
        }
    }
    met
}

/// Whatever it is by now: its kind, if it was read.
fn read(client: &mut Client, fid: u32) -> Answer<String> {
    let info = client.stat(fid)?;
    client.open(fid)?;
    if info.dir {
        let entries = listed(client, fid)?;
        // It may be on its way into or out of the world.
        assert!(entries.iter().all(|entry| entry.name == b"f"), "{entries:?}");
        return Ok("directory".to_owned());
    }
    let bytes = client.read(fid, 0, 8192)?;
    assert!(INNOCENT.starts_with(&bytes), "{}", bytes.escape_ascii());
    Ok("file".to_owned())
}

const LONG: Duration = Duration::from_secs(2);
const NAMES: u32 = 24;
