//! Processes, and how `/proc` tells of them.

use backend::host::fixture::{Edit, Fixture, LockKind, Process, Refuses, State, Tcp};
use backend::host::{Errno, Host, Kind};
use backend::name::Root;
use engine::port::Effort::{Cached, Full};

use crate::{at, done, list, machine, mkdir, name, read_of, rel, rename, start, stat, unlink, write};

#[test]
fn a_process_is_told_in_files() {
    let fixture = machine([start(Process {
        ppid: 40,
        args: vec!["a b".into(), "".into(), b"\xff\n".into()],
        env: vec!["ZMX_SESSION=x".into()],
        tty: 34816,
        start_ticks: Some(8_640_123),
        ..Process::new(50, "a) (b\n\\and too long")
    })]);
    let read = |path| read_of(&fixture, Root::Proc, path).unwrap();
    assert_eq!(read("50/comm"), b"a) (b\n\\and too \n");
    assert_eq!(read("50/cmdline"), b"a b\0\0\xff\n\0");
    assert_eq!(read("50/environ"), b"ZMX_SESSION=x\0");
    let line = String::from_utf8(read("50/stat")).unwrap();
    let rest = line.strip_prefix("50 (a) (b\n\\and too ) ").unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    assert_eq!(
        (fields.len(), fields[0], fields[1], fields[4], fields[19]),
        (50, "S", "40", "34816", "8640123")
    );
    let status = String::from_utf8(read("50/status")).unwrap();
    assert!(status.starts_with("Name:\ta) (b\\n\\\\and too \nUmask:"), "{status}");
    for line in ["State:\tS (sleeping)", "PPid:\t40", "Uid:\t1000\t1000\t1000\t1000", "NSpid:\t50"] {
        assert!(status.lines().any(|other| other == line), "{line}");
    }
    let machine_stat = String::from_utf8(read("stat")).unwrap();
    // A day before 2026.
    assert!(machine_stat.contains("\nbtime 1767139200\n"), "{machine_stat}");
    let meta = fixture.stat(Root::Proc, &rel("50"), Full).unwrap();
    assert_eq!((meta.kind, meta.uid, meta.btime), (Kind::Dir, 1000, None));
    assert_eq!(meta.mtime.ns(), 1_767_139_200_000_000_000 + 86_401_230_000_000);
}

#[test]
fn everything_below_proc_waits() {
    let fixture = machine([]);
    assert_eq!(fixture.stat(Root::Proc, &rel("1"), Cached), Err(Errno::AGAIN));
    assert_eq!(fixture.open(Root::Proc, &rel("1/stat"), Cached).err(), Some(Errno::AGAIN));
    let (file, _) = fixture.open(Root::Proc, &rel("1/stat"), Full).unwrap();
    assert_eq!(file.read_at(&mut [0; 9], 0, Cached), Err(Errno::AGAIN));
    assert_eq!(file.read_at(&mut [0; 9], 3, Full), Ok(9));
}

