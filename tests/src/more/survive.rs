//! Peers that misbehave: each may lose its own connection, and nobody else's.

use std::time::{Duration, Instant};

use proto::Tmessage;

use crate::check::{BULK, Client, Event, PATIENCE, ROOT};
use crate::rig::{Need, Received};
use crate::slow::LATE_READ;
use crate::suite::{Arena, Case, Stage};
use crate::world::{WorldSpec, mix};

pub(super) const CASES: &[Case] = &[
    Case::new("survive.noise", "noise on hundreds of connections hurts nobody", noise),
    Case::new("survive.frames", "frames of noise on hundreds of connections hurt nobody", frames_of_noise),
    Case::new("survive.stalled", "peers that stop in the middle of a frame hold nobody up", stalled),
    Case::new("survive.half", "a peer that closes its direction gets its answers", half_closed)
        .needs(&[Need::Stream]),
    Case::new(
        "survive.half-waiting",
        "a peer that closes its direction is answered what waits, until it goes",
        half_closed_while_waiting,
    )
    .needs(&[Need::Stream, Need::Waiting]),
    Case::new(
        "survive.unread",
        "a peer that reads no replies is read no longer, and holds nobody up",
        unread,
    )
    .needs(&[Need::Stream]),
    Case::new("survive.gone", "peers that go away with everything on the way hurt nobody", gone),
];

/// In each dialect; a thousand in all.
const CONNECTIONS: u64 = 334;

fn world() -> WorldSpec {
    WorldSpec::new().pattern("hermes/large", 2, 1 << 20).file("hermes/notes.txt", "seen")
}

/// Bytes that look like chance and are the same in every run.
fn random(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    crate::world::fill(mix(seed), 0, &mut bytes);
    bytes
}

fn noise(stage: &Stage<'_>) {
    let arena = stage.start(&world());
    for seed in 0..CONNECTIONS {
        let mut client = if seed % 2 == 0 { arena.stranger() } else { arena.client_of(BULK) };
        client.wire().send(&random(seed, 64 * 1024), PATIENCE);
        drain(&mut client);
    }
    expect_served(&arena);
}

fn frames_of_noise(stage: &Stage<'_>) {
    let arena = stage.start(&world());
    let kinds: Vec<u8> = Tmessage::KINDS.iter().map(|kind| kind.0).collect();
    for seed in 0..CONNECTIONS {
        let mut client = arena.client_of(65_536);
        let noise = random(seed, 64 * 1024);
        let mut rest = &noise[..];
        let mut bytes = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<16>() {
            let kind = kinds[usize::from(head[0]) % kinds.len()];
            let body = &after[..usize::from(head[1] % 64).min(after.len())];
            bytes.extend(((7 + body.len()) as u32).to_le_bytes());
            bytes.extend([kind, head[2], head[3]]);
            // Small numbers are fids, tags and counts that mean something.
            bytes.extend(body.iter().map(|byte| if head[4] % 2 == 0 { byte % 4 } else { *byte }));
            rest = &after[body.len()..];
        }
        client.wire().send(&bytes, PATIENCE);
        drain(&mut client);
    }
    expect_served(&arena);
}

fn stalled(stage: &Stage<'_>) {
    let arena = stage.start(&world());
    let mut stalled = Vec::new();
    for cut in 1..60 {
        let mut client = arena.client();
        let message = Tmessage::Write { fid: ROOT, offset: 0, data: &[0; 64] };
        let bytes = client.encode(1, &message);
        client.send_bytes(&bytes[..cut]);
        stalled.push((client, message, bytes, cut));
    }
    expect_served(&arena);
    for (mut client, message, bytes, cut) in stalled {
        client.expect_answer(1, &message);
        client.send_bytes(&bytes[cut..]);
        assert!(client.receive().refused().is_some(), "the request is answered once it is whole");
    }
}

fn half_closed(stage: &Stage<'_>) {
    let arena = stage.start(&world());
    let mut client = arena.client();
    let fid = client.open_path("hermes/large");
    let reads: Vec<_> = (1..30)
        .map(|tag| (tag, Tmessage::Read { fid, offset: u64::from(tag) * 1000, count: 8192 }))
        .collect();
    client.post(&reads);
    client.wire().half_close();
    for _ in &reads {
        assert_eq!(client.receive().data().len(), 8192);
    }
    client.expect_closed();
    expect_served(&arena);
}

fn half_closed_while_waiting(stage: &Stage<'_>) {
    let arena = stage.start(&world().file(format!("hermes/{LATE_READ}"), "late"));
    let waiting = || {
        let mut client = arena.client();
        let fid = client.open_path(format!("hermes/{LATE_READ}"));
        let before = arena.gate().held();
        let tag = client.fresh_tag();
        client.send(tag, &Tmessage::Read { fid, offset: 0, count: 100 });
        await_held(&arena, before + 1);
        client.wire().half_close();
        client.expect_quiet();
        client
    };
    let (mut stays, goes) = (waiting(), waiting());
    drop(goes);
    await_held(&arena, 1);
    arena.gate().open();
    assert_eq!(stays.receive().data(), b"late");
    stays.expect_closed();
    expect_served(&arena);
}

/// Waits until so many requests wait, and no more.
#[track_caller]
fn await_held(arena: &Arena, count: usize) {
    let start = Instant::now();
    while arena.gate().held() != count {
        assert!(start.elapsed() < PATIENCE, "{} requests wait, and not {count}", arena.gate().held());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn unread(stage: &Stage<'_>) {
    let arena = stage.start(&world());
    let mut deaf = arena.client_of(65_536);
    let fid = deaf.open_path("hermes/large");
    let read = deaf.encode(7, &Tmessage::Read { fid, offset: 0, count: 60_000 });
    let many: Vec<u8> = read.iter().copied().cycle().take(read.len() * 1000).collect();
    let start = Instant::now();
    let mut sent = 0;
    while deaf.wire().send(&many, Duration::from_millis(500)) == many.len() {
        sent += many.len();
        assert!(start.elapsed() < PATIENCE && sent < 256 << 20, "the server reads on and on: {sent} bytes");
        expect_served(&arena);
    }
    for _ in 0..10 {
        expect_served(&arena);
    }
}

fn gone(stage: &Stage<'_>) {
    let arena = stage.start(&world());
    for round in 0..100_u16 {
        let mut client = arena.client();
        let fid = client.open_path("hermes/large");
        let reads: Vec<_> =
            (1..=round % 70).map(|tag| (tag, Tmessage::Read { fid, offset: 0, count: 100_000 })).collect();
        client.post(&reads);
        drop(client);
    }
    expect_served(&arena);
}

/// Takes whatever the server has to say, for a moment.
fn drain(client: &mut Client) {
    while let Received::Bytes(_) = client.wire().receive(Duration::from_millis(2)) {}
}

#[track_caller]
fn expect_served(arena: &Arena) {
    let mut client = arena.client();
    assert_eq!(client.contents("hermes/notes.txt"), b"seen");
    assert!(matches!(client.event(Duration::from_millis(1)), Event::Quiet));
}
