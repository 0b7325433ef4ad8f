//! Open and read.

use backend::host::{Errno, Kind};
use backend::{Open, Tree};
use engine::port::{Ask, Change, Mode, Room};
use proto::Refusal;

use crate::client::{Client, READ};
use crate::machine::{Machine, START};

const NOTES: &str = "hermes/notes.md";
const DATABASE: &[u8] = b"SQLite format 3\0 and the rest of it";

fn with_notes(text: &str) -> Machine {
    let machine = Machine::new();
    machine.file(NOTES, text);
    machine
}

fn calls(machine: &Machine) -> Vec<&'static str> {
    std::mem::take(&mut machine.world().calls)
}

#[test]
fn files_are_read_at_any_offset_and_end_where_they_end() {
    let machine = with_notes("hello, world\n");
    let mut client = Client::new(&machine);
    assert_eq!(client.cat(NOTES).unwrap(), "hello, world\n");
    let open = client.open_path(NOTES).unwrap();
    assert_eq!(client.read(&open, 7, 5).unwrap(), b"world");
    assert_eq!(client.read(&open, 7, 100).unwrap(), b"world\n");
    for offset in [13, 14, 1 << 40, (1 << 63) - 1] {
        assert!(client.read(&open, offset, 100).unwrap().is_empty());
    }
    assert!(client.read(&open, 0, 0).unwrap().is_empty());
}

#[test]
fn a_transcript_grows_under_its_reader() {
    let machine = with_notes("one\n");
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    assert_eq!(client.read(&open, 0, 100).unwrap(), b"one\n");
    machine.append(NOTES, b"two\n");
    assert_eq!(client.read(&open, 4, 100).unwrap(), b"two\n");
    machine.write(NOTES, Vec::clear);
    assert!(client.read(&open, 0, 100).unwrap().is_empty());
}

#[test]
fn a_full_read_of_a_pinned_file_is_one_call() {
    let machine = with_notes(&"x".repeat(1000));
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    calls(&machine);
    for offset in [0, 100, 200] {
        client.read(&open, offset, 100).unwrap();
    }
    assert_eq!(calls(&machine), ["read"; 3]);
    assert_eq!(client.cold, 0);
}

#[test]
fn the_path_of_a_pin_is_resolved_again_after_100_ms() {
    let machine = with_notes(&"x".repeat(1000));
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    calls(&machine);
    client.pass_ms(99);
    client.read(&open, 0, 100).unwrap();
    assert_eq!(calls(&machine), ["read"]);
    client.pass_ms(2);
    client.read(&open, 0, 100).unwrap();
    assert_eq!(calls(&machine), ["stat", "read"]);
    client.read(&open, 0, 100).unwrap();
    assert_eq!(calls(&machine), ["read"]);
}

#[test]
fn short_reads_do_not_put_off_resolving_the_path() {
    let machine = with_notes("short");
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    calls(&machine);
    client.pass_ms(60);
    client.read(&open, 0, 100).unwrap();
    assert_eq!(calls(&machine), ["read", "meta"]);
    client.pass_ms(60);
    client.read(&open, 0, 100).unwrap();
    assert_eq!(calls(&machine), ["stat", "read", "meta"]);
}

#[test]
fn a_file_whose_directory_is_renamed_to_a_hidden_name_stops_being_served() {
    let machine = Machine::new();
    for dir in ["hermes/a", "hermes/a/d"] {
        machine.dir(dir);
    }
    machine.file("hermes/a/d/f", "x".repeat(100));
    let mut client = Client::new(&machine);
    let open = stale(&mut client, "hermes/a/d/f");
    machine.rename("hermes/a", "hermes/secrets");
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::NOT_FOUND);
    machine.rename("hermes/secrets", "hermes/a");
    assert_eq!(client.read(&open, 0, 4).unwrap(), b"xxxx", "and is again under its own");
}

#[test]
fn a_read_that_came_up_short_is_checked_before_it_is_answered() {
    let machine = with_notes("short");
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    calls(&machine);
    client.read(&open, 0, 100).unwrap();
    assert_eq!(calls(&machine), ["read", "meta"]);
    machine.file(NOTES, "another, and longer");
    assert_eq!(client.read(&open, 0, 100).unwrap(), b"another, and longer");
}

/// Opens, and lets enough time go by for the next read to check.
fn stale(client: &mut Client, path: &str) -> Open {
    let open = client.open_path(path).unwrap();
    client.pass_ms(101);
    open
}

