//! Limits that are met: connections, fids, waiting requests, descriptors.

use std::time::{Duration, Instant};

use proto::Tmessage;

use crate::check::{BULK, Client, Event, PATIENCE, ROOT, refused_somehow};
use crate::rig::Need;
use crate::slow::LATE_READ;
use crate::suite::{ANY_ONE, Arena, Case, Stage};
use crate::world::WorldSpec;

pub(super) const CASES: &[Case] = &[
    Case::new("crowd.connections", "beyond 256 connections a further one is closed", too_many_connections)
        .speaks(ANY_ONE)
        .needs(&[Need::Stream]),
    Case::new("crowd.fids", "beyond 32768 fids of a connection a further one is refused", too_many_fids)
        .speaks(ANY_ONE),
    Case::new(
        "crowd.waiting",
        "beyond 32 waiting requests a further one is refused, and flushes are read",
        too_many_waiting,
    )
    .needs(&[Need::Waiting]),
    Case::new(
        "crowd.descriptors",
        "without a free descriptor requests fail in words, and recover",
        no_descriptors,
    )
    .needs(&[Need::Process]),
];

const MAX_CONNECTIONS: usize = 256;
const MAX_FIDS: u32 = 32_768;

fn too_many_connections(stage: &Stage<'_>) {
    let arena = stage.start(&WorldSpec::new().file("hermes/notes.txt", "seen"));
    let mut served = Vec::new();
    let mut closed = 0;
    for _ in 0..MAX_CONNECTIONS + 44 {
        match greeted(&arena) {
            Some(client) => served.push(client),
            None => closed += 1,
        }
    }
    assert_eq!((served.len(), closed), (MAX_CONNECTIONS, 44));
    for client in &mut served {
        client.attach(ROOT, "").expect("everyone who is in is served");
    }
    assert_eq!(served[100].contents("hermes/notes.txt"), b"seen");
    served.truncate(MAX_CONNECTIONS - 10);
    let start = Instant::now();
    while served.len() < MAX_CONNECTIONS {
        served.extend(greeted(&arena));
        assert!(start.elapsed() < PATIENCE, "places that are given up are not given out");
    }
}

/// A client that agreed on a version, or nothing if it was closed at once.
fn greeted(arena: &Arena) -> Option<Client> {
    let mut client = arena.stranger();
    let version = Tmessage::Version { msize: 8192, version: b"9P2000" };
    client.expect_answer(proto::NOTAG, &version);
    let bytes = client.encode(proto::NOTAG, &version);
    // The server may have closed already.
    client.wire().send(&bytes, PATIENCE);
    match client.event(PATIENCE) {
        Event::Frame(_) => Some(client),
        Event::Closed => None,
        Event::Quiet => panic!("neither served nor closed"),
    }
}

fn too_many_fids(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&WorldSpec::new().file("hermes/notes.txt", "seen"));
    let file = client.go("hermes/notes.txt");
    // The root and the file are two.
    let names = proto::Names::EMPTY;
    for first in (0..MAX_FIDS - 2).step_by(50) {
        let walks: Vec<_> = (first..(first + 50).min(MAX_FIDS - 2))
            .map(|n| (n as u16, Tmessage::Walk { fid: file, newfid: 100_000 + n, names }))
            .collect();
        client.post(&walks);
        assert!(client.receive_all(walks.len()).iter().all(|reply| reply.refused().is_none()));
    }
    for newfid in [200_000, 200_001] {
        refused_somehow(client.walk::<&str>(file, newfid, &[]));
    }
    client.clunk(100_000).expect("a clunk");
    client.walk::<&str>(file, 200_000, &[]).expect("there is room for one again");
    refused_somehow(client.walk::<&str>(file, 200_001, &[]));
    client.open(200_000).expect("an open");
    assert_eq!(client.read_from(200_000, 0, BULK), b"seen");
}

fn too_many_waiting(stage: &Stage<'_>) {
    let path = format!("hermes/{LATE_READ}");
    let (arena, mut client) = stage.client(&WorldSpec::new().file(&path, "seen"));
    let fid = client.open_path(&path);
    let read = Tmessage::Read { fid, offset: 0, count: 100 };
    for tag in 0x9001..=0x9021 {
        client.send(tag, &read);
    }
    let refused = client.receive();
    assert!(refused.refused().is_some(), "{refused:?}");
    client.expect_alive();
    let oldtag = if refused.tag() == 0x9001 { 0x9002 } else { 0x9001 };
    client.send(0x9000, &Tmessage::Flush { oldtag });
    assert_eq!(client.receive().tag(), 0x9000, "a flush gets through");
    arena.gate().open();
    let answered = client.receive_all(31);
    assert!(answered.iter().all(|reply| reply.data() == b"seen"));
    client.expect_quiet();
}

fn no_descriptors(stage: &Stage<'_>) {
    let spec = (0..100).fold(WorldSpec::new(), |spec, n| spec.file(format!("hermes/dir/f{n:03}"), "seen"));
    let arena = stage.start(&spec.descriptors(40));
    let mut client = arena.client();
    let fids: Vec<u32> = (0..100).map(|n| client.go(format!("hermes/dir/f{n:03}"))).collect();
    for fid in &fids {
        // Beyond the descriptors that may be kept, a file is opened anew for each read.
        client.open(*fid).expect("an open");
    }
    let mut crowd: Vec<Client> = Vec::new();
    for _ in 0..60 {
        crowd.extend(greeted(&arena));
    }
    assert!(crowd.len() < 40, "{} connections with 40 descriptors", crowd.len());
    for fid in &fids {
        // In words or not at all, while there is none.
        if let Ok(bytes) = client.read(*fid, 0, 100) {
            assert_eq!(bytes, b"seen");
        }
    }
    drop(crowd);
    let start = Instant::now();
    while client.read(fids[0], 0, 100).is_err() {
        assert!(start.elapsed() < PATIENCE, "descriptors that are free again are not used");
        std::thread::sleep(Duration::from_millis(10));
    }
    for fid in &fids {
        assert_eq!(client.read(*fid, 0, 100).expect("a read"), b"seen");
    }
    assert_eq!(client.names("hermes/dir").len(), 100);
    arena.client().expect_alive();
}
