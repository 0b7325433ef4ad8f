//! Lookup, `..` and attach.

use backend::Node;
use backend::host::{Errno, Kind};
use proptest::prelude::*;
use proto::{QTDIR, Qid, Refusal};

use crate::client::Client;
use crate::machine::Machine;

fn furnished() -> Machine {
    let machine = Machine::new();
    machine.dir("claude/projects");
    machine.dir("claude/projects/-home-me");
    machine.file("claude/projects/-home-me/1.jsonl", "{}\n");
    machine.dir("claude/projects/-home-me/memory");
    machine.dir("claude/skills");
    machine.dir("claude/skills/brew");
    machine.file("claude/skills/brew/SKILL.md", "hot\n");
    machine.file("claude/history.jsonl", "{}\n");
    machine.dir("codex/sessions");
    machine.file("codex/session_index.jsonl", "{}\n");
    machine.file("codex/history.jsonl", "{}\n");
    machine.dir("codex/skills");
    machine.dir("omp/skills");
    machine.file("hermes/notes.md", "n\n");
    machine
}

fn refused<T: std::fmt::Debug>(result: Result<T, Refusal>) -> Refusal {
    result.unwrap_err()
}

#[test]
fn every_entry_of_the_tree_resolves_when_all_targets_are_there() {
    let mut client = Client::new(&furnished());
    for path in [
        "README",
        "pid",
        "uptime",
        "claude",
        "codex",
        "omp",
        "hermes",
        "dsh",
        "skills",
        "active",
        "claude/projects",
        "claude/history",
        "claude/skills",
        "codex/sessions",
        "codex/session-index",
        "codex/history",
        "skills/claude",
        "skills/codex",
        "skills/omp",
        "active/claude",
        "active/codex",
        "active/omp",
        "active/hermes",
        "active/dsh",
        "hermes/notes.md",
        "claude/projects/-home-me/1.jsonl",
    ] {
        assert!(client.find(path).is_ok(), "{path}");
    }
}

#[test]
fn nothing_else_resolves() {
    let machine = furnished();
    machine.file("claude/notes.md", "private");
    machine.file("codex/notes.md", "private");
    machine.dir("hermes/skills");
    let mut client = Client::new(&machine);
    for path in [
        "nope",
        "claude/notes.md",
        "claude/history.jsonl",
        "codex/skills",
        "codex/notes.md",
        "skills/hermes",
        "skills/dsh",
        "active/nope",
        "active/claude/1",
        "claude/projects/nope",
        "codex/session_index.jsonl",
    ] {
        assert_eq!(refused(client.find(path)), Refusal::NOT_FOUND, "{path}");
    }
}

#[test]
fn lasting_entries_are_there_without_a_target_and_the_others_are_not() {
    for (machine, homes) in [(Machine::bare(), 1), (Machine::new(), 0)] {
        let mut client = Client::new(&machine);
        for (path, derived) in [
            ("claude/projects", 1),
            ("codex/sessions", 1),
            ("skills", 1),
            ("active", 1),
            ("omp", homes),
            ("hermes", homes),
            ("dsh", homes),
        ] {
            let (qid, _) = client.find(path).unwrap();
            assert_eq!(qid.kind, QTDIR);
            assert_eq!(qid.path >> 63, derived, "{path}");
            assert_eq!(client.names(path).len(), if path == "active" { 5 } else { 0 }, "{path}");
            assert_eq!(refused(client.find(&format!("{path}/x"))), Refusal::NOT_FOUND);
        }
        for path in [
            "claude/history",
            "claude/skills",
            "codex/history",
            "codex/session-index",
            "skills/claude",
            "skills/codex",
            "skills/omp",
        ] {
            assert_eq!(refused(client.find(path)), Refusal::NOT_FOUND, "{path}");
        }
    }
}

#[test]
fn a_lasting_entry_comes_alive_when_its_target_is_made() {
    let machine = Machine::bare();
    let mut client = Client::new(&machine);
    let (stub, projects) = client.find("claude/projects").unwrap();
    let open = client.open_path("claude/projects").unwrap();
    assert!(client.list(&open, 0, 8192).unwrap().0.is_empty());

    machine.dir("claude");
    machine.dir("claude/projects");
    machine.dir("claude/projects/p");
    let (qids, end) = client.walk(&projects, "p").unwrap();
    assert!(end.is_some());
    assert_eq!(qids[0].path >> 63, 0);
    assert_ne!(client.stat(&projects).unwrap().qid.path, stub.path);
    assert_eq!(client.list(&open, 0, 8192).unwrap().0[0].name, "p");

    machine.remove("claude/projects");
    assert_eq!(client.stat(&projects).unwrap().qid, stub);
}

