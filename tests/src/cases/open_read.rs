//! Opening and reading files.

use proto::{Dialect, Tmessage};

use crate::cases::{NOTES, small};
use crate::check::{Client, How, ROOT, refused, refused_somehow, why};
use crate::rig::Need;
use crate::suite::{Case, LEGACY, Stage};
use crate::world::{WorldSpec, fill};

pub(super) const CASES: &[Case] = &[
    Case::new("20", "an open that cannot be is refused", refuses_opens),
    Case::new("20m", "open modes of 9P2000 that mean a change are refused", refuses_modes).speaks(LEGACY),
    Case::new("20w", "a writable file opens for writing, cut to nothing first", opens_control)
        .needs(&[Need::Control]),
    Case::new("21", "an open tells the qid of the walk, and an iounit of 0", open_tells_qid),
    Case::new("22", "a read beyond the end is empty, of what is not open refused", reads_at_edges),
    Case::new("22w", "a file open for writing alone is not read", write_only_is_not_read)
        .needs(&[Need::Control]),
    Case::new("23", "a count is never passed, and clamped to msize", clamps_count),
    Case::new("24", "a read is empty at the end of a file and nowhere else", empty_means_the_end),
];

const CHANGING: [How; 4] = [How::Write, How::ReadWrite, How::ReadTruncate, How::WriteTruncate];

fn refuses_opens(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let file = client.open_path("hermes/notes.txt");
    refused(client.open(file), why::BAD_FID_USE);
    assert_eq!(client.read_from(file, 0, 100), NOTES);
    refused(client.open(777), why::UNKNOWN_FID);
    let dir = client.go("hermes/dir");
    let unopened = client.go("hermes/notes.txt");
    for how in CHANGING {
        refused(client.open_as(dir, how), why::IS_A_DIRECTORY);
        refused(client.open_as(unopened, how), why::DENIED);
    }
    client.open(dir).expect("a refused open leaves the fid as it was");
    client.open(unopened).expect("a refused open leaves the fid as it was");
}

fn refuses_modes(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    for path in ["hermes/dir", "hermes/notes.txt"] {
        let fid = client.go(path);
        for mode in [proto::ORCLOSE, proto::ORCLOSE | proto::OWRITE, 0x80, 0x08] {
            refused_somehow(client.done(&Tmessage::Open { fid, mode }));
        }
        let mode = proto::OREAD | proto::OCEXEC;
        client.done(&Tmessage::Open { fid, mode }).expect("close-on-exec is the client's own matter");
    }
}

fn opens_control(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&small());
    for how in [How::Write, How::ReadWrite, How::WriteTruncate] {
        let fid = client.go(arena.control());
        client.open_as(fid, how).expect("an open of a writable file");
        client.clunk(fid).expect("a clunk");
    }
}

fn open_tells_qid(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let hermes = client.go("hermes");
    for name in ["notes.txt", "dir", "empty.txt"] {
        let newfid = client.fresh_fid();
        let walked = client.walk(hermes, newfid, &[name]).expect("a walk");
        let (qid, iounit) = client.open_as(newfid, How::Read).expect("an open");
        assert_eq!([qid][..], walked, "{name}");
        assert_eq!(iounit, 0, "{name}");
    }
}

fn reads_at_edges(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let unopened = client.go("hermes/notes.txt");
    refused(client.read(unopened, 0, 10), why::BAD_FID_USE);
    refused(client.read(unopened, 0, 0), why::BAD_FID_USE);
    refused(client.read(777, 0, 10), why::UNKNOWN_FID);
    let file = client.open_path("hermes/notes.txt");
    let end = NOTES.len() as u64;
    for offset in [end, end + 1, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX] {
        assert_eq!(client.read(file, offset, 100).expect("a read beyond the end"), b"", "at {offset}");
    }
    for offset in [0, 5, end] {
        assert_eq!(client.read(file, offset, 0).expect("a read of nothing"), b"");
    }
    assert_eq!(client.read(file, end - 1, 100).expect("the last byte"), b"\n");
    let empty = client.open_path("hermes/empty.txt");
    assert_eq!(client.read(empty, 0, 100).expect("a read of an empty file"), b"");
}

fn write_only_is_not_read(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&small());
    let fid = client.go(arena.control());
    client.open_as(fid, How::Write).expect("an open for writing");
    refused(client.read(fid, 0, 10), why::BAD_FID_USE);
}

fn clamps_count(stage: &Stage<'_>) {
    let arena = stage.start(&WorldSpec::new().pattern("hermes/large", 3, 300_000));
    let mut expected = vec![0; 300_000];
    fill(3, 0, &mut expected);
    for msize in [4096, 8192, 65_536] {
        let mut client = arena.client_of(msize);
        let fid = client.open_path("hermes/large");
        for count in [msize - 24, msize - 11, msize, msize + 1, 1 << 20, i32::MAX as u32, u32::MAX] {
            // The client sees to it that no reply is longer than msize.
            let data = client.read(fid, 7, count).expect("a read");
            assert!(data.len() as u32 >= (msize - 24).min(count), "{} bytes of {count}", data.len());
            assert_eq!(data, expected[7..7 + data.len()], "count {count}");
        }
        for count in 1..40 {
            let data = client.read(fid, 1000, count).expect("a read");
            assert_eq!(data, expected[1000..1000 + count as usize], "count {count}");
        }
    }
}

fn empty_means_the_end(stage: &Stage<'_>) {
    let arena = stage.start(&WorldSpec::new().pattern("hermes/large", 4, 100_003));
    let mut expected = vec![0; 100_003];
    fill(4, 0, &mut expected);
    for (msize, count) in [(4096, u32::MAX), (8192, 4096), (1 << 20, 1 << 20), (1 << 20, 10_000), (8192, 777)]
    {
        let mut client = arena.client_of(msize);
        let fid = client.open_path("hermes/large");
        assert!(client.read_from(fid, 0, count) == expected, "msize {msize}, count {count}");
        assert_eq!(client.read(fid, 100_003, count).expect("a read at the end"), b"");
    }
}

/// A directory is read by other means than a file, and says so in each dialect.
pub(super) fn read_of_directory(client: &mut Client) {
    let dir = client.open_path("hermes/dir");
    match client.dialect() {
        Dialect::Linux => refused(client.read(dir, 0, 100), why::IS_A_DIRECTORY),
        Dialect::Plain | Dialect::Unix => {
            client.read(dir, 0, 100).expect("a directory is read with Tread");
        }
    }
    client.stat(ROOT).expect("the connection still serves");
}
