//! Directory reads.

use backend::host::{Errno, Kind};
use proto::{Dialect, Refusal};

use crate::client::{Client, READ};
use crate::machine::Machine;

fn crowded(count: usize) -> Machine {
    let machine = Machine::new();
    for n in 0..count {
        machine.file(&format!("hermes/note-{n:04}"), format!("{n}"));
    }
    machine
}

#[test]
fn static_directories_list_their_entries_in_order() {
    let machine = Machine::new();
    let mut client = Client::new(&machine);
    assert_eq!(
        client.names(""),
        ["README", "active", "claude", "codex", "dsh", "hermes", "omp", "pid", "skills", "uptime"]
    );
    assert_eq!(client.names("active"), ["claude", "codex", "dsh", "hermes", "omp"]);
    assert_eq!(client.names("claude"), ["projects"]);
    assert_eq!(client.names("codex"), ["sessions"]);
    assert!(client.names("skills").is_empty());
    for harness in ["claude", "codex", "omp", "hermes", "dsh"] {
        assert!(client.names(&format!("active/{harness}")).is_empty());
        machine.dir(&format!("{harness}/skills"));
        machine.file(&format!("{harness}/history.jsonl"), "");
    }
    machine.file("codex/session_index.jsonl", "");
    assert_eq!(client.names("claude"), ["history", "projects", "skills"]);
    assert_eq!(client.names("codex"), ["history", "session-index", "sessions"]);
    assert_eq!(client.names("skills"), ["claude", "codex", "omp"]);
}

#[test]
fn names_are_sorted_bytewise_and_links_and_hidden_names_are_not_among_them() {
    let machine = Machine::new();
    for name in ["b", "B", "a.b", "a-b", "a", "é", "auth.json", "x.db", "half.swp"] {
        machine.file(&format!("hermes/{name}"), name);
    }
    machine.dir("hermes/dir");
    machine.make("hermes/link", Kind::Link, b"");
    machine.make("hermes/pipe", Kind::Other, b"");
    let mut client = Client::new(&machine);
    assert_eq!(client.names("hermes"), ["B", "a", "a-b", "a.b", "b", "dir", "pipe", "é"]);
}

#[test]
fn every_member_comes_once_at_any_count_and_its_record_is_the_one_stat_gives() {
    let machine = crowded(200);
    machine.dir("hermes/dir");
    machine.make("hermes/pipe", Kind::Other, b"");
    let mut client = Client::new(&machine);
    let whole = client.ls("hermes", 65_536).unwrap();
    assert_eq!(whole.len(), 202);
    let longest = whole.iter().map(|record| record.wire.len()).max().unwrap();
    for count in [longest, 300, 1000] {
        assert_eq!(client.ls("hermes", count).unwrap(), whole, "reads of {count} bytes");
    }
    for dialect in [Dialect::Plain, Dialect::Unix] {
        client.dialect = dialect;
        for dir in ["", "active", "claude", "hermes"] {
            for record in client.ls(dir, 8192).unwrap() {
                let path = format!("{dir}/{}", record.name);
                assert_eq!(
                    client.stat_path(path.trim_start_matches('/')).unwrap().wire,
                    record.wire,
                    "{path}"
                );
            }
        }
    }
}

#[test]
fn an_entry_that_does_not_fit_waits_for_the_next_read() {
    let mut client = Client::new(&crowded(3));
    for path in ["hermes", "active"] {
        let open = client.open_path(path).unwrap();
        let (records, next, open) = client.list(&open, 0, 20).unwrap();
        assert!(records.is_empty());
        assert_eq!(next, 0);
        let (records, next, _) = client.list(&open, 0, 8192).unwrap();
        assert_eq!(records.len(), next as usize);
        assert!(next > 0);
    }
}

