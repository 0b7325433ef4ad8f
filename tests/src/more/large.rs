//! Sizes: large directories and large files, whole and in order.

use std::collections::BTreeMap;

use proto::{Dialect, Tmessage};

use crate::check::{BULK, Client};
use crate::rig::Need;
use crate::suite::{ANY_ONE, Case, Stage};
use crate::world::{WorldSpec, fill};

pub(super) const CASES: &[Case] = &[
    Case::new("large.dir", "ten thousand entries are listed whole and sorted", ten_thousand_entries)
        .speaks(&[Dialect::Plain, Dialect::Linux]),
    Case::new("large.dir300", "a thousand entries are listed whole in reads of 300 bytes", small_reads),
    Case::new(
        "large.file",
        "a large file is read whole at any msize, one or eight reads in flight",
        large_file,
    )
    .speaks(ANY_ONE),
    Case::new("large.offsets", "a file is read beyond four gigabytes", far_offsets)
        .speaks(ANY_ONE)
        .needs(&[Need::Sparse]),
];

fn crowded(count: usize) -> (WorldSpec, Vec<Vec<u8>>) {
    let names: Vec<_> =
        (0..count).map(|n| format!("{:x}-{n}.jsonl", n.wrapping_mul(2_654_435_761) % 65_536)).collect();
    let spec = names
        .iter()
        .fold(WorldSpec::new().in_memory(), |spec, name| spec.file(format!("hermes/many/{name}"), ""));
    let mut sorted: Vec<_> = names.into_iter().map(String::into_bytes).collect();
    sorted.sort();
    (spec, sorted)
}

fn ten_thousand_entries(stage: &Stage<'_>) {
    let (spec, sorted) = crowded(10_000);
    let (_arena, mut client) = stage.client(&spec);
    for count in [BULK, 8168] {
        expect_names(&mut client, count, &sorted);
    }
}

fn small_reads(stage: &Stage<'_>) {
    let (spec, sorted) = crowded(1000);
    let (_arena, mut client) = stage.client(&spec);
    for count in [300, 301, 4096] {
        expect_names(&mut client, count, &sorted);
    }
}

#[track_caller]
fn expect_names(client: &mut Client, count: u32, sorted: &[Vec<u8>]) {
    let fid = client.open_path("hermes/many");
    let listed = client.list_all(fid, count);
    assert_eq!(listed.len(), sorted.len(), "in reads of {count}");
    assert!(listed.iter().map(|entry| &entry.name).eq(sorted), "in reads of {count}");
    client.clunk(fid).expect("a clunk");
}

fn large_file(stage: &Stage<'_>) {
    let len = large_len();
    let arena = stage.start(&WorldSpec::new().pattern("hermes/large", 9, len));
    for msize in [8192, 65_536, 1 << 20] {
        for in_flight in [1, 8] {
            let mut client = arena.client_of(msize);
            let fid = client.open_path("hermes/large");
            assert_eq!(client.stat(fid).expect("a stat").length, len);
            read_whole(&mut client, fid, len, in_flight);
        }
    }
}

/// Reads a file of pattern 9 from front to back with so many reads on the way.
fn read_whole(client: &mut Client, fid: u32, len: u64, in_flight: usize) {
    let count = client.msize() - 24;
    let mut asked = BTreeMap::new();
    let (mut next, mut got) = (0, 0);
    let mut expected = vec![0; count as usize];
    while got < len {
        let mut batch = Vec::new();
        while asked.len() < in_flight && next < len {
            let tag = client.fresh_tag();
            asked.insert(tag, next);
            batch.push((tag, Tmessage::Read { fid, offset: next, count }));
            next += u64::from(count);
        }
        if !batch.is_empty() {
            client.post(&batch);
        }
        let frame = client.receive();
        let offset = asked.remove(&frame.tag()).expect("a tag of ours");
        let data = frame.data();
        assert_eq!(data.len() as u64, u64::from(count).min(len - offset), "short only at the end");
        let expected = &mut expected[..data.len()];
        fill(9, offset, expected);
        assert!(data == expected, "other bytes than the file's, at {offset}");
        got += data.len() as u64;
    }
    assert_eq!(client.read(fid, len, count).expect("a read at the end"), b"");
}

fn far_offsets(stage: &Stage<'_>) {
    const FAR: u64 = 5 << 30;
    let (_arena, mut client) = stage.client(&WorldSpec::new().sparse("hermes/far", FAR, "the end"));
    let fid = client.open_path("hermes/far");
    assert_eq!(client.stat(fid).expect("a stat").length, FAR + 7);
    assert_eq!(client.read(fid, FAR, 100).expect("a read"), b"the end");
    assert_eq!(client.read(fid, FAR - 2, 4).expect("a read"), b"\0\0th");
    assert_eq!(client.read(fid, FAR + 7, 100).expect("a read"), b"");
}

/// Bytes of the large file: enough to wrap every buffer many times, and as many as one likes in
/// `NINEAGENTS_LARGE_FILE_MIB`.
fn large_len() -> u64 {
    let asked = std::env::var("NINEAGENTS_LARGE_FILE_MIB").ok();
    let mib = asked.map_or(DEFAULT_MIB, |mib| mib.parse().expect("a number of MiB"));
    // Not a multiple of anything.
    (mib << 20) + 12_345
}

const DEFAULT_MIB: u64 = 16;
