//! Attaching to the tree.

use proto::{NOFID, NONUNAME, QTDIR, Tmessage};

use crate::cases::small;
use crate::check::{BULK, ROOT, refused, refused_somehow, why};
use crate::suite::{Case, Stage};

pub(super) const CASES: &[Case] = &[
    Case::new("7", "Tauth is refused, and Tattach then works", refuses_auth),
    Case::new("8", "an attach to a fid in use or with an afid is refused", refuses_used_fids),
    Case::new("9", "a second attach is served, an unknown aname is refused", attaches_again),
    Case::new("10", "the qid of the root is one", root_has_one_qid),
];

fn refuses_auth(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    let mut client = arena.greeted(8192);
    let n_uname = client.numeric(NONUNAME);
    for afid in [1, ROOT] {
        let auth = Tmessage::Auth { afid, uname: b"glenda", aname: b"", n_uname };
        refused(client.done(&auth), why::NO_AUTH);
    }
    client.attach(ROOT, "").expect("an attach to the fid that was to authenticate");
    client.expect_alive();
}

fn refuses_used_fids(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    refused(client.attach(ROOT, ""), why::FID_IN_USE);
    let fid = client.go("hermes/notes.txt");
    refused(client.attach(fid, ""), why::FID_IN_USE);
    assert!(!client.stat(fid).expect("the fid is as it was").dir);
    for afid in [5, fid, ROOT] {
        refused_somehow(client.attach_as(900, afid, "glenda", ""));
        refused(client.stat(900), why::UNKNOWN_FID);
    }
}

fn attaches_again(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let root = client.stat(ROOT).expect("a stat of the root").qid;
    assert_eq!(client.attach_as(1, NOFID, "", "").expect("nobody's name"), root);
    assert_eq!(client.attach_as(2, NOFID, "someone else", "/").expect("another name"), root);
    let dir = client.go("hermes/dir");
    let qid = client.stat(dir).expect("a stat").qid;
    assert_eq!(client.attach(3, "/hermes/dir").expect("an attach below the root"), qid);
    assert_eq!(client.walk(3, 4, &["..", "..", "a.txt"]).expect("`..` stays there")[0], qid);
    for (fid, unknown) in
        [(10, "/nope"), (11, "/hermes/nope/x"), (12, "../x"), (13, "\u{1}"), (14, "/hermes/..x")]
    {
        refused(client.attach(fid, unknown), why::NOT_FOUND);
        refused(client.stat(fid), why::UNKNOWN_FID);
    }
    let long = "x".repeat(60_000);
    refused_somehow(client.attach(15, &long));
    client.expect_alive();
}

fn root_has_one_qid(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    let mut client = arena.greeted(BULK);
    let qid = client.attach(ROOT, "").expect("an attach");
    assert_eq!(qid.kind, QTDIR);
    assert_eq!(client.stat(ROOT).expect("a stat").qid.to_bytes(), qid.to_bytes());
    assert_eq!(client.walk(ROOT, 1, &[".."]).expect("a walk to the parent"), [qid]);
    assert_eq!(client.stat(1).expect("a stat").qid, qid);
    let mut other = arena.greeted(BULK);
    assert_eq!(other.attach(ROOT, "/").expect("an attach"), qid);
}
