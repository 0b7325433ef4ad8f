//! The laws of `/proc`: whatever the kernel tells as text is read without a panic, and what the machine in memory renders is
//! read back as what it was rendered from.

use std::collections::BTreeMap;

use engine::port::Effort;

use crate::harness::{self, Program};
use crate::host::Host;
use crate::host::fixture::{Bytes, Edit, Fixture, LockKind, Process as Spec, State, Tcp, World};
use crate::name::{Name, Rel, Root};
use crate::process::{self, Environ, Process, Stat};

/// The laws of `stat`, `cmdline`, `environ` and `locks`, of text that is just these bytes, and of a machine that they spell.
///
/// # Panics
/// If one is broken.
pub fn host_text(bytes: &[u8]) {
    stat_of(bytes);
    locks_of(bytes);
    boot_time_of(bytes);
    environ_of(bytes);
    program_of(bytes);
    machine(&mut Spelling(bytes));
}

/// What a machine with these sockets shows as `net/tcp` and `net/tcp6`.
pub fn tables(sockets: &[Tcp]) -> [Vec<u8>; 2] {
    let host = Fixture::new(World::new());
    for socket in sockets {
        assert_eq!(host.apply(&Edit::Tcp(*socket)), Ok(()));
    }
    let me = host.me().pid;
    ["tcp", "tcp6"].map(|name| read(&host, &[&me.to_string(), "net", name]))
}

fn read(host: &dyn Host, path: &[&str]) -> Vec<u8> {
    let rel = path
        .iter()
        .fold(Rel::base(), |rel, name| rel.join(Name::of_harness(name).expect("a name of the kernel's")));
    let (file, _) = host.open(Root::Proc, &rel, Effort::Full).expect("a file of the kernel's");
    let mut bytes = vec![0; 1 << 20];
    let read = file.read_at(&mut bytes, 0, Effort::Full).expect("a file that can be read");
    bytes.truncate(read);
    bytes
}

