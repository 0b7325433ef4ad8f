//! Stat, wstat, remove and clunk.

use proto::{Dialect, Rmessage, Stat, Tmessage};

use crate::cases::{NOTES, small};
use crate::check::{BULK, Client, refused, refused_somehow, why};
use crate::suite::{Case, LEGACY, Stage};
use crate::world::Edit;

pub(super) const CASES: &[Case] = &[
    Case::new("30", "a stat record carries two lengths, in Rstat and in Twstat", carries_two_lengths)
        .speaks(LEGACY),
    Case::new("30t", "lengths and times are those of the file, now", tells_the_truth),
    Case::new("31", "a wstat of nothing is a sync, of anything refused as a whole", wstat_changes_nothing)
        .speaks(LEGACY),
    Case::new("32", "a remove is refused, and the fid is gone", remove_forgets_fid),
    Case::new("33", "a clunked number is free at once", clunk_frees_number),
    Case::new("34", "a create and a write of a read-only file are refused", refuses_creation),
];

fn carries_two_lengths(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    for path in ["", "hermes/notes.txt"] {
        let fid = client.go(path);
        let frame = client.call(&Tmessage::Stat { fid });
        let bytes = frame.bytes();
        let two = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        assert_eq!(two(7), bytes.len() - 9, "n counts the record");
        assert_eq!(two(9), two(7) - 2, "size counts what follows it");
    }
    let fid = client.go("hermes/notes.txt");
    let right = client.encode(5, &Tmessage::Wstat { fid, stat: Stat::UNTOUCHED });
    for (at, by) in [(11, 1), (11, -1), (13, 1), (13, -1)] {
        let mut wrong = right.clone();
        let value = i32::from(u16::from_le_bytes([wrong[at], wrong[at + 1]])) + by;
        wrong[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        client.expect_answer(5, &Tmessage::Wstat { fid, stat: Stat::UNTOUCHED });
        client.send_bytes(&wrong);
        client.expect_refused_or_closed();
    }
}

fn tells_the_truth(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&small());
    let fid = client.go("hermes/notes.txt");
    assert_eq!(client.stat(fid).expect("a stat").length, NOTES.len() as u64);
    arena.edit(&Edit::append("hermes/notes.txt", "more\n"));
    arena.edit(&Edit::touch("hermes/notes.txt", 1_600_000_001));
    let info = client.stat(fid).expect("a stat");
    assert_eq!((info.length, info.mtime), (NOTES.len() as u64 + 5, 1_600_000_001));
    let open = client.open_path("hermes/notes.txt");
    arena.edit(&Edit::append("hermes/notes.txt", "and more\n"));
    assert_eq!(client.stat(open).expect("a stat").length, NOTES.len() as u64 + 14);
    assert_eq!(client.read_from(open, NOTES.len() as u64, 100), b"more\nand more\n");
}

fn wstat_changes_nothing(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let untouched = Stat::UNTOUCHED;
    for path in ["hermes/notes.txt", "hermes/dir", ""] {
        let fid = client.go(path);
        let before = client.stat(fid).expect("a stat");
        let frame = client.call(&Tmessage::Wstat { fid, stat: untouched });
        assert!(matches!(frame.message(), Rmessage::Wstat), "a sync: {frame:?}");
        for stat in [
            Stat { name: b"renamed", ..untouched },
            Stat { length: 0, ..untouched },
            Stat { length: 5, ..untouched },
            Stat { mode: 0o777, ..untouched },
            Stat { mtime: 1, ..untouched },
            Stat { atime: 1, ..untouched },
            Stat { uid: b"root", ..untouched },
            Stat { gid: b"root", ..untouched },
            Stat { muid: b"root", ..untouched },
            Stat { kind: 1, ..untouched },
            Stat { dev: 1, ..untouched },
            Stat { name: b"renamed", mode: 0o777, mtime: 1, ..untouched },
        ] {
            refused(client.done(&Tmessage::Wstat { fid, stat }), why::NOT_PERMITTED);
        }
        assert_eq!(client.stat(fid).expect("a stat"), before, "nothing has changed");
    }
    refused(client.done(&Tmessage::Wstat { fid: 777, stat: untouched }), why::UNKNOWN_FID);
}

fn remove_forgets_fid(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    for (path, open) in [("hermes/notes.txt", false), ("hermes/notes.txt", true), ("hermes/bare", false)] {
        let fid = client.go(path);
        if open {
            client.open(fid).expect("an open");
        }
        refused(client.remove(fid), why::NOT_PERMITTED);
        refused(client.clunk(fid), why::UNKNOWN_FID);
        refused(client.stat(fid), why::UNKNOWN_FID);
        client.go(path);
    }
    refused(client.remove(777), why::UNKNOWN_FID);
    assert_eq!(client.contents("hermes/notes.txt"), NOTES);
}

fn clunk_frees_number(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let hermes = client.go("hermes");
    refused(client.clunk(777), why::UNKNOWN_FID);
    for name in ["notes.txt", "dir", "empty.txt"] {
        client.walk(hermes, 777, &[name]).expect("the number is free");
        client.open(777).expect("an open");
        client.clunk(777).expect("a clunk");
        refused(client.clunk(777), why::UNKNOWN_FID);
    }
    // All of it in one piece, as a client that does not wait sends it.
    let mut space = Vec::new();
    let walk = Tmessage::Walk { fid: hermes, newfid: 777, names: crate::check::pack(&["dir"], &mut space) };
    let clunk = Tmessage::Clunk { fid: 777 };
    client.post(&[(1, walk), (2, clunk), (3, walk), (4, clunk), (5, clunk), (6, walk)]);
    let replies = client.receive_all(6);
    let refusals: Vec<_> = replies.iter().map(|reply| reply.refused().is_some()).collect();
    assert_eq!(replies.iter().map(|reply| reply.tag()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(refusals, [false, false, false, false, true, false]);
}

fn refuses_creation(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let dir = client.go("hermes/dir");
    let (name, extension) = (&b"new"[..], (stage.dialect == Dialect::Unix).then_some(&b""[..]));
    for directory in [false, true] {
        let perm = if directory { proto::DMDIR | 0o755 } else { 0o644 };
        let create = match stage.dialect {
            Dialect::Linux if directory => Tmessage::Mkdir { dfid: dir, name, mode: 0o755, gid: 0 },
            Dialect::Linux => Tmessage::Lcreate { fid: dir, name, flags: proto::O_RDWR, mode: 0o644, gid: 0 },
            Dialect::Plain | Dialect::Unix => {
                Tmessage::Create { fid: dir, name, perm, mode: proto::ORDWR, extension }
            }
        };
        refused(client.done(&create), why::NOT_PERMITTED);
    }
    assert!(client.stat(dir).expect("the fid is as it was").dir);
    let file = client.open_path("hermes/notes.txt");
    refused(client.write(file, 0, b"x"), why::NOT_PERMITTED);
    refused_somehow(client.write(file, 1 << 63, b"x"));
    refused_somehow(client.write(dir, 0, b"x"));
    refused(client.write(777, 0, b"x"), why::UNKNOWN_FID);
    expect_unchanged(&mut client);
}

fn expect_unchanged(client: &mut Client) {
    assert_eq!(client.contents("hermes/notes.txt"), NOTES);
    let dir = client.open_path("hermes/dir");
    assert_eq!(client.list_all(dir, BULK).len(), 3);
}
