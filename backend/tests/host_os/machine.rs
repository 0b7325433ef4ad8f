//! What else there is on a machine: mounts, processes, users, clocks.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use backend::host::os::Resolving;
use backend::host::{Errno, Host, Kind};
use backend::name::{Rel, Root};
use engine::port::Effort::{Cached, Full};

use crate::world::{Mounted, World, both, name, rel};

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
fn the_machine_is_known_by_its_id() {
    both(|w| {
        let line = fs::read_to_string("/etc/machine-id").ok();
        let id = line.as_deref().map(str::trim_end).filter(|id| id.len() == 32);
        assert_eq!(w.os.machine_id().as_deref(), id);
        assert_eq!(w.os.machine_id().as_deref(), id, "the second answer comes from memory");
    });
}