#[test]
fn another_file_in_its_place_is_read_from_then_on() {
    let machine = with_notes(&"old ".repeat(100));
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    machine.file(NOTES, "new ".repeat(100));
    calls(&machine);
    assert_eq!(client.read(&open, 0, 4).unwrap(), b"new ");
    assert!(calls(&machine).contains(&"close"), "the old descriptor is given back");
    assert_eq!(client.read(&open, 4, 4).unwrap(), b"new ");
    assert_eq!(calls(&machine), ["read"]);
}

#[test]
fn a_file_replaced_within_a_short_read_is_read_anew() {
    let machine = with_notes("old");
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    let inner = machine.clone();
    machine.trap("meta", move || inner.file(NOTES, "newer"));
    assert_eq!(client.read(&open, 0, 100).unwrap(), b"newer");
}

#[test]
fn a_removed_file_is_refused_and_so_is_one_whose_directory_is_gone() {
    let machine = with_notes(&"x".repeat(100));
    machine.dir("hermes/d");
    machine.file("hermes/d/f", "x".repeat(100));
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    machine.remove(NOTES);
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::NOT_FOUND);
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::NOT_FOUND, "and stays so");
    let open = stale(&mut client, "hermes/d/f");
    machine.remove("hermes/d");
    machine.file("hermes/d", "a file now");
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::NOT_FOUND);
}

#[test]
fn a_file_renamed_to_a_hidden_name_stops_being_served() {
    let machine = with_notes(&"x".repeat(100));
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    machine.rename(NOTES, "hermes/auth.json");
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::NOT_FOUND);
    machine.rename("hermes/auth.json", NOTES);
    assert_eq!(client.read(&open, 0, 4).unwrap(), b"xxxx", "and is again under its own");
}

#[test]
fn what_stands_there_now_is_not_read_unless_it_is_a_plain_file() {
    let machine = Machine::new();
    let mut client = Client::new(&machine);
    for kind in [Kind::Dir, Kind::Link, Kind::Other] {
        machine.file(NOTES, "x".repeat(100));
        let open = stale(&mut client, NOTES);
        machine.make(NOTES, kind, b"");
        assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::NOT_FOUND, "{kind:?}");
    }
}

#[test]
fn a_file_without_a_name_is_gone_whatever_its_ctime() {
    let machine = with_notes(&"x".repeat(100));
    machine.link(NOTES, "codex/aside");
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    let ctime = machine.meta(NOTES).ctime;
    machine.remove(NOTES);
    machine.inode("codex/aside", |inode| inode.meta.ctime = ctime);
    assert_eq!(machine.meta("codex/aside").nlink, 0);
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::NOT_FOUND);
}

#[test]
fn a_touched_file_is_resolved_again_and_stays() {
    let machine = with_notes(&"x".repeat(1000));
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    machine.append(NOTES, b"more");
    calls(&machine);
    client.read(&open, 0, 100).unwrap();
    // Its version has moved, so its head is looked at again.
    assert_eq!(calls(&machine), ["stat", "read", "read"]);
    client.pass_ms(101);
    client.read(&open, 0, 100).unwrap();
    assert_eq!(calls(&machine), ["stat", "read"]);
}

#[test]
fn where_ctime_does_not_tell_each_check_resolves_the_path() {
    let machine = with_notes(&"x".repeat(1000));
    machine.world().tells = false;
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    calls(&machine);
    client.read(&open, 0, 100).unwrap();
    assert_eq!(calls(&machine), ["stat", "read"]);
}

#[test]
fn a_ctime_so_young_that_the_next_change_could_bear_it_is_not_relied_on() {
    let machine = with_notes(&"x".repeat(1000));
    machine.inode(NOTES, |inode| inode.meta.ctime.sec = START.wall_ns / 1_000_000_000);
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    // Renamed away within the tick of the clock in which it was written: ctime and link count are what they were.
    let before = machine.meta(NOTES);
    machine.rename(NOTES, "hermes/auth.json");
    machine.inode("hermes/auth.json", |inode| inode.meta = before);
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::NOT_FOUND);
}

#[test]
fn what_would_wait_goes_back_whole() {
    let machine = with_notes(&"x".repeat(1000));
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    machine.world().cached = false;
    assert_eq!(client.read(&open, 0, 3).unwrap(), b"xxx");
    assert_eq!(client.cold, 1);
    client.open_path(NOTES).unwrap();
    assert!(client.cold > 1);
}

#[test]
fn a_vanished_file_does_not_open() {
    let machine = with_notes("x");
    let mut client = Client::new(&machine);
    let node = client.node(NOTES);
    machine.remove(NOTES);
    assert_eq!(client.open(&node, READ).unwrap_err(), Refusal::NOT_FOUND);
    machine.file(NOTES, "x");
    machine.inode(NOTES, |inode| inode.broken = Some(Errno::ACCESS));
    assert_eq!(client.open(&node, READ).unwrap_err(), Refusal::PERMISSION_DENIED);
}

