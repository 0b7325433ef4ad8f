//! The index and the renderer against an oracle: every message of every transcript, and at every cut.

#![allow(clippy::disallowed_methods, reason = "the test reads recordings that somebody points it at")]

mod chat_naive;
mod chat_worlds;

use backend::chat::render::{Read, Reader};
use backend::chat::{Builder, Format, Source};
use chat_naive::Message;
use chat_worlds::{Transcript, transcript};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

#[test]
fn recordings_are_told_as_the_oracle_tells_them() {
    let Some(samples) = std::env::var_os("NINEAGENTS_SAMPLES") else {
        eprintln!(
            "SKIPPED: no recordings are compared, because NINEAGENTS_SAMPLES names no directory of them"
        );
        return;
    };
    let mut compared = 0;
    println!("{:<70} {:>5} {:>5}  kinds", "recording", "ours", "naive");
    for (format, name) in [(Format::Claude, "claude"), (Format::Codex, "codex")] {
        let directory = std::path::Path::new(&samples).join(name);
        let mut files: Vec<_> =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            let naive = oracle(format, &bytes);
            let ours = told(format, &bytes);
            let mut kinds = std::collections::BTreeMap::<_, usize>::new();
            naive.iter().for_each(|message| *kinds.entry(&message.kind).or_default() += 1);
            let file = file.file_name().unwrap().to_string_lossy().into_owned();
            println!("{:<70} {:>5} {:>5}  {kinds:?}", file, ours.len(), naive.len());
            assert_eq!(ours, naive, "{file}");
            compared += 1;
        }
    }
    assert!(compared > 0, "{samples:?} holds no recordings");
}

