//! Directories that are too many, or too deep: listed whole, or refused, and in no time that others would notice.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Instant;

use proto::Dialect;
use rustix::fs::{Mode, OFlags, mkdirat, openat};

use super::{TIME_MAX, listed};
use crate::daemon::{Daemon, client};
use crate::home::Home;
use crate::tell;

#[test]
fn a_hundred_thousand_entries_are_listed_whole_and_hide_what_is_to_be_hidden() {
    let home = Home::empty();
    let crowd = home.path(".hermes/crowd");
    fs::create_dir_all(&crowd).unwrap();
    let names = (0..CROWD).map(|number| match number % 1000 {
        0 => format!("{number:06}.token"),
        _ => format!("{number:06}.jsonl"),
    });
    let names: Vec<_> = names.collect();
    names.iter().for_each(|name| drop(File::create(crowd.join(name)).unwrap()));
    let shown: Vec<_> = names.iter().filter(|name| name.ends_with(".jsonl")).collect();
    let start = Instant::now();
    let daemon = Daemon::start(&mut home.command(&[]));
    for dialect in [Dialect::Unix, Dialect::Linux] {
        let mut client = client(&home.posted("agents"), dialect);
        let fid = client.open_path("hermes/crowd");
        let entries = listed(&mut client, fid).unwrap();
        assert!(entries.iter().map(|entry| &entry.name[..]).eq(shown.iter().map(|name| name.as_bytes())));
        assert!(client.try_go("hermes/crowd/001000.token").is_err());
    }
    let taken = start.elapsed();
    tell(&format!(
        "hostile home: {} of {CROWD} entries listed in two dialects in {taken:.1?}, {} KiB at most",
        shown.len(),
        daemon.memory_kib("VmHWM")
    ));
    assert!(taken < TIME_MAX, "{taken:?}");
}

#[test]
fn a_tree_deeper_than_any_path_is_served_as_deep_as_a_path_reaches() {
    let home = Home::empty();
    fs::create_dir_all(home.path(".hermes")).unwrap();
    let base = OwnedFd::from(File::open(home.path(".hermes")).unwrap());
    let (mut at, directory) = (base.try_clone().unwrap(), OFlags::RDONLY | OFlags::DIRECTORY);
    for _ in 0..DEPTH {
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = openat(&at, "d", directory, Mode::empty()).unwrap();
    }
    let start = Instant::now();
    let _daemon = Daemon::start(&mut home.command(&[]));
    let mut client = client(&home.posted("agents"), Dialect::Unix);
    let mut depth = NEAR;
    let mut fid = client.go(format!("hermes{}", "/d".repeat(depth)));
    loop {
        let (open, next) = (client.fresh_fid(), client.fresh_fid());
        client.walk::<&str>(fid, open, &[]).unwrap();
        client.open(open).unwrap();
        let entries = listed(&mut client, open).unwrap();
        client.clunk(open).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| &entry.name[..]).collect();
        let reached = client.walk(fid, next, &["d"]);
        // What is listed resolves, however deep, and what does not resolve is not listed.
        assert_eq!(names == [b"d"], reached.is_ok(), "{depth} deep: {names:?}, and {reached:?}");
        if reached.is_err() {
            break;
        }
        client.clunk(fid).unwrap();
        (fid, depth) = (next, depth + 1);
    }
    tell(&format!("hostile home: {depth} of {DEPTH} directories deep in {:.1?}", start.elapsed()));
    // "d/d/…/d" of that depth is as long a path as the kernel takes at once.
    assert_eq!(2 * depth - 1, PATH_BYTES_MAX);
    assert!(start.elapsed() < TIME_MAX);
    // Deeper than the standard library removes.
    let removed = Command::new("rm").arg("-rf").arg(home.path(".hermes")).status().unwrap();
    assert!(removed.success());
}

const CROWD: usize = 100_000;
const DEPTH: usize = 2200;
/// A depth that is still reached.
const NEAR: usize = 2000;
/// `PATH_MAX` of `<linux/limits.h>` counts the zero at the end, too.
const PATH_BYTES_MAX: usize = 4096 - 1;
