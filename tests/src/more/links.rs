//! Links, pipes and sockets: what is neither a file nor a directory.

use crate::check::{refused, why};
use crate::rig::Need;
use crate::suite::{Case, Stage};
use crate::world::{Edit, Entry, WorldSpec};

pub(super) const CASES: &[Case] = &[
    Case::new("links.hidden", "a link neither resolves nor lists, wherever it leads", links_are_nothing),
    Case::new("links.swapped", "a link swapped in for a directory leads nowhere", swapped_links_lead_nowhere),
    Case::new(
        "links.base",
        "a root may itself be a link, and is then what that leads to",
        bases_may_be_links,
    )
    .needs(&[Need::Disk]),
    Case::new(
        "special.files",
        "a pipe and a socket stat as empty files, and do not open",
        special_files_stay_shut,
    ),
];

fn link(to: &str) -> Entry {
    Entry::Link(to.as_bytes().to_vec())
}

fn links_are_nothing(stage: &Stage<'_>) {
    let spec = WorldSpec::new()
        .file("hermes/real/notes.txt", "seen")
        .with("hermes/to-file", link("real/notes.txt"))
        .with("hermes/to-dir", link("real"))
        .with("hermes/real/up", link(".."))
        .with("hermes/real/self", link("self"))
        .with("hermes/real/absolute", link("/etc/hostname"))
        .with("hermes/real/root", link("/"))
        .with("hermes/real/dangling", link("nowhere"))
        .with("hermes/real/token.link.md", link("notes.txt"));
    let (_arena, mut client) = stage.client(&spec);
    assert_eq!(client.names("hermes"), [b"real"]);
    assert_eq!(client.names("hermes/real"), [b"notes.txt"]);
    let (hermes, real) = (client.go("hermes"), client.go("hermes/real"));
    for (fid, name) in
        [(hermes, "to-file"), (hermes, "to-dir"), (real, "up"), (real, "self"), (real, "absolute")]
    {
        refused(client.walk(fid, 900, &[name]), why::NOT_FOUND);
        refused(client.walk(fid, 900, &[name, "notes.txt"]), why::NOT_FOUND);
    }
    for path in
        ["hermes/to-dir/notes.txt", "hermes/real/up/real", "hermes/real/root/etc", "hermes/real/dangling"]
    {
        assert!(client.try_go(path).is_err(), "{path}");
    }
    assert_eq!(client.contents("hermes/real/notes.txt"), b"seen");
}

fn swapped_links_lead_nowhere(stage: &Stage<'_>) {
    let spec = WorldSpec::new()
        .file("hermes/dir/notes.txt", "seen")
        .file("hermes/other/notes.txt", "not to be seen");
    let (arena, mut client) = stage.client(&spec);
    let (walked, dir) = (client.go("hermes/dir/notes.txt"), client.go("hermes/dir"));
    let (open, open_dir) = (client.open_path("hermes/dir/notes.txt"), client.open_path("hermes/dir"));
    assert_eq!(client.read(open, 0, 100).expect("a read"), b"seen");
    arena.edit(&Edit::rename("hermes/dir", "hermes/moved"));
    arena.edit(&Edit::make("hermes/dir", link("other")));
    refused(client.stat(walked), why::NOT_FOUND);
    refused(client.open(walked), why::NOT_FOUND);
    refused(client.walk(dir, 900, &["notes.txt"]), why::NOT_FOUND);
    refused(client.read(open, 0, 100), why::NOT_FOUND);
    refused(client.list(open_dir, 0, 8192), why::NOT_FOUND);
    assert_eq!(client.names("hermes"), [&b"moved"[..], b"other"]);
    arena.edit(&Edit::remove("hermes/dir"));
    arena.edit(&Edit::rename("hermes/moved", "hermes/dir"));
    assert_eq!(client.read(open, 0, 100).expect("a read"), b"seen");
}

fn bases_may_be_links(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&WorldSpec::new().file("hermes/notes.txt", "seen"));
    arena.edit(&Edit::rename("hermes", "elsewhere"));
    assert!(client.try_go("hermes/notes.txt").is_err());
    assert!(client.names("hermes").is_empty(), "a root without its directory is empty");
    arena.edit(&Edit::make("hermes", link("elsewhere")));
    assert_eq!(client.contents("hermes/notes.txt"), b"seen");
    assert_eq!(client.names("hermes"), [b"notes.txt"]);
}

fn special_files_stay_shut(stage: &Stage<'_>) {
    let spec = WorldSpec::new()
        .file("hermes/a.jsonl", "seen")
        .with("hermes/pipe.jsonl", Entry::Fifo)
        .with("hermes/sock.jsonl", Entry::Socket);
    let (_arena, mut client) = stage.client(&spec);
    assert_eq!(client.names("hermes"), [&b"a.jsonl"[..], b"pipe.jsonl", b"sock.jsonl"]);
    for name in ["pipe.jsonl", "sock.jsonl"] {
        let fid = client.go(format!("hermes/{name}"));
        let info = client.stat(fid).expect("a stat");
        assert_eq!((info.dir, info.length, info.perm, info.qid.kind), (false, 0, 0o444, 0), "{name}");
        refused(client.open(fid), why::NOT_REGULAR);
        refused(client.read(fid, 0, 10), why::BAD_FID_USE);
        refused(client.walk(fid, 900, &["x"]), why::NOT_A_DIRECTORY);
    }
}
