//! The bodies of the fuzz targets: each panics if what it is given breaks a law.

mod host_text;
#[path = "../tests/chat_naive/mod.rs"]
mod naive;

use crate::chat::render::{Read, Reader};
use crate::chat::{Builder, Format};
use naive::Message;

pub use host_text::{host_text, tables};

/// A law of chats: a transcript of whatever bytes is told as the oracle tells it, an index grown at any cuts is the one
/// made at once, and no id moves while it grows. The first bytes say whose transcript it is and where it is cut for once;
/// then it is cut at every byte, or if it is long, at and in every line.
///
/// # Panics
/// If it is not so.
pub fn transcript(bytes: &[u8]) {
    let Some(([format, cuts @ ..], bytes)) = bytes.split_first_chunk::<5>() else { return };
    let format = if format % 2 == 0 { Format::Claude } else { Format::Codex };
    let whole = grown(format, bytes, &[]);
    assert_eq!(told(&whole, bytes), oracle(format, bytes));
    let mut some: Vec<usize> = cuts.iter().map(|cut| bytes.len() * usize::from(*cut) / 255).collect();
    some.sort_unstable();
    let every = if bytes.len() <= SHORT { (0..bytes.len()).collect() } else { cuts_of_lines(bytes, cuts[0]) };
    let alone = every.iter().map(std::slice::from_ref);
    for cuts in alone.chain([&some[..], &every]) {
        assert!(whole.equals(&grown(format, bytes, cuts)), "grown by pieces it is another index");
    }
    for cut in every {
        let front = &bytes[..cut];
        assert!(
            grown(format, front, &[]).equals(&grown(format, front, &some)),
            "of a front it is another index"
        );
    }
}

/// Where each of the first lines begins, and a place within it.
fn cuts_of_lines(bytes: &[u8], within: u8) -> Vec<usize> {
    let mut begin = 0;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').take(MOST_LINES);
    lines
        .flat_map(|line| {
            let cuts = [begin, begin + line.len() * usize::from(within) / 256];
            begin += line.len();
            cuts
        })
        .collect()
}

/// The index of a transcript that was looked at whenever it had one of these lengths.
fn grown(format: Format, bytes: &[u8], cuts: &[usize]) -> Builder {
    let mut builder = Builder::new(format, &[]);
    let mut names: Vec<String> = Vec::new();
    for cut in cuts.iter().copied().filter(|cut| *cut < bytes.len()).chain([bytes.len()]) {
        let front = &bytes[..cut];
        assert_eq!(builder.step(&front, cut as u64, usize::MAX), Ok(true));
        let now: Vec<String> = builder.index().entries(0).map(|entry| entry.name()).collect();
        assert!(now.starts_with(&names), "an id moved");
        names = now;
    }
    builder
}

fn told(builder: &Builder, bytes: &[u8]) -> Vec<Message> {
    let message = |entry: crate::chat::Entry<'_>| {
        assert_eq!(builder.index().find(entry.name().as_bytes()), Some(entry.id()));
        let (mut text, mut buf) = (Vec::new(), [0; 7]);
        let mut reader = Reader::new(&entry);
        while let Ok(Read::Done(got @ 1..)) = reader.read(&bytes, text.len() as u64, &mut buf, 1) {
            text.extend_from_slice(&buf[..got]);
        }
        assert_eq!(text.len() as u64, entry.length());
        let text = String::from_utf8_lossy(&text).into_owned();
        Message { kind: entry.kind().into_owned(), text, time_ms: entry.time_ns().div_euclid(1_000_000) }
    };
    builder.index().entries(0).map(message).collect()
}

fn oracle(format: Format, bytes: &[u8]) -> Vec<Message> {
    match format {
        Format::Claude => naive::claude::messages(bytes),
        Format::Codex => naive::codex::messages(&[bytes]),
    }
}

/// Bytes of a transcript that is cut everywhere: each cut reads all of it.
const SHORT: usize = 150;
/// Lines that are cut of a longer one.
const MOST_LINES: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_of_transcripts_in_any_order_break_no_law(words in vec(word(), 0..60)) {
            super::transcript(&words.concat());
        }
    }

    fn word() -> impl Strategy<Value = Vec<u8>> {
        let known: [&[u8]; 40] = [
            b"{", b"}", b"[", b"]", b":", b",", b"\"", b"\\", b"\n", b"\0", b"null", b"true", b"1e5", b"\xff",
            b"\"type\":\"user\"", b"\"type\":\"assistant\"", b"\"type\":\"response_item\"", b"\"type\":\"text\"",
            b"\"message\":", b"\"content\":", b"\"text\":", b"\"payload\":", b"\"role\":\"user\"", b"\"uuid\":\"u\"",
            b"{\"type\":\"user\",\"message\":{\"content\":\"x\"}}\n", b"{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"b\"}",
            b"{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":[]}", b"\"\\ud83d\"", b"\\u", b"\\n",
            b"{\"type\":\"assistant\",\"message\":{\"content\":[", b"]}}\n", b"{\"type\":\"text\",\"text\":\"", b"\"}",
            b"{\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"x\"},\"type\":\"response_item\"}\n",
            b"{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\",\"name\":\"n\",\"call_id\":\"c\"}}\n",
            b"\"timestamp\":\"2026-11-02T10:00:05.120Z\"", b"\"isMeta\":true", b"   ", b"\r",
        ];
        prop_oneof![proptest::sample::select(known.to_vec()).prop_map(<[u8]>::to_vec), vec(any::<u8>(), 1..3)]
    }
}
