//! JSON (RFC 8259) to a tape, in one pass over pieces of any size.
//!
//! Owns: the grammar. Must not know: lines, files, or what a harness means by a value.
//!
//! It is strict, so that what counts as a record has one definition, but for two things that real writers leave in
//! strings: half a surrogate pair and bytes that are not UTF-8. Zeros before and after the value, which a crash leaves
//! at the ends of lines, count as blank. Values that do not matter are checked and leave nothing on the tape; and as
//! soon as `wanted` says that the record gives nothing, whatever follows, the rest of it is not looked at.
//!
//! State between two pieces is a few bytes: the end of a piece that cannot be told apart yet (an escape, a character, a
//! number cut in two) is handed back, to come again at the front of the next one.

use super::tape::{Fields, KEPT, Key, Kind, NO_KEY, Node, OPEN, Read, Tape};
use super::text::{self, Escape};

/// Reads one record.
#[derive(Clone, Debug)]
pub(crate) struct Scanner {
    fields: &'static Fields,
    tape: Tape,
    expects: Expects,
    nothing: bool,
    depth: usize,
    /// A bit for each depth: whether an array is open there.
    arrays: [u64; DEPTH / 64],
    /// Those of the open containers that are on the tape: the outer ones.
    open: Vec<Open>,
    /// How many of the open containers are not looked into: the inner ones.
    folded: usize,
    key: Option<Key>,
    string: Option<Reading>,
    /// Bytes by which reading as UTF-8 has widened the record so far.
    widened: u64,
}

#[derive(Copy, Clone, Debug)]
struct Open {
    node: u32,
    widened: u64,
    keys: bool,
}

/// A string that is being read.
#[derive(Copy, Clone, Debug)]
struct Reading {
    is_key: bool,
    /// Whether it goes on the tape, or is a key to be looked up.
    matters: bool,
    start: u64,
    text: u64,
    heap: usize,
    last: u8,
    widened: u64,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Expects {
    Record,
    Value,
    ElementOrEnd,
    KeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
    Blank,
}

/// Why a record is not read on.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Stop {
    /// It is no JSON, or nothing in it matters.
    Nothing,
    TooLarge,
}

/// A record's tape would take more than [`LIMIT`].
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) struct TooLarge;

impl Scanner {
    /// Before the first byte of a record.
    pub(crate) fn new(fields: &'static Fields) -> Self {
        Self {
            fields,
            tape: Tape::default(),
            expects: Expects::Record,
            nothing: false,
            depth: 0,
            arrays: [0; DEPTH / 64],
            open: Vec::new(),
            folded: 0,
            key: None,
            string: None,
            widened: 0,
        }
    }

    /// Begins another record.
    pub(crate) fn reset(&mut self) {
        self.tape.clear();
        self.expects = Expects::Record;
        self.nothing = false;
        self.depth = 0;
        self.open.clear();
        self.folded = 0;
        self.key = None;
        self.string = None;
        self.widened = 0;
    }

    /// The tape, if what was read is one whole record.
    pub(crate) fn record(&self) -> Option<&Tape> {
        (self.expects == Expects::Blank && !self.nothing).then_some(&self.tape)
    }

    /// Bytes it takes beside itself.
    pub(crate) fn memory(&self) -> usize {
        self.tape.memory() + self.open.len() * size_of::<Open>()
    }