#[test]
fn reading_at_the_end_is_nothing_again_and_again() {
    let mut client = Client::new(&crowded(3));
    for path in ["hermes", "active", "active/omp", "skills"] {
        let open = client.open_path(path).unwrap();
        let (_, end, open) = client.list(&open, 0, 8192).unwrap();
        for from in [end, end, end + 7, u32::MAX] {
            let (records, next, _) = client.list(&open, from, 8192).unwrap();
            assert!(records.is_empty());
            assert_eq!(next, from);
        }
    }
}

#[test]
fn a_directory_that_changes_under_a_reader_does_not_shift() {
    let machine = crowded(10);
    let mut client = Client::new(&machine);
    let open = client.open_path("hermes").unwrap();
    let (first, next, open) = client.list(&open, 0, 300).unwrap();
    let seen = first.len();
    assert!((2..9).contains(&seen));
    machine.file("hermes/aaa", "new");
    machine.remove("hermes/note-0000");
    machine.remove("hermes/note-0009");
    machine.append("hermes/note-0008", b"longer");
    let (rest, _, _) = client.list(&open, next, 8192).unwrap();
    let names: Vec<&str> = rest.iter().map(|record| record.name.as_str()).collect();
    let expected: Vec<String> = (seen..9).map(|n| format!("note-{n:04}")).collect();
    assert_eq!(names, expected);
    assert_eq!(rest.last().unwrap().length, 7, "records are taken when they are packed");
}

#[test]
fn offset_0_takes_the_names_anew_in_a_handle_of_its_own() {
    let machine = crowded(3);
    let mut client = Client::new(&machine);
    let open = client.open_path("hermes").unwrap();
    let (_, next, old) = client.list(&open, 0, 100).unwrap();
    assert_eq!(next, 1);
    machine.file("hermes/aaa", "new");
    let (records, _, _) = client.list(&old, 0, 8192).unwrap();
    assert_eq!(records.len(), 4);
    // The rewind may be abandoned: the old handle is what it was.
    let (records, _, _) = client.list(&old, next, 8192).unwrap();
    assert_eq!(records.len(), 2);
}

#[test]
fn a_vanished_directory_is_refused_at_offset_0_and_ends_after_it() {
    let machine = crowded(3);
    machine.rename("hermes", "omp/d");
    let mut client = Client::new(&machine);
    let open = client.open_path("omp/d").unwrap();
    let (_, next, listing) = client.list(&open, 0, 100).unwrap();
    machine.remove("omp/d");
    assert_eq!(client.list(&listing, 0, 8192).unwrap_err(), Refusal::NOT_FOUND);
    assert_eq!(client.list(&open, 0, 8192).unwrap_err(), Refusal::NOT_FOUND);
    assert!(client.list(&listing, next, 8192).unwrap().0.is_empty());
    machine.file("omp/d", "a file now");
    assert_eq!(client.list(&listing, 0, 8192).unwrap_err(), Refusal::NOT_FOUND);
}

#[test]
fn a_listing_is_complete_or_an_error() {
    let machine = crowded(3);
    machine.inode("hermes/note-0001", |inode| inode.broken = Some(Errno::IO));
    let mut client = Client::new(&machine);
    assert_eq!(client.ls("hermes", 8192).unwrap_err(), Refusal::IO);
    machine.inode("hermes", |inode| inode.broken = Some(Errno::ACCESS));
    assert_eq!(client.ls("hermes", 8192).unwrap_err(), Refusal::PERMISSION_DENIED);
    // The way there is not open either, but the entry above it stands.
    assert_eq!(client.names("").len(), 10);
}

