//! What the move asks of a machine: processes that are held, programs that are started, sockets that are knocked at. A real
//! machine and one in memory are asked the same.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use std::{fs, thread};

use backend::host::fixture::{Death, Edit, Fixture, Process, Special, World};
use backend::host::os::{Os, Resolving, Roots};
use backend::host::wrap::{Fault, FaultKind, Faulty, Hooked, Traced, Verb};
use backend::host::{Errno, Held, Host, Launch, Signal};

use crate::difference;
use crate::look::said;

#[test]
fn a_process_that_is_held_is_signalled_and_no_other() {
    let real = |how: &str| {
        let host = os();
        let mut child = Command::new("sh").args(["-c", how]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        // It is past its trap once it waits for its input.
        wait_until(|| is_cat(pid));
        let start = start_of(pid);
        let log = lives_and_dies(&host, pid, start, &mut |wait| match wait {
            Wait::ForEnd(held) => wait_until(|| held.has_ended()),
            Wait::AndAsk => drop(child.wait().unwrap()),
        });
        let _ = child.kill();
        log
    };
    let in_memory = |on_term| {
        let (mut world, pid) = (World::new(), 4711);
        let process = Process { on_term, start_ticks: Some(99), ..Process::new(pid, "sh") };
        world.apply(&Edit::Start(Box::new(process))).unwrap();
        let fixture = Fixture::new(world);
        // In memory a process that ends by a signal is waited for at once: its corpse is made by hand.
        lives_and_dies(&fixture, pid, 99, &mut |wait| match wait {
            Wait::ForEnd(_) => {}
            Wait::AndAsk => drop(fixture.apply(&Edit::Exit { pid })),
        })
    };
    let differs = [
        difference("it ends when asked", &real("exec cat"), &in_memory(Death::After(0))),
        difference("it has to be killed", &real("trap '' TERM; exec cat"), &in_memory(Death::Never)),
    ];
    assert_eq!(differs, [None, None]);
}

enum Wait<'a> {
    /// Until it has ended.
    ForEnd(&'a dyn Held),
    /// Until it has been waited for.
    AndAsk,
}

fn lives_and_dies(host: &dyn Host, pid: u32, start: u64, wait: &mut dyn FnMut(Wait<'_>)) -> Vec<String> {
    let hold = |pid, start| said(host.hold(pid, start).map(drop));
    let mut log = vec![
        format!("no such process: {} {}", hold(0, 1), hold(u32::MAX, 1)),
        format!("another start: {} {}", hold(pid, start + 1), hold(pid, start - 1)),
        format!("another user's: {}", said(host.hold(1, start_of_init(host)).map(drop))),
    ];
    let held = host.hold(pid, start).unwrap();
    log.push(format!("lives: {}", !held.has_ended()));
    log.push(format!("asked: {}", said(held.signal(Signal::Term))));
    thread::sleep(Duration::from_millis(50));
    if !held.has_ended() {
        log.push(format!("it does not listen: {}", said(held.signal(Signal::Kill))));
    }
    wait(Wait::ForEnd(&*held));
    log.push(format!("ended: {}; held anew: {}", held.has_ended(), hold(pid, start)));
    wait(Wait::AndAsk);
    log.push(format!("gone: {} {}", held.has_ended(), said(held.signal(Signal::Kill))));
    log
}

/// In memory a corpse is as on the kernel: it can be signalled, and nothing comes of it; it cannot be held.
#[test]
fn a_corpse_takes_a_signal_and_cannot_be_held() {
    let mut world = World::new();
    let process = Process { start_ticks: Some(99), ..Process::new(50, "x") };
    world.apply(&Edit::Start(Box::new(process))).unwrap();
    let fixture = Fixture::new(world);
    let held = fixture.hold(50, 99).unwrap();
    fixture.apply(&Edit::Zombie { pid: 50 }).unwrap();
    let of_fixture = (held.has_ended(), held.signal(Signal::Term), fixture.hold(50, 99).err());

    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let (host, pid) = (os(), child.id());
    let start = start_of(pid);
    let real = host.hold(pid, start).unwrap();
    child.kill().unwrap();
    wait_until(|| real.has_ended());
    let of_kernel = (real.has_ended(), real.signal(Signal::Term), host.hold(pid, start).err());
    child.wait().unwrap();
    assert_eq!(of_kernel, (true, Ok(()), Some(Errno::SRCH)));
    assert_eq!(of_fixture, of_kernel);

    // And a number that comes again is another process, whoever held the first.
    fixture
        .apply(&Edit::ReusePid(Box::new(Process { start_ticks: Some(99), ..Process::new(50, "y") })))
        .unwrap();
    assert_eq!((held.has_ended(), held.signal(Signal::Kill)), (true, Err(Errno::SRCH)));
    let sent = fixture.with(|world| world.signals().iter().map(|sent| sent.signal).collect::<Vec<_>>());
    assert_eq!(sent, [Signal::Term], "the one that its corpse took");
}

#[test]
fn paths_outside_the_roots_are_looked_at_alike() {
    let top = Top::new();
    let edits = |at: &dyn Fn(&str) -> String| {
        vec![
            Edit::MkdirAll { path: at("dir").into() },
            Edit::Write { path: at("dir/program").into(), bytes: "#!/bin/sh\n".into() },
            Edit::Symlink { path: at("link").into(), target: at("dir/program").into() },
            Edit::Symlink { path: at("dangling").into(), target: at("none").into() },
            Edit::Special { path: at("left").into(), kind: Special::Socket },
            Edit::Special { path: at("server").into(), kind: Special::Server },
            Edit::Symlink { path: at("to-server").into(), target: at("server").into() },
        ]
    };
    let mut world = World::new();
    edits(&|path| format!("/t/{path}")).iter().for_each(|edit| world.apply(edit).unwrap());
    let fixture = Fixture::new(world);

    let at = |path: &str| top.0.join(path).to_str().unwrap().to_owned();
    fs::create_dir(at("dir")).unwrap();
    fs::write(at("dir/program"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(at("dir/program"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(at("dir/program"), at("link")).unwrap();
    std::os::unix::fs::symlink(at("none"), at("dangling")).unwrap();
    std::os::unix::fs::symlink(at("server"), at("to-server")).unwrap();
    drop(UnixListener::bind(at("left")).unwrap());
    let server = UnixListener::bind(at("server")).unwrap();

    let look = |host: &dyn Host, at: &dyn Fn(&str) -> String| {
        let paths = [
            "dir",
            "dir/program",
            "link",
            "dangling",
            "none",
            "left",
            "server",
            "to-server",
            "dir/program/x",
        ];
        let absolute = paths.map(|path| (path, at(path).into_bytes()));
        let others = [("relative", b"dir".to_vec()), ("NUL", b"/\0".to_vec()), ("nothing", Vec::new())];
        let of = |(name, path): &(&str, Vec<u8>)| {
            let meta = host.look_up(path).map(|meta| format!("{:?} {}", meta.kind, meta.nlink.min(1)));
            let (runs, live) = (host.may_run(path), host.is_live(path));
            format!("{name}: {}, runs {runs}, lives {live}", meta.unwrap_or_else(|error| error.to_string()))
        };
        absolute.iter().chain(&others).map(of).collect::<Vec<_>>()
    };
    let (kernel, memory) = (look(&os(), &at), look(&fixture, &|path| format!("/t/{path}")));
    assert!(kernel.contains(&"server: Other 1, runs false, lives true".to_owned()), "{kernel:?}");
    let alike =
        |log: &[String]| log.iter().filter(|line| !line.starts_with("NUL")).cloned().collect::<Vec<_>>();
    assert_eq!(difference("paths", &alike(&kernel), &alike(&memory)), None);

    // A queue that is full is one that somebody is to look at.
    let clients: Vec<_> = (0..300).map(|_| os().is_live(at("server").as_bytes())).collect();
    assert!(clients.iter().all(|live| *live));
    drop(server);
    assert!(!os().is_live(at("server").as_bytes()), "nobody is left to answer");
    assert!(!os().is_live(&[b'/'; 200]), "too long to be bound");
}

#[test]
fn a_program_is_started_as_it_is_told_and_waited_for() {
    let top = Top::new();
    let said_to = top.0.join("said");
    let script = format!(
        "tr '\\0' '\\n' </proc/$$/environ >{0}; pwd >>{0}; echo \"$@\" >>{0}; ls -l /proc/$$/fd | grep -c '[0-9] -> ' \
         >>{0}; readlink /proc/$$/fd/0 /proc/$$/fd/1 >>{0}; echo $$ >>{0}",
        said_to.display()
    );
    let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let args = words(&["/bin/sh", "-c", &script, "sh", "one two", "three"]);
    let cwd = top.0.to_str().unwrap().as_bytes();
    let env = words(&["PATH=/usr/bin:/bin", "A=b=c"]);
    let through = |sign: &str| {
        words_of(&["/bin/sh", "-c", &format!("{sign}; exec /usr/bin/env THROUGH=me \"$@\""), "sh"])
    };
    let host = os().launching_by(through("echo; exec >/dev/null"));
    host.spawn(&Launch { args: &args, env: &env, cwd }).unwrap();
    let lines =
        || fs::read_to_string(&said_to).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    wait_until(|| lines().last().is_some_and(|line| line.parse::<u32>().is_ok()) && lines().len() >= 8);
    let lines = lines();
    for line in ["A=b=c", "THROUGH=me", top.0.to_str().unwrap(), "one two three", "/dev/null"] {
        assert!(lines.iter().any(|said| said == line), "{line} is not in {lines:?}");
    }
    let pid = lines.last().unwrap();
    wait_until(|| !PathBuf::from(format!("/proc/{pid}")).exists());

    let fails =
        |args: &[&str], cwd: &str| os().spawn(&Launch { args: &words(args), env: &env, cwd: cwd.as_bytes() });
    assert_eq!(fails(&["/none/such"], "/"), Err(Errno::NOENT));
    assert_eq!(fails(&["/bin/true"], "/none/such"), Err(Errno::NOENT));
    assert_eq!(fails(&[], "/"), Err(Errno::INVAL));
    // What was to become it did not live to say that it has a session of its own.
    fs::remove_file(&said_to).unwrap();
    let killed = os().launching_by(through("kill -KILL $$"));
    assert_eq!(killed.spawn(&Launch { args: &args, env: &env, cwd }), Err(Errno::AGAIN));
    assert!(!said_to.exists());
}

/// Many at once, and some that take their time: nobody is left behind as a corpse, and the thread goes when all are.
#[test]
fn whoever_is_started_is_waited_for() {
    let top = Top::new();
    let host = Arc::new(os());
    let note = |number: u32| top.0.join(number.to_string());
    let start = |number: u32, pause: &str| {
        let script = format!("echo $$ >{0}.new; mv {0}.new {0}; sleep {pause}", note(number).display());
        let args = ["/bin/sh", "-c", &script].map(|word| word.as_bytes().to_vec());
        let env = [b"PATH=/usr/bin:/bin".to_vec()];
        host.spawn(&Launch { args: &args, env: &env, cwd: b"/" }).unwrap();
    };
    for number in 0..20 {
        start(number, if number % 3 == 0 { "0.3" } else { "0" });
        thread::sleep(Duration::from_millis(u64::from(number % 4)));
    }
    let pid = |number| fs::read_to_string(note(number)).ok().map(|pid| pid.trim().to_owned());
    for number in 0..20 {
        wait_until(|| pid(number).is_some());
        let pid = pid(number).unwrap();
        wait_until(|| !PathBuf::from(format!("/proc/{pid}")).exists());
    }
}

/// The decorators stand between the backend and these calls as between all others.
#[test]
fn wrapped_hosts_pass_them_on_and_can_fail_them() {
    let mut world = World::new();
    let process = Process { start_ticks: Some(99), ..Process::new(50, "x") };
    world.apply(&Edit::Start(Box::new(process))).unwrap();
    let fixture = Fixture::new(world);
    let traced = Arc::new(Traced::with_lines(Arc::new(fixture.clone())));
    let hooked = Arc::new(Hooked::new(traced.clone()));
    let reuse = fixture.clone();
    hooked.on(
        |_, call| matches!(call.verb, Verb::Signal { .. }),
        move || {
            let other = Process { start_ticks: Some(100), ..Process::new(50, "y") };
            reuse.apply(&Edit::ReusePid(Box::new(other))).unwrap();
        },
    );
    let held = hooked.hold(50, 99).unwrap();
    assert_eq!(held.signal(Signal::Term), Err(Errno::SRCH), "another has its number");
    assert!(held.has_ended() && !hooked.may_run(b"/bin/x") && !hooked.is_live(b"/s"));
    assert_eq!(hooked.look_up(b"/none").err(), Some(Errno::NOENT));
    assert_eq!(hooked.spawn(&Launch { args: &[b"/none".to_vec()], env: &[], cwd: b"/" }), Err(Errno::NOENT));
    let lines = traced.take_lines();
    let verbs = ["Hold", "Signal", "HasEnded", "MayRun", "IsLive", "LookUp", "Spawn"];
    assert!(
        lines.len() == 7 && verbs.iter().zip(&lines).all(|(verb, line)| line.starts_with(verb)),
        "{lines:?}"
    );
    assert_eq!(traced.calls(), 7);

    let fault = Fault { kind: FaultKind::NoMemory, after: 0 };
    let faulty = Faulty::new(Arc::new(fixture), move |_, _| Some(fault));
    assert_eq!(faulty.hold(50, 100).err(), Some(Errno::NOMEM));
    assert_eq!(faulty.look_up(b"/").err(), Some(Errno::NOMEM));
    assert_eq!(faulty.spawn(&Launch { args: &[], env: &[], cwd: b"/" }), Err(Errno::NOMEM));
    faulty.turn(false);
    let held = faulty.hold(50, 100).unwrap();
    faulty.turn(true);
    assert_eq!(held.signal(Signal::Kill), Err(Errno::NOMEM));
    assert!(!held.has_ended());
}

fn os() -> Os {
    let absent = PathBuf::from("/none/such");
    let roots = Roots {
        claude: absent.clone(),
        codex: absent.clone(),
        omp: absent.clone(),
        hermes: absent.clone(),
        dsh: absent,
    };
    Os::new(roots, "/proc".into(), Resolving::Probed)
}

fn is_cat(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "cat\n")
}

fn start_of(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
}

/// The start of process 1, or one that it does not have where it is not to be seen.
fn start_of_init(host: &dyn Host) -> u64 {
    if host.me().pid == std::process::id() { start_of(1) } else { 1 }
}

fn words_of(words: &[&str]) -> Vec<std::ffi::OsString> {
    words.iter().map(Into::into).collect()
}

/// A directory of a test's own.
struct Top(PathBuf);

impl Top {
    fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, SeqCst);
        let top = std::env::temp_dir().join(format!("host-held-{}-{serial}", std::process::id()));
        fs::create_dir(&top).unwrap();
        Self(top)
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("it never came to that");
}