    /// Reads a piece that stands at `base`, `last` if the record ends with it. Answers how much of it was read: all of
    /// the last one, and all but [`TAIL`] bytes of any other that is longer.
    ///
    /// `wanted` is asked after each string at the first and second level of the record whether the record can still
    /// give anything.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        base: u64,
        last: bool,
        wanted: &impl Fn(&Tape) -> bool,
    ) -> Result<usize, TooLarge> {
        if self.nothing {
            return Ok(bytes.len());
        }
        match self.run(bytes, base, last, wanted) {
            Ok(read) => Ok(read),
            Err(Stop::TooLarge) => Err(TooLarge),
            Err(Stop::Nothing) => {
                self.nothing = true;
                Ok(bytes.len())
            }
        }
    }

    fn run(
        &mut self,
        bytes: &[u8],
        base: u64,
        last: bool,
        wanted: &impl Fn(&Tape) -> bool,
    ) -> Result<usize, Stop> {
        let mut at = 0;
        loop {
            if let Some(string) = self.string {
                match self.string(string, bytes, at, base, last)? {
                    (end, true) => at = end,
                    (end, false) => return Ok(end),
                }
                let recorded = !string.is_key && string.matters && self.depth <= 2;
                if recorded && !wanted(&self.tape) {
                    return Err(Stop::Nothing);
                }
            }
            let Some(&byte) = bytes.get(at) else { return Ok(at) };
            match (self.expects, byte) {
                (_, b' ' | b'\t' | b'\r') | (Expects::Record | Expects::Blank, 0) => at += 1,
                (Expects::KeyOrEnd | Expects::Key, b'"') => {
                    at += 1;
                    self.begin_key(base + at as u64);
                }
                (Expects::Colon, b':') => {
                    at += 1;
                    self.expects = Expects::Value;
                }
                (Expects::CommaOrEnd, b',') => {
                    at += 1;
                    self.expects = if self.in_array() { Expects::Value } else { Expects::Key };
                }
                (Expects::CommaOrEnd | Expects::KeyOrEnd, b'}') if !self.in_array() => {
                    at += 1;
                    self.close(base + at as u64);
                }
                (Expects::CommaOrEnd | Expects::ElementOrEnd, b']') if self.in_array() => {
                    at += 1;
                    self.close(base + at as u64);
                }
                (Expects::Value | Expects::ElementOrEnd, _) | (Expects::Record, b'{') => {
                    match self.value(byte, bytes, at, base, last)? {
                        0 => return Ok(at),
                        length => at += length,
                    }
                }
                _ => return Err(Stop::Nothing),
            }
        }
    }

    /// Begins or reads the value at `at`. Answers how far it came; 0 if the piece ends too early to tell.
    fn value(&mut self, byte: u8, bytes: &[u8], at: usize, base: u64, last: bool) -> Result<usize, Stop> {
        let start = base + at as u64;
        match byte {
            b'"' => {
                let matters = self.matters();
                self.begin(Reading {
                    is_key: false,
                    matters,
                    start: start + 1,
                    text: 0,
                    heap: self.tape.heap.len(),
                    last: 0,
                    widened: self.widened,
                });
                Ok(1)
            }
            b'{' => self.enter(Kind::Object, start),
            b'[' => self.enter(Kind::Array, start),
            b't' => self.word(b"true", Kind::True, bytes, at, base, last),
            b'f' => self.word(b"false", Kind::False, bytes, at, base, last),
            b'n' => self.word(b"null", Kind::Null, bytes, at, base, last),
            b'-' | b'0'..=b'9' => self.number(bytes, at, base, last),
            _ => Err(Stop::Nothing),
        }
    }

    fn word(
        &mut self,
        word: &[u8],
        kind: Kind,
        bytes: &[u8],
        at: usize,
        base: u64,
        last: bool,
    ) -> Result<usize, Stop> {
        let rest = &bytes[at..];
        if rest.starts_with(word) {
            self.scalar(kind, base + at as u64, word)?;
            Ok(word.len())
        } else if !last && word.starts_with(rest) {
            Ok(0)
        } else {
            Err(Stop::Nothing)
        }
    }

    fn number(&mut self, bytes: &[u8], at: usize, base: u64, last: bool) -> Result<usize, Stop> {
        let rest = &bytes[at..];
        let length =
            rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
        let length = match length {
            Some(length) => length,
            None if last || rest.len() >= TAIL => rest.len(),
            None => return Ok(0),
        };
        if length >= TAIL || !is_number(&rest[..length]) {
            return Err(Stop::Nothing);
        }
        self.scalar(Kind::Number, base + at as u64, &rest[..length])?;
        Ok(length)
    }

    fn scalar(&mut self, kind: Kind, start: u64, text: &[u8]) -> Result<(), Stop> {
        if self.matters() {
            let next = self.tape.nodes.len() as u32 + 1;
            let (heap, kept) = (self.tape.heap.len() as u32, text.len().min(KEPT));
            self.tape.heap.extend_from_slice(&text[..kept]);
            let wide = text.len() as u64;
            self.push(Node {
                next,
                end: start + wide,
                heap,
                kept: kept as u16,
                wide,
                ..self.node(kind, start)
            })?;
        }
        self.ended();
        Ok(())
    }

    fn enter(&mut self, kind: Kind, start: u64) -> Result<usize, Stop> {
        if self.depth == DEPTH {
            return Err(Stop::Nothing);
        }
        let read = match self.key {
            _ if self.in_array() => Read::Inside,
            Some(key) => self.fields.read(key),
            None => Read::Inside,
        };
        if self.matters() {
            let node = self.tape.nodes.len() as u32;
            self.push(self.node(kind, start))?;
            self.open.push(Open {
                node,
                widened: self.widened,
                keys: read == Read::Keys && kind == Kind::Object,
            });
            // A container read as a whole is on the tape, and the first of those not looked into.
            self.folded = usize::from(read == Read::Whole);
        } else {
            self.folded += 1;
        }
        let (word, bit) = (self.depth / 64, 1 << (self.depth % 64));
        self.depth += 1;
        if kind == Kind::Array {
            self.arrays[word] |= bit;
            self.expects = Expects::ElementOrEnd;
        } else {
            self.arrays[word] &= !bit;
            self.expects = Expects::KeyOrEnd;
        }
        Ok(1)
    }

    fn close(&mut self, end: u64) {
        if self.depth > self.open.len() {
            self.folded -= 1;
        } else if let Some(open) = self.open.pop() {
            self.folded = 0;
            let next = self.tape.nodes.len() as u32;
            let node = &mut self.tape.nodes[open.node as usize];
            node.end = end;
            node.next = next;
            node.wide = end - node.start + (self.widened - open.widened);
        }
        self.depth -= 1;
        self.ended();
    }

    fn begin_key(&mut self, start: u64) {
        let matters = self.folded == 0;
        self.begin(Reading {
            is_key: true,
            matters,
            start,
            text: 0,
            heap: self.tape.heap.len(),
            last: 0,
            widened: self.widened,
        });
    }

    fn begin(&mut self, string: Reading) {
        self.string = Some(string);
    }

    /// Reads on in a string. Answers where it stopped and whether that is behind the closing quote.
    fn string(
        &mut self,
        mut string: Reading,
        bytes: &[u8],
        mut at: usize,
        base: u64,
        last: bool,
    ) -> Result<(usize, bool), Stop> {
        loop {
            let plain = plain_front(&bytes[at..]);
            self.keep(&mut string, &bytes[at..at + plain]);
            at += plain;
            match bytes.get(at) {
                Some(b'"') => {
                    self.string = None;
                    self.string_ended(&string, base + at as u64)?;
                    return Ok((at + 1, true));
                }
                Some(b'\\') => {
                    if let Some(byte) = bytes.get(at + 1).and_then(|letter| text::simple(*letter)) {
                        self.keep(&mut string, &[byte]);
                        at += 2;
                        continue;
                    }
                    match text::escape(&bytes[at..], !last) {
                        Escape::Char(char, length) => {
                            self.keep(&mut string, char.encode_utf8(&mut [0; 4]).as_bytes());
                            at += length;
                        }
                        Escape::Cut if !last => break,
                        Escape::Cut | Escape::Invalid => return Err(Stop::Nothing),
                    }
                }
                Some(0x80..) => {
                    let read = self.segment(&mut string, &bytes[at..], last)?;
                    at += read;
                    if read == 0 {
                        break;
                    }
                }
                // A control character, which JSON forbids.
                Some(_) => return Err(Stop::Nothing),
                None => break,
            }
        }
        self.string = Some(string);
        Ok((at, false))
    }

    /// Reads what stands before the next quote or escape, where it is not all ASCII. Answers how much: nothing, where all
    /// there is may be the front of a character.
    fn segment(&mut self, string: &mut Reading, bytes: &[u8], last: bool) -> Result<usize, Stop> {
        let end = memchr::memchr2(b'"', b'\\', bytes);
        let bytes = &bytes[..end.unwrap_or(bytes.len())];
        if bytes.iter().any(|byte| *byte < 0x20) {
            return Err(Stop::Nothing);
        }
        let mut wide = 0;
        let read = text::lossy(bytes, end.is_none() && !last, |part| {
            wide += part.len();
            self.keep(string, part);
        });
        self.widened += (wide - read) as u64;
        Ok(read)
    }

    /// Counts text, and keeps its front.
    #[inline]
    fn keep(&mut self, string: &mut Reading, text: &[u8]) {
        let Some(last) = text.last() else { return };
        string.last = *last;
        if string.matters && string.text < KEPT as u64 {
            let room = KEPT - string.text as usize;
            self.tape.heap.extend_from_slice(&text[..text.len().min(room)]);
        }
        string.text += text.len() as u64;
    }

    fn string_ended(&mut self, string: &Reading, end: u64) -> Result<(), Stop> {
        if string.is_key {
            self.expects = Expects::Colon;
            if !string.matters {
                return Ok(());
            }
            let name = &self.tape.heap[string.heap..];
            let keys = self.open.last().is_some_and(|open| open.keys);
            self.key = if keys { None } else { self.fields.find(name) };
            if !keys {
                self.tape.heap.truncate(string.heap);
                return Ok(());
            }
        }
        if string.matters {
            let next = self.tape.nodes.len() as u32 + 1;
            self.push(Node {
                key: if string.is_key { NO_KEY } else { self.key() },
                ends_line: string.last == b'\n',
                kept: (self.tape.heap.len() - string.heap) as u16,
                heap: string.heap as u32,
                next,
                end,
                text: string.text,
                wide: end - string.start + (self.widened - string.widened),
                ..self.node(Kind::String, string.start)
            })?;
        }
        if !string.is_key {
            self.ended();
        }
        Ok(())
    }

    /// What follows a value.
    fn ended(&mut self) {
        self.expects = if self.depth == 0 { Expects::Blank } else { Expects::CommaOrEnd };
    }

    fn in_array(&self) -> bool {
        self.depth > 0 && self.arrays[(self.depth - 1) / 64] >> ((self.depth - 1) % 64) & 1 == 1
    }

    /// Whether the value that stands here goes on the tape.
    fn matters(&self) -> bool {
        self.folded == 0 && (self.depth == 0 || self.in_array() || self.key.is_some())
    }

    fn key(&self) -> Key {
        if self.in_array() { NO_KEY } else { self.key.unwrap_or(NO_KEY) }
    }

    fn node(&self, kind: Kind, start: u64) -> Node {
        Node {
            kind,
            key: self.key(),
            ends_line: false,
            kept: 0,
            heap: 0,
            next: OPEN,
            start,
            end: start,
            text: 0,
            wide: 0,
        }
    }

    fn push(&mut self, node: Node) -> Result<(), Stop> {
        if self.tape.memory() > LIMIT {
            return Err(Stop::TooLarge);
        }
        self.tape.nodes.push(node);
        Ok(())
    }
}

