//! Identity.

use std::collections::BTreeMap;

use proto::{QTDIR, Qid};

use crate::cases::small;
use crate::check::{BULK, Client, ROOT};
use crate::suite::{Case, Stage};
use crate::world::{Edit, Entry};

pub(super) const CASES: &[Case] = &[
    Case::new("46", "a qid is one file's, wherever and whenever it is asked for", qids_are_identity),
    Case::new("46v", "a version moves when the file does, and agrees everywhere", versions_agree),
    Case::new("46n", "a file made anew under the same name is another file", new_file_new_qid),
];

fn qids_are_identity(stage: &Stage<'_>) {
    let spec = small().with("hermes/dir/twin.txt", Entry::HardLink(b"hermes/notes.txt".to_vec()));
    let arena = stage.start(&spec);
    let first = everything(&mut arena.client());
    let second = everything(&mut arena.client());
    assert_eq!(first, second, "another session");
    let mut paths: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for (path, qid) in &first {
        paths.entry(qid.path).or_default().push(path);
    }
    for (qid, same) in paths {
        let expected: &[&str] =
            if same.len() > 1 { &["/hermes/dir/twin.txt", "/hermes/notes.txt"] } else { &same };
        assert_eq!(same, expected, "one qid, {qid:x}, for several files");
    }
    assert_eq!(first["/hermes/dir/twin.txt"], first["/hermes/notes.txt"], "one file under two names");
}

fn versions_agree(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&small());
    let mut seen = vec![agreed_version(&mut client)];
    for edit in [
        Edit::append("hermes/notes.txt", "more\n"),
        Edit::touch("hermes/notes.txt", 1_600_000_000),
        Edit::touch("hermes/notes.txt", 1_600_000_001),
        Edit::append("hermes/notes.txt", "x"),
    ] {
        arena.edit(&edit);
        let version = agreed_version(&mut client);
        assert!(!seen.contains(&version), "{edit:?} has not moved the version");
        seen.push(version);
    }
    assert_eq!(agreed_version(&mut client), seen[4], "it stays while the file does");
    assert!(!seen.contains(&0), "Linux takes version 0 for a file that is never to be cached");
}

fn new_file_new_qid(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&small());
    let mut seen = Vec::new();
    for round in 0..20 {
        let fid = client.go("hermes/notes.txt");
        let qid = client.stat(fid).expect("a stat").qid;
        assert!(!seen.contains(&qid.path), "round {round}");
        seen.push(qid.path);
        arena.edit(&Edit::remove("hermes/notes.txt"));
        assert!(client.try_go("hermes/notes.txt").is_err());
        arena.edit(&Edit::file("hermes/notes.txt", "hello, world\n"));
    }
    arena.edit(&Edit::rename("hermes/notes.txt", "hermes/dir/notes.txt"));
    let before = client.go("hermes/dir/notes.txt");
    let moved = client.stat(before).expect("a stat").qid;
    arena.edit(&Edit::rename("hermes/dir/notes.txt", "hermes/notes.txt"));
    let after = client.go("hermes/notes.txt");
    assert_eq!(client.stat(after).expect("a stat").qid.path, moved.path, "a moved file is the same file");
}

/// The version of one file by walk, open, stat and listing, which have to agree.
#[track_caller]
fn agreed_version(client: &mut Client) -> u32 {
    let hermes = client.open_path("hermes");
    let fid = client.fresh_fid();
    let walked = client.walk(hermes, fid, &["notes.txt"]).expect("a walk")[0];
    let told = client.stat(fid).expect("a stat").qid;
    let opened = client.open(fid).expect("an open");
    let entries = client.list_all(hermes, BULK);
    let listed = entries.iter().find(|entry| entry.name == b"notes.txt").expect("an entry").qid;
    assert_eq!([walked, told, opened], [listed; 3]);
    client.clunk(fid).expect("a clunk");
    client.clunk(hermes).expect("a clunk");
    walked.version
}

/// Every file of the tree, by listing, with the qid of a stat; versions left out, as some files count the time.
fn everything(client: &mut Client) -> BTreeMap<String, Qid> {
    let root = Qid { version: 0, ..client.stat(ROOT).expect("a stat").qid };
    let mut all = BTreeMap::from([("/".to_owned(), root)]);
    let mut todo = vec![(String::new(), root)];
    while let Some((path, qid)) = todo.pop() {
        assert_eq!(qid.kind & QTDIR, QTDIR);
        for name in client.names(&path) {
            let child = format!("{path}/{}", String::from_utf8(name).expect("names are UTF-8"));
            let fid = client.go(&child);
            let qid = Qid { version: 0, ..client.stat(fid).expect("a stat").qid };
            client.clunk(fid).expect("a clunk");
            if qid.kind & QTDIR != 0 {
                todo.push((child.clone(), qid));
            }
            all.insert(child, qid);
        }
    }
    all
}
