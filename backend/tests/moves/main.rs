//! The move, on a machine in memory: every refusal, every state and every way out of it.

mod machine;
mod races;

use backend::host::fixture::Signal;
use backend::{Agents, Limits};
use engine::port::{Backend, Change, Mode, Step};
use proto::Refusal;

use std::sync::Arc;

use machine::{AGENTS, Machine, PLACES, WRITE};

/// The session answers, in the place of either zmx, a moment after its start.
const UPSTREAM: &str = "on-spawn 300ms server /run/user/1000/zmx/night\n";
const RUNTIME: &str = "XDG_RUNTIME_DIR=/run/user/1000";
const POSTED: &str = "on-spawn 300ms server /run/user/1000/9p/zmx/night\n";

#[test]
fn an_agent_of_each_harness_is_moved_into_either_zmx() {
    for zmx in [UPSTREAM, POSTED] {
        for (harness, pid, resumed) in AGENTS {
            let machine = Machine::new(zmx);
            let (answer, ms) = machine.moved(harness, pid, "night\n");
            assert_eq!(answer, Ok(6), "{harness}: all that was written, newline and all");
            assert!((300..500).contains(&ms), "{ms}");
            assert_eq!(machine.signals(), [(pid, Signal::Term)]);
            let spawns = machine.spawns();
            let words =
                ["/usr/bin/zmx", "run", "night", "-d"].iter().chain(resumed).map(|word| (*word).into());
            assert_eq!(spawns.len(), 1);
            assert_eq!(spawns[0].args, words.collect::<Vec<_>>(), "{harness}");
            assert_eq!(spawns[0].cwd, "/home/me/work".into());
            let env = ["PATH=/usr/bin", "XDG_RUNTIME_DIR=/run/user/1000", "HOME=/home/me"].map(Into::into);
            assert_eq!(spawns[0].env, env, "neither our session nor our sockets");
            assert!(!machine.tree.must_finish());
        }
    }
}

