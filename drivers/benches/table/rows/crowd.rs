//! Many connections: one driver beside the other.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::client::Crowd;
use crate::figures::{SERVER, cpu_ns};
use crate::machine::Machine;
use crate::table::{Row, Table, Target};
use crate::{DRIVERS, MOMENTS, Scale};

/// Throughput, processor time, and memory of those that say nothing.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let size = scale.of(1 << 20).max(64 << 10);
    let path = machine.file("shared", size);
    for (connections, flight) in [(1, 1), (1, 8), (8, 1), (8, 8), (64, 1), (64, 8)] {
        let [blocking, uring] = busy(machine, scale, &path, size, connections, flight);
        let least = least(machine, scale, &path, size, (connections * flight).min(64));
        let name = format!("{connections} connections, {flight} in flight each, uring");
        // It is for many that one thread is the better one.
        let (requests, cost) = if connections == 64 { (1.1, 0.6) } else { (0.9, 1.1) };
        let (ours, theirs) = ((uring.rate / 1e3, "k/s"), ("blocking", blocking.rate / 1e3));
        table.add(Row::beside(format!("{name}: requests"), ours, theirs, Target::Least(requests)));
        let (ours, theirs) = ((uring.cpu * 1e6, "us"), ("blocking", blocking.cpu * 1e6));
        let row = Row::beside(format!("{name}: CPU of one"), ours, theirs, Target::Most(cost));
        table.add(row.note(format!(
            "{:.2} us where one connection has as many in flight at the least that reads",
            least * 1e6
        )));
    }
    let [blocking, uring] = DRIVERS.map(|driver| idle_kib(machine, driver, 256));
    let name = "256 idle connections, uring: resident memory more";
    table.add(Row::beside(name, (uring, "KiB"), ("blocking", blocking), Target::Most(0.25)));
}

/// What a driver does when it is busy.
#[derive(Copy, Clone)]
struct Busy {
    /// Requests a second.
    rate: f64,
    /// Seconds of processor time of one.
    cpu: f64,
}

fn busy(
    machine: &Machine,
    scale: Scale,
    path: &str,
    size: u64,
    connections: usize,
    flight: usize,
) -> [Busy; 2] {
    let mut servers = DRIVERS.map(|driver| {
        let server = machine.serve(driver, &[SERVER]);
        let crowd = Crowd::new(server.socket(), connections, 8192, path, size);
        (server, crowd)
    });
    let mut best = [Busy { rate: 0.0, cpu: f64::INFINITY }; 2];
    let time = Duration::from_secs_f64(scale.seconds / 10.0);
    for _ in 0..scale.turns * MOMENTS {
        for (best, (server, crowd)) in best.iter_mut().zip(&mut servers) {
            let (cpu, start) = (cpu_ns(server.pid()), Instant::now());
            let requests = crowd.run(flight, time) as f64;
            best.rate = best.rate.max(requests / start.elapsed().as_secs_f64());
            best.cpu = best.cpu.min((cpu_ns(server.pid()) - cpu) as f64 / 1e9 / requests);
        }
    }
    best
}

/// Seconds of processor time that a read takes of the least server there can be, with so many in flight on one connection.
fn least(machine: &Machine, scale: Scale, path: &str, size: u64, flight: usize) -> f64 {
    let server = machine.reader(path, SERVER);
    let mut crowd = Crowd::new(server.socket(), 1, 8192, path, size);
    let time = Duration::from_secs_f64(scale.seconds / 10.0);
    let one = |_| {
        let mut requests = 0;
        let cpu = server.cpu(|| requests = crowd.run(flight, time));
        cpu / requests as f64
    };
    (0..scale.turns).map(one).fold(f64::INFINITY, f64::min)
}

/// KiB more of a server with so many connections that have read something, and then said nothing for a while.
pub(crate) fn idle_kib(machine: &Machine, driver: &str, connections: usize) -> f64 {
    let path = machine.file("small", 4096);
    let server = machine.serve(driver, &[SERVER]);
    sleep(Duration::from_millis(300));
    let before = server.resident_kib();
    let mut crowd = Crowd::new(server.socket(), connections, 4072, &path, 4096);
    crowd.run(1, Duration::ZERO);
    sleep(Duration::from_secs(3));
    server.resident_kib() - before
}

/// Seconds of processor time for eight thousand requests of so many connections.
pub(crate) fn cost(machine: &Machine, connections: usize) -> f64 {
    let path = machine.file("small", 64 << 10);
    let server = machine.serve("auto", &[SERVER]);
    let mut crowd = Crowd::new(server.socket(), connections, 8192, &path, 64 << 10);
    crowd.run(1, Duration::ZERO);
    server.cpu(|| {
        (0..100).for_each(|_| {
            crowd.run(1, Duration::ZERO);
        });
    })
}