#[test]
fn what_is_not_a_regular_file_lists_and_does_not_open() {
    let machine = Machine::new();
    machine.make("hermes/pipe", Kind::Other, b"");
    let mut client = Client::new(&machine);
    assert_eq!(client.names("hermes"), ["pipe"]);
    assert_eq!(client.open_path("hermes/pipe").unwrap_err(), Refusal::NOT_REGULAR);
}

#[test]
fn a_database_under_an_innocent_name_lists_and_does_not_open() {
    let machine = with_notes("x");
    machine.file("hermes/innocent", DATABASE);
    machine.file("hermes/state.db", DATABASE);
    let mut client = Client::new(&machine);
    assert_eq!(client.names("hermes"), ["innocent", "notes.md", "state.db"]);
    assert_eq!(client.open_path("hermes/innocent").unwrap_err(), Refusal::HIDDEN_DATABASE);
    assert_eq!(client.cat("hermes/state.db").unwrap().as_bytes(), DATABASE, "on the short list");
}

#[test]
fn an_open_file_that_becomes_a_database_stops_being_served() {
    let machine = with_notes(&"x".repeat(100));
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    machine.write(NOTES, |bytes| bytes[..16].copy_from_slice(&DATABASE[..16]));
    for _ in 0..2 {
        assert_eq!(client.read(&open, 50, 4).unwrap_err(), Refusal::HIDDEN_DATABASE);
    }
    machine.write(NOTES, |bytes| bytes[0] = b'x');
    assert_eq!(client.read(&open, 50, 4).unwrap(), b"xxxx");
    client.pass_ms(101);
    machine.file(NOTES, [DATABASE, DATABASE].concat());
    assert_eq!(
        client.read(&open, 50, 4).unwrap_err(),
        Refusal::HIDDEN_DATABASE,
        "nor one that takes its place"
    );
}

#[test]
fn a_database_of_the_short_list_stays_open_as_it_moves() {
    let machine = Machine::new();
    machine.file("hermes/state.db", DATABASE);
    let mut client = Client::new(&machine);
    let open = stale(&mut client, "hermes/state.db");
    machine.append("hermes/state.db", b"!");
    assert_eq!(client.read(&open, 16, 4).unwrap(), b" and");
}

#[test]
fn a_database_is_known_though_its_size_and_times_are_those_of_the_text_before_it() {
    let text = "x".repeat(DATABASE.len());
    // Another file of one version: its identity tells.
    let machine = with_notes(&text);
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    let mtime = machine.meta(NOTES).mtime;
    machine.file(NOTES, DATABASE);
    machine.inode(NOTES, |inode| inode.meta.mtime = mtime);
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::HIDDEN_DATABASE);

    // The same file, written again within one tick of the clock.
    let machine = with_notes(&text);
    machine.inode(NOTES, |inode| inode.meta.ctime.sec = START.wall_ns / 1_000_000_000);
    let mut client = Client::new(&machine);
    let open = stale(&mut client, NOTES);
    let before = machine.meta(NOTES);
    machine.write(NOTES, |bytes| bytes.copy_from_slice(DATABASE));
    machine.inode(NOTES, |inode| inode.meta = before);
    assert_eq!(client.read(&open, 0, 4).unwrap_err(), Refusal::HIDDEN_DATABASE);
}

#[test]
fn a_short_read_that_failed_its_check_leaves_nothing_to_rely_on() {
    let machine = with_notes(&"x".repeat(100));
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    machine.write(NOTES, |bytes| bytes[..16].copy_from_slice(&DATABASE[..16]));
    assert_eq!(client.read(&open, 50, 100).unwrap_err(), Refusal::HIDDEN_DATABASE);
    assert_eq!(client.read(&open, 50, 4).unwrap_err(), Refusal::HIDDEN_DATABASE);
}

