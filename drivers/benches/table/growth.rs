//! How the cost of each row grows with what is asked: at 1, 4 and 16 times a size, and the exponent between the ends.

use crate::Scale;
use crate::figures::SERVER;
use crate::machine::Machine;
use crate::rows::{active, chat, crowd, listing, reads, walks};
use crate::table::{Row, Table, Target};

/// All rows.
pub(crate) fn measure(machine: &Machine, scale: Scale, table: &mut Table) {
    let mut grow = |what: &str, unit: &'static str, most: u64, cost: &mut dyn FnMut(u64) -> f64| {
        let most = scale.of(most).max(16);
        let costs = [16, 4, 1].map(|part| cost(most / part));
        let exponent = (costs[2] / costs[0]).ln() / 16_f64.ln();
        let name = format!("growth of {what}, {} to {most}", most / 16);
        let shown: Vec<String> =
            costs.iter().map(|cost| format!("{} {unit}", crate::table::short(*cost))).collect();
        table.add(Row::alone(name, exponent, "", Target::Most(1.1)).note(shown.join(", ")));
    };
    let ms = 1e3;
    grow("a file read by 8 KiB, KiB", "ms", 200 << 10, &mut |kib| ms * reads::cost(machine, kib << 10));
    grow("walk + stat + clunk, files", "ms", 4000, &mut |files| ms * walks::cost(machine, files as usize));
    grow("fids, walked", "KiB", 16_000, &mut |fids| walks::fid_bytes(machine, fids as u32) / 1024.0);
    grow("a listing with stats, files", "ms", 10_000, &mut |files| {
        ms * listing::cost(machine, files as usize)
    });
    grow("a first listing of chat/, codex, MB", "ms", 228, &mut |mb| {
        ms * chat::cost(machine, &machine.codex(mb * 1_000_000))
    });
    grow("a first listing of chat/, claude, KB", "ms", 17_000, &mut |kb| {
        ms * chat::cost(machine, &machine.claude(kb * 1000))
    });
    grow("a long message, KB", "ms", 64_000, &mut |kb| ms * chat::message_cost(machine, kb as usize * 1000));
    let agent = machine.codex(scale.of(32_000_000));
    let server = machine.serve("auto", &[SERVER]);
    let mut next = agent.messages;
    chat::append_cost(&server, &agent, &mut next, 1);
    grow("requests after an append", "us", 64, &mut |times| {
        1e6 * chat::append_cost(&server, &agent, &mut next, times as u32)
    });
    drop((server, agent));
    grow("ls /active, processes", "ms", 500, &mut |count| ms * active::cost(machine, count as usize));
    grow("busy connections", "ms", 64, &mut |count| ms * crowd::cost(machine, count as usize));
    grow("idle connections", "KiB", 256, &mut |count| crowd::idle_kib(machine, "auto", count as usize));
}