/// What is read of a line stands there, and what follows it changes nothing but the end of the name.
fn stat_of(line: &[u8]) {
    let Some(stat) = Stat::parse(line) else { return };
    let (pid, comm) = (stat.process.pid.to_string(), stat.comm.as_bytes());
    assert!(line.starts_with(pid.as_bytes()));
    let open = line.iter().position(|byte| *byte == b'(').expect("a bracket before the name");
    assert!(line[open + 1..].starts_with(comm) && comm.len() <= 16);
    let start = stat.process.start.to_string();
    let close = line.iter().rposition(|byte| *byte == b')').expect("a bracket behind the name");
    let mut fields = line[close + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    assert!(fields.any(|field| field.ends_with(start.as_bytes())), "a start from nowhere");
    assert_eq!(Stat::parse(&[line, b" 1 2 3"].concat()).map(|more| more.process), Some(stat.process));
}

/// A table says what its lines say, one by one.
fn locks_of(table: &[u8]) {
    for pid in [0, 1, 4711] {
        let whole = process::write_locks_of(table, pid);
        let lines = table.split(|byte| *byte == b'\n');
        let one_by_one: Vec<u64> = lines.flat_map(|line| process::write_locks_of(line, pid)).collect();
        assert_eq!(whole, one_by_one);
    }
}

/// The first line of that name counts, wherever it stands.
fn boot_time_of(stat: &[u8]) {
    let time = process::boot_time_of(stat);
    assert_eq!(process::boot_time_of(&[b"cpu 1 2\n", stat].concat()), time);
    assert_eq!(process::boot_time_of(&[b"btime 7\n", stat].concat()), Some(7));
}

/// A value is what stands behind the name, and never empty.
fn environ_of(content: &[u8]) {
    let environ = Environ::new(content.to_vec());
    for name in ["HOME", "A", "ZMX_SESSION", ""] {
        if let Some(value) = environ.value(name) {
            let spelt = [name.as_bytes(), b"=", value].concat();
            assert!(!value.is_empty() && content.split(|byte| *byte == 0).any(|variable| variable == spelt));
        }
    }
}

/// What a program is to a harness does not depend on the room that is left behind its arguments.
fn program_of(cmdline: &[u8]) {
    let text = String::from_utf8_lossy(cmdline);
    let padded = format!("{text}\0\0\0");
    for exe in ["", "/usr/bin/node", "/usr/bin/python3.12"] {
        for root in [Root::Claude, Root::Codex, Root::Omp, Root::Hermes, Root::Dsh] {
            let role =
                |text: &str| harness::of(root).and_then(|harness| harness.role(&Program::new(text, exe)));
            assert_eq!(role(&text), role(&padded));
        }
    }
}

/// Starts processes that hold locks, and reads all of it back.
fn machine(spelling: &mut Spelling<'_>) {
    let host = Fixture::new(World::new());
    let wall_ns = i64::from(spelling.word()) * 1_000_000_000 + i64::from(spelling.byte());
    let mono_ns = u64::from(spelling.word()) * 1_000_000;
    assert_eq!(host.apply(&Edit::Clock { mono_ns, wall_ns }), Ok(()));
    let boot_ns = i128::from(wall_ns) - i128::from(mono_ns);
    assert_eq!(process::boot_time_s(&host).map(i128::from), Some(boot_ns.div_euclid(1_000_000_000)));
    let mut locks = Locks::new(&host);
    for pid in 100..100 + u32::from(spelling.byte() % 4) {
        let spec = spec(pid, spelling);
        assert_eq!(host.apply(&Edit::Start(Box::new(spec.clone()))), Ok(()));
        locks.take(&host, pid, spelling);
        is_read_back(&host, &spec);
        let state = [State::Sleeping, State::Running, State::Stopped][usize::from(spelling.byte() % 3)];
        assert_eq!(host.apply(&Edit::State { pid, state }), Ok(()));
        assert!(Stat::read(&host, pid).is_ok_and(|(stat, _)| stat.is_alive() && !stat.is_kernel()));
    }
    locks.are_read_back(&host);
}

fn spec(pid: u32, spelling: &mut Spelling<'_>) -> Spec {
    let comm = spelling.text();
    let args = (0..spelling.byte() % 5).map(|_| without_nul(spelling.text())).collect();
    let env = (0..spelling.byte() % 5).map(|_| without_nul(spelling.text())).collect();
    let ppid = spelling.word();
    let start_ticks = Some(u64::from(spelling.word()) << (spelling.byte() % 32));
    Spec { ppid, args, env, start_ticks, ..Spec::new(pid, comm) }
}

fn is_read_back(host: &dyn Host, spec: &Spec) {
    let (stat, _) = Stat::read(host, spec.pid).expect("a process that was just started");
    let process = Process { pid: spec.pid, start: spec.start_ticks.expect("a start that was spelt") };
    assert_eq!((stat.process, stat.ppid), (process, spec.ppid));
    assert_eq!(stat.comm.as_bytes(), &spec.comm[..spec.comm.len().min(15)]);
    assert_eq!(process.stat(host), Ok(stat));
    let cmdline = process.cmdline(host).expect("arguments that may be read");
    assert_eq!(cmdline, ended_by_nul(&spec.args));
    if let Ok(cmdline) = str::from_utf8(&cmdline) {
        let told = Program::new(cmdline, "");
        let end = spec.args.iter().rposition(|arg| !arg.is_empty()).map_or(0, |last| last + 1);
        let mut args = spec.args[..end].iter().map(|arg| &**arg);
        assert_eq!(told.called().as_bytes(), args.next().unwrap_or_default());
        assert!(args.eq(told.args().iter().map(|arg| arg.as_bytes())), "{told:?}");
    }
    let environ = process.environ(host).expect("an environment that may be read");
    let mut first: BTreeMap<&str, &[u8]> = BTreeMap::new();
    for variable in &spec.env {
        let Some(at) = variable.iter().position(|byte| *byte == b'=') else { continue };
        if let Ok(name) = str::from_utf8(&variable[..at]) {
            first.entry(name).or_insert_with(|| &variable[at + 1..]);
        }
    }
    for (name, value) in first {
        // A name with `=` in it cannot be told from a shorter one.
        let value = Some(value).filter(|value| !value.is_empty());
        assert_eq!(environ.value(name), value, "{name:?}");
    }
}

/// Who holds a lock of flock(2) on which of the files, told apart from the machine.
struct Locks {
    inodes: Vec<u64>,
    held: Vec<(u32, usize, bool)>,
    waiting: Vec<(u32, usize)>,
}

impl Locks {
    fn new(host: &Fixture) -> Self {
        assert_eq!(host.apply(&Edit::MkdirAll { path: BASE.into() }), Ok(()));
        let inode = |name: &&str| {
            assert_eq!(host.apply(&Edit::Write { path: path(name), bytes: "".into() }), Ok(()));
            let rel = Rel::from_harness(name).expect("a name");
            host.stat(Root::Claude, &rel, Effort::Full).expect("a file that was just written").ino
        };
        Self { inodes: FILES.iter().map(inode).collect(), held: Vec::new(), waiting: Vec::new() }
    }

    /// A process asks for a lock on each file that it is told to, once.
    fn take(&mut self, host: &Fixture, pid: u32, spelling: &mut Spelling<'_>) {
        for (file, name) in FILES.iter().enumerate() {
            let byte = spelling.byte();
            let (exclusive, posix) = (byte & 1 != 0, byte & 2 != 0);
            if byte & 4 != 0 {
                continue;
            }
            let kind = if posix { LockKind::Posix } else { LockKind::Flock };
            assert_eq!(host.apply(&Edit::HoldLock { pid, path: path(name), kind, exclusive }), Ok(()));
            if posix {
                continue;
            }
            if self.held.iter().any(|held| held.1 == file && (exclusive || held.2)) {
                self.waiting.push((pid, file));
            } else {
                self.held.push((pid, file, exclusive));
            }
        }
    }

    fn are_read_back(&self, host: &dyn Host) {
        for pid in 100..104 {
            let held = self.held.iter().filter(|held| held.0 == pid && held.2);
            let mut expected: Vec<u64> = held.map(|held| self.inodes[held.1]).collect();
            let mut read = process::write_locks(host, pid);
            expected.sort_unstable();
            read.sort_unstable();
            assert_eq!(read, expected, "{:?} wait", self.waiting);
        }
    }
}

fn path(name: &str) -> Bytes {
    format!("{BASE}/{name}").into()
}

fn ended_by_nul(texts: &[Bytes]) -> Vec<u8> {
    texts.iter().flat_map(|text| [text, &b"\0"[..]].concat()).collect()
}

fn without_nul(text: &[u8]) -> Bytes {
    text.iter().copied().filter(|byte| *byte != 0).collect::<Vec<u8>>().into()
}

/// Bytes that spell numbers and texts. Past their end everything is 0, or empty.
struct Spelling<'a>(&'a [u8]);

impl<'a> Spelling<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn word(&mut self) -> u32 {
        self.take(4).iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
    }

    fn text(&mut self) -> &'a [u8] {
        let length = self.byte();
        self.take(usize::from(length))
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// What processes lock.
const FILES: [&str; 3] = ["a", "b", "c"];
/// Where these are.
const BASE: &str = "/home/me/.claude";
