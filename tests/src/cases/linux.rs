//! 9P2000.L.

use proto::{Attr, Rmessage, Tmessage};

use crate::cases::open_read::read_of_directory;
use crate::cases::{NOTES, small};
use crate::check::{BULK, ROOT, Refused, refused, why};
use crate::rig::Need;
use crate::suite::{Case, LINUX, Stage};
use crate::world::WorldSpec;

pub(super) const CASES: &[Case] = &[
    Case::new("47", "of the flags of Tlopen only those that mean something count", flags_of_open)
        .speaks(LINUX),
    Case::new("48", "attributes are 153 bytes, and say which of them are valid", attributes).speaks(LINUX),
    Case::new("49", "a listing goes on at the last entry's cookie", goes_on_at_cookies).speaks(LINUX),
    Case::new("50", "there are no extended attributes, and newfid stays unbound", no_xattrs).speaks(LINUX),
    Case::new("51", "what needs no change is answered, a change is refused", table_of_messages).speaks(LINUX),
    Case::new("51w", "a writable file takes the setattr of a shell's `>`", setattr_of_control)
        .speaks(LINUX)
        .needs(&[Need::Control]),
    Case::new("52", "every refusal is an Rlerror with a number", refusals_are_numbers).speaks(LINUX),
];

fn flags_of_open(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    // As a kernel sends them: O_LARGEFILE; and with O_NONBLOCK, O_NOFOLLOW, O_DIRECTORY, O_CLOEXEC.
    for flags in [0o100_000, 0o104_000, 0o500_000, 0o2_100_000, 0o0] {
        let file = client.go("hermes/notes.txt");
        client.done(&Tmessage::Lopen { fid: file, flags }).unwrap_or_else(|r| panic!("{flags:o}: {r:?}"));
        assert_eq!(client.read_from(file, 0, 100), NOTES, "{flags:o}");
    }
    for flags in [0o100_000, 0o304_000, 0o504_400, 0o704_400, 0o200_000] {
        let dir = client.go("hermes/dir");
        client.done(&Tmessage::Lopen { fid: dir, flags }).unwrap_or_else(|r| panic!("{flags:o}: {r:?}"));
        assert_eq!(client.list_all(dir, BULK).len(), 3, "{flags:o}");
    }
    let file = client.go("hermes/notes.txt");
    for flags in [0o304_000, 0o704_400, proto::O_DIRECTORY] {
        refused(client.done(&Tmessage::Lopen { fid: file, flags }), why::NOT_A_DIRECTORY);
    }
    for flags in
        [proto::O_WRONLY, proto::O_RDWR, proto::O_TRUNC, proto::O_WRONLY | proto::O_CREAT | proto::O_TRUNC]
    {
        refused(client.done(&Tmessage::Lopen { fid: file, flags }), why::DENIED);
    }
    client.open(file).expect("a refused open leaves the fid as it was");
    read_of_directory(&mut client);
}

fn attributes(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    for path in ["hermes/notes.txt", "hermes/dir", ""] {
        let fid = client.go(path);
        for mask in [0x7ff, 0x17ff, 0x3fff, 0x200, 0, u64::MAX] {
            let frame = client.call(&Tmessage::Getattr { fid, mask });
            let Rmessage::Getattr { attr } = frame.message() else { panic!("{frame:?}") };
            assert_eq!(frame.bytes().len(), 7 + 153);
            assert_eq!(attr.valid & 0x7ff, 0x7ff, "everything basic is valid, mask {mask:x}");
            assert_eq!(attr.valid & !0x3fff, 0, "nothing unheard of is valid, mask {mask:x}");
            check_attr(&attr, path);
        }
    }
}

