//! The corpora of the fuzz targets, kept with the sources and replayed here without a fuzzer.
//!
//! A target's body panics where a law is broken. What the corpora would notice is a test too: what they hold is counted here, and which
//! bugs they find in the packages is seen in `planted.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

mod corpora;

use corpora::{Body, TARGETS, corpus, replay};
use proto::frame::{self, Next};
use proto::{Dialect, Rmessage, Tmessage};

#[test]
fn every_corpus_keeps_the_laws_of_its_target() {
    let mut failed = Vec::new();
    for (target, body) in TARGETS {
        match replay(&corpus(target), *body) {
            Ok(count) => println!("{target}: {count} inputs"),
            Err(words) => failed.push(words),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_target_has_a_corpus_that_is_replayed() {
    let replayed: BTreeSet<String> = TARGETS.iter().map(|(target, _)| (*target).to_owned()).collect();
    let names = |directory: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(directory).expect("a directory of the fuzzer");
        entries
            .map(|entry| {
                entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into()
            })
            .collect()
    };
    let fuzz = corpus("");
    let fuzz = fuzz.parent().expect("corpora are below the fuzzer");
    assert_eq!(names(&fuzz.join("fuzz_targets")), replayed);
    assert_eq!(names(&fuzz.join("corpus")), replayed);
}

#[test]
fn corpora_are_small() {
    let bytes: u64 =
        TARGETS.iter().flat_map(|(target, _)| files(&corpus(target))).map(|(_, bytes)| bytes).sum();
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
}

#[test]
fn a_corpus_that_is_missing_or_empty_fails() {
    let nothing: Body = |_| {};
    assert!(replay(&corpus("no-such-target"), nothing).is_err());
    let empty = std::env::temp_dir().join(format!("nineagents-empty-corpus-{}", std::process::id()));
    fs::create_dir(&empty).expect("a directory of our own");
    let replayed = replay(&empty, nothing);
    fs::remove_dir(&empty).expect("it is still empty");
    assert!(replayed.is_err());
}

#[test]
fn an_input_that_breaks_a_law_is_named() {
    let words = replay(&corpus("frame"), |_| panic!("broken")).expect_err("every input breaks it");
    assert!(words.contains("corpus/frame/") && words.contains("broken"), "{words}");
}

/// Every message there is, in both directions and every dialect that has it, is in the corpus.
#[test]
fn the_corpus_of_messages_has_every_message() {
    let requests = |dialect| {
        let tell: Tell<u8> = Box::new(move |bytes| Some(Tmessage::decode(bytes, dialect).ok()?.1.kind()));
        (dialect, Tmessage::KINDS, tell)
    };
    let answers = |dialect| {
        let tell: Tell<u8> = Box::new(move |bytes| Some(Rmessage::decode(bytes, dialect).ok()?.1.kind()));
        (dialect, Rmessage::KINDS, tell)
    };
    let all = Dialect::ALL.map(requests).into_iter().chain(Dialect::ALL.map(answers));
    for (dialect, kinds, tell) in all {
        let told = told("message", &tell);
        let missing: Vec<u8> = kinds
            .iter()
            .filter(|(kind, dialects)| dialects.contains(&dialect) && !told.contains(kind))
            .map(|(kind, _)| *kind)
            .collect();
        assert!(missing.is_empty(), "{dialect:?}: {missing:?}");
    }
}

/// Every word that can be said of bytes is said of some in the corpus.
#[test]
fn the_corpus_of_frames_has_every_answer() {
    let tell: Tell<String> = Box::new(|bytes| {
        let (bound, bytes) = bytes.split_first_chunk::<2>()?;
        let next = frame::next(bytes, u16::from_le_bytes(*bound).into());
        let word = format!("{next:?}");
        let whole = matches!(next, Next::Frame(size) if size == bytes.len());
        Some(format!("{} {whole}", word.split('(').next().unwrap_or_default()))
    });
    let told = told("frame", &tell);
    assert_eq!(told.len(), 4, "{told:?}");
}

/// Messages of every kind of both harnesses are told by the corpus.
#[test]
fn the_corpus_of_transcripts_has_every_kind() {
    let mut told: [BTreeSet<String>; 2] = Default::default();
    for (path, _) in files(&corpus("transcript")) {
        let bytes = fs::read(path).expect("an input");
        let Some((front, bytes)) = bytes.split_first_chunk::<5>() else { continue };
        let which = usize::from(front[0] % 2);
        let format = [backend::chat::Format::Claude, backend::chat::Format::Codex][which];
        let mut builder = backend::chat::Builder::new(format, &[]);
        assert_eq!(builder.step(&bytes, bytes.len() as u64, usize::MAX), Ok(true));
        told[which].extend(builder.index().entries(0).map(|entry| entry.kind().into_owned()));
    }
    let common = ["user", "assistant", "thinking", "system", "tool-call", "tool-result"];
    let codex = ["agent", "command", "file-change", "mcp-call"];
    for kind in common {
        assert!(told[0].contains(kind) && told[1].contains(kind), "{kind}: {told:?}");
    }
    assert!(codex.iter().all(|kind| told[1].contains(*kind)), "{told:?}");
}

/// What something tells of an input.
type Tell<T> = Box<dyn Fn(&[u8]) -> Option<T>>;

fn told<T: Ord>(target: &str, tell: &Tell<T>) -> BTreeSet<T> {
    files(&corpus(target))
        .into_iter()
        .filter_map(|(path, _)| tell(&fs::read(path).expect("an input")))
        .collect()
}

fn files(directory: &Path) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(directory).expect("a corpus");
    entries
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.path(), entry.metadata().expect("a file").len()))
        .collect()
}

/// Of all corpora together: they are a part of every clone.
const MOST_BYTES: u64 = 300_000;