#[test]
fn the_table_lists_processes_and_links_to_the_own_one() {
    let fixture = machine([start(Process::new(50, "x"))]);
    let mut names = list(&fixture, Root::Proc, "").unwrap();
    names.sort();
    assert_eq!(names, ["1", "4000", "50", "locks", "net", "self", "stat"]);
    for wrong in ["050", "+50", "51", "0", "x", "4294967346", "50x"] {
        assert_eq!(fixture.stat(Root::Proc, &rel(wrong), Full), Err(Errno::NOENT), "{wrong}");
    }
    assert_eq!(fixture.read_link(&rel("self")), Ok(b"4000".to_vec()));
    assert_eq!(fixture.read_link(&rel("net")), Ok(b"self/net".to_vec()));
    assert_eq!(fixture.stat_link(&rel("self")), fixture.stat(Root::Proc, &rel("4000"), Full));
    assert_eq!(fixture.stat_link(&rel("net")), fixture.stat(Root::Proc, &rel("4000/net"), Full));
    assert_eq!(fixture.stat(Root::Proc, &rel("self/stat"), Full), Err(Errno::NOENT), "no link is followed");
    assert_eq!(fixture.stat(Root::Proc, &rel("50/stat/x"), Full), Err(Errno::NOTDIR));
    assert_eq!(fixture.open(Root::Proc, &rel("50/fd"), Full).err(), Some(Errno::ISDIR));
    assert_eq!(fixture.open(Root::Proc, &rel("50/cwd"), Full).err(), Some(Errno::NOENT));
    assert_eq!(fixture.open_dir(Root::Proc, &rel("50/stat")).err(), Some(Errno::NOTDIR));
    assert_eq!(fixture.read_link(&rel("50/ns/pid")), Ok(b"pid:[4026531836]".to_vec()));
    done(&fixture, Edit::Me { pid: 4001, uid: 1000, gid: 1000 });
    assert_eq!((fixture.read_link(&rel("self")), fixture.me().pid), (Ok(b"4001".to_vec()), 4001));
    assert_eq!(fixture.stat(Root::Proc, &rel("4000"), Full), Err(Errno::NOENT));
    assert_eq!(fixture.apply(&Edit::Me { pid: 0, uid: 0, gid: 0 }), Err(Errno::INVAL));
    assert_eq!(fixture.apply(&Edit::Me { pid: 50, uid: 1000, gid: 1000 }), Err(Errno::EXIST));
}

#[test]
fn each_link_may_be_refused_alone() {
    let all = ["fd", "fd/0", "cwd", "exe", "environ"];
    let ask = |fixture: &Fixture, path: &str| match path {
        "fd" => fixture.open_dir(Root::Proc, &rel("50/fd")).map(drop),
        "environ" => fixture.open(Root::Proc, &rel("50/environ"), Full).map(drop),
        link => {
            let link = rel(&format!("50/{link}"));
            let (text, meta) = (fixture.read_link(&link), fixture.stat_link(&link));
            assert_eq!(text.as_ref().err(), meta.as_ref().err());
            text.map(drop)
        }
    };
    let process = Process { exe: at("f"), ..Process::new(50, "x") };
    let fixture = machine([write("f", ""), start(process), open(50, 0, at("f"))]);
    for (refuses, refused) in [
        (Refuses::default(), &[][..]),
        (Refuses { fd: true, ..Refuses::default() }, &["fd", "fd/0"]),
        (Refuses { cwd: true, ..Refuses::default() }, &["cwd"]),
        (Refuses { exe: true, ..Refuses::default() }, &["exe"]),
        (Refuses { environ: true, ..Refuses::default() }, &["environ"]),
    ] {
        done(&fixture, Edit::Refuse { pid: 50, refuses });
        for path in all {
            let expected = if refused.contains(&path) { Err(Errno::ACCESS) } else { Ok(()) };
            assert_eq!(ask(&fixture, path), expected, "{path} of {refuses:?}");
        }
        assert!(read_of(&fixture, Root::Proc, "50/cmdline").is_ok(), "what all may see");
        assert_eq!(fixture.stat(Root::Proc, &rel("50/cwd"), Full).map(|meta| meta.kind), Ok(Kind::Link));
    }
    done(&fixture, Edit::Refuse { pid: 50, refuses: Refuses { all: true, ..Refuses::default() } });
    assert_eq!(fixture.stat(Root::Proc, &rel("50"), Full), Err(Errno::NOENT));
    assert!(!list(&fixture, Root::Proc, "").unwrap().contains(&"50".to_owned()));

    for path in ["1/fd", "1/fd/0"] {
        assert_eq!(
            fixture.open_dir(Root::Proc, &rel(path)).err(),
            Some(Errno::ACCESS),
            "another user's {path}"
        );
    }
    assert_eq!(fixture.read_link(&rel("1/cwd")), Err(Errno::ACCESS));
    done(&fixture, Edit::Me { pid: 4000, uid: 0, gid: 0 });
    assert_eq!(fixture.read_link(&rel("1/cwd")), Ok(b"/".to_vec()));
}