#[test]
fn the_agent_is_there_again_under_a_new_pid_and_the_name_that_was_written() {
    let back =
        "on-spawn 200ms start 11 comm=claude arg=claude cwd=/home/me/work start=99 env=ZMX_SESSION=night\n";
    let machine = Machine::new(&format!("{UPSTREAM}{back}"));
    let read = |path: &str| {
        let node = machine.node(path, true)?;
        let open = machine.open(&node, Mode { read: true, write: false, truncate: false })?;
        let mut buf = [0; 99];
        let ask = engine::port::Ask::Read { open, offset: 0 };
        match machine.perform(ask, engine::port::Room::of_bytes(&mut buf))? {
            engine::port::Answer::Bytes(bytes) => {
                Ok(String::from_utf8(buf[..bytes as usize].to_vec()).unwrap())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read("active/claude/10/zmx"), Ok("day\n".into()));
    assert_eq!(machine.moved("claude", 10, "night").0, Ok(5));
    assert_eq!(read("active/claude/10/zmx"), Err(Refusal::NOT_FOUND));
    assert_eq!(read("active/claude/11/zmx"), Ok("night\n".into()));
}

#[test]
fn what_speaks_against_it_is_told_in_its_own_words_and_nothing_happens() {
    let long = "x".repeat(65);
    let cases: &[(&str, &str, u32, &str, Refusal)] = &[
        ("", "claude", 10, "", Refusal::MOVE_NAME),
        ("", "claude", 10, "..", Refusal::MOVE_NAME),
        ("", "claude", 10, "-d", Refusal::MOVE_NAME),
        ("", "claude", 10, "a/b", Refusal::MOVE_NAME),
        ("", "claude", 10, "a\nb", Refusal::MOVE_NAME),
        ("", "claude", 10, &long, Refusal::MOVE_NAME),
        ("server /run/user/1000/zmx/n", "claude", 10, "n", Refusal::MOVE_NAME_TAKEN),
        ("server /run/user/1000/9p/zmx/n", "claude", 10, "n", Refusal::MOVE_NAME_TAKEN),
        ("mkdirs /tmp/zmx-1000\nserver /tmp/zmx-1000/n", "claude", 10, "n", Refusal::MOVE_NAME_TAKEN),
        // zmx has its logs beside its sockets.
        ("mkdirs /run/user/1000/zmx/logs", "claude", 10, "logs", Refusal::MOVE_NAME_OBSTRUCTED),
        ("write /run/user/1000/9p/zmx/n \"\"", "claude", 10, "n", Refusal::MOVE_NAME_OBSTRUCTED),
        ("unlink /home/me/.claude/sessions/10.json", "claude", 10, "n", Refusal::MOVE_UNRESOLVED),
        (
            "write /home/me/.hermes/runtime/active_sessions.json\n\
          | {\"entries\":[{\"session_id\":\"-s1\",\"pid\":40,\"process_start_time\":1767139240.0}]}",
            "hermes",
            40,
            "n",
            Refusal::MOVE_UNRESOLVED,
        ),
        ("unlink /home/me/.hermes/runtime/active_sessions.json", "hermes", 40, "n", Refusal::MOVE_UNRESOLVED),
        ("rmdir /home/me/work", "claude", 10, "n", Refusal::MOVE_NO_CWD),
        ("chdir 10 /elsewhere", "claude", 10, "n", Refusal::MOVE_NO_CWD),
        (
            "rename /home/me/work /home/me/w\nmkdir /home/me/work\nchdir 20 /home/me/work\nrmdir /home/me/work\n\
          mkdir /home/me/work",
            "codex",
            20,
            "n",
            Refusal::MOVE_NO_CWD,
        ),
        ("refuse 20 cwd", "codex", 20, "n", Refusal::MOVE_NO_CWD),
        ("retitle 50 node node /usr/lib/bin/dsh", "dsh", 50, "n", Refusal::MOVE_NO_RESUME),
        ("retitle 50 node node /usr/lib/bin/dsh --profile work", "dsh", 50, "n", Refusal::MOVE_NO_RESUME),
        (
            "mkdir \"/home/me/a\\nb\"\nchdir 10 \"/home/me/a\\nb\"",
            "claude",
            10,
            "n",
            Refusal::MOVE_CONTROL_BYTE,
        ),
        (
            "mkdir \"/home/me/a\\x1bb\"\nchdir 10 \"/home/me/a\\x1bb\"",
            "claude",
            10,
            "n",
            Refusal::MOVE_CONTROL_BYTE,
        ),
        (
            "mkdir \"/home/me/\\xc2\\x9b\"\nchdir 10 \"/home/me/\\xc2\\x9b\"",
            "claude",
            10,
            "n",
            Refusal::MOVE_CONTROL_BYTE,
        ),
        (
            "mkdir \"/home/me/\\x9b\"\nchdir 10 \"/home/me/\\x9b\"",
            "claude",
            10,
            "n",
            Refusal::MOVE_CONTROL_BYTE,
        ),
        ("unlink /usr/bin/zmx", "claude", 10, "n", Refusal::MOVE_NO_ZMX),
        ("unlink /usr/bin/claude", "claude", 10, "n", Refusal::MOVE_NO_HARNESS),
    ];
    for (meanwhile, harness, pid, name, expected) in cases {
        let machine = Machine::new("");
        let node = machine.node(&format!("active/{harness}/{pid}/zmx"), true).unwrap();
        let open = machine.open(&node, WRITE).unwrap();
        machine.happens(meanwhile);
        let answer = match machine.write(&open, 0, name.as_bytes()) {
            Ok(mut job) => machine.finish(&mut job).0,
            Err(refusal) => Err(refusal),
        };
        assert_eq!(answer, Err(*expected), "{meanwhile} {name}");
        machine.is_untouched();
    }
}

#[test]
fn a_harness_at_a_path_with_a_control_byte_is_not_typed_to_a_shell() {
    let more = "mkdirs \"/opt/a\\nb\"\nwrite \"/opt/a\\nb/claude\" \"\"\n";
    let machine = Machine::new(more).with_environment(&["PATH=/opt/a\nb:/usr/bin", RUNTIME]);
    assert_eq!(machine.moved("claude", 10, "night").0, Err(Refusal::MOVE_CONTROL_BYTE));
    machine.is_untouched();
}

#[test]
fn a_socket_that_nobody_answers_at_is_no_session() {
    let machine = Machine::new(&format!("socket /run/user/1000/zmx/n\n{UPSTREAM}"));
    assert_eq!(
        machine.moved("claude", 10, "n").0,
        Err(Refusal::MOVE_LOST),
        "what is started answers elsewhere"
    );
    assert_eq!(machine.spawns().len(), 1);
}

#[test]
fn where_the_place_of_work_cannot_be_seen_the_registry_tells_it() {
    let machine = Machine::new(&format!("{UPSTREAM}refuse 10 cwd\n"));
    assert_eq!(machine.moved("claude", 10, "night").0, Ok(5));
    assert_eq!(machine.spawns()[0].cwd, "/home/me/work".into());
}

#[test]
fn a_name_is_written_whole_and_at_the_beginning() {
    let machine = Machine::new("");
    let node = machine.node("active/claude/10/zmx", true).unwrap();
    let open = machine.open(&node, WRITE).unwrap();
    assert_eq!(machine.write(&open, 1, b"n").err(), Some(Refusal::MOVE_OFFSET));
    machine.is_untouched();
}

#[test]
fn a_socket_that_could_not_be_bound_is_refused_before_anything() {
    let machine = Machine::new("");
    let dir = format!("ZMX_DIR=/{}", "d".repeat(101));
    let machine = machine.with_environment(&["PATH=/usr/bin", &dir]);
    assert_eq!(machine.moved("claude", 10, "12345").0, Err(Refusal::MOVE_LONG_NAME));
    machine.is_untouched();
    assert_eq!(machine.moved("claude", 10, "1234").0, Err(Refusal::MOVE_LOST));
}

#[test]
fn an_agent_that_we_live_in_is_not_moved() {
    let machine = Machine::new("");
    let node = machine.node("active/claude/10/zmx", true).unwrap();
    let open = machine.open(&node, WRITE).unwrap();
    // It becomes our parent's parent, as a process that takes orphans in can.
    machine
        .happens("exit 4000\nstart 60 comm=sh arg=sh ppid=10\nstart 4000 comm=9agents arg=9agents ppid=60");
    let mut job = machine.write(&open, 0, b"night").unwrap();
    assert_eq!(machine.finish(&mut job).0, Err(Refusal::MOVE_ANCESTOR));
    machine.is_untouched();
}

#[test]
fn without_leave_or_from_afar_there_is_nothing_to_write() {
    let machine = Machine::new(UPSTREAM);
    let path = "active/claude/10/zmx";
    let (near, far) = (machine.node(path, true).unwrap(), machine.node(path, false).unwrap());
    let truncating = Mode { read: true, write: false, truncate: true };
    assert_eq!((machine.mode(&near), machine.mode(&far)), (0o644, 0o444));
    for mode in [WRITE, truncating] {
        assert!(machine.open(&near, mode).is_ok());
        assert_eq!(machine.open(&far, mode).err(), Some(Refusal::MOVE_REMOTE));
    }
    // Even if it had been opened.
    let open = machine.open(&far, Mode { read: true, write: false, truncate: false }).unwrap();
    assert_eq!(machine.write(&open, 0, b"night").err(), Some(Refusal::VIEW));

    let sized = Change { truncate: true, times: true, other: false };
    assert_eq!(machine.change(&near, sized), Ok(()));
    assert_eq!(machine.change(&near, Change { truncate: false, ..sized }), Ok(()));
    assert_eq!(machine.change(&near, Change { other: true, ..sized }), Err(Refusal::VIEW));
    assert_eq!(machine.change(&far, sized), Err(Refusal::VIEW));

    // No other field, and nothing else of the tree.
    for other in ["active/claude/10/name", "active/claude/10/pid", "pid", "README"] {
        let node = machine.node(other, true).unwrap();
        assert_eq!(machine.open(&node, WRITE).err(), Some(Refusal::PERMISSION_DENIED), "{other}");
        assert_eq!(machine.change(&node, sized), Err(Refusal::VIEW), "{other}");
        assert_eq!(machine.mode(&node), 0o444, "{other}");
    }
    machine.is_untouched();

    let fixture = machine.fixture.clone();
    let tree = Agents::new(Arc::new(fixture), Limits { pinned_descriptors: 9 });
    let machine = Machine { tree, ..machine };
    let node = machine.node(path, true).unwrap();
    assert_eq!(machine.mode(&node), 0o444);
    assert_eq!(machine.open(&node, WRITE).err(), Some(Refusal::PERMISSION_DENIED));
    assert_eq!(machine.change(&node, sized), Err(Refusal::VIEW));
    let open = machine.open(&node, Mode { read: true, write: false, truncate: false }).unwrap();
    assert_eq!(machine.write(&open, 0, b"night").err(), Some(Refusal::VIEW));
    machine.is_untouched();
}

#[test]
fn one_that_does_not_listen_is_killed_after_five_seconds() {
    let machine = Machine::new(&format!(
        "{UPSTREAM}reuse 10 comm=claude arg=claude cwd=/home/me/work start=1000 term=never\n"
    ));
    let (answer, ms) = machine.moved("claude", 10, "night");
    assert_eq!(answer, Ok(5));
    assert_eq!(machine.signals(), [(10, Signal::Term), (10, Signal::Kill)]);
    let at = machine.fixture.with(|world| world.signals()[1].mono_ns - world.signals()[0].mono_ns);
    assert_eq!(at, 5_000_000_000);
    assert!((5_300..5_600).contains(&ms), "{ms}");
}

#[test]
fn one_that_outlives_both_signals_is_left_alone() {
    let machine =
        Machine::new("reuse 10 comm=claude arg=claude cwd=/home/me/work start=1000 term=never kill=never\n");
    assert_eq!(machine.moved("claude", 10, "night"), (Err(Refusal::MOVE_SURVIVED), 12_000));
    assert_eq!(machine.signals(), [(10, Signal::Term), (10, Signal::Kill)]);
    assert_eq!(machine.spawns(), []);
}

/// Nobody looked for a while, as when the server was stopped: the agent is not given up at the moment it is killed.
#[test]
fn one_that_is_killed_late_is_given_its_time_to_end() {
    let machine = Machine::new(&format!(
        "{UPSTREAM}reuse 10 comm=claude arg=claude cwd=/home/me/work start=1000 term=never kill=2s\n"
    ));
    let mut job = machine.begin("claude", 10, "night").unwrap();
    assert!(matches!(machine.step(&mut job), Step::At(_)));
    machine.happens("advance 20s");
    assert_eq!(machine.finish(&mut job).0, Ok(5));
    assert_eq!(machine.signals(), [(10, Signal::Term), (10, Signal::Kill)]);
}

#[test]
fn the_session_has_twelve_seconds_to_answer() {
    for (after, expected, at_ms) in [
        ("11900ms", Ok(5), 11_900..12_000),
        ("12s", Ok(5), 12_000..12_001),
        ("12100ms", Err(Refusal::MOVE_LOST), 12_000..12_001),
    ] {
        let machine = Machine::new(&format!("on-spawn {after} server /run/user/1000/zmx/night\n"));
        let mut job = machine.begin("claude", 10, "night").unwrap();
        while machine.spawns().is_empty() {
            if let Step::At(at_ns) = machine.step(&mut job) {
                machine.reach(at_ns);
            }
        }
        let since_ns = machine.spawns()[0].mono_ns;
        let (answer, _) = machine.finish(&mut job);
        let ms = (machine.fixture.with(|world| world.now()).mono_ns - since_ns) / 1_000_000;
        assert_eq!(answer, expected);
        assert!(at_ms.contains(&ms), "{after}: {ms}");
        assert!(!machine.tree.must_finish());
    }
}

#[test]
fn a_name_that_is_taken_while_the_agent_ends_is_left_to_whoever_has_it() {
    let machine = Machine::new(
        "reuse 10 comm=claude arg=claude cwd=/home/me/work start=1000 term=1s\nafter 500ms server /run/user/1000/zmx/night\n",
    );
    assert_eq!(machine.moved("claude", 10, "night").0, Err(Refusal::MOVE_NAME_LOST));
    assert_eq!(machine.spawns(), [], "nothing is typed into another's session");
}

#[test]
fn a_program_that_cannot_be_started_is_told_and_what_passes_is_waited_for() {
    let slow = "reuse 10 comm=claude arg=claude cwd=/home/me/work start=1000 term=1s\n";
    let machine = Machine::new(&format!("{slow}after 500ms unlink /usr/bin/zmx\n"));
    let (answer, ms) = machine.moved("claude", 10, "night");
    assert_eq!(answer, Err(Refusal::MOVE_NOT_STARTED));
    assert!(ms < 1_200, "{ms}");
}

#[test]
fn one_agent_and_one_name_are_moved_once_at_a_time() {
    let machine = Machine::new(UPSTREAM);
    let mut first = machine.begin("claude", 10, "night").unwrap();
    assert_eq!(machine.begin("claude", 10, "other").err(), Some(Refusal::MOVE_BUSY));
    assert_eq!(machine.begin("codex", 20, "night").err(), Some(Refusal::MOVE_BUSY));
    let mut other = machine.begin("codex", 20, "other").unwrap();
    assert!(matches!(machine.step(&mut first), Step::At(_)));
    assert!(matches!(machine.step(&mut other), Step::At(_)));
    assert_eq!(machine.begin("claude", 10, "third").err(), Some(Refusal::NOT_FOUND), "it has ended by now");
    assert_eq!(machine.finish(&mut first).0, Ok(5));
    assert_eq!(machine.finish(&mut other).0, Err(Refusal::MOVE_LOST));
    // What has ended stands in nobody's way.
    assert_eq!(machine.moved("omp", 30, "night").0, Err(Refusal::MOVE_NAME_TAKEN));
    assert!(machine.begin("omp", 30, "other").is_ok());
}

#[test]
fn it_can_be_given_up_before_the_first_signal_and_not_after() {
    let machine = Machine::new(UPSTREAM);
    let mut job = machine.begin("claude", 10, "night").unwrap();
    assert!(job.abandon() && !machine.tree.must_finish());
    drop(job);
    machine.is_untouched();
    let mut job = machine.begin("claude", 10, "night").unwrap();
    assert!(matches!(machine.step(&mut job), Step::At(_)));
    assert_eq!(machine.signals().len(), 1);
    for _ in 0..100 {
        assert!(!job.abandon() && machine.tree.must_finish());
        match machine.step(&mut job) {
            Step::Done(outcome) => {
                assert_eq!(outcome.map(machine::wrote), Ok(5));
                assert!(!machine.tree.must_finish());
                return;
            }
            Step::At(at_ns) => machine.reach(at_ns),
            _ => {}
        }
    }
    panic!("it never ended");
}

#[test]
fn a_record_that_is_being_written_is_waited_for_once() {
    let record = "/home/me/.claude/sessions/10.json";
    for (mended, expected) in [(true, Ok(5)), (false, Err(Refusal::MOVE_UNRESOLVED))] {
        let machine = Machine::new(UPSTREAM);
        let node = machine.node("active/claude/10/zmx", true).unwrap();
        let open = machine.open(&node, WRITE).unwrap();
        machine.happens(&format!("write {record} \"{{\\\"pid\\\":10,\\\"procS\"\n"));
        if mended {
            let whole = PLACES.lines().skip_while(|line| !line.contains("sessions/10.json")).nth(1).unwrap();
            machine.happens(&format!("after 20ms write {record} \"{}\"", whole[2..].replace('"', "\\\"")));
        }
        let mut job = machine.write(&open, 0, b"night").unwrap();
        assert!(matches!(machine.step(&mut job), Step::At(_)));
        machine.is_untouched();
        assert!(job.abandon(), "nothing has happened");
        assert_eq!(machine.finish(&mut job).0, expected);
    }
}