#[test]
fn past_the_bound_of_descriptors_a_read_opens_reads_and_closes() {
    let machine = with_notes(&"x".repeat(100));
    machine.file("hermes/other", "y".repeat(100));
    let mut client = Client::with_pins(&machine, 1);
    let first = client.open_path("hermes/other").unwrap();
    let second = client.open_path(NOTES).unwrap();
    calls(&machine);
    assert_eq!(client.read(&second, 0, 4).unwrap(), b"xxxx");
    assert_eq!(calls(&machine), ["open", "read", "close"]);
    machine.file(NOTES, "new ".repeat(100));
    assert_eq!(client.read(&second, 0, 4).unwrap(), b"new ");
    machine.write(NOTES, |bytes| bytes[..16].copy_from_slice(&DATABASE[..16]));
    assert_eq!(client.read(&second, 0, 4).unwrap_err(), Refusal::HIDDEN_DATABASE);
    machine.file(NOTES, "z".repeat(100));
    drop(first);
    assert_eq!(client.read(&second, 0, 4).unwrap(), b"zzzz", "there is room for it now");
    calls(&machine);
    assert_eq!(client.read(&second, 0, 4).unwrap(), b"zzzz");
    assert_eq!(calls(&machine), ["read"]);
}

#[test]
fn the_last_reference_closes_the_file() {
    let machine = with_notes("x");
    let mut client = Client::new(&machine);
    let open = client.open_path(NOTES).unwrap();
    let other = open.clone();
    drop(open);
    calls(&machine);
    client.read(&other, 0, 1).unwrap();
    drop(other);
    assert_eq!(calls(&machine), ["read", "close"]);
}

#[test]
fn derived_files_say_what_they_are_for() {
    let mut client = Client::new(&Machine::new());
    assert_eq!(client.cat("pid").unwrap(), "4242\n");
    assert_eq!(client.cat("uptime").unwrap(), "0\n");
    client.pass_ms(61_999);
    assert_eq!(client.cat("uptime").unwrap(), "61\n");
    let readme = client.cat("README").unwrap();
    for entry in [
        "/README",
        "/pid",
        "/uptime",
        "/claude/projects",
        "/claude/history",
        "/claude/skills",
        "/codex/sessions",
        "/codex/session-index",
        "/codex/history",
        "/omp",
        "/hermes",
        "/dsh",
        "/skills",
        "/active",
        "transcript",
        "ppid",
        "started",
        "cwd",
        "title",
        "session",
        "model",
        "via",
        "zmx",
        "status",
        "chat",
        "agents",
        "mount -t 9p",
        "symbolic link",
        "hard link",
    ] {
        assert!(readme.contains(entry), "README does not speak of {entry}");
    }
    assert!(readme.lines().all(|line| line.len() <= 80));
}

#[test]
fn one_pass_over_a_derived_file_never_mixes_two_values() {
    let mut client = Client::new(&Machine::new());
    client.pass_ms(99_000);
    let open = client.open_path("uptime").unwrap();
    client.pass_ms(1_000);
    assert_eq!(client.read(&open, 1, 10).unwrap(), b"9\n", "as of the open");
    assert_eq!(client.read(&open, 0, 1).unwrap(), b"1", "of a new pass");
    client.pass_ms(900_000);
    assert_eq!(client.read(&open, 1, 10).unwrap(), b"00\n");
    assert_eq!(client.read(&open, 0, 10).unwrap(), b"1000\n");
    for offset in [5, 6, 1 << 40, (1 << 63) - 1] {
        assert!(client.read(&open, offset, 10).unwrap().is_empty());
    }
}

#[test]
fn a_handle_keeps_its_own_text() {
    let mut client = Client::new(&Machine::new());
    let one = client.open_path("uptime").unwrap();
    client.pass_ms(5_000);
    let other = client.open_path("uptime").unwrap();
    assert_eq!(client.read(&other, 0, 10).unwrap(), b"5\n");
    assert_eq!(client.read(&one, 1, 10).unwrap(), b"\n");
    assert_eq!(client.read(&one, 0, 10).unwrap(), b"5\n");
}

#[test]
fn the_tree_is_a_view_and_not_a_store() {
    let machine = with_notes("x");
    machine.dir("claude/projects");
    let mut client = Client::new(&machine);
    for path in [NOTES, "README", "pid"] {
        let node = client.node(path);
        for (write, truncate) in [(true, false), (false, true), (true, true)] {
            let mode = Mode { read: true, write, truncate };
            assert_eq!(client.open(&node, mode).unwrap_err(), Refusal::PERMISSION_DENIED, "{path}");
        }
        let change = Change { truncate: true, times: true, other: false };
        let ask: Ask<Tree> = Ask::Change { node, change };
        assert_eq!(client.perform(ask, Room::of_bytes(&mut [])).unwrap_err(), Refusal::VIEW);
        let open = client.open_path(path).unwrap();
        let ask: Ask<Tree> = Ask::Write { open, offset: 0, data: b"x"[..].into() };
        assert_eq!(client.perform(ask, Room::of_bytes(&mut [])).unwrap_err(), Refusal::VIEW);
    }
}
