//! Files that come and grow while the program reads them, and a home without any.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use proto::Dialect;

use crate::daemon::{Daemon, client};
use crate::home::Home;

#[test]
fn a_file_grows_under_cat() {
    let home = Home::empty();
    let below = ".claude/projects/-home-me/grows.jsonl";
    home.write(below, b"");
    let _daemon = Daemon::start(&mut home.command(&[]));
    let stop = AtomicBool::new(false);
    let outputs = thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(home.path(below)).unwrap();
            for number in 0_usize.. {
                // Now and then more than one read takes.
                let line = format!("{{\"n\":{number},\"text\":\"{}\"}}\n", "x".repeat(number % 20 * 4000));
                file.write_all(line.as_bytes()).unwrap();
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                // A reader is to catch up.
                thread::sleep(Duration::from_millis(1));
            }
        });
        let cat = |_| {
            let before = fs::metadata(home.path(below)).unwrap().len();
            let output = home.command(&["cat", "/claude/projects/-home-me/grows.jsonl"]).output().unwrap();
            assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
            assert!(output.stdout.len() as u64 >= before, "all that was there when it began");
            output.stdout
        };
        let outputs: Vec<_> = (0..10).map(cat).collect();
        stop.store(true, Ordering::SeqCst);
        outputs
    });
    let whole = fs::read(home.path(below)).unwrap();
    assert!(
        outputs.iter().all(|output| whole.starts_with(output)),
        "nothing else, in the order it was written"
    );
    assert!(outputs[0].len() < outputs[9].len());
}

#[test]
fn a_home_with_nothing_in_it_is_served_and_what_is_made_later_shows() {
    let home = Home::empty();
    let _daemon = Daemon::start(&mut home.command(&["--proc", "/nonexistent"]));
    let mut client = client(&home.posted("agents"), Dialect::Plain);
    let names = |client: &mut tests::check::Client, path: &str| {
        let names = client.names(path).into_iter().map(|name| String::from_utf8(name).unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    let top = names(&mut client, "");
    assert_eq!(top, "README active claude codex dsh hermes omp pid skills uptime");
    for (path, expected) in [
        ("claude", "projects"),
        ("claude/projects", ""),
        ("codex", "sessions"),
        ("codex/sessions", ""),
        ("omp", ""),
        ("hermes", ""),
        ("dsh", ""),
        ("skills", ""),
        ("active", "claude codex dsh hermes omp"),
    ] {
        assert_eq!(names(&mut client, path), expected, "{path}");
    }
    home.write(".claude/projects/-w/s.jsonl", b"{}\n");
    home.write(".claude/history.jsonl", b"h\n");
    home.write(".claude/skills/draw/SKILL.md", b"draw\n");
    home.write(".codex/sessions/2025/x.jsonl", b"{}\n");
    home.write(".omp/agent/a", b"a");
    home.write(".hermes/b", b"b");
    home.write(".dsh/c", b"c");
    for (path, expected) in [
        ("claude", "history projects skills"),
        ("claude/projects", "-w"),
        ("codex/sessions/2025", "x.jsonl"),
        ("skills", "claude"),
        ("skills/claude/draw", "SKILL.md"),
        ("omp", "a"),
        ("hermes", "b"),
        ("dsh", "c"),
    ] {
        assert_eq!(names(&mut client, path), expected, "{path}");
    }
    assert_eq!(client.contents("claude/history"), b"h\n");
    fs::remove_dir_all(home.path(".claude")).unwrap();
    assert_eq!(names(&mut client, "claude"), "projects");
    assert_eq!(names(&mut client, "claude/projects"), "");
}
