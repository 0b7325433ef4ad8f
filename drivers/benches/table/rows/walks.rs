//! Walk, stat and clunk of many files, and what a fid takes.

use std::time::Instant;

use proto::{Dialect, Tmessage};

use crate::client::Client;
use crate::figures::{CLIENT, SERVER, least};
use crate::machine::{Machine, Server};
use crate::table::{Row, Table, Target};
use crate::{DRIVERS, MOMENTS, Scale};

/// All of them.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let files = scale.of(1000) as usize;
    let path = machine.directory("walked", files);
    let one = |processor| {
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        for at in 0..3 {
            let driver = DRIVERS.get(at);
            let server = driver
                .map_or_else(|| machine.responder(processor), |driver| machine.serve(driver, &[processor]));
            clients.push(Visits::new(server.client(8192), &path, files));
            servers.push(server);
        }
        rates(scale, &mut clients, 1)
    };
    let (apart, together) = (one(SERVER), one(CLIENT));
    for (at, driver) in DRIVERS.iter().enumerate() {
        let name = format!("walk + stat + clunk of {files} files, 1 in flight, {driver}");
        let ours = (apart[at] / 1e3, "k/s");
        let row = Row::beside(name, ours, ("responder", apart[2] / 1e3), Target::Least(0.8));
        table.add(row.note(format!("on one processor {:.2}", together[at] / together[2])));
    }
    let Some(diod) = machine.diod(SERVER) else {
        table.skip("walk + stat + clunk, 32 in flight", "diod is not installed");
        return;
    };
    let below = machine.path(".hermes/walked");
    let mut servers: Vec<Server> = DRIVERS.iter().map(|driver| machine.serve(driver, &[SERVER])).collect();
    let linux = |server: &Server| Client::attach(server.socket(), Dialect::Linux, 8192, "");
    let mut clients: Vec<Visits> =
        servers.iter().map(|server| Visits::new(linux(server), &path, files)).collect();
    let top = below.parent().and_then(|path| path.parent()).and_then(|path| path.to_str()).expect("UTF-8");
    let theirs = Client::attach(diod.socket(), Dialect::Linux, 8192, top);
    clients.push(Visits::new(theirs, ".hermes/walked", files));
    servers.push(diod);
    let rates = rates(scale, &mut clients, 32);
    let cost = |at: usize, client: &mut Visits| {
        least(scale.turns, || servers[at].cpu(|| _ = client.round(32))) / files as f64 * 1e6
    };
    let costs: Vec<f64> = clients.iter_mut().enumerate().map(|(at, client)| cost(at, client)).collect();
    for (at, driver) in DRIVERS.iter().enumerate() {
        let name = format!("walk + getattr + clunk of {files} files, 32 in flight, {driver}");
        let ours = (rates[at] / 1e3, "k/s");
        let row = Row::beside(name, ours, ("diod", rates[2] / 1e3), Target::Least(3.0));
        table.add(row.note(format!("CPU of one {:.1} us, of diod's {:.1} us", costs[at], costs[2])));
    }
}

/// Files a second, of each client: the best of turns that are taken one after the other.
fn rates(scale: Scale, clients: &mut [Visits], flight: usize) -> Vec<f64> {
    let mut best = vec![0.0_f64; clients.len()];
    for _ in 0..scale.turns * MOMENTS {
        for (best, client) in best.iter_mut().zip(&mut *clients) {
            let (start, mut files) = (Instant::now(), 0);
            while start.elapsed().as_secs_f64() < scale.seconds / 20.0 {
                files += client.round(flight);
            }
            *best = best.max(files as f64 / start.elapsed().as_secs_f64());
        }
    }
    best
}

/// A client with all its requests made up.
struct Visits {
    client: Client,
    /// For each file: its walk, its stat, its clunk.
    frames: Vec<[Vec<u8>; 3]>,
}

impl Visits {
    fn new(client: Client, directory: &str, files: usize) -> Self {
        let frames = |number| {
            // What is in flight together has tags and fids of its own.
            let tag = (number % 32) as u16;
            let fid = 1 + u32::from(tag);
            [
                client.walk_frame(tag, fid, &format!("{directory}/f{number:05}")),
                client.stat_frame(tag, fid),
                client.frame(tag, &Tmessage::Clunk { fid }),
            ]
        };
        let frames = (0..files).map(frames).collect();
        Self { client, frames }
    }

    /// Looks at every file once, so many at the same time. Says how many there are.
    fn round(&mut self, flight: usize) -> usize {
        let mut burst = Vec::new();
        for files in self.frames.chunks(flight) {
            for step in 0..3 {
                burst.clear();
                files.iter().for_each(|frames| burst.extend_from_slice(&frames[step]));
                self.client.send(&burst);
                let mut left = files.len();
                while left > 0 {
                    left -= self.client.take();
                }
            }
        }
        self.frames.len()
    }
}

/// What the daemon has more in memory for each fid that was walked to one of a hundred files.
pub(crate) fn memory(machine: &Machine, scale: Scale, table: &mut Table) {
    let fids = scale.of(10_000) as u32;
    let each = fid_bytes(machine, fids) / f64::from(fids);
    let row = Row::alone(format!("memory per walked fid, {fids} fids"), each, "B", Target::Most(128.0));
    table.add(row);
}

/// Bytes that so many fids take.
pub(crate) fn fid_bytes(machine: &Machine, fids: u32) -> f64 {
    let path = machine.directory("held", 100);
    let server = machine.serve("auto", &[SERVER]);
    let mut client = server.client(8192);
    let mut walk = |fid: u32| {
        let frame = client.walk_frame(1, fid, &format!("{path}/f{:05}", fid % 100));
        client.send(&frame);
        client.answer(&frame);
    };
    // The buffers of a connection are not what a fid takes.
    (1..=50).for_each(&mut walk);
    let before = server.resident_kib();
    (51..=50 + fids).for_each(&mut walk);
    (server.resident_kib() - before) * 1024.0
}

/// Seconds of processor time of a server for a look at so many files.
pub(crate) fn cost(machine: &Machine, files: usize) -> f64 {
    let path = machine.directory("walked", files);
    let server = machine.serve("auto", &[SERVER]);
    let mut visits = Visits::new(server.client(8192), &path, files);
    visits.round(1);
    server.cpu(|| {
        visits.round(1);
    })
}
