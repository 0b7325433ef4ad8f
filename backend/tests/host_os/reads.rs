//! Reading, from memory and from disk, files that stay and files that go.

use std::fs;
use std::io::Write;
use std::thread;
use std::time::Duration;

use backend::host::os::Resolving;
use backend::host::{Errno, Host};
use backend::name::{Rel, Root};
use engine::port::Effort::{Cached, Full};

use crate::fitness::skip;
use crate::world::{World, both, name, rel, soon};

#[test]
fn a_read_is_full_or_ends_the_file() {
    both(|w| {
        let content: Vec<u8> = (0..200_000_u32).map(|i| (i % 251) as u8).collect();
        w.write("f", &content);
        let (file, _) = w.os.open(Root::Hermes, &rel("f"), Full).unwrap();
        let mut buf = vec![0; 70_000];
        let efforts = if w.on_disk() { &[Full, Cached][..] } else { &[Full] };
        for &effort in efforts {
            for (offset, bytes) in
                [(0, 70_000), (100_000, 70_000), (150_000, 50_000), (199_999, 1), (200_000, 0)]
            {
                buf.fill(0xff);
                assert_eq!(file.read_at(&mut buf, offset, effort), Ok(bytes), "{offset} {effort:?}");
                let at = offset as usize;
                assert_eq!(buf[..bytes], content[at..at + bytes]);
            }
            for offset in [1 << 40, i64::MAX as u64 - 1, i64::MAX as u64, u64::MAX] {
                assert_eq!(file.read_at(&mut buf, offset, effort), Ok(0), "{offset} {effort:?}");
            }
            assert_eq!(file.read_at(&mut [], 0, effort), Ok(0));
        }
        let mut more = fs::OpenOptions::new().append(true).open(w.base.join("f")).unwrap();
        more.write_all(b"grown").unwrap();
        assert_eq!(file.read_at(&mut buf, 200_000, Full), Ok(5));
        assert_eq!(file.meta().map(|m| m.size), Ok(200_005));
    });
}

#[test]
fn cached_answers_what_memory_holds_and_else_again() {
    let w = World::new(Resolving::Probed);
    if !w.on_disk() || w.os.resolving() != "openat2" {
        skip("what is cached of the temporary directory's filesystem is not known");
        return;
    }
    w.write("d/f", &[7; 100_000]);
    assert_eq!(
        w.os.stat(Root::Hermes, &rel("d/f"), Cached),
        Err(Errno::AGAIN),
        "the base was never looked at"
    );
    let full = w.stat("d/f").unwrap();
    assert_eq!(soon(|| w.os.stat(Root::Hermes, &rel("d/f"), Cached)), Ok(full));
    let walk = || {
        let mut seen = Vec::new();
        w.os.walk(Root::Hermes, &rel("d/f"), 1, Cached, &mut |m| seen.push(*m)).map(|()| seen)
    };
    assert_eq!(soon(walk), Ok(vec![full]));
    // Nobody has ever asked for this name, so only the disk knows.
    assert_eq!(w.os.stat(Root::Hermes, &rel("d/none"), Cached), Err(Errno::AGAIN));
    assert_eq!(w.stat("d/none"), Err(Errno::NOENT));
    assert_eq!(soon(|| w.os.stat(Root::Hermes, &rel("d/none"), Cached)), Err(Errno::NOENT));
    assert_eq!(soon(|| w.os.open(Root::Hermes, &rel("d"), Cached)).err(), Some(Errno::ISDIR));

    assert_eq!(w.os.stat(Root::Claude, &Rel::base(), Full), Err(Errno::NOENT));
    assert_eq!(soon(|| w.os.stat(Root::Claude, &Rel::base(), Cached)), Err(Errno::NOENT));

    let (file, meta) = soon(|| w.os.open(Root::Hermes, &rel("d/f"), Cached)).unwrap();
    assert_eq!(meta, full);
    let real = fs::File::open(w.base.join("d/f")).unwrap();
    real.sync_all().unwrap();
    let mut buf = vec![0; 100_000];
    // The kernel drops pages when it finds the time.
    let dropped = (0..500).any(|_| {
        rustix::fs::fadvise(&real, 65536, None, rustix::fs::Advice::DontNeed).unwrap();
        thread::sleep(Duration::from_millis(1));
        file.read_at(&mut buf, 0, Cached) == Err(Errno::AGAIN)
    });
    assert!(dropped, "a part of it is on disk only");
    assert_eq!(file.read_at(&mut buf, 0, Full), Ok(100_000));
    assert_eq!(file.read_at(&mut buf, 0, Cached), Ok(100_000));
    assert_eq!(file.read_at(&mut buf, 99_000, Cached), Ok(1000));
}

#[test]
fn cached_is_always_again_where_openat2_cannot_say() {
    let w = World::new(Resolving::Stepwise);
    w.write("f", b"x");
    w.stat("f").unwrap();
    assert_eq!(w.os.stat(Root::Hermes, &rel("f"), Cached), Err(Errno::AGAIN));
    assert_eq!(w.os.open(Root::Hermes, &rel("f"), Cached).err(), Some(Errno::AGAIN));
    assert_eq!(w.os.walk(Root::Hermes, &rel("f"), 0, Cached, &mut |_| ()), Err(Errno::AGAIN));
}

#[test]
fn an_open_file_outlives_its_name() {
    both(|w| {
        w.write("d/f", b"first");
        let (file, before) = w.os.open(Root::Hermes, &rel("d/f"), Full).unwrap();
        let (dir, _) = w.os.open_dir(Root::Hermes, &rel("d")).unwrap();
        w.write("d/g", b"second");
        fs::rename(w.base.join("d/g"), w.base.join("d/f")).unwrap();
        let mut buf = [0; 8];
        assert_eq!(file.read_at(&mut buf, 0, Full), Ok(5));
        assert_eq!(&buf[..5], b"first");
        assert_eq!(file.meta().map(|m| (m.ino, m.nlink)), Ok((before.ino, 0)));
        assert!(file.tells_replacement() || !w.on_disk());
        assert_eq!(w.read("d/f"), Ok(b"second".to_vec()));
        assert_eq!(dir.stat(name("f")).map(|m| m.ino), w.stat("d/f").map(|m| m.ino));
        fs::remove_file(w.base.join("d/f")).unwrap();
        assert_eq!(w.read("d/f"), Err(Errno::NOENT));
        assert_eq!(dir.stat(name("f")), Err(Errno::NOENT));
        fs::remove_dir(w.base.join("d")).unwrap();
        assert_eq!(dir.stat(name("f")), Err(Errno::NOENT));
        assert_eq!(w.list("d"), Err(Errno::NOENT));
        let names = dir.names(&mut |_| panic!("a removed directory holds nothing"));
        assert!(matches!(names, Ok(()) | Err(Errno::NOENT)));
    });
}
