//! The clocks, and what happens by itself.

use backend::host::fixture::{Death, Edit, Fixture, Process, Signal, World};
use backend::host::{Errno, Host};
use backend::name::Root;
use engine::port::{Effort::Full, Now};

use crate::{at, done, list, machine, read, read_of, rel, start, stat, unlink, write};

#[test]
fn no_two_edits_have_the_same_time_unless_the_clock_of_files_is_coarse() {
    let fixture = machine([write("f", "1")]);
    let mtime = || stat(&fixture, "f").unwrap().mtime;
    let one = mtime();
    done(&fixture, write("f", "2"));
    let two = mtime();
    assert!(one < two);
    assert_eq!(fixture.now(), World::new().now(), "the clocks stand");

    done(&fixture, Edit::Granularity { ns: 4_000_000 });
    done(&fixture, Edit::Advance { ns: 10_000_000 });
    done(&fixture, write("f", "3"));
    let three = mtime();
    done(&fixture, write("f", "4"));
    assert_eq!(mtime(), three);
    assert_eq!(three.nsec % 4_000_000, 0);
    done(&fixture, Edit::Advance { ns: 4_000_000 });
    done(&fixture, write("f", "5"));
    assert!(three < mtime());
}

#[test]
fn clocks_move_on_and_may_be_set_back() {
    let fixture = machine([]);
    let before = fixture.now();
    done(&fixture, Edit::Advance { ns: 1_500 });
    let after = fixture.now();
    assert_eq!((after.mono_ns - before.mono_ns, after.wall_ns - before.wall_ns), (1_500, 1_500));
    done(&fixture, write("young", ""));
    done(&fixture, Edit::Later { after_ns: 100, edit: Box::new(write("late", "")) });
    done(&fixture, Edit::Clock { mono_ns: 5, wall_ns: 1_000_000_000 });
    assert_eq!(fixture.now(), Now { mono_ns: 5, wall_ns: 1_000_000_000 });
    done(&fixture, write("old", ""));
    assert!(stat(&fixture, "old").unwrap().btime < stat(&fixture, "young").unwrap().btime);
    done(&fixture, Edit::Advance { ns: 99 });
    assert_eq!(stat(&fixture, "late"), Err(Errno::NOENT));
    done(&fixture, Edit::Advance { ns: 1 });
    assert!(stat(&fixture, "late").is_ok(), "what is due keeps its distance");
    done(&fixture, Edit::Touch { path: at("old"), mtime_ns: -1 });
    assert_eq!(stat(&fixture, "old").map(|meta| meta.mtime.ns()), Ok(-1));
}

#[test]
fn what_is_due_happens_in_order_each_at_its_time() {
    let later = |after_ns, edit| Edit::Later { after_ns, edit: Box::new(edit) };
    let append = |text: &str| Edit::Append { path: at("f"), bytes: text.into() };
    let fixture = machine([
        write("f", ""),
        later(20, append("c")),
        later(10, append("a")),
        later(10, append("b")),
        later(15, unlink("never there")),
    ]);
    let start = fixture.now();
    assert_eq!(fixture.with(|world| world.next_due_ns()), Some(start.mono_ns + 10));
    done(&fixture, Edit::Advance { ns: 19 });
    assert_eq!(read(&fixture, "f"), Ok(b"ab".to_vec()));
    done(&fixture, Edit::Advance { ns: 1_000 });
    assert_eq!(read(&fixture, "f"), Ok(b"abc".to_vec()));
    assert_eq!(stat(&fixture, "f").map(|meta| meta.mtime.ns()), Ok(start.wall_ns + 20));
    assert_eq!(fixture.with(|world| world.next_due_ns()), None);
    for edit in [Edit::Advance { ns: 1 }, Edit::Clock { mono_ns: 0, wall_ns: 0 }, later(1, append("x"))] {
        assert_eq!(fixture.apply(&later(1, edit)), Err(Errno::INVAL));
    }
}

