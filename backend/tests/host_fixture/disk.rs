//! Files: what is in memory, mounts, permissions, inode numbers that come again.

use backend::host::fixture::{Edit, Fixture, FsType, World};
use backend::host::{Errno, Host, Kind};
use backend::name::{Rel, Root};
use engine::port::Effort::{Cached, Full};

use crate::{at, done, list, machine, mkdir, name, read, rel, stat, unlink, write};

#[test]
fn a_file_that_was_cooled_waits_once() {
    let fixture = machine([mkdir("d"), write("d/f", "hello"), write("d/g", "")]);
    let stat = |effort| fixture.stat(Root::Claude, &rel("d/f"), effort).map(|meta| meta.size);
    assert_eq!(stat(Cached), Ok(5));
    done(&fixture, Edit::Cool { path: at("d/f") });
    assert_eq!(stat(Cached), Err(Errno::AGAIN));
    assert_eq!(fixture.open(Root::Claude, &rel("d/f"), Cached).err(), Some(Errno::AGAIN));
    assert_eq!(fixture.stat(Root::Claude, &rel("d/g"), Cached).map(|meta| meta.size), Ok(0));
    let (file, _) = fixture.open(Root::Claude, &rel("d/f"), Full).unwrap();
    assert_eq!(stat(Cached), Ok(5), "looked up, it is known");
    let mut buf = [0; 9];
    assert_eq!(file.read_at(&mut buf, 0, Cached), Err(Errno::AGAIN), "but not yet read");
    assert_eq!(file.read_at(&mut buf, 0, Full), Ok(5));
    assert_eq!(file.read_at(&mut buf, 0, Cached), Ok(5));

    done(&fixture, Edit::Cool { path: at("d") });
    assert_eq!(stat(Cached), Err(Errno::AGAIN), "what is on the way counts");
    let mut seen = 0;
    let walk = fixture.walk(Root::Claude, &rel("d/f"), 0, Cached, &mut |_| seen += 1);
    assert_eq!((walk, seen), (Err(Errno::AGAIN), 0));
}

#[test]
fn an_inode_number_comes_again_with_another_birth_or_another_handle() {
    for same_birth in [false, true] {
        let fixture = machine([write("f", "one")]);
        let reappear = Edit::Reappear { path: at("f"), bytes: "two".into(), same_birth };
        let (file, old) = fixture.open(Root::Claude, &rel("f"), Full).unwrap();
        assert_eq!(fixture.apply(&reappear), Err(Errno::BUSY), "an open file keeps its number");
        drop(file);
        done(&fixture, reappear);
        let new = stat(&fixture, "f").unwrap();
        assert_eq!((new.dev, new.ino), (old.dev, old.ino));
        assert_eq!(new.btime == old.btime, same_birth);
        assert_ne!(new.handle, old.handle);
        assert_eq!(read(&fixture, "f"), Ok(b"two".to_vec()));
    }
    let fixture = machine([write("f", "one"), Edit::HardLink { from: at("f"), to: at("g") }]);
    let reappear = Edit::Reappear { path: at("f"), bytes: "two".into(), same_birth: false };
    assert_eq!(fixture.apply(&reappear), Err(Errno::BUSY), "so does one with another name");
}

#[test]
fn mounts_are_crossed_unless_the_kernel_or_a_file_server_stands_behind() {
    let mount = |path, kind| Edit::Mount { path: at(path), kind };
    let fixture = machine([
        mkdir("memory"),
        mkdir("proc"),
        mkdir("server"),
        mkdir("remote"),
        write("memory/hidden", "beneath"),
        mount("memory", FsType::Tmpfs),
        mount("proc", FsType::Proc),
        mount("server", FsType::NineP),
        mount("remote", FsType::Nfs),
        mkdir("memory/d"),
        write("memory/d/f", "memory"),
        write("proc/version", "never seen"),
        write("remote/f", "remote"),
    ]);
    assert_eq!(read(&fixture, "memory/d/f"), Ok(b"memory".to_vec()));
    assert_eq!(list(&fixture, Root::Claude, "memory"), Ok(vec!["d".to_owned()]));
    assert_ne!(stat(&fixture, "memory").map(|meta| meta.dev), stat(&fixture, "").map(|meta| meta.dev));
    for path in ["proc", "proc/version", "server", "server/x"] {
        assert_eq!(stat(&fixture, path), Err(Errno::NOENT), "{path}");
        assert_eq!(list(&fixture, Root::Claude, path), Err(Errno::NOENT), "{path}");
        assert_eq!(fixture.walk(Root::Claude, &rel(path), 0, Full, &mut |_| ()), Err(Errno::NOENT), "{path}");
    }
    let (dir, _) = fixture.open_dir(Root::Claude, &Rel::base()).unwrap();
    assert_eq!(dir.stat(name("proc")), Err(Errno::NOENT));
    assert_eq!(dir.stat(name("memory")), stat(&fixture, "memory"));
    assert_eq!(fixture.stat(Root::Claude, &rel("memory/d/f"), Cached), Err(Errno::AGAIN));
    let (file, _) = fixture.open(Root::Claude, &rel("memory/d/f"), Full).unwrap();
    assert_eq!(file.read_at(&mut [0; 6], 0, Cached), Ok(6), "once found, it is read like any other");

    let (file, meta) = fixture.open(Root::Claude, &rel("remote/f"), Full).unwrap();
    assert_eq!((meta.btime, meta.handle, file.tells_replacement()), (None, 0, false));
    assert_eq!(file.read_at(&mut [0; 6], 0, Cached), Err(Errno::AGAIN));

    done(&fixture, Edit::Unmount { path: at("memory") });
    assert_eq!(read(&fixture, "memory/hidden"), Ok(b"beneath".to_vec()));
    assert_eq!(stat(&fixture, "memory/d"), Err(Errno::NOENT));
    assert_eq!(fixture.apply(&Edit::Unmount { path: at("memory") }), Err(Errno::INVAL));
    let across = Edit::Rename { from: at("remote/f"), to: at("f") };
    assert_eq!(fixture.apply(&across), Err(Errno::XDEV));
    assert_eq!(fixture.apply(&Edit::Rmdir { path: at("remote") }), Err(Errno::BUSY));
}

