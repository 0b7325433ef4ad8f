//! A small read while something long goes on.

use std::thread;
use std::time::Instant;

use crate::Scale;
use crate::client::{Client, FILE, Reads};
use crate::figures::{CLIENT, SERVER};
use crate::machine::Machine;
use crate::table::{Row, Table, Target};

/// Beside the first index of a long transcript.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let megabytes = scale.of(228);
    let agent = machine.codex(megabytes * 1_000_000);
    let path = machine.file("small", 64 << 10);
    let (mut alone, mut beside) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..scale.turns {
        let server = machine.serve("auto", &[SERVER, CLIENT]);
        let mut client = server.client(8192 + 24);
        client.open(FILE, &path);
        let mut reads = Reads::new(&client, 8192, 64 << 10);
        let mut times = 0;
        let mut few = || {
            times += 1;
            times < 5000
        };
        alone = alone.min(p99(&mut client, &mut reads, &mut few));
        let chat = format!("{}/chat/00000000-user", agent.place);
        let mut other = server.client(8192);
        let index = thread::spawn(move || other.open(FILE, &chat));
        beside = beside.min(p99(&mut client, &mut reads, &mut || !index.is_finished()));
        index.join().expect("an index");
    }
    let name = format!("p99 of a Tread beside a first index of {megabytes} MB");
    table.add(Row::beside(name, (beside * 1e6, "us"), ("alone", alone * 1e6), Target::Most(3.0)));
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
