//! Records: modes, owners, times, lengths and versions.

use backend::host::{Errno, Kind, Time};
use proto::{DMDIR, Dialect, Refusal};

use crate::client::Client;
use crate::machine::{Machine, START, UID};

#[test]
fn the_root_has_a_slash_for_a_name() {
    let mut client = Client::new(&Machine::new());
    let (qid, root) = client.attach("").unwrap();
    let record = client.stat(&root).unwrap();
    assert_eq!((record.name.as_str(), record.mode, record.length), ("/", DMDIR | 0o555, 0));
    assert_eq!(record.qid, qid);
}

#[test]
fn an_entry_bears_its_name_in_the_tree() {
    let machine = Machine::new();
    machine.file("codex/session_index.jsonl", "x");
    machine.dir("claude/skills");
    machine.file("hermes/notes.md", "x");
    let mut client = Client::new(&machine);
    for path in [
        "claude",
        "codex/session-index",
        "skills/claude",
        "claude/skills",
        "hermes/notes.md",
        "active/omp",
        "omp",
    ] {
        assert_eq!(client.stat_path(path).unwrap().name, path.rsplit('/').next().unwrap());
    }
}

#[test]
fn files_on_disk_have_their_owner_size_and_times_and_are_read_only() {
    let machine = Machine::new();
    machine.file("hermes/notes.md", "twelve bytes");
    machine.inode("hermes/notes.md", |inode| {
        inode.meta.mtime = Time { sec: 1_234_567, nsec: 999_999_999 };
        inode.meta.atime = Time { sec: 7_654_321, nsec: 1 };
    });
    let mut client = Client::new(&machine);
    let record = client.stat_path("hermes/notes.md").unwrap();
    assert_eq!((record.mode, record.length), (0o444, 12));
    assert_eq!((record.mtime, record.atime), (1_234_567, 7_654_321));
    assert_eq!((record.uid.as_str(), record.gid.as_str(), record.muid.as_str()), ("glenda", "77", "glenda"));
    machine.inode("hermes/notes.md", |inode| inode.meta.uid = u32::MAX);
    assert_eq!(client.stat_path("hermes/notes.md").unwrap().uid, "4294967295");
    machine.dir("hermes/notes");
    let record = client.stat_path("hermes/notes").unwrap();
    assert_eq!((record.mode, record.length), (DMDIR | 0o555, 0));
}

#[test]
fn a_directory_of_any_size_has_length_0() {
    let machine = Machine::new();
    machine.inode("hermes", |inode| inode.meta.size = 4096);
    assert_eq!(Client::new(&machine).stat_path("hermes").unwrap().length, 0);
}

#[test]
fn derived_nodes_belong_to_the_daemon_and_have_the_start_as_time() {
    let mut client = Client::new(&Machine::bare());
    client.pass_ms(100_000);
    let start = u32::try_from(START.wall_ns / 1_000_000_000).unwrap();
    for path in
        ["README", "pid", "uptime", "claude", "active", "active/omp", "skills", "omp", "claude/projects"]
    {
        let record = client.stat_path(path).unwrap();
        assert_eq!((record.mtime, record.atime), (start, start), "{path}");
        assert_eq!((record.uid.as_str(), record.gid.as_str()), ("glenda", "77"), "{path}");
    }
}

#[test]
fn derived_files_report_their_true_length() {
    let mut client = Client::new(&Machine::new());
    client.pass_ms(12_345_678);
    for path in ["README", "pid", "uptime"] {
        let text = client.cat(path).unwrap();
        assert_eq!(client.stat_path(path).unwrap().length, text.len() as u64, "{path}");
        assert!(text.ends_with('\n'));
    }
}

#[test]
fn the_version_of_a_derived_file_moves_with_its_content() {
    let mut client = Client::new(&Machine::new());
    let (pid, uptime) = (client.stat_path("pid").unwrap().qid, client.stat_path("uptime").unwrap().qid);
    client.pass_ms(999);
    assert_eq!(client.stat_path("uptime").unwrap().qid, uptime);
    client.pass_ms(1);
    let later = client.stat_path("uptime").unwrap();
    assert_eq!(later.length, 2, "of one size, still changed");
    assert_ne!(later.qid.version, uptime.version);
    assert_eq!(later.qid.path, uptime.path);
    assert_eq!(client.stat_path("pid").unwrap().qid, pid);
}

