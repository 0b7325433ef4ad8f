//! Edits as text.

use backend::host::Host;
use backend::host::fixture::{
    Bytes, Death, Edit, Fixture, FsType, LockKind, Process, Refuses, Script, Special, State, Tcp, World,
};
use backend::name::Root;
use proptest::prelude::*;

use crate::{list, read, read_of};

#[test]
fn a_script_builds_a_machine() {
    let text = "\
# A session in a project of its own.
mkdirs /home/me/.claude/projects/-home-me-p
write /home/me/.claude/projects/-home-me-p/s.jsonl
| {\"type\":\"user\"}
|
|  indented
write /home/me/.claude/history.jsonl \"a \\\"b\\\" \\x00\\\\\"

mkdirs /usr/bin
start 4242 comm=claude arg=claude arg=--resume env=\"ZMX_SESSION=a b\" cwd=/home/me exe=/usr/bin refuse=fd,cwd
after 5s append /home/me/.claude/history.jsonl
| later
";
    let script = Script::parse(text).unwrap();
    let fixture = Fixture::new(script.world().unwrap());
    assert_eq!(
        read(&fixture, "projects/-home-me-p/s.jsonl"),
        Ok(b"{\"type\":\"user\"}\n\n indented\n".to_vec())
    );
    assert_eq!(read(&fixture, "history.jsonl"), Ok(b"a \"b\" \0\\".to_vec()));
    assert_eq!(read_of(&fixture, Root::Proc, "4242/cmdline"), Ok(b"claude\0--resume\0".to_vec()));
    assert_eq!(read_of(&fixture, Root::Proc, "4242/environ"), Ok(b"ZMX_SESSION=a b\0".to_vec()));
    fixture.apply(&Edit::Advance { ns: 5_000_000_000 }).unwrap();
    assert_eq!(read(&fixture, "history.jsonl"), Ok(b"a \"b\" \0\\later\n".to_vec()));
    assert_eq!(list(&fixture, Root::Claude, "projects"), Ok(vec!["-home-me-p".to_owned()]));
    assert_eq!(fixture.me(), Fixture::new(World::new()).me());

    assert_eq!(Script::parse(&script.to_string()).unwrap().to_string(), script.to_string());
}

#[test]
fn what_is_wrong_is_told_by_line() {
    for (text, expected) in [
        ("mkdir", "line 1: a word is missing"),
        ("\n# x\nfrobnicate /x", "line 3: no such edit"),
        ("| x", "line 1: a content without an edit before it"),
        ("mkdir /x\n| x", "line 1: more than the edit needs"),
        ("mkdir /x /y", "line 1: more than the edit needs"),
        ("write /x", "line 1: a content is missing"),
        ("write /x y\n| z", "line 1: more than the edit needs"),
        ("mkdir \"/x", "line 1: a quote is not closed"),
        ("mkdir \"/x\\", "line 1: a quote is not closed"),
        ("mkdir \"\\q\"", "line 1: no such escape"),
        ("mkdir \"\\x1g\"", "line 1: \\x needs two hexadecimal digits"),
        ("exit 4294967296", "line 1: this is not the number or address it should be"),
        ("tcp a:1 b:2 1 0 0", "line 1: this is not the number or address it should be"),
        ("chmod /x 888", "line 1: a mode is three octal digits"),
        ("touch /x 1.0000000000", "line 1: a time is in seconds since 1970, such as 1767225600.5"),
        ("touch /x 99999999999", "line 1: a time is in seconds since 1970, such as 1767225600.5"),
        ("advance 5", "line 1: a span of time is such as 5s, 20ms, 7us or 1ns"),
        ("advance 99999999999s", "line 1: a span of time is such as 5s, 20ms, 7us or 1ns"),
        ("mount /x fat", "line 1: no such type of filesystem"),
        ("root proc /x", "line 1: no such root"),
        ("state 1 X", "line 1: a state is one of S R D T Z"),
        ("refuse 1 all,most", "line 1: what is refused is any of fd,cwd,exe,environ,all"),
        ("start 1 x", "line 1: what a process is is told as key=value"),
        ("start 1 x=y", "line 1: no such key of a process"),
        ("lock 1 /x lockf read", "line 1: a lock is flock or posix"),
        ("lock 1 /x flock all", "line 1: a lock is for read or write"),
        ("after 1s after 1s mkdir /x", "line 1: an edit that waits cannot hold another"),
        ("after 1s", "line 1: a word is missing"),
    ] {
        assert_eq!(Script::parse(text).unwrap_err().to_string(), expected, "{text:?}");
    }
    let impossible = Script::parse("mkdir /x\n\nmkdir /x\n").unwrap();
    assert_eq!(
        impossible.world().unwrap_err().to_string(),
        "line 3: it cannot be done: File exists (os error 17)"
    );
}

#[test]
fn a_written_script_is_fit_to_be_read() {
    let write = |bytes: &[u8]| Edit::Write { path: "/a b".into(), bytes: bytes.into() };
    let script = Script::from(vec![
        write(b"one\n\ttwo\n"),
        write(b"one"),
        write(b""),
        write(b"\xff\n"),
        write("ä\u{7f}".as_bytes()),
        Edit::Touch { path: "/x".into(), mtime_ns: -1_500_000_000 },
        Edit::Advance { ns: 1_500_000_000 },
        Edit::Chmod { path: "/x".into(), mode: 0o640 },
    ]);
    assert_eq!(
        script.to_string(),
        "write \"/a b\"\n| one\n| \ttwo\nwrite \"/a b\" one\nwrite \"/a b\" \"\"\nwrite \"/a b\" \"\\xff\\n\"\n\
         write \"/a b\" \"ä\\x7f\"\ntouch /x -1.500000000\nadvance 1500ms\nchmod /x 640\n"
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(edits in prop::collection::vec(any_edit(), 1..8)) {
        let text = Script::from(edits.clone()).to_string();
        let read = Script::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(read.edits().cloned().collect::<Vec<_>>(), edits, "{}", text);
    }

    #[test]
    fn no_text_trips_the_reader(text in "(?s)([a-z]{0,9}[ =|\"\\\\x0-9/.\n-]{0,4}){0,20}") {
        let _ = Script::parse(&text);
    }

    /// Whatever happens, in whatever order: a machine that cannot do it says so.
    #[test]
    fn no_edits_trip_the_machine(edits in prop::collection::vec(any_edit(), 1..60)) {
        let mut world = World::new();
        for edit in &edits {
            let before = all_but_time(&world);
            if world.apply(edit).is_err() && !matches!(edit, Edit::MkdirAll { .. }) {
                prop_assert_eq!(all_but_time(&world), before, "{:?} failed halfway", edit);
            }
        }
        let fixture = Fixture::new(world);
        for root in Root::HARNESSES.into_iter().chain([Root::Proc]) {
            let _ = list(&fixture, root, "");
        }
    }
}

/// All of a world but the time of its last edit, which moves on even if the edit failed.
fn all_but_time(world: &World) -> String {
    let text = format!("{world:?}");
    let (before, after) = text.split_once("last_ns: ").unwrap();
    format!("{before}{}", after.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()))
}

fn any_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![6 => plain_edit(), 1 => waiting_edit()]
}

