//! Finding, walking, opening and listing what stands still.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use backend::host::{Errno, Host, Kind};
use backend::name::{Name, Rel, Root};
use engine::port::Effort::Full;
use rustix::fs::{CWD, Mode};

use crate::world::{both, name, rel, unprivileged};

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