#[test]
fn names_past_a_limit_are_an_error_that_names_the_limit() {
    let machine = Machine::new();
    let fill = |path: &str, range: std::ops::Range<u32>| {
        for n in range {
            machine.file(&format!("{path}/{n:0255}"), "");
        }
    };
    // Each takes 260 bytes of the 16 MiB.
    fill("hermes", 0..60_000);
    let mut client = Client::new(&machine);
    let open = client.open_path("hermes").unwrap();
    let held: Vec<_> = (0..4).map(|_| client.list(&open, 0, 300).unwrap()).collect();
    assert_eq!(client.list(&open, 0, 300).unwrap_err(), Refusal::LISTINGS_TOO_LARGE);
    drop(held);
    fill("hermes", 60_000..64_527);
    assert!(client.list(&open, 0, 300).is_ok());
    fill("hermes", 64_527..64_528);
    assert_eq!(client.list(&open, 0, 300).unwrap_err(), Refusal::LISTING_TOO_LARGE);
}

#[test]
fn without_a_snapshot_there_is_no_middle() {
    let mut client = Client::new(&crowded(3));
    let open = client.open_path("hermes").unwrap();
    assert_eq!(client.list(&open, 1, 8192).unwrap_err(), Refusal::BAD_OFFSET);
}

#[test]
fn past_the_bound_of_descriptors_entries_are_looked_up_by_their_path() {
    let machine = crowded(10);
    let mut client = Client::with_pins(&machine, 1);
    let first = client.open_path("hermes").unwrap();
    let (_, _, first) = client.list(&first, 0, 300).unwrap();
    let second = client.open_path("hermes").unwrap();
    machine.world().calls.clear();
    let (_, next, second) = client.list(&second, 0, 300).unwrap();
    assert!(machine.world().calls.contains(&"close"));
    let (rest, _, _) = client.list(&second, next, 8192).unwrap();
    assert_eq!(rest.len(), 10 - next as usize);
    machine.remove("hermes");
    assert!(client.list(&second, next, 8192).unwrap().0.is_empty());
    drop(first);
}

#[test]
fn a_directory_renamed_to_a_hidden_name_tells_nothing_more() {
    let machine = Machine::new();
    machine.dir("hermes/notes");
    for n in 0..10 {
        machine.file(&format!("hermes/notes/{n}"), "x");
    }
    let mut client = Client::new(&machine);
    let open = client.open_path("hermes/notes").unwrap();
    let (_, next, open) = client.list(&open, 0, 300).unwrap();
    machine.rename("hermes/notes", "hermes/.ssh");
    assert!(client.list(&open, next, 8192).unwrap().0.is_empty());
    // Another directory in its place is what the path names now.
    machine.dir("hermes/notes");
    machine.file("hermes/notes/9", "longer");
    let (records, _, _) = client.list(&open, next, 8192).unwrap();
    assert_eq!(
        records.iter().map(|record| (record.name.as_str(), record.length)).collect::<Vec<_>>(),
        [("9", 6)]
    );
}

#[test]
fn mirrored_directories_are_listed_by_a_worker_and_static_ones_at_once() {
    let machine = crowded(3);
    let mut client = Client::new(&machine);
    for path in ["", "claude"] {
        client.names(path);
    }
    assert_eq!(client.cold, 0);
    let open = client.open_path("hermes").unwrap();
    machine.world().calls.clear();
    let (_, next, open) = client.list(&open, 0, 100).unwrap();
    client.list(&open, next, 100).unwrap();
    assert_eq!(client.cold, 2);
}

#[test]
fn files_are_not_listed_and_directories_not_read() {
    let mut client = Client::new(&crowded(1));
    for path in ["README", "hermes/note-0000"] {
        let open = client.open_path(path).unwrap();
        assert_eq!(client.list(&open, 0, 100).unwrap_err(), Refusal::NOT_A_DIRECTORY);
    }
    for path in ["active", "hermes"] {
        let open = client.open_path(path).unwrap();
        assert_eq!(client.read(&open, 0, 100).unwrap_err(), Refusal::IS_A_DIRECTORY);
    }
    let node = client.node("hermes");
    assert!(client.open(&node, READ).unwrap().2);
    let node = client.node("README");
    assert!(!client.open(&node, READ).unwrap().2);
}