#[test]
fn a_signal_reaches_the_process_that_was_meant_and_no_other() {
    let fixture = machine([start(Process { start_ticks: Some(77), ..Process::new(50, "agent") })]);
    let signal = |pid, ticks, signal| fixture.with(|world| world.signal(pid, ticks, signal));
    assert_eq!(signal(50, 78, Signal::Term), Err(Errno::SRCH));
    assert_eq!(signal(51, 77, Signal::Term), Err(Errno::SRCH));
    assert_eq!(signal(1, 1, Signal::Kill), Err(Errno::PERM), "another user's");
    assert_eq!(signal(50, 77, Signal::Term), Ok(()));
    assert_eq!(fixture.stat(Root::Proc, &rel("50"), Full).err(), Some(Errno::NOENT));
    let sent = fixture.with(|world| world.signals().to_vec());
    assert_eq!(sent.iter().map(|sent| (sent.pid, sent.signal)).collect::<Vec<_>>(), [(50, Signal::Term)]);
}

#[test]
fn a_process_may_ignore_a_signal_or_take_its_time() {
    let slow = Process { on_term: Death::Never, on_kill: Death::After(100), ..Process::new(50, "slow") };
    let fixture = machine([start(Process { start_ticks: Some(7), ..slow })]);
    let is_there = |fixture: &Fixture| fixture.stat(Root::Proc, &rel("50"), Full).is_ok();
    let signal = |signal| fixture.with(|world| world.signal(50, 7, signal)).unwrap();
    signal(Signal::Term);
    done(&fixture, Edit::Advance { ns: 1_000_000 });
    assert!(is_there(&fixture));
    signal(Signal::Kill);
    assert!(is_there(&fixture));
    let reused = Fixture::new(fixture.snapshot());
    done(&fixture, Edit::Advance { ns: 100 });
    assert!(!is_there(&fixture));
    done(&reused, Edit::ReusePid(Box::new(Process::new(50, "other"))));
    done(&reused, Edit::Advance { ns: 100 });
    assert!(is_there(&reused), "the death was another's");
}

#[test]
fn a_program_is_started_and_does_what_was_arranged() {
    let program = "/usr/bin/zmx";
    let fixture = machine([
        Edit::MkdirAll { path: "/usr/bin".into() },
        Edit::Write { path: program.into(), bytes: "".into() },
        Edit::OnSpawn { after_ns: 30, edit: Box::new(start(Process::new(60, "agent"))) },
        Edit::OnSpawn { after_ns: 10, edit: Box::new(write("socket", "")) },
    ]);
    let spawn = |program: &str, cwd: &str| {
        fixture.with(|world| world.spawn(&[program.into(), "run".into()], &["A=b".into()], &cwd.into()))
    };
    assert_eq!(spawn("/usr/bin/none", "/"), Err(Errno::NOENT));
    assert_eq!(spawn(program, "/none"), Err(Errno::NOENT));
    assert_eq!(spawn(program, program), Err(Errno::NOTDIR));
    assert_eq!(spawn("/usr/bin", "/"), Err(Errno::ACCESS));
    assert!(fixture.with(|world| world.spawns().is_empty()));
    assert_eq!(spawn(program, "/home/me"), Ok(()));
    let spawned = fixture.with(|world| world.spawns()[0].clone());
    assert_eq!((spawned.args, spawned.env), (vec![program.into(), "run".into()], vec!["A=b".into()]));
    done(&fixture, Edit::Advance { ns: 29 });
    assert_eq!(list(&fixture, Root::Claude, ""), Ok(vec!["socket".to_owned()]));
    assert_eq!(read_of(&fixture, Root::Proc, "60/comm"), Err(Errno::NOENT));
    done(&fixture, Edit::Advance { ns: 1 });
    assert_eq!(read_of(&fixture, Root::Proc, "60/comm"), Ok(b"agent\n".to_vec()));
}
