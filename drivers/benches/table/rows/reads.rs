//! Throughput: reads of one hot file over one connection, beside a server that does nothing, and one that only reads.

use std::time::Duration;

use crate::client::{Client, FILE, Reads};
use crate::figures::{CLIENT, SERVER};
use crate::machine::{Machine, Server};
use crate::table::{Row, Table, Target};
use crate::{DRIVERS, MOMENTS, Scale};

/// All of them.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let size = scale.of(200 << 20);
    let path = machine.file("hot", size);
    let large = (1 << 20) - 24;
    for (count, flight, names, targets) in [
        (8192, 1, "8 KiB, 1 in flight", [0.95, 0.85]),
        (8192, 8, "8 KiB, 8 in flight", [0.95, 0.95]),
        (65_536, 8, "64 KiB, 8 in flight", [0.65, 0.65]),
        (large, 1, "1 MiB, 1 in flight", [0.75, 0.75]),
        (large, 8, "1 MiB, 8 in flight", [0.75, 0.75]),
    ] {
        let what = Reading { path: &path, count, flight, size };
        let apart = rates(machine, scale, &what, SERVER);
        let together = rates(machine, Scale { turns: scale.turns.min(3), ..scale }, &what, CLIENT);
        for (at, driver) in DRIVERS.iter().enumerate() {
            let note = format!(
                "on one processor {:.2}; {:.2} and {:.2} of the least that reads",
                together[at] / together[2],
                apart[at] / apart[3],
                together[at] / together[3]
            );
            let name = format!("sequential Tread, {names}, {driver}");
            let target = Target::Least(targets[at]);
            let ours = (apart[at] / 1e3, "k/s");
            table.add(Row::beside(name, ours, ("responder", apart[2] / 1e3), target).note(note));
        }
    }
}

/// What is read.
struct Reading<'a> {
    path: &'a str,
    count: u32,
    flight: usize,
    size: u64,
}

/// Answers a second: of the two drivers, of the responder, and of the one that reads. In turns, so that what else the machine
/// does meets all; the best of them.
fn rates(machine: &Machine, scale: Scale, what: &Reading<'_>, processor: usize) -> [f64; 4] {
    let servers = [
        machine.serve(DRIVERS[0], &[processor]),
        machine.serve(DRIVERS[1], &[processor]),
        machine.responder(processor),
        machine.reader(what.path, processor),
    ];
    let mut clients: Vec<(Client, Reads)> = servers.iter().map(|server| client(server, what)).collect();
    let mut best = [0.0_f64; 4];
    let time = Duration::from_secs_f64(scale.seconds / 20.0);
    for _ in 0..scale.turns * MOMENTS {
        for (best, (client, reads)) in best.iter_mut().zip(&mut clients) {
            *best = best.max(reads.run(client, what.flight, time));
        }
    }
    best
}

fn client(server: &Server, what: &Reading<'_>) -> (Client, Reads) {
    let mut client = server.client(what.count + 24);
    client.open(FILE, what.path);
    let reads = Reads::new(&client, what.count, what.size);
    (client, reads)
}

/// Seconds of processor time of a server that reads so much of a file, 8 KiB at a time.
pub(crate) fn cost(machine: &Machine, size: u64) -> f64 {
    let path = machine.file("part", size);
    let server = machine.serve("auto", &[SERVER]);
    let mut client = server.client(8192 + 24);
    client.open(FILE, &path);
    server.cpu(|| {
        client.drain(FILE, 8192);
    })
}
