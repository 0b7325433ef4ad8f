//! How fast a chat is told, beside what stands still: `wc -l`, the first scan, a message of half the size.
//!
//! `cargo bench -p nineagents-backend --bench chat [-- quick]` prints one table and writes it as JSON beside the build. A
//! figure counts as the ratio in its row: both sides were measured in one run, the best of several turns each.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks and files")]

mod world;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

use backend::chat::render::{Read, Reader};
use backend::chat::{Builder, Format, Source};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let quick = std::env::args().any(|argument| argument == "quick" || argument == "--test");
    let scale = if quick { 20 } else { 1 };
    let directory = std::env::temp_dir().join(format!("9agents-bench-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let mut table = Table::default();
    let turns = if quick { 1 } else { 7 };
    let codex = directory.join("codex.jsonl");
    let count =
        world::codex(&mut BufWriter::new(File::create(&codex).unwrap()), 228_000_000 / scale, 1).unwrap();
    scans(&mut table, "a 228 MB rollout", Format::Codex, &codex, count, turns, ["2.5 (aim 1.5)", "20 MB"]);
    fs::remove_file(&codex).unwrap();
    let claude = directory.join("claude.jsonl");
    let count =
        world::claude(&mut BufWriter::new(File::create(&claude).unwrap()), 17_000_000 / scale, 2).unwrap();
    scans(
        &mut table,
        "a 17 MB Claude transcript",
        Format::Claude,
        &claude,
        count,
        turns,
        ["5, and 30 ms", "20 MB"],
    );
    fs::remove_file(&claude).unwrap();
    long_messages(&mut table, 64_000_000 / scale as usize, turns);
    fs::remove_dir_all(&directory).unwrap();
    table.print();
}

/// First scans, what they take, and what one more message costs.
fn scans(
    table: &mut Table,
    name: &str,
    format: Format,
    path: &Path,
    count: u32,
    turns: u32,
    targets: [&'static str; 2],
) {
    let file = Disk(File::open(path).unwrap());
    let size = fs::metadata(path).unwrap().len();
    let before = resident();
    let mut builder = index(&file, format, size);
    let grown = resident().saturating_sub(before);
    assert_eq!(builder.index().len(), count, "not what was written");
    let wc = best(turns, || children(|| drop(Command::new("wc").arg("-l").arg(path).output().unwrap())));
    let ours = best(turns, || cpu(|| drop(index(&file, format, size))));
    table.row(format!("first scan of {name}, CPU"), ours, "wc -l", wc, targets[0]);
    table.amount(format!("resident growth by {name}"), grown as f64 / 1e6, "MB", targets[1]);
    let each = builder.memory() as f64 / f64::from(count);
    table.amount(format!("index of {name}, a message"), each, "B", "40");
    let line = match format {
        Format::Claude => "{\"type\":\"user\",\"uuid\":\"more\",\"message\":{\"content\":\"more\"}}\n".to_string(),
        Format::Codex => "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"more\"}}\n".to_string(),
    };
    let appended = best(turns * 10, || {
        append(path, &line);
        let size = fs::metadata(path).unwrap().len();
        cpu(|| {
            assert!(builder.holds(&file).unwrap());
            assert!(builder.step(&file, size, 4 << 20).unwrap());
        })
    });
    table.row(
        format!("one message appended to {name}, CPU"),
        appended,
        "the first scan",
        ours,
        "1/500 = 0.002",
    );
}

/// A long message read front to back, against one of half its size.
fn long_messages(table: &mut Table, size: usize, turns: u32) {
    let line = |size: usize| {
        let text = "a line of text with a \\\"quoted\\\" word, \\u00e9 and an end\\n".repeat(size / 58);
        format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}}}}\n").into_bytes()
    };
    let read = |bytes: &[u8]| {
        let builder = index(&bytes, Format::Claude, bytes.len() as u64);
        let entry = builder.index().entry(0).unwrap();
        let mut reader = Reader::new(&entry);
        let (mut at, mut buf) = (0, vec![0; 8192]);
        cpu(|| {
            while let Read::Done(got @ 1..) = reader.read(&bytes, at, &mut buf, 1 << 20).unwrap() {
                at += got as u64;
            }
            assert_eq!(at, entry.length());
        })
    };
    let (whole, half) = (line(size), line(size / 2));
    let (whole, half) = (best(turns.min(3), || read(&whole)), best(turns.min(3), || read(&half)));
    table.row("64 MB message front to back, 8 KiB reads, CPU".into(), whole, "half of it", half, "2.3");
}

fn index(source: &dyn Source, format: Format, size: u64) -> Builder {
    let mut builder = Builder::new(format, &[]);
    while !builder.step(source, size, 4 << 20).unwrap() {}
    builder
}

struct Disk(File);

impl Source for Disk {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, rustix::io::Errno> {
        let mut done = 0;
        while done < buf.len() {
            match rustix::io::pread(&self.0, &mut buf[done..], offset + done as u64)? {
                0 => break,
                got => done += got,
            }
        }
        Ok(done)
    }
}

fn append(path: &Path, line: &str) {
    use std::io::Write;
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
}

fn best(turns: u32, mut measure: impl FnMut() -> f64) -> f64 {
    (0..turns).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

/// CPU seconds of this process.
fn cpu(work: impl FnOnce()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let before = now();
    work();
    now() - before
}

/// CPU seconds of children: the kernel tells ticks of 10 ms, so it is done until there are enough of them.
fn children(mut work: impl FnMut()) -> f64 {
    let ticks = || {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split(' ').collect();
        fields[14].parse::<u32>().unwrap() + fields[15].parse::<u32>().unwrap()
    };
    let (before, mut times) = (ticks(), 0_u32);
    while ticks() - before < 50 && times < 200 {
        work();
        times += 1;
    }
    f64::from(ticks() - before) / 100.0 / f64::from(times)
}

/// Bytes of memory this process has.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * rustix::param::page_size()
}

/// What was measured.
#[derive(Default)]
struct Table(Vec<[String; 5]>);

impl Table {
    fn row(&mut self, what: String, ours: f64, beside: &str, theirs: f64, target: &str) {
        let ms = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
        let ratio = format!("{:.4}", ours / theirs);
        self.0.push([what, ms(ours), format!("{beside}: {}", ms(theirs)), ratio, target.into()]);
    }

    fn amount(&mut self, what: String, ours: f64, unit: &str, target: &str) {
        self.0.push([what, format!("{ours:.1} {unit}"), String::new(), String::new(), target.into()]);
    }

    fn print(&self) {
        println!("{:<55} {:>14} {:>28} {:>9}  target", "what", "ours", "beside", "ratio");
        let mut json = Vec::new();
        for [what, ours, beside, ratio, target] in &self.0 {
            println!("{what:<55} {ours:>14} {beside:>28} {ratio:>9}  {target}");
            json.push(format!(
                r#"{{"what":"{what}","ours":"{ours}","beside":"{beside}","ratio":"{ratio}","target":"{target}"}}"#
            ));
        }
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chat.json");
        fs::write(&path, format!("[{}]\n", json.join(",\n"))).unwrap();
        println!("as JSON: {}", path.display());
    }
}