#[test]
fn a_target_of_the_wrong_kind_is_no_target() {
    let machine = Machine::new();
    machine.file("claude/projects", "a file");
    machine.dir("claude/history.jsonl");
    machine.make("claude/skills", Kind::Link, b"");
    machine.make("codex/history.jsonl", Kind::Other, b"");
    machine.make("omp", Kind::Link, b"");
    let mut client = Client::new(&machine);
    for path in ["claude/projects", "omp"] {
        assert_eq!(client.find(path).unwrap().0.path >> 63, 1, "{path}");
        assert!(client.names(path).is_empty());
    }
    for path in ["claude/history", "claude/skills", "codex/history", "skills/claude"] {
        assert_eq!(refused(client.find(path)), Refusal::NOT_FOUND, "{path}");
    }
    assert_eq!(client.names("claude"), ["projects"]);
}

#[test]
fn a_walk_answers_a_qid_for_each_name_until_one_is_missing() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    let root = client.root();
    let (whole, end) = client.walk(&root, "claude/projects/-home-me/memory").unwrap();
    assert_eq!((whole.len(), end.is_some()), (4, true));
    for (path, count) in [
        ("claude/nope/x", 1),
        ("claude/projects/nope", 2),
        ("claude/projects/-home-me/nope/x", 3),
        ("claude/projects/-home-me/my-secret/x", 3),
        ("claude/projects/-home-me/1.jsonl/x", 4),
        ("active/claude/17", 2),
    ] {
        let (qids, end) = client.walk(&root, path).unwrap();
        assert_eq!((qids.len(), end.is_none()), (count, true), "{path}");
    }
    assert_eq!(refused(client.walk(&root, "nope/claude")), Refusal::NOT_FOUND);
}

#[test]
fn walk_stat_open_and_directory_records_agree_on_the_qid() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    for path in
        ["claude/projects/-home-me/1.jsonl", "claude/projects", "README", "active/dsh", "skills/claude/brew"]
    {
        let (qid, node) = client.find(path).unwrap();
        assert_eq!(client.stat(&node).unwrap().qid, qid, "{path}");
        assert_eq!(client.open(&node, crate::client::READ).unwrap().0, qid, "{path}");
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let records = client.ls(dir, 8192).unwrap();
        assert_eq!(records.iter().find(|record| record.name == name).unwrap().qid, qid, "{path}");
    }
}

#[test]
fn one_file_under_two_names_is_one_file() {
    let machine = furnished();
    machine.link("claude/projects/-home-me/1.jsonl", "hermes/copy.jsonl");
    let mut client = Client::new(&machine);
    for (one, other) in [
        ("skills/claude", "claude/skills"),
        ("skills/claude/brew/SKILL.md", "claude/skills/brew/SKILL.md"),
        ("claude/projects/-home-me/1.jsonl", "hermes/copy.jsonl"),
    ] {
        assert_eq!(client.find(one).unwrap().0, client.find(other).unwrap().0);
    }
}

#[test]
fn a_file_made_again_is_another_file() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    let before = client.find("hermes/notes.md").unwrap().0;
    machine.file("hermes/notes.md", "n\n");
    assert_ne!(client.find("hermes/notes.md").unwrap().0.path, before.path);
}

#[test]
fn qids_outlive_the_daemon() {
    let machine = furnished();
    let paths = ["", "README", "claude", "claude/projects/-home-me/1.jsonl", "dsh", "active/omp"];
    let qids =
        |client: &mut Client| -> Vec<Qid> {
            paths
                .iter()
                .map(|path| {
                    if path.is_empty() { client.attach("").unwrap().0 } else { client.find(path).unwrap().0 }
                })
                .collect()
        };
    let first = qids(&mut Client::new(&machine));
    let mut later = Client::new(&machine);
    later.pass_ms(3_600_000);
    assert_eq!(qids(&mut later), first);
    let distinct: std::collections::BTreeSet<u64> = first.iter().map(|qid| qid.path).collect();
    assert_eq!(distinct.len(), paths.len());
}

fn parent_path(client: &mut Client, from: &Node) -> u64 {
    client.walk(from, "..").unwrap().0[0].path
}

