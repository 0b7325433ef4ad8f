//! The drivers that serve sockets, one against the other: throughput and processor time per request at several numbers of
//! connections, memory of idle ones, and wake-ups while nobody asks.
//!
//! `cargo bench -p nineagents-drivers --bench sockets`. What counts are the ratios of one run. A number as argument is how
//! many seconds each measurement takes. The server is this program again, on a processor of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend::host::os::{Os, Resolving, Roots};
use backend::{Agents, Limits, Tree};
use drivers::choose::{Chosen, Driver};
use drivers::listen::Listener;
use drivers::server::Options;
use drivers::signals::Stop;
use engine::port::Backend;
use proto::{Dialect, NOFID, NOTAG, Names, Tmessage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::{CpuSet, sched_setaffinity};

fn main() {
    if let Some(base) = std::env::var_os(BASE) {
        return serve(Path::new(&base));
    }
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(SECONDS);
    pin(CLIENT_PROCESSOR);
    let base = std::env::temp_dir().join(format!("9agents-bench-{}", std::process::id()));
    let directory = base.join("hermes/files");
    fs::create_dir_all(&directory).expect("a directory");
    fs::create_dir_all(base.join("proc")).expect("a directory");
    fs::write(directory.join("hot"), vec![b'x'; FILE]).expect("a file");
    println!("{:<42} {:>12} {:>12} {:>7}  target", "what", "blocking", "uring", "ratio");
    for (connections, flight, count) in
        [(1, 1, 8192), (1, 8, 8192), (1, 8, 65_536), (8, 1, 8192), (8, 8, 8192), (64, 1, 8192), (64, 8, 8192)]
    {
        compare(&base, seconds, connections, flight, count);
    }
    compare_idle(&base, seconds);
    let _ = fs::remove_dir_all(&base);
}

fn compare(base: &Path, seconds: f64, connections: usize, flight: usize, count: u32) {
    let name = format!("{connections} connections, {flight} in flight, {} KiB", count / 1024);
    let mut runs = BTreeMap::new();
    // In turns, so that what else the machine does meets both.
    for driver in ["blocking", "uring", "blocking", "uring"] {
        let server = Server::start(base, driver);
        let mut crowd = Crowd::connect(&server, connections, count);
        crowd.run(flight, Duration::from_secs_f64(seconds / 10.0));
        let (cpu, start) = (server.cpu_ns(), Instant::now());
        let requests = crowd.run(flight, Duration::from_secs_f64(seconds / 2.0));
        let elapsed = start.elapsed().as_secs_f64();
        let cpu = (server.cpu_ns() - cpu) as f64 / requests as f64;
        let best: &mut (f64, f64) = runs.entry(driver).or_insert((0.0, f64::INFINITY));
        *best = (best.0.max(requests as f64 / elapsed), best.1.min(cpu));
    }
    let (blocking, uring) = (runs["blocking"], runs["uring"]);
    let many = connections >= 64;
    row(&format!("{name}: requests/s"), blocking.0, uring.0, if many { ">= 1.1" } else { "" });
    row(&format!("{name}: ns of CPU each"), blocking.1, uring.1, if many { "<= 0.6" } else { "" });
}

fn compare_idle(base: &Path, seconds: f64) {
    let idle = |driver| {
        let server = Server::start(base, driver);
        let before = server.resident_kib();
        let crowd = Crowd::connect(&server, 255, 8192);
        std::thread::sleep(Duration::from_secs(2));
        let (after, switches) = (server.resident_kib(), server.switches());
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let switches = server.switches() - switches;
        drop(crowd);
        ((after - before) as f64, switches as f64)
    };
    let (blocking, uring) = (idle("blocking"), idle("uring"));
    row("255 idle connections: KiB more", blocking.0, uring.0, "<= 0.25");
    row("255 idle connections: context switches", blocking.1, uring.1, "0");
}

fn row(what: &str, blocking: f64, uring: f64, target: &str) {
    println!("{what:<42} {blocking:>12.0} {uring:>12.0} {:>7.2}  {target}", uring / blocking);
}

/// Clients of one server, all on this thread.
struct Crowd {
    clients: Vec<Client>,
    request: Vec<u8>,
}

struct Client {
    stream: UnixStream,
    /// What is still to come of the reply whose beginning has come, and the size field so far.
    rest: usize,
    size: Vec<u8>,
    in_flight: usize,
}

impl Crowd {
    fn connect(server: &Server, connections: usize, count: u32) -> Self {
        let clients = (0..connections).map(|_| Client::open(&server.socket, count + 24)).collect();
        let mut request = vec![0; 64];
        let read = Tmessage::Read { fid: 1, offset: 0, count };
        let size = read.encode(1, Dialect::Plain, &mut request).expect("it fits");
        request.truncate(size);
        Self { clients, request }
    }

    /// Keeps so many requests of each client in flight for a while. Yields how many were answered.
    fn run(&mut self, flight: usize, time: Duration) -> usize {
        let (start, mut answered) = (Instant::now(), 0);
        let mut space = vec![0; 256 * 1024];
        let burst = self.request.repeat(flight);
        for client in &mut self.clients {
            client.ask(&burst, flight);
        }
        let mut late = false;
        while self.clients.iter().any(|client| client.in_flight > 0) {
            let ready = self.ready();
            late |= start.elapsed() >= time;
            for at in ready {
                let replies = self.clients[at].take(&mut space);
                answered += replies;
                if replies > 0 && !late {
                    self.clients[at].ask(&burst[..replies * self.request.len()], replies);
                }
            }
        }
        answered
    }

    fn ready(&self) -> Vec<usize> {
        let mut fds: Vec<_> =
            self.clients.iter().map(|client| PollFd::new(&client.stream, PollFlags::IN)).collect();
        poll(&mut fds, None).expect("poll");
        (0..fds.len()).filter(|at| !fds[*at].revents().is_empty()).collect()
    }
}

impl Client {
    /// A client that has the file open as fid 1.
    fn open(socket: &Path, msize: u32) -> Self {
        let mut stream = UnixStream::connect(socket).expect("a connection");
        let mut wire = [0; 64];
        let names = Names::pack([&b"hermes"[..], b"files", b"hot"], &mut wire).expect("it fits");
        for (tag, message) in [
            (NOTAG, Tmessage::Version { msize, version: b"9P2000" }),
            (1, Tmessage::Attach { fid: 0, afid: NOFID, uname: b"", aname: b"", n_uname: None }),
            (1, Tmessage::Walk { fid: 0, newfid: 1, names }),
            (1, Tmessage::Open { fid: 1, mode: 0 }),
        ] {
            let mut frame = [0; 256];
            let size = message.encode(tag, Dialect::Plain, &mut frame).expect("it fits");
            stream.write_all(&frame[..size]).expect("a request is taken");
            let mut size = [0; 4];
            stream.read_exact(&mut size).expect("a reply");
            let mut reply = vec![0; u32::from_le_bytes(size) as usize - 4];
            stream.read_exact(&mut reply).expect("a reply");
            assert_ne!(reply[0], 107, "refused: {message:?}");
        }
        Self { stream, rest: 0, size: Vec::new(), in_flight: 0 }
    }

    fn ask(&mut self, requests: &[u8], count: usize) {
        assert_eq!(send(&self.stream, requests, SendFlags::NOSIGNAL), Ok(requests.len()));
        self.in_flight += count;
    }

    /// Takes what has come. Yields how many replies ended in it.
    fn take(&mut self, space: &mut [u8]) -> usize {
        let count = match recv(&self.stream, &mut *space, RecvFlags::DONTWAIT) {
            Ok((count, _)) => count,
            Err(Errno::AGAIN) => return 0,
            Err(errno) => panic!("a reply: {errno}"),
        };
        assert_ne!(count, 0, "the server hung up");
        let (mut bytes, mut replies) = (&space[..count], 0);
        while !bytes.is_empty() {
            if self.rest == 0 {
                let wanted = (4 - self.size.len()).min(bytes.len());
                self.size.extend_from_slice(&bytes[..wanted]);
                bytes = &bytes[wanted..];
                if let Ok(size) = <[u8; 4]>::try_from(self.size.as_slice()) {
                    self.rest = u32::from_le_bytes(size) as usize - 4;
                    self.size.clear();
                }
                continue;
            }
            let taken = self.rest.min(bytes.len());
            bytes = &bytes[taken..];
            self.rest -= taken;
            replies += usize::from(self.rest == 0);
        }
        self.in_flight -= replies;
        replies
    }
}

/// A server in a process of its own.
struct Server {
    process: Child,
    socket: PathBuf,
}

impl Server {
    fn start(base: &Path, driver: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .env(BASE, base)
            .env(DRIVER, driver)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let output = process.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        Self { process, socket: base.join("socket") }
    }

    /// Processor time of all threads that live.
    fn cpu_ns(&self) -> u64 {
        self.threads(|task| {
            let stat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            stat.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
        })
    }

    fn switches(&self) -> u64 {
        self.threads(|task| {
            let status = fs::read_to_string(task.join("status")).unwrap_or_default();
            let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
            lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
        })
    }

    fn threads(&self, figure: impl Fn(&Path) -> u64) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).expect("it runs");
        tasks.flatten().map(|task| figure(&task.path())).sum()
    }

    fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.stdin = None;
        let _ = self.process.wait();
    }
}