/// A result is told by its call's name while the call is one of the last 256 that had an id.
#[test]
fn the_last_256_calls_are_remembered() {
    for (between, kind) in [(255, "first-result"), (256, "tool-result")] {
        let block =
            |block: String| format!("{{\"type\":\"assistant\",\"message\":{{\"content\":[{block}]}}}}\n");
        let call =
            |name: &str, id: &str| block(format!(r#"{{"type":"tool_use","name":"{name}","id":{id}}}"#));
        let mut claude = call("first", "\"1\"");
        for number in 0..between {
            claude += &call("other", &format!("\"o{number}\""));
            claude += &call("nameless", "null");
        }
        claude += &block(r#"{"type":"tool_result","tool_use_id":"1"}"#.into());
        let item = |item: String| format!("{{\"type\":\"response_item\",\"payload\":{{{item}}}}}\n");
        let call =
            |name: &str, id: &str| item(format!(r#""type":"function_call","name":"{name}","call_id":{id}"#));
        let mut codex = call("first", "\"1\"");
        for number in 0..between {
            codex += &call("other", &format!("\"o{number}\""));
            codex += &call("nameless", "null");
        }
        codex += &item(r#""type":"function_call_output","call_id":"1""#.into());
        codex += r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"1"}}}"#;
        codex += "\n";
        let last = told(Format::Claude, claude.as_bytes()).pop().unwrap();
        assert_eq!((last.kind.as_str(), last.text.as_str()), (kind, ""));
        let mut told = told(Format::Codex, codex.as_bytes());
        assert_eq!(told, oracle(Format::Codex, codex.as_bytes()));
        if between == 256 {
            assert_eq!(told.pop().unwrap().kind, "command", "its twin is forgotten");
        }
        assert_eq!(told.pop().unwrap().kind, kind);
    }
}

/// What the documentation of the module shows is what is told.
#[test]
fn the_sample_in_the_documentation_is_true() {
    let mut sample = String::from(include_str!("chat_sample/head.md"));
    for (format, name, bytes) in [
        (Format::Claude, "Claude Code", &include_bytes!("chat_sample/claude.jsonl")[..]),
        (Format::Codex, "Codex", &include_bytes!("chat_sample/codex.jsonl")[..]),
    ] {
        sample += &format!("\n{name}:\n\n```text\n");
        for (id, message) in told(format, bytes).iter().enumerate() {
            sample += &format!("==> {id:08}-{} <==\n{}", message.kind, message.text);
        }
        sample += "```\n";
    }
    if std::env::var_os("NINEAGENTS_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/chat/sample.md"), &sample).unwrap();
    }
    assert_eq!(include_str!("../src/chat/sample.md"), sample, "NINEAGENTS_BLESS=1 writes it anew");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn transcripts_of_any_kind_are_told_as_the_oracle_tells_them(Transcript { format, bytes } in transcript()) {
        prop_assert_eq!(told(format, &bytes), oracle(format, &bytes));
    }

    #[test]
    fn an_index_grown_at_any_cuts_is_the_one_made_at_once(Transcript { format, bytes } in transcript(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut grown = Builder::new(format, &[]);
        for cut in cuts {
            let before = names(&grown);
            prop_assert!(grown.step(&&bytes[..cut], cut as u64, 1 << 20).unwrap());
            let after = names(&grown);
            prop_assert_eq!(&after[..before.len()], &before[..], "an id moved");
            prop_assert!(grown.equals(&built(format, &bytes[..cut])));
            prop_assert!(grown.holds(&&bytes[..cut]).unwrap());
        }
    }

    #[test]
    fn a_message_read_anywhere_is_a_part_of_its_text(Transcript { format, bytes } in transcript(), reads in proptest::collection::vec((any::<prop::sample::Index>(), 1usize..40), 1..20)) {
        let builder = built(format, &bytes);
        for entry in builder.index().entries(0) {
            let whole = text(&mut Reader::new(&entry), &bytes, 4096);
            prop_assert_eq!(whole.len() as u64, entry.length());
            let mut reader = Reader::new(&entry);
            for (offset, length) in &reads {
                let offset = offset.index(whole.len() + 2);
                let mut buf = vec![0; *length];
                let got = loop {
                    match reader.read(&&bytes[..], offset as u64, &mut buf, 1).unwrap() {
                        Read::Done(got) => break got,
                        Read::Again => {}
                    }
                };
                let end = whole.len().min(offset + length);
                prop_assert_eq!(&buf[..got], whole.get(offset..end).unwrap_or_default());
            }
        }
    }
}

/// Blocks are read 256 KiB at a time: a line may be longer, and its strings, escapes and numbers cut anywhere.
#[test]
fn lines_longer_than_a_block_are_told_the_same() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for turn in 0..30 {
        let Transcript { format, bytes } = transcript().new_tree(&mut runner).unwrap().current();
        let filler = ["word ", "\\n", "\\ud83d\\ude00", "\u{e9}\u{1f600}", "\\\\ \\\""][turn % 5]
            .repeat(60_000 + turn * 777);
        let mut long = Vec::new();
        let mut rest = &bytes[..];
        while let Some(at) = memchr::memmem::find(rest, b"hello") {
            long.extend_from_slice(&rest[..at]);
            if long.len() < 4_000_000 {
                long.extend_from_slice(filler.as_bytes());
            }
            rest = &rest[at + 5..];
        }
        long.extend_from_slice(rest);
        assert_eq!(told(format, &long), oracle(format, &long));
        let mut grown = Builder::new(format, &[]);
        for cut in (0..long.len()).step_by(190_000).chain([long.len()]) {
            while !grown.step(&&long[..cut], cut as u64, 1).unwrap() {}
        }
        assert!(grown.equals(&built(format, &long)));
    }
}

/// A chat of more messages than 18 bits count: what it takes, ids of calls and records included.
#[test]
fn a_message_takes_forty_bytes_at_most() {
    for count in [1000, 230_000, 300_000] {
        let mut bytes = Vec::new();
        for at in 0..count {
            let line = match at % 4 {
                0 => format!(r#""user","message":{{"content":"prompt {at}"}}"#),
                1 => format!(r#""assistant","message":{{"content":[{{"type":"text","text":"{at}"}}]}}"#),
                2 => format!(
                    r#""assistant","message":{{"content":[{{"type":"tool_use","id":"{at}","name":"Bash","input":{{"n":{at}}}}}]}}"#
                ),
                _ => format!(
                    r#""user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{}","content":[{{"type":"text","text":"x"}},{{"type":"image"}}]}}]}}"#,
                    at - 1
                ),
            };
            let second = at / 7 % 60;
            let line = format!(
                "{{\"uuid\":\"u-{at}\",\"timestamp\":\"2026-11-02T10:00:{second:02}.{:03}Z\",\"type\":{line}}}\n",
                at % 1000
            );
            bytes.extend_from_slice(line.as_bytes());
        }
        let builder = built(Format::Claude, &bytes);
        assert_eq!(builder.index().len(), count);
        let fixed = 10_000;
        let each = (builder.memory() - fixed.min(builder.memory())) as f64 / f64::from(count);
        println!("{count} messages: {each:.1} bytes each, {} in all", builder.memory());
        assert!(each <= 40.0, "{each} bytes");
        let last = builder.index().entry(count - 1).unwrap();
        assert_eq!(text(&mut Reader::new(&last), &bytes, 100), b"x\n[image]\n");
    }
}

/// One line of 64 MB takes the memory of a block and is read in bounded steps.
#[test]
fn a_huge_line_takes_little_memory_and_bounded_steps() {
    struct Huge {
        front: Vec<u8>,
        length: u64,
        most: std::sync::atomic::AtomicUsize,
    }
    const UNIT: &[u8] = b"a line\\n";
    const BACK: &[u8] = b"\"}}\n";
    impl Source for Huge {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, rustix::io::Errno> {
            self.most.fetch_max(buf.len(), std::sync::atomic::Ordering::Relaxed);
            let (front, text) = (self.front.len() as u64, self.front.len() as u64 + self.length);
            let end = text + BACK.len() as u64;
            for (at, byte) in (offset..end).zip(buf.iter_mut()) {
                *byte = match at {
                    at if at < front => self.front[at as usize],
                    at if at < text => UNIT[((at - front) % UNIT.len() as u64) as usize],
                    at => BACK[(at - text) as usize],
                };
            }
            Ok(buf.len().min(end.saturating_sub(offset) as usize))
        }
    }
    let front = b"{\"type\":\"user\",\"message\":{\"content\":\"".to_vec();
    let length = (64 << 20) / UNIT.len() as u64 * UNIT.len() as u64;
    let huge = Huge { length, most: 0.into(), front };
    let end = huge.front.len() as u64 + length + BACK.len() as u64;
    let mut builder = Builder::new(Format::Claude, &[]);
    let mut steps = 0;
    while !builder.step(&huge, end, 4 << 20).unwrap() {
        steps += 1;
        assert!(builder.memory() < 20_000, "{}", builder.memory());
    }
    assert_eq!(steps, 16);
    assert!(huge.most.load(std::sync::atomic::Ordering::Relaxed) <= 1 << 20);
    let entry = builder.index().entry(0).unwrap();
    assert_eq!(entry.length(), length / UNIT.len() as u64 * 7);
    // The end of it is not reached in one read, and then without going back.
    let (mut reader, mut buf, mut again) = (Reader::new(&entry), [0; 14], 0);
    while reader.read(&huge, entry.length() - 14, &mut buf, 4 << 20).unwrap() == Read::Again {
        again += 1;
    }
    assert_eq!((&buf, again), (b"a line\na line\n", 15));
}

fn names(builder: &Builder) -> Vec<(String, u64, u32)> {
    builder.index().entries(0).map(|entry| (entry.name(), entry.length(), entry.version())).collect()
}

fn built(format: Format, bytes: &[u8]) -> Builder {
    let mut builder = Builder::new(format, &[]);
    assert!(builder.step(&bytes, bytes.len() as u64, usize::MAX).unwrap());
    builder
}

/// All messages, each read front to back.
fn told(format: Format, bytes: &[u8]) -> Vec<Message> {
    let builder = built(format, bytes);
    let messages = builder.index().entries(0).enumerate().map(|(at, entry)| {
        assert_eq!(entry.name(), format!("{at:08}-{}", entry.kind()));
        assert_eq!(builder.index().find(entry.name().as_bytes()), Some(at as u32));
        let text = text(&mut Reader::new(&entry), bytes, 100);
        assert_eq!(text.len() as u64, entry.length(), "the length told is not the length read");
        let text = String::from_utf8(text).unwrap();
        Message { kind: entry.kind().into_owned(), text, time_ms: entry.time_ns().div_euclid(1_000_000) }
    });
    messages.collect()
}

/// The whole text, read front to back in steps of `step` bytes.
fn text(reader: &mut Reader, source: &[u8], step: usize) -> Vec<u8> {
    let (mut text, mut buf) = (Vec::new(), vec![0; step]);
    loop {
        match reader.read(&source, text.len() as u64, &mut buf, 1).unwrap() {
            Read::Done(0) => return text,
            Read::Done(got) => text.extend_from_slice(&buf[..got]),
            Read::Again => panic!("a read that goes on where the last one stopped passes over nothing"),
        }
    }
}

fn oracle(format: Format, bytes: &[u8]) -> Vec<Message> {
    match format {
        Format::Claude => chat_naive::claude::messages(bytes),
        Format::Codex => chat_naive::codex::messages(&[bytes]),
    }
}

/// How many cases the laws are tried on: more where there is time.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256)
}