#[test]
fn a_corpse_has_nothing_and_still_a_name() {
    let fixture =
        machine([start(Process { exe: "/bin".into(), ..Process::new(50, "x") }), open(50, 0, "/".into())]);
    done(&fixture, Edit::Zombie { pid: 50 });
    assert!(read_of(&fixture, Root::Proc, "50/stat").unwrap().starts_with(b"50 (x) Z "));
    assert_eq!(read_of(&fixture, Root::Proc, "50/cmdline"), Ok(vec![]));
    assert_eq!(fixture.read_link(&rel("50/exe")), Err(Errno::NOENT));
    assert_eq!(fixture.open_dir(Root::Proc, &rel("50/fd")).err(), Some(Errno::ACCESS));
    assert_eq!(fixture.open(Root::Proc, &rel("50/fd"), Full).err(), Some(Errno::ACCESS));
    assert_eq!(fixture.open(Root::Proc, &rel("50/environ"), Full).err(), Some(Errno::ACCESS));
    assert_eq!(list(&fixture, Root::Proc, "50/net"), Err(Errno::INVAL));
    assert_eq!(fixture.stat(Root::Proc, &rel("50/net/tcp"), Full), Err(Errno::NOENT));
    assert_eq!(fixture.apply(&open(50, 1, "/".into())), Err(Errno::SRCH));
    assert_eq!(fixture.apply(&start(Process::new(50, "y"))), Err(Errno::EXIST));
    done(&fixture, Edit::Exit { pid: 50 });
    assert_eq!(fixture.stat(Root::Proc, &rel("50"), Full), Err(Errno::NOENT));
}

#[test]
fn to_read_the_memory_of_a_process_that_waits_for_a_disk_is_counted() {
    let fixture = machine([start(Process::new(50, "x"))]);
    done(&fixture, Edit::State { pid: 50, state: State::DiskSleep });
    assert!(read_of(&fixture, Root::Proc, "50/stat").unwrap().starts_with(b"50 (x) D "));
    assert!(read_of(&fixture, Root::Proc, "50/comm").is_ok());
    assert_eq!(fixture.with(|world| world.hung()), 0);
    assert_eq!(read_of(&fixture, Root::Proc, "50/cmdline"), Err(Errno::IO));
    assert_eq!(read_of(&fixture, Root::Proc, "50/environ"), Err(Errno::IO));
    assert_eq!(fixture.with(|world| world.hung()), 2);
}

#[test]
fn what_was_opened_of_a_process_is_not_its_successors() {
    let fixture = machine([start(Process::new(50, "first")), open(50, 0, "/".into())]);
    let (file, opened) = fixture.open(Root::Proc, &rel("50/comm"), Full).unwrap();
    let (dir, _) = fixture.open_dir(Root::Proc, &rel("50/fd")).unwrap();
    done(&fixture, Edit::Advance { ns: 50_000_000 });
    done(&fixture, Edit::ReusePid(Box::new(Process::new(50, "second"))));
    done(&fixture, open(50, 0, "/".into()));
    assert_eq!(file.read_at(&mut [0; 9], 0, Full), Err(Errno::NOENT));
    assert_eq!(file.meta(), Ok(opened));
    assert_eq!(dir.names(&mut |_| true), Err(Errno::NOENT));
    assert_eq!(dir.stat(name("0")), Err(Errno::NOENT));
    assert_eq!(read_of(&fixture, Root::Proc, "50/comm"), Ok(b"second\n".to_vec()));
    assert_ne!(fixture.stat(Root::Proc, &rel("50"), Full).map(|meta| meta.ino), Ok(opened.ino));
    assert_eq!(fixture.apply(&Edit::ReusePid(Box::new(Process::new(51, "x")))), Err(Errno::SRCH));
}

