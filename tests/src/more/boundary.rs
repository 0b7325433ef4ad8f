//! The boundary, over the wire: what is hidden neither resolves nor lists, and what is innocent does.

use crate::check::{Client, refused, why};
use crate::names::{self, Line, hidden, innocent};
use crate::rig::Need;
use crate::suite::{Case, Stage};
use crate::world::{Edit, WorldSpec};

pub(super) const CASES: &[Case] = &[
    Case::new(
        "boundary.walk",
        "a hidden name does not resolve, at any depth of any root",
        hidden_do_not_resolve,
    ),
    Case::new("boundary.list", "a listing holds the innocent names and no other", hidden_do_not_list),
    Case::new("boundary.innocent", "an innocent name is served", innocent_are_served),
    Case::new("boundary.rename", "a file that takes a hidden name is served no longer", hiding_takes_effect),
    Case::new("boundary.database", "a database of any name lists, and is not opened", databases_stay_shut),
    Case::new("boundary.roots", "of claude and codex only some directories are served", parts_of_roots),
    Case::new("boundary.twins", "one file under two paths of the tree has one qid", twins_are_one)
        .needs(&[Need::Disk]),
];

/// Where names are put: the root, and a directory of it that is mirrored.
const BASES: [(&str, &str); 5] = [
    ("claude", "claude/projects"),
    ("codex", "codex/sessions"),
    ("omp", "omp"),
    ("hermes", "hermes"),
    ("dsh", "dsh"),
];

/// In one root names are put at a second depth, too, as directories.
const DEEP: &str = "hermes/some/where";

fn hidden_do_not_resolve(stage: &Stage<'_>) {
    let hidden = hidden();
    let (_arena, mut client) = stage.client(&world(&hidden));
    let mut tried = 0;
    for (root, base) in BASES {
        let (shallow, deep) = (client.go(base), client.go(if root == "hermes" { DEEP } else { base }));
        for line in names::of(&hidden, root) {
            // What the protocol gives a meaning of its own, or the tree.
            if line.name == b".." {
                continue;
            }
            for fid in [shallow, deep] {
                for names in [&[&line.name[..]][..], &[&line.name, b"inside"], &[&line.name, b".."]] {
                    refused(client.walk(fid, 900, names), why::NOT_FOUND);
                }
            }
            refused(client.walk(shallow, 900, &[b"no", &line.name[..]]), why::NOT_FOUND);
            tried += 1;
        }
    }
    assert!(tried > 2000, "only {tried} names were tried");
    refused(client.stat(900), why::UNKNOWN_FID);
}

fn hidden_do_not_list(stage: &Stage<'_>) {
    let innocent = innocent();
    let lines: Vec<Line> = hidden().into_iter().chain(innocent.clone()).collect();
    let (_arena, mut client) = stage.client(&world(&lines));
    for (root, base) in BASES {
        let mut expected: Vec<Vec<u8>> =
            names::of(&innocent, root).iter().map(|line| line.name.clone()).collect();
        expected.sort();
        assert!(expected.len() > 200);
        if root == "hermes" {
            assert_eq!(client.names(DEEP), expected);
            expected.push(b"some".to_vec());
        }
        expected.sort();
        assert_eq!(client.names(base), expected, "{root}");
    }
}

fn innocent_are_served(stage: &Stage<'_>) {
    let innocent = innocent();
    let (_arena, mut client) = stage.client(&world(&innocent));
    for (root, base) in BASES {
        let shallow = client.go(base);
        for line in names::of(&innocent, root) {
            walked(&mut client, shallow, &[&line.name]);
            client.open(900).expect("an innocent file opens");
            assert_eq!(client.read(900, 0, 100).expect("a read"), b"seen", "{}", line.name.escape_ascii());
            client.clunk(900).expect("a clunk");
        }
    }
    let deep = client.go(DEEP);
    for line in names::of(&innocent, "hermes") {
        walked(&mut client, deep, &[&line.name, b"inside"]);
        client.clunk(900).expect("a clunk");
    }
}

#[track_caller]
fn walked(client: &mut Client, from: u32, names: &[&[u8]]) {
    let qids = client.walk(from, 900, names).unwrap_or_else(|r| panic!("{}: {r:?}", names[0].escape_ascii()));
    assert_eq!(qids.len(), names.len(), "{}", names[0].escape_ascii());
}

