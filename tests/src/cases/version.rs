//! Agreeing on a version.

use proto::{Dialect, NOFID, NOTAG, Names, Tmessage};

use crate::cases::{NOTES, small};
use crate::check::{BULK, Client, Event, PATIENCE, ROOT, refused, refused_somehow, why};
use crate::rig::Need;
use crate::slow::LATE_READ;
use crate::suite::{Case, Stage};
use crate::world::WorldSpec;

pub(super) const CASES: &[Case] = &[
    Case::new("1", "an agreed msize is no larger than asked, and the tag is NOTAG", agrees_on_msize),
    Case::new("2", "an unknown suffix is cut, and anything else is `unknown`", cuts_at_the_dot),
    Case::new("3", "an msize in which no stat fits is refused", refuses_small_msize),
    Case::new("4", "nothing is served before a version is agreed on", serves_nothing_before),
    Case::new("5", "a second Tversion clunks every fid, and the new msize holds", begins_anew),
    Case::new("5w", "a second Tversion drops what is pending without a reply", drops_pending)
        .needs(&[Need::Waiting]),
    Case::new("6", "a version with a NUL is `unknown`", nul_is_unknown),
];

fn agrees_on_msize(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    for asked in [4096, 8192, 65_536, 1 << 20, u32::MAX] {
        let mut client = arena.stranger();
        let (agreed, version) = client.version(asked, stage.dialect.name()).expect("a common msize");
        assert_eq!(version, stage.dialect.name());
        assert!(agreed <= asked && agreed >= 4096, "asked for {asked}, agreed on {agreed}");
        client.attach(ROOT, "").expect("an attach after the agreement");
    }
}

fn cuts_at_the_dot(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    let mut client = arena.stranger();
    for (said, answer) in [
        ("9P2000.xyz", "9P2000"),
        ("9P2000.", "9P2000"),
        ("9P2000.L.1", "9P2000"),
        ("XP2000", "unknown"),
        ("9P1999", "unknown"),
        ("9p2000", "unknown"),
        ("", "unknown"),
        ("unknown", "unknown"),
    ] {
        let (_, version) = client.version(8192, said).expect("never a refusal");
        assert_eq!(version, answer, "to {said:?}");
    }
    client.greet(8192);
    client.attach(ROOT, "").expect("an attach after the agreement");
}

fn refuses_small_msize(stage: &Stage<'_>) {
    let longest = "n".repeat(255);
    let arena = stage.start(&WorldSpec::new().file(format!("hermes/{longest}"), "x"));
    let floor = if stage.dialect == Dialect::Plain { 512 } else { 4096 };
    for asked in [0, 1, 7, 24, 100, floor - 1] {
        refused_somehow(arena.stranger().version(asked, stage.dialect.name()));
    }
    let mut client = arena.client_of(floor);
    let fid = client.go(format!("hermes/{longest}"));
    let info = client.stat(fid).expect("a stat of the longest name fits the least msize");
    assert!(info.name.is_none_or(|name| name == longest.as_bytes()));
}

fn serves_nothing_before(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    let n_uname = |dialect| if dialect == Dialect::Plain { None } else { Some(0) };
    let attach = Tmessage::Attach {
        fid: ROOT,
        afid: NOFID,
        uname: b"glenda",
        aname: b"",
        n_uname: n_uname(stage.dialect),
    };
    let walk = Tmessage::Walk { fid: ROOT, newfid: 1, names: Names::EMPTY };
    for message in
        [attach, walk, Tmessage::Clunk { fid: ROOT }, Tmessage::Read { fid: 0, offset: 0, count: 10 }]
    {
        // Before there is a dialect, a refusal is told in the plainest.
        let mut client = Client::new(arena.connect(), Dialect::Plain);
        client.expect_answer(1, &message);
        client.send_bytes(&crate::check::encode(stage.dialect, 1, &message));
        client.expect_refused_or_closed();
    }
    arena.client().expect_alive();
}

fn begins_anew(stage: &Stage<'_>) {
    let arena = stage.start(&small().pattern("hermes/large", 1, 100_000));
    let mut client = arena.client();
    let fid = client.open_path("hermes/large");
    assert!(client.read(fid, 0, 50_000).expect("a read").len() > 8192);
    client.greet(8192);
    for gone in [ROOT, fid] {
        refused(client.stat(gone), why::UNKNOWN_FID);
    }
    client.attach(ROOT, "").expect("the number is free again");
    let again = client.open_path("hermes/large");
    let data = client.read(again, 0, 50_000).expect("a read, clamped to the new msize");
    assert!(!data.is_empty() && data.len() < 8192);
    let mut too_long = vec![0; 8193];
    too_long[..4].copy_from_slice(&8193_u32.to_le_bytes());
    client.send_bytes(&too_long);
    client.expect_closed();
}

fn drops_pending(stage: &Stage<'_>) {
    let path = format!("hermes/{LATE_READ}");
    let (arena, mut client) = stage.client(&small().file(&path, NOTES));
    let fid = client.open_path(&path);
    client.send(0x9001, &Tmessage::Read { fid, offset: 0, count: 100 });
    client.send(0x9002, &Tmessage::Flush { oldtag: 0x9001 });
    client.send(0x9003, &Tmessage::Read { fid, offset: 0, count: 100 });
    // The flush may be answered before the version; the client would complain of anything else.
    let version = Tmessage::Version { msize: BULK, version: stage.dialect.name().as_bytes() };
    client.send(NOTAG, &version);
    loop {
        let Event::Frame(frame) = client.event(PATIENCE) else { panic!("no Rversion came") };
        if frame.tag() == NOTAG {
            break;
        }
        assert_eq!(frame.tag(), 0x9002, "{frame:?}");
    }
    arena.gate().open();
    client.expect_quiet();
    client.attach(ROOT, "").expect("an attach after the agreement");
    assert_eq!(client.contents(&path), NOTES);
}

fn nul_is_unknown(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    let mut client = arena.stranger();
    for suffix in ["\0", "\0x"] {
        let said = format!("{}{suffix}", stage.dialect.name());
        let (_, version) = client.version(8192, said).expect("never a refusal");
        assert_eq!(version, "unknown");
    }
}
