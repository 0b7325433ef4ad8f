//! The kernel host against real directories, by both of its ways of resolving a path.
//!
//! What needs the right to mount, or a filesystem of a certain kind, is skipped where that is missing, and says so. With
//! `NINEAGENTS_HAMMER_SECS` set, the race between a directory and a link runs for that long instead of 2 seconds.

#![allow(clippy::disallowed_methods, reason = "the test makes the world that the host is asked about")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use backend::host::os::{Os, Resolving, Roots};
use backend::host::{Errno, Host, Kind, Meta};
use backend::name::{Name, Rel, Root};
use engine::port::Effort::{Cached, Full};
use rustix::fs::{CWD, Mode, RenameFlags};
use rustix::mount::{MountFlags, UnmountFlags};

#[test]
fn a_file_is_found_walked_opened_and_read() {
    both(|w| {
        w.write("a/b/f", b"hello");
        assert_eq!(w.stat("a/b/f").map(|m| (m.kind, m.size)), Ok((Kind::File, 5)));
        assert_eq!(w.stat("").map(|m| m.kind), Ok(Kind::Dir));
        assert_eq!(
            w.walk("a/b/f", 0).1.iter().map(|m| m.kind).collect::<Vec<_>>(),
            [Kind::Dir, Kind::Dir, Kind::File]
        );
        let real = fs::metadata(w.base.join("a/b/f")).unwrap();
        let mut meta = w.stat("a/b/f").unwrap();
        assert_eq!((meta.dev, meta.ino, meta.nlink, meta.uid), (real.dev(), real.ino(), 1, real.uid()));
        assert_eq!((meta.mtime.sec, i64::from(meta.mtime.nsec)), (real.mtime(), real.mtime_nsec()));
        assert_eq!(w.read("a/b/f"), Ok(b"hello".to_vec()));
        assert_eq!(w.list("a"), Ok(vec!["b".to_owned()]));
        let opened = w.os.open(Root::Hermes, &rel("a/b/f"), Full).unwrap();
        // Reading has moved this one.
        meta.atime = opened.1.atime;
        assert_eq!((opened.1, opened.0.meta().unwrap()), (meta, meta));
    });
}

#[test]
fn a_walk_reports_from_an_index_and_stops_where_nothing_stands() {
    both(|w| {
        w.write("a/b/f", b"");
        let metas = |paths: &[&str]| paths.iter().map(|path| w.stat(path).unwrap()).collect::<Vec<_>>();
        assert_eq!(w.walk("a/b/f", 1), (Ok(()), metas(&["a/b", "a/b/f"])));
        assert_eq!(w.walk("a/b/f", 2), (Ok(()), metas(&["a/b/f"])));
        assert_eq!(w.walk("a/b/f", 3), (Ok(()), vec![]));
        assert_eq!(w.walk("", 0), (Ok(()), vec![]));
        assert_eq!(w.walk("a/x/f", 0), (Err(Errno::NOENT), metas(&["a"])));
        assert_eq!(w.walk("a/b/f/g", 0), (Err(Errno::NOTDIR), metas(&["a", "a/b", "a/b/f"])));
        assert_eq!(w.walk("a/x/f", 2), (Err(Errno::NOENT), vec![]));
        assert_eq!(w.walk("a/b/f/g", 3), (Err(Errno::NOTDIR), vec![]));
        assert_eq!(w.walk("x", 1), (Err(Errno::NOENT), vec![]));
    });
}

#[test]
fn what_is_no_file_is_refused_by_its_kind() {
    both(|w| {
        w.write("d/f", b"");
        assert_eq!(w.read("d"), Err(Errno::ISDIR));
        assert_eq!(w.read(""), Err(Errno::ISDIR));
        assert_eq!(w.read("d/g"), Err(Errno::NOENT));
        assert_eq!(w.read("d/f/g"), Err(Errno::NOTDIR));
        assert_eq!(w.list("d/f"), Err(Errno::NOTDIR));
        assert_eq!(w.list("d/g"), Err(Errno::NOENT));
        assert_eq!(w.stat("d/f/g"), Err(Errno::NOTDIR));
    });
}