/// How many bytes from the front are printable ASCII other than quote and backslash: what stands for itself in a string.
///
/// Stretches between two escapes are short in what programs print, so this is one pass, 32 bytes at a time while it lasts
/// and then 8.
#[inline]
fn plain_front(bytes: &[u8]) -> usize {
    let mut at = 0;
    for chunk in bytes.as_chunks::<32>().0 {
        // Written so that it becomes a few vector instructions.
        let odd = |byte: &u8| (*byte < 0x20) | (*byte >= 0x80) | (*byte == b'"') | (*byte == b'\\');
        if chunk.iter().fold(false, |any, byte| any | odd(byte)) {
            break;
        }
        at += 32;
    }
    for chunk in bytes[at..].as_chunks::<8>().0 {
        let odd = odd_bytes(u64::from_le_bytes(*chunk));
        if odd != 0 {
            return at + (odd.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| odd_bytes(u64::from(*byte) | SPACES << 8) & 0x80 == 0) {
        at += 1;
    }
    at
}

/// Marks bytes of a word that are not plain with their top bit. Above the lowest one that is marked, others may be too.
#[inline]
const fn odd_bytes(word: u64) -> u64 {
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word
    }
    let quotes = zeros(word ^ (ONES * b'"' as u64));
    let backslashes = zeros(word ^ (ONES * b'\\' as u64));
    let controls = word.wrapping_sub(SPACES) & !word;
    (word | quotes | backslashes | controls) & (ONES << 7)
}

const ONES: u64 = u64::MAX / 255;
const SPACES: u64 = ONES * 0x20;

/// Whether it is a number of JSON.
fn is_number(text: &[u8]) -> bool {
    fn digits(text: &[u8]) -> Option<&[u8]> {
        let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then(|| &text[count..])
    }
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let mut rest = match rest {
        [b'0', rest @ ..] => rest,
        _ => match digits(rest) {
            Some(rest) => rest,
            None => return false,
        },
    };
    if let Some(fraction) = rest.strip_prefix(b".") {
        let Some(after) = digits(fraction) else { return false };
        rest = after;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent =
            exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let Some(after) = digits(exponent) else { return false };
        rest = after;
    }
    rest.is_empty()
}

/// The most bytes of a piece that may be handed back. A number is shorter, or no number.
pub(crate) const TAIL: usize = 4096;
/// The most bytes a record's tape may take: what all indexes may. Only a record of a million blocks comes near.
pub(crate) const LIMIT: usize = 64 * 1024 * 1024;

/// How deep values may be nested in a record.
const DEPTH: usize = 1024;
const _: () = assert!(LIMIT < u32::MAX as usize && KEPT <= u16::MAX as usize);

#[cfg(test)]
mod tests;