#[test]
fn dot_dot_leads_to_the_parent_in_the_tree() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    for (path, parent) in [
        ("claude", ""),
        ("skills/claude", "skills"),
        ("claude/skills", "claude"),
        ("skills/claude/brew", "skills/claude"),
        ("claude/projects/-home-me/memory", "claude/projects/-home-me"),
        ("omp", ""),
        ("active", ""),
        ("active/omp", "active"),
    ] {
        let node = client.node(path);
        let expected =
            if parent.is_empty() { client.attach("").unwrap().0 } else { client.find(parent).unwrap().0 };
        assert_eq!(client.walk(&node, "..").unwrap().0, [expected], "{path}");
    }
}

#[test]
fn two_mounts_of_one_directory_have_ways_up_of_their_own() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    let (skills, claude) = (client.find("skills").unwrap().0.path, client.find("claude").unwrap().0.path);
    let one = client.node("skills/claude/brew");
    let other = client.node("claude/skills/brew");
    assert_eq!(client.walk(&one, "../..").unwrap().0[1].path, skills);
    assert_eq!(client.walk(&other, "../..").unwrap().0[1].path, claude);
}

#[test]
fn dot_dot_at_the_root_is_the_root() {
    let mut client = Client::new(&furnished());
    let (qid, root) = client.attach("/").unwrap();
    assert_eq!(client.walk(&root, "..").unwrap().0, [qid]);
    assert_eq!(client.walk(&root, "../../claude").unwrap().0[..2], [qid, qid]);
    assert_eq!(client.stat(&root).unwrap().qid, qid);
}

#[test]
fn static_mirrored_and_dot_dot_mix_in_any_order() {
    let mut client = Client::new(&furnished());
    let root = client.root();
    let path = "claude/projects/-home-me/memory/../../../../skills/claude/brew/../../../active/omp/../../pid";
    let steps: Vec<&str> = path.split('/').collect();
    // In walks of at most 16 names.
    let (first, middle) = client.walk(&root, &steps[..9].join("/")).unwrap();
    let (second, end) = client.walk(&middle.unwrap(), &steps[9..].join("/")).unwrap();
    let qids = [first, second].concat();
    assert_eq!(qids.len(), steps.len());
    let mut expected = Vec::new();
    for name in [
        "claude",
        "claude/projects",
        "claude/projects/-home-me",
        "claude/projects/-home-me/memory",
        "claude/projects/-home-me",
        "claude/projects",
        "claude",
        "",
        "skills",
        "skills/claude",
        "skills/claude/brew",
        "skills/claude",
        "skills",
        "",
        "active",
        "active/omp",
        "active",
        "",
        "pid",
    ] {
        let qid = if name.is_empty() { client.attach("").unwrap().0 } else { client.find(name).unwrap().0 };
        expected.push(qid);
    }
    assert_eq!(qids, expected);
    assert_eq!(client.stat(&end.unwrap()).unwrap().name, "pid");
}

#[test]
fn dot_dot_from_a_vanished_directory_is_its_parent_if_that_is_there() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    let project = client.find("claude/projects/-home-me").unwrap().0.path;
    let memory = client.node("claude/projects/-home-me/memory");
    machine.remove("claude/projects/-home-me/memory");
    assert_eq!(refused(client.walk(&memory, "x")), Refusal::NOT_FOUND);
    assert_eq!(parent_path(&mut client, &memory), project);
    machine.remove("claude/projects/-home-me");
    assert_eq!(refused(client.walk(&memory, "..")), Refusal::NOT_FOUND);
    machine.file("claude/projects/-home-me", "a file now");
    assert_eq!(refused(client.walk(&memory, "..")), Refusal::NOT_FOUND);
    let skills = client.node("skills/claude");
    machine.remove("claude/skills");
    let expected = client.find("skills").unwrap().0.path;
    assert_eq!(parent_path(&mut client, &skills), expected);
}

#[test]
fn a_plain_file_leads_nowhere() {
    let mut client = Client::new(&furnished());
    for path in ["README", "claude/history", "claude/projects/-home-me/1.jsonl"] {
        let node = client.node(path);
        for name in ["x", "..", "secret"] {
            assert_eq!(refused(client.walk(&node, name)), Refusal::NOT_A_DIRECTORY, "{path}");
        }
    }
    // Part of the way.
    let root = client.root();
    assert_eq!(client.walk(&root, "pid/..").unwrap().0.len(), 1);
    assert_eq!(client.walk(&root, "claude/projects/-home-me/1.jsonl/../x").unwrap().0.len(), 4);
}

