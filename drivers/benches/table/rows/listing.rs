//! A large directory with the stats of its files, beside `ls -l`.

use std::process::Command;

use crate::client::FILE;
use crate::figures::{SERVER, least, time};
use crate::machine::Machine;
use crate::table::{Row, Table, Target};
use crate::{DRIVERS, Scale};

/// The row.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let files = scale.of(10_000) as usize;
    let path = machine.directory("large", files);
    let directory = machine.path(".hermes/large");
    for driver in DRIVERS {
        let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..scale.turns {
            ours = ours.min(listed(machine, driver, &path));
            theirs = theirs.min(time(Command::new("ls").arg("-l").arg(&directory)).cpu);
        }
        let name = format!("listing {files} files with their stats, {driver}, CPU");
        table.add(Row::beside(name, (ours * 1e3, "ms"), ("ls -l", theirs * 1e3), Target::Most(2.0)));
    }
}

/// Seconds of processor time for one listing, of a server that has just started.
fn listed(machine: &Machine, driver: &str, path: &str) -> f64 {
    let server = machine.serve(driver, &[SERVER]);
    let mut client = server.client(128 * 1024);
    server.cpu(|| {
        client.open(FILE, path);
        client.drain(FILE, 64 * 1024);
    })
}

/// The same of so many files.
pub(crate) fn cost(machine: &Machine, files: usize) -> f64 {
    let path = machine.directory(&format!("large-{files}"), files);
    least(3, || listed(machine, "auto", &path))
}