#[test]
fn no_link_is_followed_at_any_depth() {
    both(|w| {
        w.write("real/deep/f", b"inside");
        fs::write(w.outside.join("f"), b"outside").unwrap();
        for (link, target) in [("la", "real"), ("real/lb", "deep"), ("real/deep/lc", "f")] {
            symlink(target, w.base.join(link)).unwrap();
        }
        symlink(&w.outside, w.base.join("out")).unwrap();
        symlink(w.outside.join("f"), w.base.join("outf")).unwrap();
        symlink("nowhere", w.base.join("dangling")).unwrap();
        symlink("/proc/self/fd", w.base.join("magic")).unwrap();
        for through in ["la/deep/f", "real/lb/f", "out/f", "magic/0", "dangling/f", "la/deep"] {
            assert_eq!(w.stat(through), Err(Errno::NOENT), "{through}");
            assert_eq!(w.read(through), Err(Errno::NOENT), "{through}");
            assert_eq!(w.list(through), Err(Errno::NOENT), "{through}");
            assert_eq!(w.walk(through, 0).0, Err(Errno::NOENT), "{through}");
        }
        for link in ["la", "real/lb", "real/deep/lc", "out", "outf", "dangling", "magic"] {
            assert_eq!(w.stat(link).map(|m| m.kind), Ok(Kind::Link), "{link}");
            assert_eq!(w.read(link), Err(Errno::NOENT), "{link}");
            assert_eq!(w.list(link), Err(Errno::NOENT), "{link}");
            for from in 0..rel(link).depth() {
                assert_eq!(w.walk(link, from).0, Err(Errno::NOENT), "{link}");
            }
        }
        let (dir, _) = w.os.open_dir(Root::Hermes, &rel("real")).unwrap();
        assert_eq!(dir.stat(name("lb")).map(|m| m.kind), Ok(Kind::Link));
        assert_eq!(dir.stat(name("deep")).map(|m| m.kind), Ok(Kind::Dir));
    });
}

#[test]
fn a_fifo_or_a_socket_is_never_opened() {
    both(|w| {
        let fifo = w.base.join("d/fifo");
        w.write("d/f", b"");
        rustix::fs::mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        let socket = UnixListener::bind(w.base.join("d/socket")).unwrap();
        socket.set_nonblocking(true).unwrap();
        let opened = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Blocks until anyone opens the fifo for reading, be it without blocking and for an instant.
                drop(fs::OpenOptions::new().write(true).open(&fifo).unwrap());
                opened.store(true, SeqCst);
            });
            thread::sleep(Duration::from_millis(50));
            for path in ["d/fifo", "d/socket"] {
                assert_eq!(w.stat(path).map(|m| m.kind), Ok(Kind::Other));
                assert_eq!(w.read(path), Err(Errno::PERM));
                assert_eq!(w.list(path), Err(Errno::NOTDIR));
                assert_eq!(w.stat(&format!("{path}/x")), Err(Errno::NOTDIR));
                assert_eq!(w.walk(path, 0).0, Ok(()));
            }
            let (dir, _) = w.os.open_dir(Root::Hermes, &rel("d")).unwrap();
            assert_eq!(dir.stat(name("fifo")).map(|m| m.kind), Ok(Kind::Other));
            thread::sleep(Duration::from_millis(50));
            let undisturbed = !opened.load(SeqCst);
            drop(fs::File::open(&fifo).unwrap());
            assert!(undisturbed, "the writer was let go");
        });
        assert_eq!(socket.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    });
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
    if !w.on_disk() {
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
fn a_directory_that_may_not_be_read_says_so() {
    both(|w| {
        w.write("closed/f", b"x");
        w.write("mute/f", b"x");
        fs::set_permissions(w.base.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(w.base.join("mute"), fs::Permissions::from_mode(0o111)).unwrap();
        fs::set_permissions(w.base.join("mute/f"), fs::Permissions::from_mode(0o000)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                unprivileged();
                assert_eq!(w.stat("closed/f"), Err(Errno::ACCESS));
                assert_eq!(w.read("closed/f"), Err(Errno::ACCESS));
                assert_eq!(w.list("closed"), Err(Errno::ACCESS));
                assert_eq!(w.stat("closed").map(|m| m.kind), Ok(Kind::Dir));
                assert_eq!(w.list("mute"), Err(Errno::ACCESS));
                assert_eq!(w.stat("mute/f").map(|m| m.size), Ok(1));
                assert_eq!(w.read("mute/f"), Err(Errno::ACCESS));
            });
        });
        fs::set_permissions(w.base.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    });
}