#[test]
fn a_link_follows_its_file_wherever_the_name_goes() {
    let fixture = machine([
        mkdir("d"),
        write("d/f", "x"),
        start(Process { cwd: at("d"), ..Process::new(50, "x") }),
        open(50, 3, at("d/f")),
    ]);
    let says = |link: &str| {
        let text = fixture.read_link(&rel(&format!("50/{link}"))).unwrap();
        String::from_utf8(text).unwrap().replace("/home/me/.claude", "~")
    };
    let leads_to = |link: &str| fixture.stat_link(&rel(&format!("50/{link}"))).unwrap();
    let file = stat(&fixture, "d/f").unwrap();
    assert_eq!((says("fd/3"), leads_to("fd/3")), ("~/d/f".to_owned(), file));
    assert_eq!((says("cwd"), leads_to("cwd")), ("~/d".to_owned(), stat(&fixture, "d").unwrap()));
    done(&fixture, rename("d/f", "g"));
    assert_eq!((says("fd/3"), leads_to("fd/3").ino), ("~/g".to_owned(), file.ino));
    done(&fixture, rename("d", "e"));
    assert_eq!(says("cwd"), "~/e");
    done(&fixture, Edit::Rmdir { path: at("e") });
    assert_eq!(says("cwd"), "~/e (deleted)");
    assert_eq!(leads_to("cwd").nlink, 0);
    done(&fixture, Edit::Replace { path: at("g"), bytes: "new".into() });
    assert_eq!((says("fd/3"), leads_to("fd/3").ino), ("~/g (deleted)".to_owned(), file.ino));
    assert_ne!(stat(&fixture, "g").unwrap().ino, file.ino);
    done(&fixture, Edit::CloseFd { pid: 50, fd: 3 });
    assert_eq!(fixture.read_link(&rel("50/fd/3")), Err(Errno::NOENT));
    assert_eq!(fixture.apply(&Edit::CloseFd { pid: 50, fd: 3 }), Err(Errno::BADF));
}

#[test]
fn a_hard_link_is_shown_by_the_name_it_was_opened_by() {
    let fixture = machine([
        write("f", "x"),
        Edit::HardLink { from: at("f"), to: at("g") },
        start(Process::new(50, "x")),
        open(50, 3, at("g")),
        unlink("f"),
    ]);
    assert_eq!(fixture.read_link(&rel("50/fd/3")), Ok(b"/home/me/.claude/g".to_vec()));
    done(&fixture, unlink("g"));
    assert_eq!(fixture.read_link(&rel("50/fd/3")), Ok(b"/home/me/.claude/g (deleted)".to_vec()));
}

#[test]
fn a_link_may_say_what_it_does_not_lead_to() {
    let fixture = machine([write("f", "x"), write("g", "y"), start(Process::new(50, "x"))]);
    done(&fixture, Edit::OpenFd { pid: 50, fd: 3, path: at("f"), says: Some(at("g")) });
    assert_eq!(fixture.read_link(&rel("50/fd/3")), Ok(at("g").to_vec()));
    assert_eq!(fixture.stat_link(&rel("50/fd/3")), stat(&fixture, "f"));
    for (fd, outside, kind) in
        [(4, "socket:[77]", Kind::Other), (5, "/dev/pts/3", Kind::Other), (6, "/elsewhere/f", Kind::File)]
    {
        done(&fixture, open(50, fd, outside.into()));
        let link = rel(&format!("50/fd/{fd}"));
        assert_eq!(fixture.read_link(&link), Ok(outside.as_bytes().to_vec()));
        assert_eq!(fixture.stat_link(&link).map(|meta| meta.kind), Ok(kind));
    }
    done(&fixture, Edit::Chdir { pid: 50, path: "/elsewhere".into() });
    assert_eq!(fixture.stat_link(&rel("50/cwd")).map(|meta| meta.kind), Ok(Kind::Dir));
    let mut fds = list(&fixture, Root::Proc, "50/fd").unwrap();
    fds.sort();
    assert_eq!(fds, ["3", "4", "5", "6"]);
}

