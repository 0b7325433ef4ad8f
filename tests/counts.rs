//! What a request takes on each hot path: allocations, and calls of the host. Exact numbers, so that one more of either is
//! noticed by a test and not by a stopwatch.
//!
//! A program of its own, because of its allocator. A request is taken in by a session, answered by the tree of a real
//! directory and written into a buffer, all on the test's thread; each path is walked a few times before it is counted, as a
//! server's is. What calls of the host cost in system calls is at the top of `backend/src/host/os/mod.rs`.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use backend::host::Host;
use backend::host::os::{Os, Resolving, Roots};
use backend::host::wrap::Traced;
use backend::{Agents, Tree};
use drivers::inproc::Inproc;
use engine::Limits;
use proto::{Dialect, NOFID, NOTAG, Names, Tmessage};

/// The path of an open file that is read.
#[test]
fn a_read_allocates_nothing_and_is_one_read() {
    let home = Home::new();
    home.write("hermes/files/hot", &"x".repeat(256 << 10));
    let taken = home.taken(&["hermes/files/hot"], |client, at| {
        client.call(&Tmessage::Read { fid: 1, offset: 8192 * (at % 16), count: 8192 });
    });
    assert_eq!(taken, Taken { allocations: 0, calls: 1 });
}

/// A walk to a file, its stat, and its clunk: what a look at each file of a tree is made of.
#[test]
fn a_walk_allocates_once_and_the_rest_nothing() {
    let home = Home::new();
    home.write("hermes/files/hot", "x");
    let mut wire = [0; 64];
    let names = Names::pack([&b"hot"[..]], &mut wire).unwrap();
    let walk = Tmessage::Walk { fid: 1, newfid: 2, names };
    let (stat, clunk) = (Tmessage::Stat { fid: 2 }, Tmessage::Clunk { fid: 2 });
    let all = home.taken(&["hermes/files"], |client, _| {
        for request in [&walk, &stat, &clunk] {
            client.call(request);
        }
    });
    // The path of the new fid is the allocation. A walk, a stat, and the names of owner and group are the calls.
    assert_eq!(all, Taken { allocations: 1, calls: 4 });
}

/// A directory with stats: what is not for each entry is there once.
#[test]
fn a_listing_takes_one_look_for_each_entry() {
    let of = |files| {
        let home = Home::new();
        for number in 0..files {
            home.write(&format!("hermes/files/f{number:04}"), "x");
        }
        home.taken(&["hermes/files"], |client, _| {
            client.call(&Tmessage::Walk { fid: 1, newfid: 2, names: NO_NAMES });
            client.call(&Tmessage::Open { fid: 2, mode: 0 });
            let mut offset = 0;
            while let bytes @ 1.. = client.read(2, offset) {
                offset += bytes;
            }
            client.call(&Tmessage::Clunk { fid: 2 });
        })
    };
    let (few, many) = (of(100), of(600));
    println!("listing: {few:?} of 100 files, {many:?} of 600");
    // A look, and the names of owner and group; again for the one that did not fit in a reply.
    assert_eq!(many.calls - few.calls, 500 * 3 + LISTING_CALLS);
    assert!(many.allocations - few.allocations <= 10, "{few:?} {many:?}");
}

/// A message that has just been said is walked to: what was there before is not looked at.
#[test]
fn a_message_more_costs_the_same_however_many_there_are() {
    let of = |said: usize| {
        let home = Home::new();
        let rollout = home.codex_with(said);
        let agent = format!("active/codex/{PID}");
        let mut next = said as u64;
        home.taken(&[&agent], |client, _| {
            rollout.say();
            let mut wire = [0; 64];
            let name = format!("{next:08}-user");
            let names = Names::pack([&b"chat"[..], name.as_bytes()], &mut wire).unwrap();
            client.call(&Tmessage::Walk { fid: 1, newfid: 2, names });
            client.call(&Tmessage::Clunk { fid: 2 });
            next += 1;
        })
    };
    let (few, many) = (of(1000), of(9000));
    println!("a message more: {few:?} after 1000, {many:?} after 9000");
    assert_eq!(few.calls, many.calls);
    assert_eq!(few.calls, APPEND_CALLS);
    assert_eq!((few.allocations, many.allocations), (APPEND_ALLOCATIONS, APPEND_ALLOCATIONS));
}