#[test]
fn a_large_directory_lists_whole_and_again() {
    both(|w| {
        fs::create_dir(w.base.join("many")).unwrap();
        let all: BTreeSet<String> = (0..10_000).map(|i| format!("entry-{i:05}")).collect();
        for name in &all {
            fs::write(w.base.join("many").join(name), b"").unwrap();
        }
        let (dir, meta) = w.os.open_dir(Root::Hermes, &rel("many")).unwrap();
        assert_eq!(meta.kind, Kind::Dir);
        for _ in 0..2 {
            let mut seen = Vec::new();
            dir.names(&mut |name| {
                seen.push(String::from_utf8(name.to_vec()).unwrap());
                true
            })
            .unwrap();
            assert_eq!(seen.len(), 10_000);
            assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), all);
            let mut count = 0;
            dir.names(&mut |_| {
                count += 1;
                count < 17
            })
            .unwrap();
            assert_eq!(count, 17);
        }
        assert_eq!(dir.stat(name("entry-00042")), w.stat("many/entry-00042"));
        fs::write(w.base.join("many/late"), b"").unwrap();
        let mut late = false;
        dir.names(&mut |name| {
            late |= name == b"late";
            true
        })
        .unwrap();
        assert!(late, "a listing begins anew");
    });
}

#[test]
fn a_base_may_come_go_and_be_replaced() {
    both(|w| {
        fs::remove_dir(&w.base).unwrap();
        for _ in 0..2 {
            assert_eq!(w.stat(""), Err(Errno::NOENT));
            assert_eq!(w.read("f"), Err(Errno::NOENT));
            assert_eq!(w.list(""), Err(Errno::NOENT));
        }
        w.write("f", b"made later");
        assert_eq!(w.read("f"), Ok(b"made later".to_vec()));
        fs::rename(&w.base, w.outside.join("moved")).unwrap();
        w.write("g", b"in its place");
        assert_eq!(w.read("g"), Ok(b"in its place".to_vec()), "a miss looks at the base again");
        assert_eq!(w.read("f"), Err(Errno::NOENT));
        fs::rename(&w.base, w.outside.join("moved too")).unwrap();
        fs::rename(w.outside.join("moved"), &w.base).unwrap();
        thread::sleep(Duration::from_millis(120));
        assert_eq!(w.read("g"), Err(Errno::NOENT), "the base is looked at every 100 ms");
        assert_eq!(w.read("f"), Ok(b"made later".to_vec()));
        fs::remove_dir_all(&w.base).unwrap();
        assert_eq!(w.stat(""), Err(Errno::NOENT));
        fs::write(&w.base, b"a file").unwrap();
        assert_eq!(w.stat(""), Err(Errno::NOENT));
        assert_eq!(w.stat("f"), Err(Errno::NOENT));
    });
}

#[test]
fn a_base_may_be_a_link_and_point_elsewhere_later() {
    both(|w| {
        fs::remove_dir(&w.base).unwrap();
        for one in ["one", "two"] {
            fs::create_dir(w.outside.join(one)).unwrap();
            fs::write(w.outside.join(one).join(one), one).unwrap();
        }
        symlink(w.outside.join("one"), &w.base).unwrap();
        assert_eq!(w.read("one"), Ok(b"one".to_vec()));
        assert_eq!(w.list(""), Ok(vec!["one".to_owned()]));
        fs::remove_file(&w.base).unwrap();
        symlink(w.outside.join("two"), &w.base).unwrap();
        assert_eq!(w.read("two"), Ok(b"two".to_vec()));
        assert_eq!(w.read("one"), Err(Errno::NOENT));
        fs::remove_file(&w.base).unwrap();
        symlink("nowhere", &w.base).unwrap();
        assert_eq!(w.read("three"), Err(Errno::NOENT));
    });
}