fn hiding_takes_effect(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&WorldSpec::new().file("hermes/dir/notes.txt", "seen"));
    let (walked, open) = (client.go("hermes/dir/notes.txt"), client.open_path("hermes/dir/notes.txt"));
    assert_eq!(client.read(open, 0, 100).expect("a read"), b"seen");
    arena.edit(&Edit::rename("hermes/dir/notes.txt", "hermes/dir/token"));
    refused(client.stat(walked), why::NOT_FOUND);
    refused(client.open(walked), why::NOT_FOUND);
    refused(client.read(open, 0, 100), why::NOT_FOUND);
    assert_eq!(client.names("hermes/dir"), [b""; 0]);
    arena.edit(&Edit::rename("hermes/dir/token", "hermes/dir/notes.txt"));
    assert_eq!(client.read(open, 0, 100).expect("a read"), b"seen");
    arena.edit(&Edit::rename("hermes/dir", "hermes/.ssh"));
    refused(client.read(open, 0, 100), why::NOT_FOUND);
    refused(client.stat(walked), why::NOT_FOUND);
    assert!(client.try_go("hermes/.ssh/notes.txt").is_err());
}

fn databases_stay_shut(stage: &Stage<'_>) {
    let database = [&b"SQLite format 3\0"[..], &[0; 100]].concat();
    let spec = WorldSpec::new()
        .file("omp/notes.txt", &database)
        .file("omp/history.db", &database)
        .file("hermes/state.db", &database)
        .file("hermes/history.db", &database)
        .file("omp/later.txt", "not yet one");
    let (arena, mut client) = stage.client(&spec);
    assert_eq!(client.names("omp"), [&b"history.db"[..], b"later.txt", b"notes.txt"]);
    assert_eq!(client.names("hermes"), [b"state.db"]);
    for served in ["omp/history.db", "hermes/state.db"] {
        assert_eq!(client.contents(served), database, "{served}");
    }
    let fid = client.go("omp/notes.txt");
    assert_eq!(client.stat(fid).expect("it stats").length, 116);
    let shut = crate::check::Why {
        plain: "a database that is not on the list: opening is not permitted",
        errno: Some(1),
    };
    refused(client.open(fid), shut);
    let open = client.open_path("omp/later.txt");
    assert_eq!(client.read(open, 0, 100).expect("a read"), b"not yet one");
    arena.edit(&Edit::write("omp/later.txt", &database));
    refused(client.read(open, 0, 1000), shut);
}

fn parts_of_roots(stage: &Stage<'_>) {
    let spec = [
        "history.jsonl",
        "todos/x",
        "projects/p/s.jsonl",
        "sessions/s.jsonl",
        "session_index.jsonl",
        "skills/k/x",
    ]
    .iter()
    .fold(WorldSpec::new(), |spec, path| {
        spec.file(format!("claude/{path}"), "seen").file(format!("codex/{path}"), "seen")
    });
    let (_arena, mut client) = stage.client(&spec);
    assert_eq!(client.names("claude"), [&b"history"[..], b"projects", b"skills"]);
    assert_eq!(client.names("codex"), [&b"history"[..], b"session-index", b"sessions"]);
    for (path, served) in [
        ("claude/history", true),
        ("claude/projects/p/s.jsonl", true),
        ("claude/skills/k/x", true),
        ("claude/history.jsonl", false),
        ("claude/todos", false),
        ("claude/sessions", false),
        ("codex/history", true),
        ("codex/session-index", true),
        ("codex/sessions/s.jsonl", true),
        ("codex/projects", false),
        ("codex/session_index.jsonl", false),
        ("codex/todos/x", false),
    ] {
        assert_eq!(client.try_go(path).is_ok(), served, "{path}");
    }
    assert_eq!(client.contents("claude/history"), b"seen");
    assert_eq!(client.contents("codex/session-index"), b"seen");
}

fn twins_are_one(stage: &Stage<'_>) {
    let spec = WorldSpec::new().file("claude/skills/sing/SKILL.md", "la").file("omp/skills/dance.md", "");
    let (_arena, mut client) = stage.client(&spec);
    for (one, other) in [
        ("claude/skills/sing/SKILL.md", "skills/claude/sing/SKILL.md"),
        ("claude/skills/sing", "skills/claude/sing"),
        ("omp/skills/dance.md", "skills/omp/dance.md"),
    ] {
        let [one, other] = [client.go(one), client.go(other)];
        assert_eq!(client.stat(one).expect("a stat"), client.stat(other).expect("a stat"));
    }
}

/// The names as files in every base, and as directories with a file inside at the second depth.
fn world(lines: &[Line]) -> WorldSpec {
    let mut spec = WorldSpec::new().in_memory().dir("claude/projects").dir("codex/sessions").dir(DEEP);
    let at = |directory: &str, name: &[u8]| [directory.as_bytes(), b"/", name].concat();
    for (root, base) in BASES {
        for line in names::of(lines, root).into_iter().filter(|line| line.exists) {
            spec = spec.file(at(base, &line.name), "seen");
        }
    }
    for line in names::of(lines, "hermes").into_iter().filter(|line| line.exists) {
        spec = spec.file(at(DEEP, &[&line.name[..], b"/inside"].concat()), "");
    }
    spec
}
