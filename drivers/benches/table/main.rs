//! What the server does in a time, beside what stands still: one table of every row.
//!
//! `cargo bench -p nineagents-drivers --bench table [-- OPTIONS]`. It makes its own data, starts the program as a daemon, and
//! writes the table as JSON beside the build. Machines are shared, so a figure counts as the ratio in its row: both sides
//! were measured in one run, in turns, the best of each.
//!
//! - `--quick`: everything once, small, to see that it runs; the figures say nothing.
//! - `--only PART`: one part of [`PARTS`]; may be given again.
//! - `--picture PATH`: writes the rows as SVG.
//!
//! `NINEAGENTS_BIN` names another program to measure than the one that was built with this.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks and files")]

mod client;
mod figures;
mod growth;
mod machine;
mod picture;
mod responder;
mod rows;
mod table;
#[path = "../../../backend/benches/chat/world.rs"]
mod world;

use std::fs;
use std::path::Path;

use crate::machine::Machine;
use crate::table::Table;

fn main() {
    if let Some(socket) = std::env::var_os(RESPONDER) {
        let file = std::env::var_os(READER);
        return responder::serve(Path::new(&socket), file.as_deref().map(Path::new));
    }
    let mut scale = FULL;
    let (mut only, mut picture) = (Vec::new(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => scale = QUICK,
            "--only" => only.extend(arguments.next()),
            "--picture" => picture = arguments.next(),
            // What cargo says of itself.
            "--bench" => {}
            other => panic!("`{other}` is none of --quick, --only PART, --picture PATH"),
        }
    }
    figures::pin(&[figures::CLIENT]);
    let (machine, mut table) = (Machine::new(), Table::default());
    for (name, measure) in PARTS {
        if only.is_empty() || only.iter().any(|only| only == name) {
            measure(&machine, scale, &mut table);
        }
    }
    drop(machine);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("table.json");
    fs::write(&path, table.json()).expect("a file");
    println!("as JSON: {}", path.display());
    if let Some(path) = picture {
        fs::write(path, picture::svg(table.rows())).expect("a file");
    }
}

/// How much is measured.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Scale {
    /// What sizes are divided by.
    divisor: u64,
    /// How often each thing is measured.
    turns: usize,
    /// How long throughput is measured, in seconds: a few times a part of this.
    seconds: f64,
    /// How long wake-ups are counted, in seconds.
    idle: f64,
}

impl Scale {
    /// How much of a size that is.
    pub(crate) fn of(self, size: u64) -> u64 {
        (size / self.divisor).max(1)
    }
}

type Measure = fn(&Machine, Scale, &mut Table);

/// The parts of the table.
const PARTS: [(&str, Measure); 10] = [
    ("reads", rows::reads::measure),
    ("walks", rows::walks::measure),
    ("listing", rows::listing::measure),
    ("fids", rows::walks::memory),
    ("rest", rows::rest::measure),
    ("chat", rows::chat::measure),
    ("active", rows::active::measure),
    ("crowd", rows::crowd::measure),
    ("beside", rows::beside::measure),
    ("growth", growth::measure),
];
/// Those that serve many connections.
pub(crate) const DRIVERS: [&str; 2] = ["blocking", "uring"];
/// How many times a turn of throughput is measured, a moment each: the best of many short ones is one in which nobody else ran.
pub(crate) const MOMENTS: usize = 5;
const FULL: Scale = Scale { divisor: 1, turns: 7, seconds: 1.0, idle: 30.0 };
const QUICK: Scale = Scale { divisor: 50, turns: 1, seconds: 0.05, idle: 1.0 };
/// Set where the responder is to read a file: which.
pub(crate) const READER: &str = "NINEAGENTS_BENCH_READER";
/// Set where this program is to be the responder: where it listens.
pub(crate) const RESPONDER: &str = "NINEAGENTS_BENCH_RESPONDER";
