//! Conversations: the first look at a long one, beside `wc -l` of its file, and every look after that.

use std::fs::File;
use std::process::Command;
use std::time::Instant;

use backend::chat::{Builder, Format, Source};
use rustix::io::Errno;

use crate::Scale;
use crate::client::FILE;
use crate::figures::{SERVER, kib, least, time};
use crate::machine::{Agent, Machine, Server};
use crate::table::{Row, Table, Target};

/// All of them.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let (megabytes, turns) = (scale.of(228), scale.turns);
    let codex = machine.codex(megabytes * 1_000_000);
    let name = format!("first listing of chat/, a {megabytes} MB rollout");
    let list = first_listing(machine, &codex, turns);
    table.add(beside_wc(&format!("{name}, CPU"), &list, Target::Most(2.5)).note("aim 1.5"));
    let grown = list.grown_kib * 1024.0 / 1e6;
    table.add(Row::alone("resident growth while indexing it", grown, "MB", Target::Most(20.0)));
    append(machine, &codex, 10 * turns, table);
    drop(codex);
    let megabytes = scale.of(17);
    let claude = machine.claude(megabytes * 1_000_000);
    let name = format!("first listing of chat/, a {megabytes} MB Claude transcript");
    let list = first_listing(machine, &claude, 2 * turns);
    table.add(beside_wc(&format!("{name}, CPU"), &list, Target::Most(5.0)));
    table.add(Row::alone(format!("{name}, time"), list.wall * 1e3, "ms", Target::Most(30.0)));
    drop(claude);
    long_message(machine, scale, table);
}

/// What a first listing took.
struct List {
    cpu: f64,
    wall: f64,
    /// How much more was resident at its height.
    grown_kib: f64,
    /// Processor time of `wc -l`.
    wc: f64,
}

/// The least of several, each of a server that has just started; in turns with `wc -l`.
fn first_listing(machine: &Machine, agent: &Agent, turns: usize) -> List {
    let mut best =
        List { cpu: f64::INFINITY, wall: f64::INFINITY, grown_kib: f64::INFINITY, wc: f64::INFINITY };
    for _ in 0..turns {
        let server = machine.serve("auto", &[SERVER]);
        let mut client = server.client(128 * 1024);
        let before = server.resident_kib();
        let start = Instant::now();
        let cpu = server.cpu(|| {
            client.open(FILE, &format!("{}/chat", agent.place));
            client.drain(FILE, 64 * 1024);
        });
        best.wall = best.wall.min(start.elapsed().as_secs_f64());
        best.cpu = best.cpu.min(cpu);
        best.grown_kib = best.grown_kib.min(kib(server.pid(), "VmHWM") - before);
        best.wc = best.wc.min(time(Command::new("wc").arg("-l").arg(&agent.transcript)).cpu);
    }
    best
}

fn beside_wc(name: &str, list: &List, target: Target) -> Row {
    Row::beside(name, (list.cpu * 1e3, "ms"), ("wc -l", list.wc * 1e3), target)
}

/// Seconds of processor time for the first listing.
pub(crate) fn cost(machine: &Machine, agent: &Agent) -> f64 {
    first_listing(machine, agent, 2).cpu
}

/// A walk to a message that has just been said, beside one to the first message, which is what the index is made for.
fn append(machine: &Machine, agent: &Agent, turns: usize, table: &mut Table) {
    let server = machine.serve("auto", &[SERVER]);
    let scan = look(&server, agent, 0);
    let mut next = agent.messages;
    let mut say_and_look = || {
        agent.say(SAID);
        next += 1;
        look(&server, agent, next - 1)
    };
    let again = least(turns, &mut say_and_look);
    let (ours, theirs) = ((again * 1e6, "us"), ("first scan", scan * 1e6));
    let name = "request after one appended message, CPU";
    table.add(Row::beside(name, ours, theirs, Target::Most(1.0 / 500.0)));
    let each = index_bytes(agent) / f64::from(next);
    table.add(Row::alone("index memory, each message", each, "B", Target::Most(40.0)));
}

/// Seconds of processor time for a walk to a message.
fn look(server: &Server, agent: &Agent, id: u32) -> f64 {
    let mut client = server.client(8192);
    let path = format!("{}/chat/{id:08}-user", agent.place);
    let frame = client.walk_frame(1, FILE, &path);
    server.cpu(|| {
        client.send(&frame);
        client.answer(&frame);
    })
}

/// Seconds of processor time for so many requests, each after one more message.
pub(crate) fn append_cost(server: &Server, agent: &Agent, next: &mut u32, times: u32) -> f64 {
    let mut sum = 0.0;
    for _ in 0..times {
        agent.say(SAID);
        *next += 1;
        sum += look(server, agent, *next - 1);
    }
    sum
}

/// Bytes that the index of a transcript takes.
fn index_bytes(agent: &Agent) -> f64 {
    let file = Disk(File::open(&agent.transcript).expect("a transcript"));
    let size = file.0.metadata().expect("a transcript").len();
    let mut builder = Builder::new(Format::Codex, &[]);
    while !builder.step(&file, size, 4 << 20).expect("a transcript that can be read") {}
    builder.memory() as f64
}

struct Disk(File);

impl Source for Disk {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let mut done = 0;
        while done < buf.len() {
            match rustix::io::pread(&self.0, &mut buf[done..], offset + done as u64)? {
                0 => break,
                got => done += got,
            }
        }
        Ok(done)
    }
}

/// A message of many escapes, beside one of half its size.
fn long_message(machine: &Machine, scale: Scale, table: &mut Table) {
    let size = scale.of(64_000_000) as usize;
    let turns = scale.turns.min(3);
    let half = least(turns, || message_cost(machine, size / 2));
    let whole = least(turns, || message_cost(machine, size));
    let name = format!("reading a message of {} MB, 8 KiB at a time, CPU", size / 1_000_000);
    let (ours, theirs) = ((whole * 1e3, "ms"), ("half of it", half * 1e3));
    table.add(Row::beside(name, ours, theirs, Target::Most(2.3)));
}

/// Seconds of processor time for one of so many bytes.
pub(crate) fn message_cost(machine: &Machine, size: usize) -> f64 {
    let agent = machine.monologue(size);
    let server = machine.serve("auto", &[SERVER]);
    let mut client = server.client(8192 + 24);
    client.open(FILE, &format!("{}/chat/00000000-user", agent.place));
    server.cpu(|| {
        client.drain(FILE, 8192);
    })
}

const SAID: &str = concat!(
    r#"{"type":"response_item","payload":{"type":"message","role":"user","#,
    r#""content":[{"type":"input_text","text":"more"}]}}"#,
    "\n"
);
