//! A real process and one in memory, asked the same.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, thread, time::Duration};

use backend::host::fixture::{Edit, Fixture, Process, World};
use backend::host::{Errno, Host};
use backend::name::{Name, Rel, Root};
use engine::port::Effort::Full;

use crate::kernel::Kernel;
use crate::look::said;
use crate::{Rig as _, difference};

/// Lives until its input ends, then as a corpse until it is waited for.
#[test]
fn a_process_lives_and_dies_alike() {
    let kernel = Kernel::new();
    let mut child = Command::new("cat")
        .arg("-")
        .env_clear()
        .env("ONE", "two words")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    let real = |part: &str| Path::new("/proc").join(pid.to_string()).join(part);
    wait_until(|| fs::read_to_string(real("stat")).is_ok_and(|stat| stat.contains(" (cat) S ")));
    let exe = fs::read_link(real("exe")).unwrap();

    let fixture = twin(pid, exe.to_str().unwrap());
    let log = |host: &dyn Host, handles: &Handles| {
        let mut log = parts(pid).iter().flat_map(|part| ask(host, part)).collect::<Vec<_>>();
        log.extend(handles.ask());
        log
    };
    let mut differences = Vec::new();
    let (of_kernel, of_fixture) = (Handles::open(kernel.host(), pid), Handles::open(&fixture, pid));
    let mut compare = |when: &str| {
        let mut logs = [log(kernel.host(), &of_kernel), log(&fixture, &of_fixture)];
        // Of a corpse, an empty file before Linux 6.15 and none since. Of a process that is gone, an open directory may or
        // may not know yet that it has another owner.
        let varies = match when {
            "a corpse" => "/environ",
            "gone" => "entry of old descriptors",
            _ => "nothing",
        };
        logs.iter_mut().for_each(|log| log.retain(|line| !line.contains(varies)));
        let [one, other] = logs;
        assert!(one.len() > 50);
        differences.extend(difference(when, &one, &other));
    };
    compare("alive");

    drop(child.stdin.take());
    wait_until(|| fs::read_to_string(real("stat")).is_ok_and(|stat| stat.contains(") Z ")));
    fixture.apply(&Edit::Zombie { pid }).unwrap();
    compare("a corpse");

    child.wait().unwrap();
    fixture.apply(&Edit::Exit { pid }).unwrap();
    compare("gone");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The same process on the machine in memory, seen by the same user.
fn twin(pid: u32, exe: &str) -> Fixture {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut world = World::new();
    let process = Process {
        uid,
        gid,
        args: vec!["cat".into(), "-".into()],
        env: vec!["ONE=two words".into()],
        exe: exe.into(),
        ..Process::new(pid, "cat")
    };
    for edit in [
        Edit::Me { pid: std::process::id(), uid, gid },
        Edit::MkdirAll { path: Path::new(exe).parent().unwrap().to_str().unwrap().into() },
        Edit::Write { path: exe.into(), bytes: "".into() },
        Edit::Start(Box::new(process)),
        Edit::OpenFd { pid, fd: 0, path: "pipe:[1]".into(), says: None },
        Edit::OpenFd { pid, fd: 1, path: "/dev/null".into(), says: None },
        Edit::OpenFd { pid, fd: 2, path: "/dev/null".into(), says: None },
    ] {
        world.apply(&edit).unwrap();
    }
    Fixture::new(world)
}

fn parts(pid: u32) -> Vec<String> {
    let below = [
        "",
        "/stat",
        "/status",
        "/cmdline",
        "/comm",
        "/environ",
        "/cwd",
        "/exe",
        "/fd",
        "/fd/0",
        "/fd/1",
        "/fd/00",
        "/fd/77",
        "/fd/0/x",
        "/ns",
        "/ns/pid",
        "/net",
        "/net/tcp",
        "/net/tcp6",
        "/none",
        "/stat/x",
        "/cwd/x",
    ];
    let of_process = below.iter().map(|part| format!("{pid}{part}"));
    let of_machine = ["", "stat", "locks", "self", "self/stat", "net", "net/tcp", "0", "01", "none", "+1"];
    of_process.chain(of_machine.map(str::to_owned)).collect()
}

/// Every question about one path.
fn ask(host: &dyn Host, path: &str) -> Vec<String> {
    let rel = if path.is_empty() { Rel::base() } else { Rel::from_harness(path).unwrap() };
    let kind = |meta: backend::host::Meta| format!("{:?} of {}", meta.kind, owner(path, meta.uid));
    let opened = host.open(Root::Proc, &rel, Full);
    let mut log = vec![
        format!("stat {path}: {}", words(host.stat(Root::Proc, &rel, Full).map(kind))),
        format!("walk {path}: {}", said(host.walk(Root::Proc, &rel, 0, Full, &mut |_| ()))),
        format!(
            "open {path}: {}",
            words(opened.as_ref().map(|(_, meta)| kind(*meta)).map_err(|error| *error))
        ),
        format!("read_link {path}: {}", words(host.read_link(&rel).map(|text| shared_text(&text)))),
        format!("stat_link {path}: {}", words(host.stat_link(&rel).map(|meta| format!("{:?}", meta.kind)))),
    ];
    if let Ok((file, _)) = opened {
        let mut bytes = vec![0; 4096];
        let length = file.read_at(&mut bytes, 0, Full);
        bytes.truncate(length.unwrap_or_default());
        log.push(format!("read {path}: {} {}", said(length.map(drop)), content(path, &bytes)));
    }
    match host.open_dir(Root::Proc, &rel) {
        Ok((dir, meta)) => {
            let mut names = Vec::new();
            let answer = dir.names(&mut |name| {
                names.push(String::from_utf8(name.to_vec()).unwrap());
                true
            });
            names.sort();
            // A child may inherit further descriptors, and each kernel has further entries.
            names.retain(|name| path.ends_with("/fd") && ["0", "1", "2"].contains(&name.as_str()));
            log.push(format!("names {path}: {} {names:?} {:?}", said(answer), meta.kind));
        }
        Err(error) => log.push(format!("open_dir {path}: {error}")),
    }
    log
}

/// What was opened while the process lived.
struct Handles {
    file: Box<dyn backend::host::File>,
    dir: Box<dyn backend::host::Dir>,
    fds: Box<dyn backend::host::Dir>,
}

impl Handles {
    fn open(host: &dyn Host, pid: u32) -> Self {
        let rel = |part: &str| Rel::from_harness(&format!("{pid}{part}")).unwrap();
        Self {
            file: host.open(Root::Proc, &rel("/cmdline"), Full).unwrap().0,
            dir: host.open_dir(Root::Proc, &rel("")).unwrap().0,
            fds: host.open_dir(Root::Proc, &rel("/fd")).unwrap().0,
        }
    }

    fn ask(&self) -> Vec<String> {
        let stat = |dir: &dyn backend::host::Dir, name| {
            words(dir.stat(Name::of_harness(name).unwrap()).map(|meta| format!("{:?}", meta.kind)))
        };
        vec![
            format!(
                "read of old file: {}",
                words(self.file.read_at(&mut [0; 99], 0, Full).map(|bytes| bytes.to_string()))
            ),
            format!("meta of old file: {}", words(self.file.meta().map(|meta| format!("{:?}", meta.kind)))),
            format!("names of old directory: {}", said(self.dir.names(&mut |_| true))),
            format!("entry of old directory: {}", stat(&*self.dir, "stat")),
            format!("names of old descriptors: {}", said(self.fds.names(&mut |_| true))),
            format!("entry of old descriptors: {}", stat(&*self.fds, "0")),
        ]
    }
}

/// Only of a process itself does the owner mean the same on every kernel.
fn owner(path: &str, uid: u32) -> String {
    if path.contains('/') || path.parse::<u32>().is_err() { "whoever".to_owned() } else { uid.to_string() }
}

/// What a link says, without the numbers of pipes and namespaces.
fn shared_text(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(|c: char| c.is_ascii_digit(), "")
}

/// What two machines can share of a file's content.
fn content(path: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match path.rsplit('/').next() {
        Some("cmdline" | "environ" | "comm") => bytes.escape_ascii().to_string(),
        Some("stat") if path.contains('/') => {
            let fields: Vec<&str> = text.split_whitespace().collect();
            format!("{} fields, {:?}", fields.len(), &fields[..3])
        }
        Some("status") => {
            let shared = ["Name:", "State:", "Tgid:", "Pid:", "Uid:", "Gid:"];
            let lines = text.lines().filter(|line| shared.iter().any(|key| line.starts_with(key)));
            lines.collect::<Vec<_>>().join("; ")
        }
        Some("stat") => format!("{}", text.lines().filter(|line| line.starts_with("btime ")).count()),
        Some("tcp") => {
            text.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

fn words(answer: Result<String, Errno>) -> String {
    answer.unwrap_or_else(|error| error.to_string())
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