fn waiting_edit() -> impl Strategy<Value = Edit> {
    (any::<u32>(), plain_edit(), any::<bool>()).prop_map(|(after_ns, edit, on_spawn)| {
        let (after_ns, edit) = (u64::from(after_ns), Box::new(edit));
        if on_spawn { Edit::OnSpawn { after_ns, edit } } else { Edit::Later { after_ns, edit } }
    })
}

fn plain_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![4 => file_edit(), 2 => attribute_edit(), 3 => process_edit(), 1 => machine_edit()]
}

fn file_edit() -> impl Strategy<Value = Edit> {
    (0..16_u8, path(), path(), content(), 0..300_u64, any::<bool>()).prop_map(
        |(which, path, other, bytes, number, flag)| match which {
            0 => Edit::Mkdir { path },
            1 => Edit::MkdirAll { path },
            2 => Edit::Rmdir { path },
            3 => Edit::Write { path, bytes },
            4 => Edit::Append { path, bytes },
            5 => Edit::AppendHalf { path, bytes },
            6 => Edit::Overwrite { path, offset: number, bytes, keep_mtime: flag },
            7 => Edit::Truncate { path, bytes: number },
            8 => Edit::Replace { path, bytes },
            9 | 10 => Edit::Rename { from: path, to: other },
            11 => Edit::Symlink { path, target: other },
            12 => Edit::HardLink { from: path, to: other },
            13 => Edit::Unlink { path },
            14 => Edit::Special { path, kind: if flag { Special::Fifo } else { Special::Socket } },
            _ => Edit::Reappear { path, bytes, same_birth: flag },
        },
    )
}