/// The last read of a long message is short, and the one after it gets nothing: neither begins at the front again.
#[test]
fn the_end_of_a_long_message_is_read_where_it_is() {
    let of = |lines: usize| {
        let home = Home::new();
        let rollout = home.codex_with(1);
        let text = r#"a \"quoted\" word\n"#.repeat(lines);
        let line = SAID.replace("more", &text);
        fs::write(&rollout.0, fs::read_to_string(&rollout.0).unwrap() + &line).unwrap();
        let traced = Arc::new(Traced::new(Arc::new(home.host())));
        let place = format!("active/codex/{PID}/chat/00000001-user");
        let mut client = Client::over(Arc::clone(&traced) as Arc<dyn Host>, &[&place]);
        client.call(&Tmessage::Open { fid: 1, mode: 0 });
        let length = 16 * lines as u64;
        let mut offset = 0;
        while offset + 8192 < length {
            offset += client.read_of(1, offset, 8192);
        }
        let before = traced.calls();
        while let bytes @ 1.. = client.read_of(1, offset, 8192) {
            offset += bytes;
        }
        assert_eq!(offset, length);
        traced.calls() - before
    };
    let (short, long) = (of(2000), of(400_000));
    println!("the end of a message: {short} calls, {long} of a long one");
    assert_eq!(short, long);
}

/// A scan of processes that were seen before: one small file of each.
#[test]
fn a_scan_reads_one_file_of_each_process() {
    let of = |processes: u32| {
        let home = Home::new();
        for pid in 100..100 + processes {
            home.process(pid, "sleep", &["sleep", "60"]);
        }
        home.taken(&["active"], |client, _| {
            client.call(&Tmessage::Walk { fid: 1, newfid: 2, names: NO_NAMES });
            client.call(&Tmessage::Open { fid: 2, mode: 0 });
            client.read(2, 0);
            client.call(&Tmessage::Clunk { fid: 2 });
        })
    };
    let (few, many) = (of(20), of(220));
    println!("scan: {few:?} of 20 processes, {many:?} of 220");
    // It is opened, and read.
    assert_eq!(many.calls - few.calls, 200 * 2);
    assert!(many.allocations - few.allocations <= 200 * SCAN_ALLOCATIONS, "{few:?} {many:?}");
}

/// What a request took.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
struct Taken {
    allocations: u64,
    calls: u64,
}

/// A home in a temporary directory, and processes as `/proc` shows them.
struct Home {
    top: PathBuf,
}

impl Home {
    fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let top = std::env::temp_dir().join(format!("9counts-{}-{serial}", std::process::id()));
        for directory in ["hermes/files", "codex", "claude", "omp", "dsh", "proc"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        let home = Self { top };
        home.write("proc/stat", "btime 1700000000\n");
        home
    }

    fn write(&self, below: &str, content: &str) -> PathBuf {
        let path = self.top.join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A process that sleeps.
    fn process(&self, pid: u32, comm: &str, arguments: &[&str]) {
        let mut fields = String::new();
        // From the parent on, as proc_pid_stat(5) has them; what is not looked at is 0.
        for field in 4..=52 {
            let value = match field {
                4 => 1,
                22 => u64::from(pid) + 1000,
                // The stack and the arguments, by which a program is known again.
                28 | 48 | 49 => 4096,
                _ => 0,
            };
            let _ = write!(fields, " {value}");
        }
        self.write(&format!("proc/{pid}/stat"), &format!("{pid} ({comm}) S{fields}\n"));
        self.write(&format!("proc/{pid}/cmdline"), &(arguments.join("\0") + "\0"));
        self.write(&format!("proc/{pid}/environ"), "HOME=/home/me\0");
        fs::create_dir_all(self.top.join(format!("proc/{pid}/fd"))).unwrap();
        symlink(format!("/usr/bin/{comm}"), self.top.join(format!("proc/{pid}/exe"))).unwrap();
    }

    /// A Codex that has said so much, with its rollout open.
    fn codex_with(&self, said: usize) -> Rollout {
        let thread = "019f624a-cc95-7c50-b9fa-1db381270b73";
        let head =
            format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{thread}\",\"source\":\"cli\"}}}}\n");
        let below = format!("codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-{thread}.jsonl");
        let path = self.write(&below, &(head + &SAID.repeat(said)));
        self.process(PID, "codex", &["codex"]);
        symlink(&path, self.top.join(format!("proc/{PID}/fd/3"))).unwrap();
        Rollout(path)
    }