#[test]
fn a_base_may_come_go_be_a_link_and_point_elsewhere() {
    let fixture = Fixture::new(World::new());
    assert_eq!(stat(&fixture, ""), Err(Errno::NOENT));
    assert_eq!(read(&fixture, "f"), Err(Errno::NOENT));
    done(&fixture, mkdir(""));
    done(&fixture, write("f", "one"));
    assert_eq!(read(&fixture, "f"), Ok(b"one".to_vec()));
    done(&fixture, Edit::Rename { from: at(""), to: "/home/me/moved".into() });
    assert_eq!(read(&fixture, "f"), Err(Errno::NOENT));
    done(&fixture, Edit::Symlink { path: at(""), target: "moved".into() });
    assert_eq!(read(&fixture, "f"), Ok(b"one".to_vec()));
    assert!(fixture.is_base(Root::Claude, b"/home/me/../me/moved"));
    assert!(fixture.is_base(Root::Claude, b"/home/me/.claude"));
    assert!(!fixture.is_base(Root::Claude, b"/home/me"));
    assert!(!fixture.is_base(Root::Codex, b"/home/me/.codex"));
    done(&fixture, unlink(""));
    done(&fixture, write("", "a file"));
    assert_eq!(stat(&fixture, ""), Err(Errno::NOENT));
    assert_eq!(stat(&fixture, "f"), Err(Errno::NOENT));
    done(&fixture, Edit::Root { root: Root::Claude, path: "/loop".into() });
    done(&fixture, Edit::Symlink { path: "/loop".into(), target: "loop".into() });
    assert_eq!(stat(&fixture, ""), Err(Errno::NOENT));
}

#[test]
fn names_that_are_not_text_are_listed() {
    let fixture = machine([Edit::Write { path: b"/home/me/.claude/\xff".into(), bytes: "".into() }]);
    let (dir, _) = fixture.open_dir(Root::Claude, &Rel::base()).unwrap();
    let mut names = Vec::new();
    dir.names(&mut |name| {
        names.push(name.to_vec());
        true
    })
    .unwrap();
    assert_eq!(names, [b"\xff"]);
}

#[test]
fn names_come_in_an_order_of_their_own_and_once_each() {
    let names: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
    let fixture = machine(names.iter().map(|name| write(name, "")));
    let listed = list(&fixture, Root::Claude, "").unwrap();
    assert_ne!(listed, names, "whoever wants an order has to sort");
    let mut sorted = listed.clone();
    sorted.sort();
    assert_eq!(sorted, names);
    assert_eq!(list(&fixture, Root::Claude, "").unwrap(), listed);
}

#[test]
fn a_listing_may_change_the_directory_it_lists() {
    let fixture = machine([write("f", ""), write("g", "")]);
    let (dir, _) = fixture.open_dir(Root::Claude, &Rel::base()).unwrap();
    let mut seen = 0;
    dir.names(&mut |name| {
        seen += 1;
        done(&fixture, unlink(str::from_utf8(name).unwrap()));
        true
    })
    .unwrap();
    assert_eq!(seen, 2);
    assert_eq!(list(&fixture, Root::Claude, ""), Ok(vec![]));
}

#[test]
fn what_is_held_open_is_counted_until_it_is_dropped() {
    let fixture = machine([mkdir("d"), write("d/f", "x")]);
    let open = || fixture.with(|world| world.open());
    let file = fixture.open(Root::Claude, &rel("d/f"), Full).unwrap();
    let dir = fixture.open_dir(Root::Claude, &rel("d")).unwrap();
    let twice = fixture.open(Root::Claude, &rel("d/f"), Full).unwrap();
    assert_eq!(open(), 3);
    drop((file, dir));
    assert_eq!(open(), 1);
    drop(twice);
    assert_eq!(open(), 0);
}

#[test]
fn a_snapshot_goes_its_own_way() {
    let fixture = machine([write("f", "one")]);
    let other = Fixture::new(fixture.snapshot());
    done(&other, write("f", "changed"));
    done(&other, write("g", ""));
    done(&other, Edit::Exit { pid: 1 });
    assert_eq!(read(&fixture, "f"), Ok(b"one".to_vec()));
    assert_eq!(stat(&fixture, "g"), Err(Errno::NOENT));
    assert_eq!(fixture.stat(Root::Proc, &rel("1"), Full).map(|meta| meta.kind), Ok(Kind::Dir));
    assert_eq!(read(&other, "f"), Ok(b"changed".to_vec()));
}
