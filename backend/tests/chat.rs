//! The index and the renderer against an oracle: every message of every transcript, and at every cut.

#![allow(clippy::disallowed_methods, reason = "the test reads recordings that somebody points it at")]

mod chat_naive;
mod chat_worlds;

use backend::chat::render::{Read, Reader};
use backend::chat::{Builder, Format};
use chat_naive::Message;
use chat_worlds::{Transcript, transcript};
use proptest::prelude::*;

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