fn check_attr(attr: &Attr, path: &str) {
    let (mode, size) = if path.ends_with(".txt") { (0o100_444, NOTES.len() as u64) } else { (0o040_555, 0) };
    assert_eq!((attr.mode, attr.size, attr.nlink), (mode, size, 1), "{path}");
    assert!(attr.blksize > 0, "{path}");
    assert_eq!(attr.blocks, size.div_ceil(512), "{path}");
    assert!(attr.mtime_nsec < 1_000_000_000 && attr.btime_nsec < 1_000_000_000, "{path}");
    assert_eq!(attr.valid & proto::GETATTR_BTIME == 0, attr.btime_sec == 0, "{path}");
}

fn goes_on_at_cookies(stage: &Stage<'_>) {
    let spec = (0..200).fold(WorldSpec::new().dir("hermes/many/sub"), |spec, n| {
        spec.file(format!("hermes/many/f{n:04}{}", "x".repeat(n % 60)), "")
    });
    let (_arena, mut client) = stage.client(&spec);
    let dir = client.open_path("hermes/many");
    let all = client.list_all(dir, BULK);
    assert_eq!(all.len(), 201);
    assert!(all.is_sorted_by(|a, b| a.name < b.name), "sorted, and every name once");
    for count in [65_512, 8168, 1000, 300, 100] {
        assert_eq!(client.list_all(dir, count), all, "count {count}");
    }
    for (at, entry) in all.iter().enumerate() {
        let (rest, _) =
            client.list(dir, entry.cookie.expect("a cookie"), BULK).expect("a read from a cookie");
        assert_eq!(rest, all[at + 1..]);
        let fid = client.fresh_fid();
        assert_eq!(client.walk(dir, fid, &[&entry.name]).expect("what is listed is there"), [entry.qid]);
        client.clunk(fid).expect("a clunk");
    }
    let end = all[200].cookie.expect("a cookie");
    for offset in [end, end, end + 1, 1 << 40, u64::MAX] {
        assert_eq!(client.list_bytes(dir, offset, BULK).expect("beyond the end is the end"), b"");
    }
    assert_eq!(client.list_all(dir, BULK), all, "0 starts again");
}

fn no_xattrs(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    for path in ["hermes/notes.txt", "hermes/dir", ""] {
        let fid = client.go(path);
        let names = [
            "security.selinux",
            "security.capability",
            "system.posix_acl_access",
            "system.posix_acl_default",
        ];
        for name in names.into_iter().chain(["user.x", ""]) {
            let walk = Tmessage::Xattrwalk { fid, newfid: 900, name: name.as_bytes() };
            let errno = errno(client.done(&walk));
            assert!([why::NO_DATA, why::NOT_SUPPORTED].contains(&errno), "{name}: {errno}");
            refused(client.stat(900), why::UNKNOWN_FID);
        }
        client.stat(fid).expect("the fid is as it was");
    }
}

fn table_of_messages(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let (dir, file) = (client.go("hermes/dir"), client.open_path("hermes/notes.txt"));
    for fid in [ROOT, dir, file] {
        let frame = client.call(&Tmessage::Statfs { fid });
        let Rmessage::Statfs { statfs } = frame.message() else { panic!("{frame:?}") };
        assert!(statfs.bsize > 0 && statfs.namelen >= 255, "{statfs:?}");
        assert_eq!(statfs.kind, 0x0102_1997);
        refused(client.done(&Tmessage::Readlink { fid }), why::INVALID);
        client.done(&Tmessage::Fsync { fid, datasync: 0 }).expect("there is nothing to bring to disk");
        client.done(&setattr(fid, 0, 0)).expect("a change of nothing");
    }
    for message in changes(dir, file) {
        refused(client.done(&message), why::NOT_PERMITTED);
    }
    for valid in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80 | 0x10, 0x100 | 0x20, 0x1ff] {
        refused(client.done(&setattr(file, valid, 0)), why::NOT_PERMITTED);
        refused(client.done(&setattr(dir, valid, 0)), why::NOT_PERMITTED);
    }
    assert_eq!(client.contents("hermes/notes.txt"), NOTES);
    assert_eq!(client.names("hermes/dir").len(), 3);
    client.stat(dir).expect("the fid is as it was");
}