#[test]
fn a_lock_is_held_waited_for_moved_and_dropped() {
    let hold =
        |pid, path, exclusive| Edit::HoldLock { pid, path: at(path), kind: LockKind::Flock, exclusive };
    let fixture = machine([
        write("a.lock", ""),
        write("b.lock", ""),
        start(Process::new(50, "x")),
        start(Process::new(51, "y")),
        start(Process::new(52, "z")),
        hold(50, "a.lock", true),
        hold(51, "a.lock", true),
        hold(52, "a.lock", true),
        hold(52, "b.lock", false),
        hold(51, "b.lock", false),
    ]);
    let (a, b) = (stat(&fixture, "a.lock").unwrap().ino, stat(&fixture, "b.lock").unwrap().ino);
    let locks = || {
        let text = String::from_utf8(read_of(&fixture, Root::Proc, "locks").unwrap()).unwrap();
        text.replace(&format!(":{a} 0 EOF"), ":A").replace(&format!(":{b} 0 EOF"), ":B")
    };
    assert_eq!(
        locks(),
        "1: FLOCK  ADVISORY  WRITE 50 08:01:A\n\
         1: -> FLOCK  ADVISORY  WRITE 51 08:01:A\n\
         1: -> FLOCK  ADVISORY  WRITE 52 08:01:A\n\
         2: FLOCK  ADVISORY  READ  52 08:01:B\n\
         3: FLOCK  ADVISORY  READ  51 08:01:B\n"
    );
    done(&fixture, Edit::DropLock { pid: 50, path: at("a.lock") });
    done(&fixture, Edit::DropLock { pid: 52, path: at("b.lock") });
    done(&fixture, Edit::MoveLock { from: 51, to: 50, path: at("b.lock") });
    assert_eq!(
        locks(),
        "1: FLOCK  ADVISORY  WRITE 51 08:01:A\n\
         1: -> FLOCK  ADVISORY  WRITE 52 08:01:A\n\
         2: FLOCK  ADVISORY  READ  50 08:01:B\n"
    );
    done(&fixture, Edit::Exit { pid: 51 });
    done(&fixture, Edit::Zombie { pid: 50 });
    assert_eq!(locks(), "1: FLOCK  ADVISORY  WRITE 52 08:01:A\n");
    assert_eq!(fixture.apply(&Edit::DropLock { pid: 50, path: at("a.lock") }), Err(Errno::NOLCK));
    done(&fixture, open(52, 9, at("a.lock")));
    done(&fixture, Edit::CloseFd { pid: 52, fd: 9 });
    assert_eq!(locks(), "", "the last descriptor takes its locks with it");
    done(&fixture, Edit::HoldLock { pid: 52, path: at("a.lock"), kind: LockKind::Posix, exclusive: true });
    assert_eq!(locks(), "1: POSIX  ADVISORY  WRITE 52 08:01:A\n");
}

#[test]
fn sockets_are_told_as_the_kernel_prints_them() {
    let fixture = machine([
        Edit::Tcp(Tcp {
            local: "127.0.0.1:564".parse().unwrap(),
            remote: "127.0.0.1:40000".parse().unwrap(),
            state: 1,
            uid: 1000,
            ino: 4242,
        }),
        Edit::Tcp(Tcp {
            local: "[::1]:564".parse().unwrap(),
            remote: "[::]:0".parse().unwrap(),
            state: 10,
            uid: 0,
            ino: 0,
        }),
    ]);
    let lines = |path| {
        let text = String::from_utf8(read_of(&fixture, Root::Proc, path).unwrap()).unwrap();
        text.lines()
            .skip(1)
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect::<Vec<Vec<_>>>()
    };
    let v4 = &lines("4000/net/tcp")[0];
    assert_eq!(
        (&*v4[1], &*v4[2], &*v4[3], &*v4[7], &*v4[9]),
        ("0100007F:0234", "0100007F:9C40", "01", "1000", "4242")
    );
    let v6 = &lines("4000/net/tcp6")[0];
    assert_eq!((&*v6[1], &*v6[3]), ("00000000000000000000000001000000:0234", "0A"));
    assert_eq!(read_of(&fixture, Root::Proc, "net/tcp"), Err(Errno::NOENT), "net is a link");
}

#[test]
fn a_process_may_overwrite_its_arguments() {
    let fixture =
        machine([start(Process { args: vec!["node".into(), "cli.js".into()], ..Process::new(50, "node") })]);
    done(&fixture, Edit::Retitle { pid: 50, comm: "claude".into(), args: vec!["claude".into()] });
    assert_eq!(read_of(&fixture, Root::Proc, "50/cmdline"), Ok(b"claude\0".to_vec()));
    assert_eq!(read_of(&fixture, Root::Proc, "50/comm"), Ok(b"claude\n".to_vec()));
}

fn open(pid: u32, fd: u32, path: backend::host::fixture::Bytes) -> Edit {
    Edit::OpenFd { pid, fd, path, says: None }
}
