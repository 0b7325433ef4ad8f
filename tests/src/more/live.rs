//! Files that change while they are served: what is read is what is there now.

use crate::check::{BULK, refused, refused_somehow, why};
use crate::suite::{Case, Stage};
use crate::world::{Edit, WorldSpec};

pub(super) const CASES: &[Case] = &[
    Case::new("live.grows", "a file that grows is read as it grows", grows),
    Case::new("live.shrinks", "a file that is cut and written anew is read anew", shrinks),
    Case::new("live.appears", "what is made is there for the next request", appears),
    Case::new("live.vanishes", "what is gone is not found, at whatever step", vanishes),
    Case::new("live.replaced", "what replaces a file is served instead, at whatever step", is_replaced),
    Case::new("live.kinds", "a fid never turns from a file into a directory, nor back", changes_its_kind),
    Case::new("live.dirs", "a directory that goes while it is read ends, or is not found", directory_goes),
];

fn grows(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&WorldSpec::new().file("hermes/log", ""));
    let fid = client.open_path("hermes/log");
    let mut expected = Vec::new();
    for round in 0..100_usize {
        assert_eq!(client.read(fid, expected.len() as u64, 8192).expect("a read at the end"), b"");
        let line = format!("line {round} {}\n", "x".repeat(round * 7));
        arena.edit(&Edit::append("hermes/log", &line));
        assert_eq!(client.read(fid, expected.len() as u64, 8192).expect("a read"), line.as_bytes());
        expected.extend_from_slice(line.as_bytes());
        assert_eq!(client.stat(fid).expect("a stat").length, expected.len() as u64);
    }
    assert_eq!(client.read_from(fid, 0, 1000), expected);
}

fn shrinks(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&WorldSpec::new().file("hermes/log", "a longer text"));
    let fid = client.open_path("hermes/log");
    assert_eq!(client.read(fid, 0, 100).expect("a read"), b"a longer text");
    arena.edit(&Edit::write("hermes/log", "short"));
    assert_eq!(client.read(fid, 0, 100).expect("a read"), b"short");
    assert_eq!(client.read(fid, 5, 100).expect("a read"), b"");
    arena.edit(&Edit::write("hermes/log", ""));
    assert_eq!(client.read(fid, 0, 100).expect("a read"), b"");
    arena.edit(&Edit::append("hermes/log", "anew"));
    assert_eq!(client.read(fid, 0, 100).expect("a read"), b"anew");
}

fn appears(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&WorldSpec::new());
    let hermes = client.open_path("hermes");
    for round in 0..20 {
        let name = format!("n{round:02}");
        refused(client.walk(hermes, 900, &[&name]), why::NOT_FOUND);
        arena.edit(&Edit::file(format!("hermes/{name}/inside"), "seen"));
        assert_eq!(client.list_all(hermes, BULK).len(), round + 1);
        assert_eq!(client.contents(format!("hermes/{name}/inside")), b"seen");
    }
}

fn vanishes(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&WorldSpec::new().file("hermes/dir/notes.txt", "seen"));
    let path = "hermes/dir/notes.txt";
    for gone in [path, "hermes/dir"] {
        let dir = client.go("hermes/dir");
        let [walked, stated] = [client.go(path), client.go(path)];
        client.stat(stated).expect("a stat");
        let open = client.open_path(path);
        let read = client.open_path(path);
        assert_eq!(client.read(read, 0, 100).expect("a read"), b"seen");
        arena.edit(&Edit::remove(gone));
        refused(client.walk(dir, 900, &["notes.txt"]), why::NOT_FOUND);
        for fid in [walked, stated] {
            refused(client.stat(fid), why::NOT_FOUND);
            refused(client.open(fid), why::NOT_FOUND);
        }
        for fid in [open, read] {
            refused(client.read(fid, 0, 100), why::NOT_FOUND);
            refused(client.read(fid, 4, 100), why::NOT_FOUND);
            client.clunk(fid).expect("a clunk of what is gone");
        }
        // The fids are still where they were: they serve what is made there.
        arena.edit(&Edit::file(path, "again"));
        client.open(walked).expect("an open of what is there again");
        assert_eq!(client.read(walked, 0, 100).expect("a read"), b"again");
        arena.edit(&Edit::write(path, "seen"));
    }
}

fn is_replaced(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&WorldSpec::new().file("hermes/notes.txt", "first"));
    let walked = client.go("hermes/notes.txt");
    let first = client.stat(walked).expect("a stat").qid;
    let open = client.open_path("hermes/notes.txt");
    let read = client.open_path("hermes/notes.txt");
    assert_eq!(client.read(read, 0, 100).expect("a read"), b"first");
    arena.edit(&Edit::file("hermes/new.txt", "the second"));
    arena.edit(&Edit::rename("hermes/new.txt", "hermes/notes.txt"));
    let second = client.stat(walked).expect("a stat").qid;
    assert_ne!(second.path, first.path);
    assert_eq!(client.open(walked).expect("an open"), second);
    for fid in [walked, open, read] {
        assert_eq!(client.stat(fid).expect("a stat").qid, second);
        assert_eq!(client.read(fid, 0, 100).expect("a read"), b"the second");
        assert_eq!(client.read(fid, 4, 100).expect("a read"), b"second");
    }
}

fn changes_its_kind(stage: &Stage<'_>) {
    let spec = WorldSpec::new().file("hermes/one", "a file").file("hermes/two/inside", "seen");
    let (arena, mut client) = stage.client(&spec);
    let (file, dir) = (client.go("hermes/one"), client.go("hermes/two"));
    let open = client.open_path("hermes/one");
    for (from, to) in [("one", "three"), ("two", "one"), ("three", "two")] {
        arena.edit(&Edit::rename(format!("hermes/{from}"), format!("hermes/{to}")));
    }
    // What the fids stood for is gone: a fid never turns from a file into a directory.
    for fid in [file, dir] {
        refused(client.stat(fid), why::NOT_FOUND);
        refused(client.open(fid), why::NOT_FOUND);
    }
    refused_somehow(client.walk(dir, 900, &["inside"]));
    refused(client.read(open, 0, 100), why::NOT_FOUND);
    assert_eq!(client.contents("hermes/two"), b"a file");
    assert_eq!(client.contents("hermes/one/inside"), b"seen");
    client.expect_alive();
}

fn directory_goes(stage: &Stage<'_>) {
    let spec = (0..50).fold(WorldSpec::new(), |spec, n| spec.file(format!("hermes/dir/f{n:02}"), ""));
    let (arena, mut client) = stage.client(&spec);
    let fid = client.open_path("hermes/dir");
    let (some, next) = client.list(fid, 0, 1000).expect("a read");
    assert!(!some.is_empty() && some.len() < 50);
    arena.edit(&Edit::remove("hermes/dir"));
    assert_eq!(client.list(fid, next, 1000).expect("what is gone is left out").0, []);
    refused(client.list(fid, 0, 1000), why::NOT_FOUND);
    refused(client.stat(fid), why::NOT_FOUND);
    client.clunk(fid).expect("a clunk");
    client.expect_alive();
}