fn setattr_of_control(stage: &Stage<'_>) {
    let (arena, mut client) = stage.client(&small());
    let fid = client.go(arena.control());
    for valid in [8, 8 | 0x20 | 0x40, 0x10 | 0x20 | 0x40, 0x1f8] {
        client.done(&setattr(fid, valid, 0)).unwrap_or_else(|r| panic!("{valid:x}: {r:?}"));
    }
    for (valid, size) in [(8, 5), (1, 0), (2, 0), (4, 0), (9, 0)] {
        refused(client.done(&setattr(fid, valid, size)), why::NOT_PERMITTED);
    }
}

fn refusals_are_numbers(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let attribute = Tmessage::Xattrwalk { fid: 777, newfid: 778, name: b"user.x" };
    let names = proto::Names::EMPTY;
    let mut messages = changes(777, 777);
    messages.extend([
        Tmessage::Walk { fid: 777, newfid: 778, names },
        Tmessage::Lopen { fid: 777, flags: 0 },
        Tmessage::Read { fid: 777, offset: 0, count: 10 },
        Tmessage::Readdir { fid: 777, offset: 0, count: 10 },
        Tmessage::Write { fid: 777, offset: 0, data: b"x" },
        Tmessage::Getattr { fid: 777, mask: 0x7ff },
        setattr(777, 8, 0),
        Tmessage::Statfs { fid: 777 },
        Tmessage::Readlink { fid: 777 },
        Tmessage::Fsync { fid: 777, datasync: 0 },
        Tmessage::Clunk { fid: 777 },
        Tmessage::Remove { fid: 777 },
        attribute,
    ]);
    for message in messages {
        let errno = errno(client.done(&message));
        assert!((1..4096).contains(&errno), "{errno} to {message:?}");
    }
    client.expect_alive();
}

/// Every message that would change something.
fn changes(dir: u32, file: u32) -> Vec<Tmessage<'static>> {
    let name = &b"new"[..];
    vec![
        Tmessage::Lcreate { fid: dir, name, flags: proto::O_RDWR, mode: 0o644, gid: 0 },
        Tmessage::Symlink { fid: dir, name, target: b"x", gid: 0 },
        Tmessage::Mknod { dfid: dir, name, mode: 0o010_644, major: 0, minor: 0, gid: 0 },
        Tmessage::Rename { fid: file, dfid: dir, name },
        Tmessage::Xattrcreate { fid: file, name: b"user.x", size: 1, flags: 0 },
        Tmessage::Lock { fid: file, kind: 1, flags: 0, start: 0, length: 0, proc_id: 1, client_id: b"me" },
        Tmessage::Getlock { fid: file, kind: 1, start: 0, length: 0, proc_id: 1, client_id: b"me" },
        Tmessage::Link { dfid: dir, fid: file, name },
        Tmessage::Mkdir { dfid: dir, name, mode: 0o755, gid: 0 },
        Tmessage::Renameat { olddirfid: dir, oldname: b"a.txt", newdirfid: dir, newname: name },
        Tmessage::Unlinkat { dfid: dir, name: b"a.txt", flags: 0 },
    ]
}

fn setattr(fid: u32, valid: u32, size: u64) -> Tmessage<'static> {
    Tmessage::Setattr {
        fid,
        valid,
        mode: 0o777,
        uid: 0,
        gid: 0,
        size,
        atime_sec: 1,
        atime_nsec: 0,
        mtime_sec: 1,
        mtime_nsec: 0,
    }
}

/// The number of a refusal, in a dialect that tells nothing else.
#[track_caller]
fn errno(answer: Result<(), Refused>) -> u32 {
    match answer {
        Err(Refused { words: None, errno: Some(errno) }) => errno,
        other => panic!("an Rlerror was expected: {other:?}"),
    }
}
