//! A server that nobody asks, and one that has just been started.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use proto::{Dialect, NOTAG, Tmessage};

use crate::client::FILE;
use crate::figures::{SERVER, least, naps, time};
use crate::machine::Machine;
use crate::table::{Row, Table, Target};
use crate::{DRIVERS, Scale};

/// Memory and wake-ups of an idle daemon, and the time to a first answer.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let path = machine.file("small", 4096);
    for driver in DRIVERS {
        let server = machine.serve(driver, &[SERVER]);
        sleep(Duration::from_millis(500));
        let name = format!("idle daemon, {driver}: resident memory");
        table.add(Row::alone(name, server.resident_kib(), "KiB", Target::Most(4096.0)));
        // A connection that has said something and says nothing more.
        let mut client = server.client(8192);
        client.open(FILE, &path);
        client.drain(FILE, 4096);
        sleep(Duration::from_secs(3));
        let before = naps(server.pid());
        sleep(Duration::from_secs_f64(scale.idle));
        let woken = (naps(server.pid()) - before) as f64;
        let name = format!("idle daemon, {driver}: wake-ups in {} s", scale.idle);
        table.add(Row::alone(name, woken, "", Target::Most(0.0)));
    }
    let turns = 4 * scale.turns;
    let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..turns {
        ours = ours.min(first_answer(machine));
        theirs = theirs.min(least(1, || time(&mut Command::new("true")).wall));
    }
    let row = Row::alone(
        "first answer after exec, beyond true(1)",
        (ours - theirs) * 1e3,
        "ms",
        Target::Most(10.0),
    );
    table.add(row.note(format!("{:.2} ms and {:.2} ms", ours * 1e3, theirs * 1e3)));
}

/// Seconds from the start of the program to its first reply.
fn first_answer(machine: &Machine) -> f64 {
    let mut version = [0; 64];
    let message = Tmessage::Version { msize: 8192, version: b"9P2000" };
    let size = message.encode(NOTAG, Dialect::Plain, &mut version).expect("it fits");
    let (theirs, mut ours) = UnixStream::pair().expect("two sockets");
    ours.write_all(&version[..size]).expect("it fits");
    let mut command = machine.command(&["--fd", "0"]);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("a child");
    ours.read_exact(&mut [0; 19]).expect("an answer");
    let taken = start.elapsed().as_secs_f64();
    drop(ours);
    let _ = child.wait();
    taken
}
