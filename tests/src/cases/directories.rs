//! Reading directories.

use proto::Dialect;

use crate::cases::small;
use crate::check::{Client, Entry, ROOT, refused, why};
use crate::suite::{Case, LEGACY, Stage};
use crate::world::{Edit, WorldSpec};

pub(super) const CASES: &[Case] = &[
    Case::new(
        "25",
        "a listing is whole records, each as Tstat tells it, every member once",
        lists_whole_records,
    )
    .speaks(LEGACY),
    Case::new("26", "offset 0 rewinds, another one must be where a read ended", checks_offsets)
        .speaks(LEGACY),
    Case::new("27", "a count below the next entry reads nothing, and is no error", too_small_a_count),
    Case::new("28", "the end stays the end, and a directory that changes does not shift", is_a_snapshot),
    Case::new("29", "a directory has length 0, and the root is called `/`", directory_stats),
];

fn numbered(count: usize) -> WorldSpec {
    (0..count).fold(WorldSpec::new(), |spec, n| {
        spec.file(format!("hermes/many/f{n:04}{}", "x".repeat(n % 60)), vec![b'x'; n % 7])
    })
}

fn lists_whole_records(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&numbered(200).dir("hermes/many/sub"));
    let dir = client.open_path("hermes/many");
    let mut expected: Vec<Entry> = Vec::new();
    for count in [1 << 20, 8168, 4096, 1000, 300, 160] {
        let all = client.list_all(dir, count);
        assert_eq!(all.len(), 201, "count {count}");
        assert!(all.is_sorted_by(|a, b| a.name < b.name), "sorted, and every name once");
        assert!(expected.is_empty() || all == expected, "the same whatever the count: {count}");
        expected = all;
    }
    for entry in &expected {
        let fid = client.fresh_fid();
        let walked = client.walk(dir, fid, &[&entry.name]).expect("what is listed is there");
        assert_eq!(walked, [entry.qid]);
        assert_eq!(client.stat(fid).expect("a stat").record, entry.record.clone().expect("a record"));
        client.clunk(fid).expect("a clunk");
    }
}

fn checks_offsets(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&numbered(100));
    let dir = client.open_path("hermes/many");
    refused(client.list(dir, 300, 300), why::BAD_OFFSET);
    let (first, end) = client.list(dir, 0, 300).expect("a read from the start");
    let (second, second_end) = client.list(dir, end, 300).expect("a read from an end");
    client.list(dir, second_end, 300).expect("a read from an end");
    assert_eq!(client.list(dir, end, 300).expect("an earlier end").0, second);
    for offset in [1, end - 1, end + 1, 1 << 40, 1 << 63, u64::MAX] {
        refused(client.list(dir, offset, 300), why::BAD_OFFSET);
    }
    assert_eq!(client.list(dir, 0, 300).expect("a rewind").0, first);
    assert_eq!(client.list(dir, end, 300).expect("a read from an end").0, second);
}

fn too_small_a_count(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&numbered(10));
    let dir = client.open_path("hermes/many");
    for count in [0, 1, 10, 20] {
        assert_eq!(client.list_bytes(dir, 0, count).expect("not an error"), b"", "count {count}");
    }
    let (first, end) = client.list(dir, 0, 200).expect("a read");
    assert!(!first.is_empty());
    for count in [1, 20] {
        assert_eq!(client.list_bytes(dir, end, count).expect("not an error"), b"", "count {count}");
    }
    let (more, _) = client.list(dir, end, 200).expect("the entry comes when there is room");
    assert!(!more.is_empty() && more[0].name > first[first.len() - 1].name);
}

fn is_a_snapshot(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&numbered(40));
    let dir = client.open_path("hermes/many");
    let (mut seen, mut offset) = client.list(dir, 0, 700).expect("a read");
    assert!(seen.len() > 1 && seen.len() < 20);
    let original = names_of(&{
        let other = client.open_path("hermes/many");
        client.list_all(other, 1 << 20)
    });
    for name in [&original[0], &original[30]] {
        arena.edit(&Edit::remove([&b"hermes/many/"[..], name].concat()));
    }
    for name in ["a-first", "f0005-between", "z-last"] {
        arena.edit(&Edit::file(format!("hermes/many/{name}"), "new"));
    }
    loop {
        let (more, next) = client.list(dir, offset, 700).expect("a read");
        if more.is_empty() {
            break;
        }
        seen.extend(more);
        offset = next;
    }
    let expected: Vec<_> = original.iter().filter(|name| **name != original[30]).cloned().collect();
    assert_eq!(names_of(&seen), expected, "neither shifted nor doubled; what is gone by then is left out");
    for _ in 0..2 {
        assert_eq!(client.list_bytes(dir, offset, 700).expect("the end stays the end"), b"");
    }
    let anew = names_of(&client.list_all(dir, 700));
    assert_eq!(anew.len(), 40 - 2 + 3);
    assert!(anew.iter().any(|name| name == b"a-first") && !anew.contains(&original[0]));
}

fn directory_stats(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    for path in ["", "hermes", "hermes/dir", "hermes/bare"] {
        let fid = client.go(path);
        let info = client.stat(fid).expect("a stat");
        assert!(info.dir, "{path}");
        assert_eq!((info.length, info.perm), (0, 0o555), "{path}");
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/");
        assert_eq!(info.name.is_none(), stage.dialect == Dialect::Linux);
        assert!(info.name.is_none_or(|told| told == name.as_bytes()), "{path}");
    }
    let file = client.go("hermes/notes.txt");
    let info = client.stat(file).expect("a stat");
    assert_eq!((info.dir, info.perm, info.length), (false, 0o444, 13));
    expect_bare(&mut client);
}

fn expect_bare(client: &mut Client) {
    assert!(client.names("hermes/bare").is_empty());
    let root = client.fresh_fid();
    client.walk::<&str>(ROOT, root, &[]).expect("a clone");
    client.open(root).expect("the root opens");
    let entries = client.list_all(root, 8192);
    assert!(entries.iter().all(|entry| entry.name != b"." && entry.name != b".."));
}

fn names_of(entries: &[Entry]) -> Vec<Vec<u8>> {
    entries.iter().map(|entry| entry.name.clone()).collect()
}