#[test]
fn names_that_cannot_be_names_do_not_exist() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    for dir in ["claude", "active", "claude/projects/-home-me", "active/dsh"] {
        let node = client.node(dir);
        for name in
            [&b"."[..], b"", b"a/b", b"../x", b"/", b"a\0b", b"\xff\xfe", &[b'x'; 300], &[b'x'; 60_000]]
        {
            machine.world().calls.clear();
            assert_eq!(refused(client.walk_names(&node, &[name])), Refusal::NOT_FOUND, "{dir}");
            assert!(machine.world().calls.is_empty(), "{dir}: refused before the machine is touched");
        }
    }
    let root = client.root();
    assert_eq!(refused(client.walk(&root, "./claude")), Refusal::NOT_FOUND);
}

#[test]
fn hidden_names_and_links_do_not_resolve() {
    let machine = furnished();
    machine.file("hermes/auth.json", "sk-1");
    machine.dir("hermes/.ssh");
    machine.file("hermes/.ssh/known_hosts", "x");
    machine.file("hermes/agent.db", "x");
    machine.make("hermes/link", Kind::Link, b"");
    machine.dir("claude/projects/-home-me-auth-service");
    let mut client = Client::new(&machine);
    for path in [
        "hermes/auth.json",
        "hermes/.ssh",
        "hermes/.ssh/known_hosts",
        "hermes/agent.db",
        "hermes/link",
        "hermes/link/x",
        "claude/projects/-home-me-auth-service",
    ] {
        assert_eq!(refused(client.find(path)), Refusal::NOT_FOUND, "{path}");
    }
    let hermes = client.node("hermes");
    machine.world().calls.clear();
    assert_eq!(refused(client.walk(&hermes, "auth.json")), Refusal::NOT_FOUND);
    assert!(machine.world().calls.is_empty(), "a hidden name is not looked up");
}

#[test]
fn the_host_says_why_a_name_does_not_resolve() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    let projects = client.node("claude/projects");
    machine.inode("claude/projects/-home-me", |inode| inode.broken = Some(Errno::ACCESS));
    assert_eq!(refused(client.walk(&projects, "-home-me")), Refusal::PERMISSION_DENIED);
    machine.inode("claude/projects/-home-me", |inode| inode.broken = Some(Errno::NAMETOOLONG));
    assert_eq!(refused(client.walk(&projects, "-home-me")), Refusal::NOT_FOUND);
    machine.inode("claude/projects/-home-me", |inode| inode.broken = Some(Errno::IO));
    assert_eq!(refused(client.walk(&projects, "-home-me")), Refusal::IO);
}

#[test]
fn a_walk_below_a_mirror_is_one_call() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    let projects = client.node("claude/projects");
    machine.world().calls.clear();
    client.walk(&projects, "-home-me/1.jsonl").unwrap();
    assert_eq!(machine.world().calls, ["walk"]);
}

#[test]
fn what_is_not_at_hand_comes_back_whole() {
    let machine = furnished();
    machine.world().cached = false;
    let mut client = Client::new(&machine);
    let root = client.root();
    let (qids, end) = client.walk(&root, "claude/projects/-home-me/1.jsonl").unwrap();
    assert_eq!((qids.len(), end.is_some(), client.cold), (4, true, 1));
    client.find("README").unwrap();
    assert_eq!(client.cold, 1, "a static entry waits for nothing");
    let target = client.find("claude/projects").unwrap().0;
    assert_eq!((client.cold, target.path >> 63), (2, 0), "what would wait is not taken for missing");
}

#[test]
fn aname_is_a_path_in_the_tree_and_dot_dot_stays_there() {
    let machine = furnished();
    let mut client = Client::new(&machine);
    assert_eq!(client.attach("").unwrap().0, client.attach("/").unwrap().0);
    for (aname, path) in [
        ("/active", "active"),
        ("active", "active"),
        ("/active/claude/", "active/claude"),
        ("//claude//projects", "claude/projects"),
        ("/skills/claude/brew", "skills/claude/brew"),
    ] {
        let (qid, root) = client.attach(aname).unwrap();
        assert_eq!(qid, client.find(path).unwrap().0, "{aname}");
        assert_eq!(client.walk(&root, "..").unwrap().0, [qid], "{aname}");
        assert_eq!(client.stat(&root).unwrap().qid, qid);
    }
    let (qid, root) = client.attach("/claude/projects").unwrap();
    let (qids, _) = client.walk(&root, "-home-me/memory/../../../..").unwrap();
    assert_eq!(qids[4..], [qid, qid]);
    // Below one attach as below another: the depth belongs to the node.
    let (_, all) = client.attach("").unwrap();
    assert_eq!(client.walk(&all, "claude/projects/../..").unwrap().0.len(), 4);
}