/// Plays the server until standard input ends.
fn serve(base: &Path) {
    pin(SERVER_PROCESSOR);
    let root = |name: &str| base.join(name);
    let roots = Roots {
        claude: root("claude"),
        codex: root("codex"),
        omp: root("omp"),
        hermes: root("hermes"),
        dsh: root("dsh"),
    };
    let host = Os::new(roots, root("proc"), Resolving::Probed);
    let tree: Arc<dyn Backend<Tree>> =
        Arc::new(Agents::new(Arc::new(host), Limits { pinned_descriptors: 1024 }));
    let stop = Arc::new(Stop::new().expect("a pipe"));
    let asked = Arc::clone(&stop);
    let listener = Listener::unix(&base.join("socket")).expect("a socket");
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        asked.ask();
    });
    let uring = std::env::var(DRIVER).is_ok_and(|name| name == "uring");
    let wish = if uring { Driver::Uring } else { Driver::Blocking };
    let driver = Chosen::new(wish, false, &Options::default()).expect("a driver");
    println!("listening");
    driver.serve(&tree, &[listener], Vec::new(), &stop, &Options::default()).expect("a server that serves");
}

/// Keeps this process on one processor, if there are others.
fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    let _ = sched_setaffinity(None, &set);
}

const SERVER_PROCESSOR: usize = 0;
const CLIENT_PROCESSOR: usize = 1;
const SECONDS: f64 = 2.0;
const FILE: usize = 1 << 20;
const BASE: &str = "NINEAGENTS_BENCH_BASE";
const DRIVER: &str = "NINEAGENTS_BENCH_DRIVER";
