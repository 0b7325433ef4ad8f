//! Walking.

use proto::QTDIR;

use crate::cases::{NOTES, small};
use crate::check::{ROOT, refused, refused_somehow, why};
use crate::suite::{Case, Stage};
use crate::world::WorldSpec;

pub(super) const CASES: &[Case] = &[
    Case::new("11", "a walk of no names clones a fid, of a file too", clones),
    Case::new("12", "newfid must be free, or the fid itself, which then moves", binds_newfid),
    Case::new("13", "a walk that ends early binds nothing", partial_walk_binds_nothing),
    Case::new("14", "a clunk of a fid that was never bound is refused, and harmless", clunk_of_unbound),
    Case::new("15", "sixteen names are walked, seventeen are refused", counts_names),
    Case::new("16", "`..` stays in the tree, and `.` is no name", parents_stay_inside),
    Case::new("17", "names that are none are not found", malformed_names),
    Case::new("18", "nothing is below a file", file_is_no_directory),
    Case::new("19", "an open fid may be walked from, but not moved", walks_from_open),
];

const NONE: &[&str] = &[];

fn clones(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    for path in ["hermes/notes.txt", "hermes/dir", ""] {
        let fid = client.go(path);
        let newfid = client.fresh_fid();
        assert!(client.walk(fid, newfid, NONE).expect("a clone").is_empty());
        assert_eq!(client.stat(newfid), client.stat(fid), "{path}");
        client.clunk(fid).expect("a clunk");
        client.open(newfid).expect("the clone outlives the original");
    }
    refused(client.walk(777, 778, NONE), why::UNKNOWN_FID);
}

fn binds_newfid(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let (dir, file) = (client.go("hermes/dir"), client.go("hermes/notes.txt"));
    let before = client.stat(file).expect("a stat");
    refused(client.walk(dir, file, &["a.txt"]), why::FID_IN_USE);
    refused(client.walk(dir, file, NONE), why::FID_IN_USE);
    assert_eq!(client.stat(file).expect("a stat"), before);
    let walked = client.walk(dir, dir, &["sub", "c.txt"]).expect("a walk onto itself");
    assert_eq!(client.stat(dir).expect("a stat").qid, walked[1]);
    assert!(client.walk(dir, dir, NONE).expect("a clone onto itself").is_empty());
    assert_eq!(client.stat(dir).expect("a stat").qid, walked[1]);
}

fn partial_walk_binds_nothing(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let hermes = client.go("hermes");
    let dir = client.go("hermes/dir");
    let qid = client.stat(dir).expect("a stat").qid;
    for rest in [&["nope"][..], &["nope", "x"], &["a.txt", "x"], &["..", "nope"]] {
        let names = [&["dir"], rest].concat();
        let walked = client.walk(hermes, 900, &names).expect("the first name is there");
        assert!(walked.len() < names.len() && walked[0] == qid, "{names:?}: {walked:?}");
        refused(client.stat(900), why::UNKNOWN_FID);
    }
    let before = client.stat(hermes).expect("a stat");
    assert_eq!(client.walk(hermes, hermes, &["dir", "nope", "x"]).expect("a partial walk"), [qid]);
    assert_eq!(client.stat(hermes).expect("the fid has not moved"), before);
    for (fid, newfid) in [(hermes, 900), (hermes, hermes)] {
        refused(client.walk(fid, newfid, &["nope", "x"]), why::NOT_FOUND);
    }
    refused(client.stat(900), why::UNKNOWN_FID);
}

fn clunk_of_unbound(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let hermes = client.go("hermes");
    assert_eq!(client.walk(hermes, 900, &["dir", "nope"]).expect("a partial walk").len(), 1);
    refused(client.clunk(900), why::UNKNOWN_FID);
    assert_eq!(client.walk(hermes, 900, &["dir"]).expect("the number is free").len(), 1);
    client.clunk(900).expect("a clunk");
    client.expect_alive();
}