#[test]
fn a_path_may_be_longer_than_the_kernel_takes_at_once() {
    both(|w| {
        let name = "n".repeat(255);
        let mut path = Rel::base();
        let mut at = fs::File::open(&w.base).unwrap();
        for _ in 0..20 {
            rustix::fs::mkdirat(&at, &name, Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, &name, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap().into();
            path = path.join(Name::of_harness(&name).unwrap());
        }
        assert!(path.as_str().len() > 4096);
        assert_eq!(w.os.stat(Root::Hermes, &path, Full).map(|m| m.kind), Ok(Kind::Dir));
        let mut seen = 0;
        assert_eq!(w.os.walk(Root::Hermes, &path, 0, Full, &mut |_| seen += 1), Ok(()));
        assert_eq!(seen, 20);
        assert!(w.os.open_dir(Root::Hermes, &path).is_ok());
        assert_eq!(w.os.open(Root::Hermes, &path, Full).err(), Some(Errno::ISDIR));
    });
}

#[test]
fn mounts_are_crossed_unless_the_kernel_or_a_file_server_stands_behind() {
    both(|w| {
        for dir in ["memory", "bound", "proc", "sys", "d"] {
            fs::create_dir(w.base.join(dir)).unwrap();
        }
        w.write("file", b"below");
        fs::write(w.outside.join("f"), b"bound").unwrap();
        let Some(_memory) = Mounted::fs("tmpfs", &w.base.join("memory")) else { return };
        let _bound = Mounted::bind(&w.outside, &w.base.join("bound"));
        let _file = Mounted::bind(&w.outside.join("f"), &w.base.join("file"));
        let _proc = Mounted::fs("proc", &w.base.join("proc")).unwrap();
        let _sys = Mounted::fs("sysfs", &w.base.join("sys")).unwrap();
        w.write("memory/d/f", b"memory");
        fs::create_dir(w.base.join("memory/proc")).unwrap();
        let _inner = Mounted::fs("proc", &w.base.join("memory/proc")).unwrap();
        symlink(w.outside.join("f"), w.base.join("memory/link")).unwrap();

        assert_eq!(w.read("memory/d/f"), Ok(b"memory".to_vec()));
        assert_eq!(w.stat("memory/d/f").map(|m| m.size), Ok(6));
        assert_eq!(w.walk("memory/d/f", 0).1.len(), 3);
        assert_eq!(w.list("memory"), Ok(vec!["d".to_owned(), "link".to_owned(), "proc".to_owned()]));
        assert_eq!(w.read("bound/f"), Ok(b"bound".to_vec()));
        assert_eq!(w.read("file"), Ok(b"bound".to_vec()));
        assert_eq!(w.read("memory/link"), Err(Errno::NOENT));
        for (dir, entry) in [("proc", "version"), ("sys", "kernel"), ("memory/proc", "version")] {
            assert_eq!(w.stat(dir), Err(Errno::NOENT), "{dir}");
            assert_eq!(w.list(dir), Err(Errno::NOENT), "{dir}");
            let below = format!("{dir}/{entry}");
            assert_eq!(w.stat(&below), Err(Errno::NOENT), "{below}");
            assert_eq!(w.read(&below), Err(Errno::NOENT), "{below}");
            assert_eq!(w.walk(&below, 0).0, Err(Errno::NOENT), "{below}");
        }
        let (dir, _) = w.os.open_dir(Root::Hermes, &Rel::base()).unwrap();
        assert_eq!(dir.stat(name("proc")), Err(Errno::NOENT));
        assert_eq!(dir.stat(name("sys")), Err(Errno::NOENT));
        assert_eq!(dir.stat(name("memory")), w.stat("memory"));
        assert_eq!(dir.stat(name("d")), w.stat("d"));
        // The mount table is read again when it has changed.
        let later = Mounted::fs("tmpfs", &w.base.join("d")).unwrap();
        w.write("d/f", b"later");
        assert_eq!(w.read("d/f"), Ok(b"later".to_vec()));
        drop(later);
        let later = Mounted::fs("proc", &w.base.join("d")).unwrap();
        assert_eq!(w.stat("d"), Err(Errno::NOENT));
        assert_eq!(w.stat("d/version"), Err(Errno::NOENT));
        drop(later);
        assert_eq!(w.list("d"), Ok(vec![]));
        // Whatever lies behind a mount is looked for where waiting is allowed, but then read like any other file.
        assert_eq!(w.os.stat(Root::Hermes, &rel("memory/d/f"), Cached), Err(Errno::AGAIN));
        let (file, _) = w.os.open(Root::Hermes, &rel("memory/d/f"), Full).unwrap();
        assert_eq!(file.read_at(&mut [0; 6], 0, Cached), Ok(6));
    });
}

#[test]
fn processes_are_read_and_their_links_looked_at() {
    both(|w| {
        let me = w.os.me();
        assert_eq!(me.pid, std::process::id());
        let stat = rel(&format!("{}/stat", me.pid));
        let (file, meta) = w.os.open(Root::Proc, &stat, Full).unwrap();
        assert_eq!(meta.kind, Kind::File);
        let mut buf = [0; 4096];
        let bytes = file.read_at(&mut buf, 0, Full).unwrap();
        assert!(buf[..bytes].starts_with(format!("{} (", me.pid).as_bytes()));
        assert_eq!(file.read_at(&mut buf, 0, Cached), Err(Errno::AGAIN));

        let cwd = rel(&format!("{}/cwd", me.pid));
        let here = std::env::current_dir().unwrap();
        assert_eq!(w.os.read_link(&cwd), Ok(here.as_os_str().as_encoded_bytes().to_vec()));
        assert_eq!(w.os.stat(Root::Proc, &cwd, Full).map(|m| m.kind), Ok(Kind::Link));
        assert_eq!(w.os.stat_link(&cwd).map(|m| m.ino), Ok(fs::metadata(&here).unwrap().ino()));
        assert_eq!(w.os.read_link(&stat), Err(Errno::INVAL));
        assert_eq!(w.os.read_link(&Rel::base()), Err(Errno::INVAL));
        assert_eq!(w.os.read_link(&cwd.join(name("src"))), Err(Errno::NOENT));
        assert_eq!(w.os.stat_link(&cwd.join(name("src"))), Err(Errno::NOENT));
        // Never through the link.
        assert_eq!(w.os.stat(Root::Proc, &cwd.join(name("Cargo.toml")), Full), Err(Errno::NOENT));
        assert_eq!(w.os.open(Root::Proc, &cwd, Full).err(), Some(Errno::NOENT));
        assert_eq!(w.os.open_dir(Root::Proc, &cwd).err(), Some(Errno::NOENT));

        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let (file, _) = w.os.open(Root::Proc, &rel(&format!("{pid}/stat")), Full).unwrap();
        let (fds, _) = w.os.open_dir(Root::Proc, &rel(&format!("{pid}/fd"))).unwrap();
        assert_eq!(fds.stat(name("0")).map(|m| m.kind), Ok(Kind::Link));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(file.read_at(&mut buf, 0, Full), Err(Errno::NOENT));
        assert_eq!(fds.stat(name("0")), Err(Errno::NOENT));
        assert_eq!(w.os.read_link(&rel(&format!("{pid}/cwd"))), Err(Errno::NOENT));
        assert_eq!(w.os.stat(Root::Proc, &rel(&pid.to_string()), Full), Err(Errno::NOENT));
    });
}

#[test]
fn users_clocks_and_kinds_are_the_machines() {
    let w = World::new(Resolving::Probed);
    assert_eq!(w.os.user(0).as_deref(), Some("root"));
    assert_eq!(w.os.group(0).as_deref(), Some("root"));
    assert_eq!(w.os.user(3_999_999_999), None);
    let (one, two) = (w.os.now(), w.os.now());
    assert!(one.mono_ns <= two.mono_ns);
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!((i128::from(two.wall_ns) - wall.as_nanos() as i128).abs() < 1_000_000_000);
}

/// A directory is exchanged for a link, to a directory outside and to one inside by turns, as fast as a thread can, while
/// others go through its name by every call there is. What comes back is of the directory itself, or nothing.
#[test]
fn a_directory_swapped_for_a_link_never_redirects() {
    let time = std::env::var("NINEAGENTS_HAMMER_SECS").ok().and_then(|s| s.parse().ok()).unwrap_or(2);
    both(|w| {
        w.write("p/x/f", b"inside");
        fs::create_dir(w.base.join("p/x/inside")).unwrap();
        let barred: Vec<u64> = [w.outside.clone(), w.base.join("p/elsewhere")]
            .iter()
            .flat_map(|dir| {
                fs::create_dir_all(dir.join("outside")).unwrap();
                fs::write(dir.join("f"), b"outside").unwrap();
                [dir.clone(), dir.join("f")].map(|path| fs::metadata(path).unwrap().ino())
            })
            .collect();
        symlink(&w.outside, w.base.join("p/out")).unwrap();
        symlink("elsewhere", w.base.join("p/in")).unwrap();
        let (stop, reads, misses) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let (path, dir) = (rel("p/x/f"), rel("p/x"));
        let tell = |answer: Result<(), Errno>| match answer {
            Ok(()) => drop(reads.fetch_add(1, SeqCst)),
            Err(Errno::NOENT | Errno::AGAIN) => drop(misses.fetch_add(1, SeqCst)),
            Err(other) => panic!("{other}"),
        };
        let read = |effort| {
            let (file, meta) = w.os.open(Root::Hermes, &path, effort)?;
            assert!(!barred.contains(&meta.ino));
            let mut buf = [0; 16];
            let bytes = file.read_at(&mut buf, 0, Full)?;
            assert_eq!(&buf[..bytes], b"inside");
            Ok(())
        };
        let list = || {
            let (dir, _) = w.os.open_dir(Root::Hermes, &dir)?;
            dir.names(&mut |name| {
                assert_ne!(name, b"outside");
                true
            })
        };
        let stat = || {
            let meta = w.os.stat(Root::Hermes, &path, Full)?;
            assert!(!barred.contains(&meta.ino));
            Ok(())
        };
        let walk = || {
            w.os.walk(Root::Hermes, &path, 0, Full, &mut |meta| {
                assert!(!barred.contains(&meta.ino));
                assert_ne!(meta.kind, Kind::Link);
            })
        };
        thread::scope(|scope| {
            for reader in 0..4 {
                let (stop, tell, read, list, stat, walk) = (&stop, &tell, &read, &list, &stat, &walk);
                scope.spawn(move || {
                    while !stop.load(SeqCst) {
                        match reader {
                            0 => tell(read(Full)),
                            1 => tell(list()),
                            2 => tell(stat()),
                            _ => tell(walk()),
                        }
                        tell(read(Cached));
                    }
                });
            }
            let parent = fs::File::open(w.base.join("p")).unwrap();
            let (start, mut swaps) = (Instant::now(), 0_u64);
            while start.elapsed() < Duration::from_secs(time) {
                for link in ["out", "out", "in", "in"].repeat(16) {
                    rustix::fs::renameat_with(&parent, "x", &parent, link, RenameFlags::EXCHANGE).unwrap();
                    swaps += 1;
                }
            }
            stop.store(true, SeqCst);
            println!(
                "{:?}: {} swaps/s, {} reads, {} misses",
                w.resolving,
                swaps / time,
                reads.load(SeqCst),
                misses.load(SeqCst)
            );
        });
        assert!(reads.load(SeqCst) > 100 && misses.load(SeqCst) > 100, "both sides of the race were met");
    });
}

#[test]
fn a_path_leads_to_a_base_by_whatever_links() {
    both(|w| {
        let link = w.top.join("link");
        symlink(&w.base, &link).unwrap();
        let leads = |path: &Path| w.os.is_base(Root::Hermes, path.as_os_str().as_encoded_bytes());
        assert!(leads(&w.base));
        assert!(leads(&w.base.join("../base/.")));
        assert!(leads(&link));
        for other in [&w.outside, &w.top.join("absent"), Path::new("base"), Path::new("")] {
            assert!(!leads(other), "{other:?}");
        }
        assert!(!w.os.is_base(Root::Claude, w.top.join("absent").as_os_str().as_encoded_bytes()));
    });
}

#[test]
fn the_machine_is_known_by_its_id() {
    both(|w| {
        let line = fs::read_to_string("/etc/machine-id").ok();
        let id = line.as_deref().map(str::trim_end).filter(|id| id.len() == 32);
        assert_eq!(w.os.machine_id().as_deref(), id);
        assert_eq!(w.os.machine_id().as_deref(), id, "the second answer comes from memory");
    });
}

/// A base directory and a host that serves it as one of its roots.
struct World {
    os: Os,
    resolving: Resolving,
    /// The base of [`Root::Hermes`].
    base: PathBuf,
    /// A directory that is not below it.
    outside: PathBuf,
    top: PathBuf,
}

/// Runs a test with both ways of resolving.
fn both(test: impl Fn(&World)) {
    for resolving in [Resolving::Probed, Resolving::Stepwise] {
        let world = World::new(resolving);
        assert_eq!(world.os.resolving() == "name by name", resolving == Resolving::Stepwise);
        test(&world);
    }
}

impl World {
    fn new(resolving: Resolving) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, SeqCst);
        let top = std::env::temp_dir().join(format!("host-os-{}-{serial}", std::process::id()));
        let (base, outside) = (top.join("base"), top.join("outside"));
        fs::create_dir_all(&base).unwrap();
        fs::create_dir(&outside).unwrap();
        let absent = top.join("absent");
        let roots = Roots {
            claude: absent.clone(),
            codex: absent.clone(),
            omp: absent.clone(),
            hermes: base.clone(),
            dsh: absent,
        };
        Self { os: Os::new(roots, PathBuf::from("/proc"), resolving), resolving, base, outside, top }
    }

    /// Whether the files lie in a filesystem that caches misses and reads with `RWF_NOWAIT`: ext4, XFS or btrfs.
    fn on_disk(&self) -> bool {
        let kind = rustix::fs::statfs(&self.top).unwrap().f_type as u32;
        [0xef53, 0x5846_5342, 0x9123_683e].contains(&kind)
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn stat(&self, path: &str) -> Result<Meta, Errno> {
        self.os.stat(Root::Hermes, &rel(path), Full)
    }

    fn walk(&self, path: &str, from: usize) -> (Result<(), Errno>, Vec<Meta>) {
        let mut seen = Vec::new();
        let answer = self.os.walk(Root::Hermes, &rel(path), from, Full, &mut |meta| seen.push(*meta));
        (answer, seen)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let (file, meta) = self.os.open(Root::Hermes, &rel(path), Full)?;
        let mut content = vec![0; meta.size as usize + 1];
        let bytes = file.read_at(&mut content, 0, Full)?;
        content.truncate(bytes);
        Ok(content)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let (dir, _) = self.os.open_dir(Root::Hermes, &rel(path))?;
        let mut names = Vec::new();
        dir.names(&mut |name| {
            names.push(String::from_utf8(name.to_vec()).unwrap());
            true
        })?;
        names.sort();
        Ok(names)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

/// A mount that ends with the test, however that ends.
struct Mounted(PathBuf);

impl Mounted {
    /// `None`, said aloud, where mounting is not allowed.
    fn fs(kind: &str, at: &Path) -> Option<Self> {
        match rustix::mount::mount(kind, at, kind, MountFlags::empty(), None) {
            Ok(()) => Some(Self(at.to_owned())),
            Err(Errno::PERM) => {
                skip("crossing of mounts needs the right to mount");
                None
            }
            Err(other) => panic!("mount of {kind}: {other}"),
        }
    }

    fn bind(source: &Path, at: &Path) -> Self {
        rustix::mount::mount_bind(source, at).unwrap();
        Self(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Says past the test runner, which keeps what a passing test prints, that something was not tested.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// A cached lookup may have to be asked twice: any rename on the machine can be in its way.
fn soon<T>(mut lookup: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..10_000 {
        match lookup() {
            Err(Errno::AGAIN) => {}
            answer => return answer,
        }
    }
    Err(Errno::AGAIN)
}

fn rel(path: &str) -> Rel {
    if path.is_empty() { Rel::base() } else { Rel::from_harness(path).unwrap() }
}

fn name(name: &str) -> Name<'_> {
    Name::of_harness(name).unwrap()
}

/// Gives up root's rights for this thread alone.
fn unprivileged() {
    if rustix::process::geteuid().is_root() {
        let nobody = rustix::fs::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
    }
}
