//! What is running: a listing of `/active`, beside `ps`.

use std::process::Command;

use crate::Scale;
use crate::client::FILE;
use crate::figures::{SERVER, least, time};
use crate::machine::{Machine, Server};
use crate::table::{Row, Table, Target};

/// The first listing of a server, and those that follow.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let processes = scale.of(500) as usize;
    let crowd = machine.crowd(processes, processes.min(20));
    let (mut first, mut again, mut ps) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    for _ in 0..scale.turns {
        let server = machine.serve("auto", &[SERVER]);
        first = first.min(listed(&server));
        again = again.min(least(2, || listed(&server)));
        ps = ps.min(time(Command::new("ps").args(["-e", "-o", "pid,ppid,lstart,args"])).cpu);
    }
    drop(crowd);
    let name = format!("ls /active, {processes} processes, {} agents", processes.min(20));
    for (what, ours) in [("first", first), ("again", again)] {
        let beside = ("ps -e", ps * 1e3);
        let row = Row::beside(format!("{name}, {what}, CPU"), (ours * 1e3, "ms"), beside, Target::Most(1.0));
        table.add(row.note("aim 0.5"));
    }
}

fn listed(server: &Server) -> f64 {
    let mut client = server.client(64 * 1024);
    server.cpu(|| {
        client.open(FILE, "active");
        client.drain(FILE, 32 * 1024);
    })
}

/// Seconds of processor time for a first listing with so many processes more than there are.
pub(crate) fn cost(machine: &Machine, processes: usize) -> f64 {
    let _crowd = machine.crowd(processes, processes / 25);
    least(3, || listed(&machine.serve("auto", &[SERVER])))
}