fn counts_names(stage: &Stage<'_>) {
    let names: Vec<String> = (0..17).map(|depth| format!("d{depth}")).collect();
    let (_arena, mut client) = stage.client(&WorldSpec::new().dir(format!("hermes/{}", names.join("/"))));
    let hermes = client.go("hermes");
    let walked = client.walk(hermes, 900, &names[..16]).expect("sixteen names");
    assert_eq!(walked.len(), 16);
    assert_eq!(client.stat(900).expect("a stat").qid, walked[15]);
    refused_somehow(client.walk(hermes, 901, &names));
    refused(client.stat(901), why::UNKNOWN_FID);
    refused_somehow(client.walk(hermes, 901, &[".."; 300]));
    client.expect_alive();
}

fn parents_stay_inside(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let root = client.stat(ROOT).expect("a stat").qid;
    assert_eq!(client.walk(ROOT, 900, &[".."; 16]).expect("sixteen parents"), [root; 16]);
    assert_eq!(client.stat(900).expect("a stat").qid, root);
    let dir = client.go("hermes/dir");
    let (dir_qid, hermes_qid) = (client.stat(dir).expect("a stat").qid, {
        let hermes = client.go("hermes");
        client.stat(hermes).expect("a stat").qid
    });
    let walked = client.walk(dir, 901, &["..", "dir", "sub", "..", "a.txt"]).expect("`..` in the middle");
    assert_eq!((walked[0], walked[1], walked[3]), (hermes_qid, dir_qid, dir_qid));
    assert_eq!(walked[4].kind & QTDIR, 0);
    assert_eq!(client.walk(dir, 902, &["..", "..", "..", ".."]).expect("out and beyond")[1..], [root; 3]);
    for fid in [ROOT, dir] {
        refused(client.walk(fid, 903, &["."]), why::NOT_FOUND);
        refused(client.walk(fid, 903, &["../x"]), why::NOT_FOUND);
        refused(client.walk(fid, 903, &["../../etc/passwd"]), why::NOT_FOUND);
    }
    assert_eq!(client.walk(dir, 904, &["..", "."]).expect("a partial walk"), [hermes_qid]);
}

fn malformed_names(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let long = vec![b'x'; 256];
    let longest = vec![b'x'; 60_000];
    for path in ["", "hermes", "hermes/dir"] {
        let fid = client.go(path);
        for name in [
            &b""[..],
            b"/",
            b"a/b",
            b"/a.txt",
            b"a.txt/",
            b"dir/a.txt",
            b"\0",
            b"a.txt\0",
            b"a\0.txt",
            b"\xff",
            b"a\xc0\xaf",
            b"\xed\xa0\x80",
            &long,
            &longest,
        ] {
            refused(client.walk(fid, 900, &[name]), why::NOT_FOUND);
            refused(client.stat(900), why::UNKNOWN_FID);
        }
    }
}

fn file_is_no_directory(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let file = client.go("hermes/notes.txt");
    for name in ["..", "x", ".", "a.txt"] {
        refused(client.walk(file, 900, &[name]), why::NOT_A_DIRECTORY);
        refused(client.walk(file, file, &[name]), why::NOT_A_DIRECTORY);
    }
    let hermes = client.go("hermes");
    let walked = client.walk(hermes, 900, &["notes.txt", ".."]).expect("a partial walk");
    assert_eq!(walked, [client.stat(file).expect("a stat").qid]);
}

fn walks_from_open(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let (dir, file) = (client.open_path("hermes/dir"), client.open_path("hermes/notes.txt"));
    assert_eq!(client.walk(dir, 900, &["a.txt"]).expect("a walk from an open directory").len(), 1);
    client.open(900).expect("what it leads to is not open yet");
    client.walk(file, 901, NONE).expect("a clone of an open file");
    client.open(901).expect("a clone is not open");
    for names in [NONE, &["a.txt"], &[".."]] {
        refused(client.walk(dir, dir, names), why::BAD_FID_USE);
    }
    refused_somehow(client.walk(file, file, NONE));
    assert_eq!(client.read_from(file, 0, 100), NOTES);
    assert_eq!(client.list_all(dir, 8192).len(), 3);
}
