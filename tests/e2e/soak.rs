//! The traffic of a busy hour in less time: clients that come and go, look around, follow what grows, ask what runs, and
//! leave without a word. Memory and descriptors are looked at all the while, and stay where they are.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proto::{Dialect, Tmessage};
use tests::check::{Client, ROOT, pack};
use tests::choices::{Choices, Seeded};
use tests::line::Line;
use tests::rig::{Received, Wire};

use crate::daemon::{Daemon, attached, with_each_driver};
use crate::home::Home;
use crate::tell;
use crate::units::environment;

#[test]
fn an_hour_of_clients_leaves_neither_memory_nor_descriptors_behind() {
    with_each_driver(soak);
}

/// What there is, and what visitors tell.
struct World {
    home: Home,
    /// How long it goes on.
    long: Duration,
    stop: AtomicBool,
    requests: Arc<AtomicU64>,
    visits: AtomicU64,
    /// Messages of conversations that were read.
    messages: AtomicU64,
}

/// One look at the server.
struct Sample {
    kib: u64,
    descriptors: usize,
    requests: u64,
}

/// Lets visitors at a server with one driver, and looks at it.
fn soak(driver: &str) {
    let world = World::new();
    let daemon = Daemon::start(world.home.command(&["--driver", driver]).envs(environment()));
    let socket = world.home.posted("agents");
    let samples: Vec<Sample> = thread::scope(|scope| {
        let visits: [fn(&World, &Path, &mut Seeded); 5] =
            [browse, follow, survey, leave_without_a_word, edit];
        for (seed, visit) in (1..).zip(visits) {
            let (world, socket) = (&world, &socket);
            scope.spawn(move || {
                let mut choices = Seeded::new(seed);
                while !world.is_over() {
                    visit(world, socket, &mut choices);
                    world.visits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // However this ends, visitors are to go.
        let _over = Over(&world.stop);
        let look = |_| {
            thread::sleep(world.long / SAMPLES as u32);
            let requests = world.requests.load(Ordering::Relaxed);
            Sample { kib: daemon.memory_kib("VmRSS"), descriptors: daemon.descriptors().len(), requests }
        };
        (0..SAMPLES).map(look).collect()
    });
    let line = |of: &dyn Fn(&Sample) -> String| samples.iter().map(of).collect::<Vec<_>>().join(" ");
    tell(&format!(
        "soak, {driver}: {} requests of {} visits in {:.0?}, {} messages read\n  KiB: {}\n  descriptors: {}",
        samples[SAMPLES - 1].requests,
        world.visits.load(Ordering::Relaxed),
        world.long,
        world.messages.load(Ordering::Relaxed),
        line(&|sample| sample.kib.to_string()),
        line(&|sample| sample.descriptors.to_string()),
    ));
    let quarter = |number: usize| &samples[number * SAMPLES / 4..(number + 1) * SAMPLES / 4];
    let most = |number, of: fn(&Sample) -> u64| quarter(number).iter().map(of).max().expect("samples");
    let (second, last) = (most(1, |sample| sample.kib), most(3, |sample| sample.kib));
    assert!(last <= second + GROWTH_KIB_MAX, "{second} KiB in the second quarter, {last} in the last");
    let (second, last) =
        (most(1, |sample| sample.descriptors as u64), most(3, |sample| sample.descriptors as u64));
    assert!(
        last <= second + DESCRIPTORS_MORE_MAX,
        "{second} descriptors in the second quarter, {last} in the last"
    );
    assert!(world.messages.load(Ordering::Relaxed) > 0, "nobody was seen to say anything");
    daemon.await_descriptors(BASE_DESCRIPTORS_MAX);
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
}

/// Sets a flag at its end.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl World {
    fn new() -> Self {
        let seconds = std::env::var("NINEAGENTS_SOAK_SECS").ok().map(|text| text.parse().expect("seconds"));
        let long = Duration::from_secs(seconds.unwrap_or(SECONDS));
        let home = Home::furnished();
        for number in 0..200 {
            let path = format!(".claude/projects/-home-me-{}/{number:04}.jsonl", number % 10);
            home.write(&path, format!("{{\"n\":{number}}}\n").repeat(number).as_bytes());
        }
        home.write(GROWS, b"{}\n");
        let world = Self {
            home,
            long,
            stop: AtomicBool::new(false),
            requests: Arc::default(),
            visits: 0.into(),
            messages: 0.into(),
        };
        // In an hour the indexes of all conversations are more than may be kept at once.
        let lines = if long.as_secs() >= LONG { 300_000 } else { 2_000 };
        for thread in 0..THREADS {
            let mut text = String::with_capacity(lines * 128);
            (0..lines).for_each(|number| text += &message(number));
            world.home.write(&rollout(thread), text.as_bytes());
        }
        world
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// A new client, whose requests are counted.
    fn client(&self, socket: &Path, choices: &mut Seeded) -> Client {
        let dialect = Dialect::ALL[choices.below(3) as usize];
        let line = Counted { line: Line::unix(socket), sent: Arc::clone(&self.requests) };
        attached(Client::new(Box::new(line), dialect))
    }
}

/// A line that counts what is sent through it: a client sends a request at a time.
struct Counted {
    line: Line,
    sent: Arc<AtomicU64>,
}

impl Wire for Counted {
    fn send(&mut self, bytes: &[u8], within: Duration) -> usize {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.line.send(bytes, within)
    }

    fn receive(&mut self, within: Duration) -> Received {
        self.line.receive(within)
    }

    fn half_close(&mut self) {
        self.line.half_close();
    }
}

/// `ls -lR` and a look into some of the files.
fn browse(world: &World, socket: &Path, choices: &mut Seeded) {
    let mut client = world.client(socket, choices);
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        // Files come and go.
        let Ok(fid) = client.try_go(&path) else { continue };
        let is_dir = client.stat(fid).is_ok_and(|info| info.dir);
        if is_dir && !path.starts_with("/active/") && client.open(fid).is_ok() {
            let names = client.list_all(fid, 8192).into_iter().map(|entry| entry.name);
            let names = names.map(|name| String::from_utf8(name).expect("names are UTF-8"));
            left.extend(names.map(|name| format!("{path}/{name}")));
        } else if !is_dir && choices.below(4) == 0 && client.open(fid).is_ok() {
            let _ = client.read(fid, 0, 64 * 1024);
        }
        client.clunk(fid).expect("a bound fid is clunked");
        if world.is_over() {
            return;
        }
    }
}

/// `tail -f` of a transcript that grows, for a while; whoever writes it begins anew when it is long.
fn follow(world: &World, socket: &Path, choices: &mut Seeded) {
    let mut client = world.client(socket, choices);
    let grows = world.home.path(GROWS);
    let mut file = OpenOptions::new().append(true).open(&grows).expect("it is there");
    let (fid, mut offset) = (client.open_path("claude/projects/-home-me-grows/grows.jsonl"), 0);
    for number in 0..choices.below(400) as usize {
        let written = message(number).repeat(1 + number % 7);
        file.write_all(written.as_bytes()).expect("room on the disk");
        let before = offset;
        while let Ok(bytes) = client.read(fid, offset, 16 * 1024)
            && !bytes.is_empty()
        {
            offset += bytes.len() as u64;
        }
        assert!(offset - before >= written.len() as u64, "what was written before is read");
        if world.is_over() {
            return;
        }
    }
    if offset > GROWS_BYTES_MAX {
        fs::remove_file(&grows).expect("it is there");
        world.home.write(GROWS, b"{}\n");
    }
}

/// `ps`, and what agents and people said last, while agents come and go.
fn survey(world: &World, socket: &Path, choices: &mut Seeded) {
    let mut client = world.client(socket, choices);
    let mut agents: Vec<Agent> = Vec::new();
    for _ in 0..1 + choices.below(6) {
        agents.push(Agent::start(&world.home, choices.below(THREADS)));
        for pid in client.names("active/codex") {
            let pid = String::from_utf8(pid).expect("a number");
            for field in ["session", "title", "status", "model", "via", "cwd"] {
                let _ = contents(&mut client, &format!("active/codex/{pid}/{field}"));
            }
        }
        let agent = &agents[choices.below(agents.len() as u32) as usize];
        let chat = format!("active/codex/{}/chat", agent.child.id());
        let Ok(fid) = client.try_go(&chat) else { continue };
        client.open(fid).expect("a directory");
        let names = client.list(fid, 0, 8192).expect("a conversation").0;
        client.clunk(fid).expect("a bound fid is clunked");
        for entry in names.iter().take(20) {
            let text = contents(&mut client, &format!("{chat}/{}", entry.name.escape_ascii()));
            assert!(text.is_some_and(|text| text.starts_with(b"message ")), "{chat}");
            world.messages.fetch_add(1, Ordering::Relaxed);
        }
        if choices.below(2) == 0 {
            agents.swap_remove(0);
        }
    }
}

/// Takes fids and open files by the hundreds, asks for more than it will read, begins a request, and is gone.
fn leave_without_a_word(world: &World, socket: &Path, choices: &mut Seeded) {
    let mut client = world.client(socket, choices);
    for _ in 0..choices.below(20) {
        let first = client.fresh_fid();
        let mut spaces = vec![Vec::new(); 50];
        let walks: Vec<_> = (first..)
            .zip(&mut spaces)
            .map(|(fid, space)| {
                let names = pack(&["claude", "projects", "-home-me-7", "0007.jsonl"], space);
                (fid as u16 & 0x7fff, Tmessage::Walk { fid: ROOT, newfid: fid, names })
            })
            .collect();
        client.post(&walks);
        client.receive_all(walks.len());
        while client.fresh_fid() < first + walks.len() as u32 {}
        let _ = client.open(first);
    }
    let fid = client.open_path("codex/history");
    let reads: Vec<_> = (0x100..0x100 + choices.below(60) as u16)
        .map(|tag| (tag, Tmessage::Read { fid, offset: 0, count: 64 }))
        .collect();
    client.post(&reads);
    let half = client.encode(1, &Tmessage::Clunk { fid });
    client.wire().send(&half[..choices.below(11) as usize], Duration::ZERO);
}

/// Sessions that begin, are renamed, and are tidied away.
fn edit(world: &World, _: &Path, choices: &mut Seeded) {
    let name = format!(".claude/projects/-home-me-{}/new-{}.jsonl", choices.below(10), choices.below(20));
    world.home.write(&name, message(choices.below(1000) as usize).as_bytes());
    let to = world.home.path(&name).with_extension(if choices.below(2) == 0 { "tmp" } else { "old" });
    let _ = fs::rename(world.home.path(&name), &to);
    if choices.below(3) > 0 {
        let _ = fs::remove_file(&to);
    }
    thread::sleep(Duration::from_millis(5));
}

fn contents(client: &mut Client, path: &str) -> Option<Vec<u8>> {
    let fid = client.try_go(path).ok()?;
    let bytes = client.open(fid).and_then(|_| client.read(fid, 0, 8192));
    client.clunk(fid).expect("a bound fid is clunked");
    bytes.ok()
}

/// A process that is an agent by its name, and holds the rollout of a thread open. Dropping it ends it.
struct Agent {
    child: Child,
}

impl Agent {
    fn start(home: &Home, thread: u32) -> Self {
        let rollout = File::open(home.path(&rollout(thread))).expect("it is there");
        let mut command = Command::new("sleep");
        command.arg0("codex").arg("1000").env_clear().stdin(rollout).stdout(Stdio::null());
        Self { child: command.spawn().expect("it starts") }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the rollout of a thread is, below the home.
fn rollout(thread: u32) -> String {
    format!(
        ".codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-019f624a-cc95-7c50-b9fa-1db38127{thread:04x}.jsonl"
    )
}

/// A line of a rollout.
fn message(number: usize) -> String {
    format!(
        "{{\"timestamp\":\"2026-07-14T20:21:37.{:03}Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\
         \"role\":\"assistant\",\"content\":[{{\"type\":\"output_text\",\"text\":\"message {number}\"}}]}}}}\n",
        number % 1000
    )
}

/// A transcript that grows, below the home.
const GROWS: &str = ".claude/projects/-home-me-grows/grows.jsonl";
const GROWS_BYTES_MAX: u64 = 8 << 20;
/// Conversations.
const THREADS: u32 = 32;
/// How long it goes on if nobody says otherwise.
const SECONDS: u64 = 10;
/// From when on conversations are long.
const LONG: u64 = 120;
const SAMPLES: usize = 40;
/// How much more there may be in the last quarter than in the second.
const GROWTH_KIB_MAX: u64 = 4 * 1024;
const DESCRIPTORS_MORE_MAX: u64 = 64;
/// What is left when all have gone: listeners, the bases of five harnesses, `/proc`, and what the driver waits on.
const BASE_DESCRIPTORS_MAX: usize = 40;