#[test]
fn an_aname_that_is_no_directory_is_refused() {
    let mut client = Client::new(&furnished());
    for aname in
        ["/nope", "nope", "/claude/nope", "/..", "/claude/..", "/active/../claude", ".", "/claude/notes\0"]
    {
        assert_eq!(refused(client.attach(aname)), Refusal::NOT_FOUND, "{aname}");
    }
    assert_eq!(refused(client.attach("/pid")), Refusal::NOT_A_DIRECTORY);
    assert_eq!(refused(client.attach("/pid/x")), Refusal::NOT_A_DIRECTORY);
    assert_eq!(refused(client.attach(&"x/".repeat(30_000))), Refusal::NOT_FOUND);
    assert_eq!(refused(client.attach(&format!("/hermes/{}", "x/".repeat(30_000)))), Refusal::NOT_FOUND);
}

#[test]
fn a_path_longer_than_the_kernel_takes_does_not_exist() {
    let machine = Machine::new();
    let mut path = "hermes".to_owned();
    let long = "d".repeat(200);
    while path.len() < 4300 {
        path = format!("{path}/{long}");
        machine.dir(&path);
    }
    let mut client = Client::new(&machine);
    let mut node = client.node("hermes");
    let mut length = 0;
    let refusal = loop {
        machine.world().calls.clear();
        match client.walk(&node, &long) {
            Ok((_, end)) => (node, length) = (end.unwrap(), length + 201),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!((refusal, length / 201), (Refusal::NOT_FOUND, 4096 / 201));
    assert!(machine.world().calls.is_empty());
}

/// What one walk says, name by name, from a root that walks may not leave.
fn stepwise(client: &mut Client, root: &Node, names: &[&str]) -> (Vec<Qid>, bool) {
    let (mut node, mut qids) = (root.clone(), Vec::new());
    for name in names {
        match client.walk(&node, name) {
            Ok((qid, Some(end))) => {
                qids.extend(qid);
                node = end;
            }
            Ok(_) | Err(_) => return (qids, false),
        }
    }
    (qids, true)
}

proptest! {
    #[test]
    fn a_walk_of_many_names_is_that_many_walks(
        aname in prop::sample::select(&["", "/claude", "/skills/claude", "/claude/projects/-home-me", "/active"][..]),
        names in prop::collection::vec(prop::sample::select(&[
            "..", "..", "..", "claude", "skills", "projects", "-home-me", "memory", "1.jsonl", "brew", "active", "omp",
            "nope", "auth", "", "pid",
        ][..]), 1..=16),
    ) {
        let mut client = Client::new(&furnished());
        let (_, root) = client.attach(aname).unwrap();
        let (qids, whole) = stepwise(&mut client, &root, &names);
        match client.walk(&root, &names.join("/")) {
            Ok((at_once, end)) => prop_assert_eq!((at_once, end.is_some()), (qids, whole)),
            Err(_) => prop_assert!(qids.is_empty()),
        }
    }

    #[test]
    fn what_resolves_is_what_lists(
        names in prop::collection::btree_set(
            prop::sample::select(&[
                "notes", "author-notes", "token", "a.key", "a.keys", "state.db", "x.db", ".env", "env", "config.toml",
                "configs", ".git", "git", "x~", "x.tmp", "pairing", "\u{17f}ecret", "é", " ", "webhook-1", "links",
            ][..]),
            0..12,
        ),
        kinds in prop::collection::vec(prop::sample::select(&[Kind::File, Kind::Dir, Kind::Link, Kind::Other][..]), 12),
    ) {
        let machine = Machine::new();
        for (name, kind) in names.iter().zip(kinds) {
            machine.make(&format!("hermes/{name}"), kind, b"");
        }
        let mut client = Client::new(&machine);
        let resolved: Vec<&str> =
            names.iter().copied().filter(|name| client.find(&format!("hermes/{name}")).is_ok()).collect();
        prop_assert_eq!(client.names("hermes"), resolved);
    }
}