    fn host(&self) -> Os {
        let root = |name: &str| self.top.join(name);
        let roots = Roots {
            claude: root("claude"),
            codex: root("codex"),
            omp: root("omp"),
            hermes: root("hermes"),
            dsh: root("dsh"),
        };
        Os::new(roots, root("proc"), Resolving::Probed)
    }

    /// What a request takes of a client whose fids 1 and on are at some places, and open if they are files. The least of a
    /// few times: now and then a table grows, or a check that holds for a while is made again.
    fn taken(&self, places: &[&str], mut request: impl FnMut(&mut Client, u64)) -> Taken {
        let mut client = Client::over(Arc::new(self.host()), places);
        (0..WARM).for_each(|at| request(&mut client, at));
        let mut allocations = u64::MAX;
        for at in 0..TIMES {
            let counted = allocation_counter::measure(|| request(&mut client, at));
            allocations = allocations.min(counted.count_total);
        }
        let traced = Arc::new(Traced::new(Arc::new(self.host())));
        let mut client = Client::over(Arc::clone(&traced) as Arc<dyn Host>, places);
        (0..WARM).for_each(|at| request(&mut client, at));
        let mut calls = u64::MAX;
        for at in 0..TIMES {
            let before = traced.calls();
            request(&mut client, at);
            calls = calls.min(traced.calls() - before);
        }
        Taken { allocations, calls }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

struct Rollout(PathBuf);

impl Rollout {
    fn say(&self) {
        use std::io::Write;
        let mut file = fs::File::options().append(true).open(&self.0).unwrap();
        file.write_all(SAID.as_bytes()).unwrap();
    }
}

/// A client that makes no allocation once it is warm.
struct Client {
    server: Inproc<Tree>,
    replies: Vec<u8>,
}

impl Client {
    fn over(host: Arc<dyn Host>, places: &[&str]) -> Self {
        let tree = Agents::new(host, backend::Limits { pinned_descriptors: 16 });
        let server = Inproc::new(Arc::new(tree), Limits::DEFAULT);
        let mut client = Self { server, replies: Vec::with_capacity(1 << 20) };
        client.send(NOTAG, &Tmessage::Version { msize: 64 << 10, version: b"9P2000" });
        let attach = Tmessage::Attach { fid: 0, afid: NOFID, uname: b"me", aname: b"", n_uname: None };
        client.call(&attach);
        for (fid, place) in (1..).zip(places) {
            let mut wire = [0; 256];
            let names = Names::pack(place.split('/').map(str::as_bytes), &mut wire).unwrap();
            client.call(&Tmessage::Walk { fid: 0, newfid: fid, names });
            if place.ends_with("hot") {
                client.call(&Tmessage::Open { fid, mode: 0 });
            }
        }
        client
    }

    fn call(&mut self, request: &Tmessage<'_>) {
        self.send(1, request);
    }

    /// Reads from an offset. Says how many bytes came.
    fn read(&mut self, fid: u32, offset: u64) -> u64 {
        self.read_of(fid, offset, 32 << 10)
    }

    fn read_of(&mut self, fid: u32, offset: u64, count: u32) -> u64 {
        self.call(&Tmessage::Read { fid, offset, count });
        self.replies.len() as u64 - 11
    }

    fn send(&mut self, tag: u16, request: &Tmessage<'_>) {
        let mut frame = [0; 512];
        let size = request.encode(tag, Dialect::Plain, &mut frame).unwrap();
        self.replies.clear();
        self.server.send(&frame[..size]).unwrap();
        self.server.receive(&mut self.replies);
        assert_eq!(self.replies[4], frame[4] + 1, "refused: {}", String::from_utf8_lossy(&self.replies));
    }
}

const NO_NAMES: Names<'_> = Names::EMPTY;
const PID: u32 = 4711;
const SAID: &str = concat!(
    r#"{"type":"response_item","payload":{"type":"message","role":"user","#,
    r#""content":[{"type":"input_text","text":"more"}]}}"#,
    "\n"
);
const WARM: u64 = 20;
const TIMES: u64 = 5;
const LISTING_CALLS: u64 = 4;
/// The process is looked at three times (before it is believed, before and after what is told of it), its environment and its
/// descriptors once, and its rollout is found, opened and read where it has grown.
const APPEND_CALLS: u64 = 25;
const APPEND_ALLOCATIONS: u64 = 53;
/// Of each process that is scanned.
const SCAN_ALLOCATIONS: u64 = 5;