fn attribute_edit() -> impl Strategy<Value = Edit> {
    (0..6_u8, path(), 0..0o1000_u16, any::<u32>(), any::<i64>(), 0..FsType::ALL.len()).prop_map(
        |(which, path, mode, id, mtime_ns, kind)| match which {
            0 => Edit::Chmod { path, mode },
            1 => Edit::Chown { path, uid: id, gid: id / 2 },
            2 => Edit::Touch { path, mtime_ns },
            3 => Edit::Cool { path },
            4 => Edit::Mount { path, kind: FsType::ALL[kind] },
            _ => Edit::Unmount { path },
        },
    )
}

fn process_edit() -> impl Strategy<Value = Edit> {
    (0..17_u8, 1..6_u32, 1..6_u32, path(), process(), any::<(bool, bool)>()).prop_map(
        |(which, pid, other, path, process, (flag, twice))| match which {
            0..=2 => Edit::Start(Box::new(process)),
            3 => Edit::ReusePid(Box::new(process)),
            4 => Edit::Exit { pid },
            5 => Edit::Zombie { pid },
            6 => Edit::State { pid, state: if flag { State::DiskSleep } else { State::Stopped } },
            7 => Edit::Retitle { pid, comm: path.clone(), args: process.args },
            8 => Edit::Refuse { pid, refuses: process.refuses },
            9 => Edit::Chdir { pid, path },
            10 | 11 => Edit::OpenFd { pid, fd: other, path, says: flag.then_some(process.cwd) },
            12 => Edit::CloseFd { pid, fd: other },
            13 | 14 => {
                let kind = if twice { LockKind::Flock } else { LockKind::Posix };
                Edit::HoldLock { pid, path, kind, exclusive: flag }
            }
            15 => Edit::MoveLock { from: pid, to: other, path },
            _ => Edit::DropLock { pid, path },
        },
    )
}

fn machine_edit() -> impl Strategy<Value = Edit> {
    (0..8_u8, path(), any::<u32>(), any::<(u64, i64)>(), "[a-z ]{0,3}").prop_map(
        |(which, path, id, (long, wall_ns), name)| match which {
            0 => Edit::Root { root: Root::HARNESSES[id as usize % 5], path },
            1 => Edit::User { uid: id, name },
            2 => Edit::Group { gid: id, name },
            3 => Edit::Me { pid: id % 6 + 1, uid: id, gid: id / 2 },
            4 => Edit::Advance { ns: u64::from(id) },
            5 => Edit::Clock { mono_ns: long, wall_ns },
            6 => Edit::Granularity { ns: id },
            _ => Edit::Tcp(Tcp {
                local: ([127, 0, 0, 1], 564).into(),
                remote: ([0, 0, 0, 0, 0, 0, 0, 1], 1).into(),
                state: 1,
                uid: id,
                ino: long,
            }),
        },
    )
}

fn process() -> impl Strategy<Value = Process> {
    let bytes = || any::<Vec<u8>>().prop_map(Bytes::from);
    let death = || prop_oneof![Just(Death::Never), any::<u64>().prop_map(Death::After)];
    let texts = || prop::collection::vec(bytes(), 0..3);
    let whom = (1..6_u32, any::<u32>(), prop::option::of(any::<u64>()), any::<[bool; 5]>());
    (whom, bytes(), texts(), texts(), path(), path(), death(), death()).prop_map(
        |(
            (pid, id, start_ticks, [fd, cwd_too, exe_too, environ, all]),
            comm,
            args,
            env,
            cwd,
            exe,
            on_term,
            on_kill,
        )| {
            Process {
                ppid: id / 2,
                uid: id,
                gid: id / 3,
                args,
                env,
                cwd,
                exe,
                tty: id / 4,
                start_ticks,
                pid_ns: u64::from(id),
                refuses: Refuses { fd, cwd: cwd_too, exe: exe_too, environ, all },
                on_term,
                on_kill,
                ..Process::new(pid, comm)
            }
        },
    )
}

/// Few paths, so that edits meet; some are wrong.
fn path() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        20 => "(/(a|b|c|\\.\\.)){1,3}".prop_map(Bytes::from),
        1 => "[/a.]{0,4}".prop_map(Bytes::from),
        1 => any::<Vec<u8>>().prop_map(Bytes::from),
    ]
}

fn content() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        "([a-z{}\" |#\\\\]{0,6}\n){0,3}".prop_map(Bytes::from),
        any::<Vec<u8>>().prop_map(Bytes::from),
        any::<String>().prop_map(Bytes::from),
    ]
}
