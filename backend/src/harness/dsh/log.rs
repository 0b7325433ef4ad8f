//! A session's log: lines of JSON, plain or as a row of zstd frames (RFC 8878).
//!
//! The first frame holds the header line alone, and each later one what was made durable at once, so a frame begins with a
//! line; the last one may be torn. There is no table of frames. What stands at the beginning is found by decoding
//! from there; what stands at the end, by looking for the mark that a frame begins with in the last part of the file,
//! and decoding on from one that leads to the end without an error.
//!
//! What an answer costs is bounded by what is read ([`SEARCH_BYTES`]) and by what that decodes to ([`DECODED_BYTES`]);
//! memory, by the window a frame may ask for ([`WINDOW_LOG`]) and the longest line that is looked at.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::ops::ControlFlow;

use memchr::memmem;
use serde_json::Value;
use zstd::stream::read::Decoder;

use super::super::json::{self, at, is, text};
use super::super::lines::SEARCH_BYTES;
use super::super::text::headline;
use super::super::{Scene, lines};
use super::COMPRESSED;
use crate::host::File;
use crate::name::Rel;
use engine::port::Effort;

/// What the first line of a log says.
pub(super) struct Header {
    pub(super) cwd: Option<String>,
    /// No other session delegated it.
    pub(super) is_top_level: bool,
}

impl Header {
    pub(super) fn read(scene: &Scene<'_>, rel: &Rel) -> Option<Self> {
        let record = from_start(scene, rel, |line| ControlFlow::Break(json::record(line))).flatten()?;
        let depth = at(&record, &["delegationDepth"]).and_then(Value::as_u64).unwrap_or(0);
        let cwd = text(&record, &["cwd"]).map(str::to_owned);
        is(&record, "session").then_some(Self { cwd, is_top_level: depth == 0 })
    }
}

/// The head of what a person said first.
pub(super) fn first_prompt(scene: &Scene<'_>, rel: &Rel) -> Option<String> {
    from_start(scene, rel, |line| {
        if memmem::find(line, b"user/message").is_none() {
            return ControlFlow::Continue(());
        }
        match json::record(line).as_ref().and_then(prompt) {
            Some(line) => ControlFlow::Break(line),
            None => ControlFlow::Continue(()),
        }
    })
}

/// The model of the last reply.
pub(super) fn model(scene: &Scene<'_>, rel: &Rel) -> Option<String> {
    let (file, meta) = scene.open(rel)?;
    if !is_compressed(rel) {
        return lines::from_end(&*file, meta.size, SEARCH_BYTES, |line| match model_of(line) {
            Some(model) => ControlFlow::Break(model),
            None => ControlFlow::Continue(()),
        });
    }
    TAILS_BYTES.iter().find_map(|bytes| {
        let start = meta.size.saturating_sub(*bytes);
        let mut tail = vec![0; usize::try_from(meta.size - start).ok()?];
        let read = file.read_at(&mut tail, start, Effort::Full).ok()?;
        last_in(&tail[..read])
    })
}

/// The model of the last reply in the frames that the end of a file holds.
fn last_in(tail: &[u8]) -> Option<String> {
    for start in memmem::find_iter(tail, &MAGIC).take(MOST_STARTS) {
        let mut last = None;
        let end = each_line(decoder(&tail[start..])?, &mut |line| {
            last = model_of(line).or_else(|| last.take());
            ControlFlow::Continue(())
        });
        match end {
            End::Whole | End::Torn => return last,
            // An error before the end: the mark was part of something else.
            End::Broken => {}
            End::Found(()) | End::TooMuch => return None,
        }
    }
    None
}

fn model_of(line: &[u8]) -> Option<String> {
    memmem::find(line, b"assistant/message")?;
    let record = json::record(line).filter(|record| is(record, "assistant/message"))?;
    text(&record, &["data", "message", "source", "model"]).map(str::to_owned)
}

fn prompt(record: &Value) -> Option<String> {
    let data = at(record, &["data"]).filter(|_| is(record, "user/message"))?;
    if text(data, &["source", "kind"]) != Some("user") {
        return None;
    }
    let content = at(data, &["content"])?;
    let mut blocks = content.as_array().into_iter().flatten();
    content.as_str().or_else(|| blocks.find_map(|block| text(block, &["text"]))).and_then(headline)
}

fn from_start<T>(scene: &Scene<'_>, rel: &Rel, mut each: impl FnMut(&[u8]) -> ControlFlow<T>) -> Option<T> {
    let (file, _) = scene.open(rel)?;
    if !is_compressed(rel) {
        return lines::from_start(&*file, SEARCH_BYTES, each);
    }
    match each_line(decoder(Reading { file: &*file, at: 0 })?, &mut each) {
        End::Found(found) => Some(found),
        End::Whole | End::Torn | End::Broken | End::TooMuch => None,
    }
}

fn is_compressed(rel: &Rel) -> bool {
    rel.name().is_some_and(|name| name.ends_with(COMPRESSED))
}

/// How the lines of some frames came to an end.
enum End<T> {
    /// What was looked for is there.
    Found(T),
    /// All were read.
    Whole,
    /// The last frame is not whole.
    Torn,
    /// That is no frame.
    Broken,
    /// It holds more than is decoded.
    TooMuch,
}

/// Hands every complete line to `each`.
fn each_line<T>(frames: impl Read, each: &mut dyn FnMut(&[u8]) -> ControlFlow<T>) -> End<T> {
    let mut text = BufReader::new(frames.take(DECODED_BYTES));
    let mut total = 0;
    let mut line = Vec::new();
    // Inside a line that is longer than is looked at.
    let mut passing = false;
    loop {
        line.clear();
        let read = (&mut text).take(LINE_BYTES).read_until(b'\n', &mut line);
        total += line.len() as u64;
        match read {
            Ok(0) if total == DECODED_BYTES => return End::TooMuch,
            Ok(0) => return End::Whole,
            Ok(_) if line.last() != Some(&b'\n') => passing = true,
            Ok(_) if passing => passing = false,
            Ok(_) => {
                if let ControlFlow::Break(found) = each(&line) {
                    return End::Found(found);
                }
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return End::Torn,
            Err(_) => return End::Broken,
        }
    }
}

/// Decodes frame after frame.
fn decoder<'a>(frames: impl Read + 'a) -> Option<impl Read + 'a> {
    let mut decoder = Decoder::new(frames).ok()?;
    decoder.window_log_max(WINDOW_LOG).ok()?;
    Some(decoder)
}

/// A file, from its beginning, as far as it is searched.
struct Reading<'a> {
    file: &'a dyn File,
    at: u64,
}

impl Read for Reading<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let rest = usize::try_from(SEARCH_BYTES - self.at).unwrap_or(usize::MAX).min(buf.len());
        let read = self.file.read_at(&mut buf[..rest], self.at, Effort::Full)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// What a frame begins with.
const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// How much of the end is looked at for a reply: more, where less has none.
const TAILS_BYTES: [u64; 3] = [64 << 10, 512 << 10, SEARCH_BYTES];
/// How many marks are tried as the beginning of a frame.
const MOST_STARTS: usize = 64;
/// What is decoded for one answer.
const DECODED_BYTES: u64 = 64 << 20;
/// The longest line that is looked at.
const LINE_BYTES: u64 = 1 << 20;
/// The largest window, 8 MiB: what RFC 8878 has every decoder support.
const WINDOW_LOG: u32 = 23;