#[test]
fn the_version_of_a_file_moves_when_the_file_does() {
    let machine = Machine::new();
    machine.file("hermes/notes.md", "a");
    let mut client = Client::new(&machine);
    let before = client.stat_path("hermes/notes.md").unwrap().qid;
    machine.write("hermes/notes.md", |bytes| bytes[0] = b'b');
    let after = client.stat_path("hermes/notes.md").unwrap().qid;
    assert_eq!(after.path, before.path);
    assert_ne!(after.version, before.version);
    let meta = machine.meta("hermes/notes.md");
    assert_eq!(after.version, meta.mtime.sec as u32 ^ meta.mtime.nsec ^ (1 << 8));
}

#[test]
fn what_is_neither_file_nor_directory_is_an_empty_plain_file_in_every_dialect() {
    let machine = Machine::new();
    machine.make("hermes/pipe", Kind::Other, b"");
    machine.inode("hermes/pipe", |inode| inode.meta.size = 99);
    let mut client = Client::new(&machine);
    for dialect in [Dialect::Plain, Dialect::Unix] {
        client.dialect = dialect;
        let record = client.stat_path("hermes/pipe").unwrap();
        assert_eq!((record.mode, record.length, record.qid.kind), (0o444, 0, 0));
    }
}

#[test]
fn what_has_vanished_or_become_a_link_is_not_there() {
    let machine = Machine::new();
    machine.file("hermes/notes.md", "x");
    let mut client = Client::new(&machine);
    let node = client.node("hermes/notes.md");
    machine.make("hermes/notes.md", Kind::Link, b"");
    assert_eq!(client.stat(&node).unwrap_err(), Refusal::NOT_FOUND);
    machine.remove("hermes/notes.md");
    assert_eq!(client.stat(&node).unwrap_err(), Refusal::NOT_FOUND);
    machine.file("hermes/notes.md", "xyz");
    assert_eq!(client.stat(&node).unwrap().length, 3);
}

#[test]
fn another_kind_in_its_place_is_another_thing() {
    let machine = Machine::new();
    machine.file("hermes/x", "x");
    machine.dir("hermes/y");
    let mut client = Client::new(&machine);
    let (file, dir) = (client.node("hermes/x"), client.node("hermes/y"));
    machine.dir("hermes/x");
    machine.file("hermes/y", "y");
    for node in [&file, &dir] {
        assert_eq!(client.stat(node).unwrap_err(), Refusal::NOT_FOUND);
        assert_eq!(client.open(node, crate::client::READ).unwrap_err(), Refusal::NOT_FOUND);
    }
}

#[test]
fn a_record_larger_than_its_room_is_refused() {
    use backend::Tree;
    use engine::port::{Ask, Room};
    let mut client = Client::new(&Machine::new());
    let node = client.root();
    let ask: Ask<Tree> = Ask::Stat { node };
    let refusal = client.perform(ask, Room::of_stat(Dialect::Plain, &mut [0; 20])).unwrap_err();
    assert_eq!(refusal, Refusal::NAME_TOO_LONG);
}

#[test]
fn a_lasting_entry_stands_whatever_is_wrong_with_its_target() {
    let machine = Machine::new();
    machine.dir("claude/projects");
    machine.inode("claude/projects", |inode| inode.broken = Some(Errno::ACCESS));
    let mut client = Client::new(&machine);
    let record = client.stat_path("claude/projects").unwrap();
    assert_eq!((record.mode, record.uid.as_str()), (DMDIR | 0o555, "glenda"));
    // But a listing of it is not told as empty.
    assert_eq!(client.ls("claude/projects", 8192).unwrap_err(), Refusal::PERMISSION_DENIED);
    assert_eq!(machine.meta("claude").uid, UID);
}
