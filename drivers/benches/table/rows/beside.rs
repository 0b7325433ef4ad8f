//! A small read while something long goes on.

use std::thread;
use std::time::Instant;

use proto::{OTRUNC, OWRITE, Tmessage};

use crate::client::{Client, FILE, Reads};
use crate::figures::{CLIENT, SERVER};
use crate::machine::Machine;
use crate::table::{Row, Table, Target};
use crate::{DRIVERS, Scale};

/// Beside a move, and beside the first index of a long transcript.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    beside_move(machine, scale, table);
    beside_index(machine, scale, table);
}

/// A move whose agent has gone and whose session does not come: it waits, as moves do most of the time.
fn beside_move(machine: &Machine, scale: Scale, table: &mut Table) {
    let path = machine.file("small", 64 << 10);
    let (mut alone, mut beside) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..scale.turns {
        let agent = machine.claude(100_000);
        let server = machine.serve_moving(&[SERVER, CLIENT]);
        let mut client = server.client(8192 + 24);
        client.open(FILE, &path);
        let mut reads = Reads::new(&client, 8192, 64 << 10);
        alone = alone.min(p99(&mut client, &mut reads, &mut some(READS)));
        let mut other = server.client(8192);
        let walk = other.walk_frame(1, FILE, &format!("{}/zmx", agent.place));
        let open = other.frame(1, &Tmessage::Open { fid: FILE, mode: OWRITE | OTRUNC });
        for frame in [walk, open] {
            other.send(&frame);
            other.answer(&frame);
        }
        let write = other.frame(1, &Tmessage::Write { fid: FILE, offset: 0, data: b"night" });
        other.send(&write);
        let latency = p99(&mut client, &mut reads, &mut some(READS));
        if !other.waits() {
            table.skip("p99 of a Tread beside a move", "the move did not last");
            return;
        }
        beside = beside.min(latency);
    }
    let name = "p99 of a Tread beside a move";
    table.add(Row::beside(name, (beside * 1e6, "us"), ("alone", alone * 1e6), Target::Most(3.0)));
}

fn beside_index(machine: &Machine, scale: Scale, table: &mut Table) {
    let megabytes = scale.of(228);
    let agent = machine.codex(megabytes * 1_000_000);
    for driver in DRIVERS {
        let (alone, beside) = slowest(machine, scale, driver, &format!("{}/chat/00000000-user", agent.place));
        let name = format!("p99 of a Tread beside a first index of {megabytes} MB, {driver}");
        table.add(Row::beside(name, (beside * 1e6, "us"), ("alone", alone * 1e6), Target::Most(3.0)));
    }
}

/// How long the slowest hundredth of small reads take at least, in seconds: alone, and while another client opens the first
/// message of a chat.
fn slowest(machine: &Machine, scale: Scale, driver: &str, chat: &str) -> (f64, f64) {
    let path = machine.file("small", 64 << 10);
    let (mut alone, mut beside) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..scale.turns {
        let server = machine.serve(driver, &[SERVER, CLIENT]);
        let mut client = server.client(8192 + 24);
        client.open(FILE, &path);
        let mut reads = Reads::new(&client, 8192, 64 << 10);
        alone = alone.min(p99(&mut client, &mut reads, &mut some(READS)));
        let chat = chat.to_owned();
        let mut other = server.client(8192);
        let index = thread::spawn(move || other.open(FILE, &chat));
        beside = beside.min(p99(&mut client, &mut reads, &mut || !index.is_finished()));
        index.join().expect("an index");
    }
    (alone, beside)
}

/// So many times.
fn some(times: u32) -> impl FnMut() -> bool {
    let mut left = times;
    move || {
        left = left.saturating_sub(1);
        left > 0
    }
}

/// How long the slowest hundredth of reads take at least, in seconds, for as long as there are to be more.
fn p99(client: &mut Client, reads: &mut Reads, more: &mut dyn FnMut() -> bool) -> f64 {
    let mut times = Vec::new();
    while more() {
        let start = Instant::now();
        reads.ask(client, 1);
        client.take();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times.get(times.len() * 99 / 100).map_or(0.0, |time| time.as_secs_f64())
}

const READS: u32 = 5000;
