//! Where the messages of a transcript are.
//!
//! Owns: for each message its kind, time, length and the spans of the file that render it; never a byte of text. Must
//! not know: records, or files.
//!
//! A message takes about 15 bytes: everything is a difference to what went before, in as few bytes as it needs. Each
//! 32nd message has a mark with the absolute values, from where the ones after it are read.

use std::borrow::Cow;

use super::kind::{self, Kind, Tools};
use crate::qid::Hash;

/// The messages of one transcript, by position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    count: u32,
    last: Last,
    bases: Box<[u64]>,
    pub(crate) tools: Tools,
}

/// What the next message is written as a difference to.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Last {
    time_ns: i64,
    end: u64,
}

#[derive(Copy, Clone, Debug, PartialEq)]
struct Mark {
    at: u32,
    last: Last,
}

/// A stretch of a message's text.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) struct Piece {
    pub(crate) what: What,
    /// Whether a newline is added after it.
    pub(crate) newline: bool,
}

/// What a piece is made of.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum What {
    /// The inside of a JSON string: first byte and length.
    Text(u64, u64),
    /// Bytes of the file as they are.
    Json(u64, u64),
    /// A word of our own.
    Word(Word),
}

/// What a message may say that its record does not.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Word {
    Image,
    RolledBack,
    Turns,
    Exit,
    LocalShell,
    WebSearch,
    ToolSearch,
    Function,
    CustomTool,
    ImageGeneration,
}

impl Word {
    pub(crate) fn text(self) -> &'static str {
        WORDS[self as usize].1
    }
}

const WORDS: [(Word, &str); 10] = [
    (Word::Image, "[image]"),
    (Word::RolledBack, "rolled back "),
    (Word::Turns, " turns"),
    (Word::Exit, "exit "),
    (Word::LocalShell, "local_shell"),
    (Word::WebSearch, "web_search"),
    (Word::ToolSearch, "tool_search"),
    (Word::Function, "function"),
    (Word::CustomTool, "custom_tool"),
    (Word::ImageGeneration, "image_generation"),
];

/// A message as it is put together.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) length: u64,
    pub(crate) pieces: Vec<Piece>,
}

/// One message of an index.
#[derive(Clone, Debug)]
pub struct Entry<'i> {
    index: &'i Index,
    id: u32,
    kind: Kind,
    time_ns: i64,
    length: u64,
    count: u64,
    cursor: Cursor<'i>,
}

impl Index {
    /// Of no message yet. `bases` are the lengths of the files that come before the transcript's own.
    pub(crate) fn new(bases: &[u64]) -> Self {
        Self { bases: bases.into(), ..Self::default() }
    }

    /// The lengths of the files the transcript continues, the oldest first.
    pub fn bases(&self) -> &[u64] {
        &self.bases
    }

    /// How many messages there are. Ids are smaller than this.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The message of an id.
    pub fn entry(&self, id: u32) -> Option<Entry<'_>> {
        self.entries(id).next()
    }

    /// The messages from an id on, in order.
    pub fn entries(&self, from: u32) -> impl Iterator<Item = Entry<'_>> {
        let mark = self.marks.get((from / STRIDE) as usize);
        let mut entries = mark.map(|mark| Entries {
            index: self,
            next: from / STRIDE * STRIDE,
            cursor: Cursor { bytes: &self.bytes[mark.at as usize..], last: mark.last },
        });
        let skip = from % STRIDE;
        let mut skipped = 0;
        std::iter::from_fn(move || {
            let entries = entries.as_mut()?;
            while skipped < skip {
                entries.next()?;
                skipped += 1;
            }
            entries.next()
        })
    }

    /// The id of the message whose file has this name: there is one spelling.
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        let (id, kind) = kind::split(name)?;
        (self.tools.spell(self.entry(id)?.kind) == kind).then_some(id)
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
            + size_of_val(&*self.bases)
            + self.marks.capacity() * size_of::<Mark>()
            + self.tools.memory()
    }

    /// The time of the last message, in nanoseconds since 1970; before the first one, what [`Index::start`] said.
    pub(crate) fn last_time_ns(&self) -> i64 {
        self.last.time_ns
    }

    /// The time of a first message that has none of its own.
    pub(crate) fn start(&mut self, time_ns: i64) {
        if self.count == 0 {
            self.last.time_ns = time_ns;
        }
    }

    /// Adds a message.
    pub(crate) fn push(&mut self, draft: &Draft, time_ns: i64) {
        grow(&mut self.bytes, draft.pieces.len() * PIECE_MAX + MESSAGE_MAX);
        if self.count.is_multiple_of(STRIDE) {
            grow(&mut self.marks, 1);
            self.marks.push(Mark { at: self.bytes.len() as u32, last: self.last });
        }
        let bytes = &mut self.bytes;
        put(bytes, u64::from(draft.kind.code()));
        put_time(bytes, time_ns.wrapping_sub(self.last.time_ns));
        put(bytes, draft.length);
        put(bytes, draft.pieces.len() as u64);
        self.last.time_ns = time_ns;
        for piece in &draft.pieces {
            let newline = u8::from(piece.newline) << 2;
            match piece.what {
                What::Text(start, length) | What::Json(start, length) => {
                    bytes.push(u8::from(matches!(piece.what, What::Json(..))) | newline);
                    put(bytes, zigzag(start.wrapping_sub(self.last.end) as i64));
                    put(bytes, length);
                    self.last.end = start + length;
                }
                What::Word(word) => bytes.extend_from_slice(&[2 | newline, word as u8]),
            }
        }
        self.count += 1;
    }
}

impl<'i> Entry<'i> {
    /// Its place, from 0.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How its kind is spelt.
    pub fn kind(&self) -> Cow<'i, str> {
        self.index.tools.spell(self.kind)
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        format!("{:08}-{}", self.id, self.kind())
    }

    /// When its record says it was, in nanoseconds since 1970.
    pub fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// Bytes of its text.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// A number that is another one when the message is (contract 4): a hash of its spans, its kind and its time.
    pub fn version(&self) -> u32 {
        let hash = Hash::new().word(u64::from(self.kind.code())).word(self.time_ns as u64).word(self.length);
        let hash = self.pieces().fold(hash, |hash, piece| match piece.what {
            What::Text(start, length) | What::Json(start, length) => hash.word(start).word(length),
            What::Word(word) => hash.word(word as u64),
        });
        hash.finish() as u32
    }

    /// The index it is in.
    pub(crate) fn index(&self) -> &'i Index {
        self.index
    }

    /// What its text is made of, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> {
        let mut cursor = self.cursor;
        (0..self.count).map(move |_| cursor.piece())
    }
}

struct Entries<'i> {
    index: &'i Index,
    next: u32,
    cursor: Cursor<'i>,
}

impl<'i> Iterator for Entries<'i> {
    type Item = Entry<'i>;

    fn next(&mut self) -> Option<Entry<'i>> {
        if self.next >= self.index.count {
            return None;
        }
        let id = self.next;
        self.next += 1;
        let kind = Kind::from_code(self.cursor.number() as u32);
        self.cursor.time();
        let length = self.cursor.number();
        let count = self.cursor.number();
        let entry = Entry {
            index: self.index,
            id,
            kind,
            time_ns: self.cursor.last.time_ns,
            length,
            count,
            cursor: self.cursor,
        };
        for _ in 0..count {
            self.cursor.piece();
        }
        Some(entry)
    }
}

/// Reads what [`Index::push`] wrote.
#[derive(Copy, Clone, Debug)]
struct Cursor<'i> {
    bytes: &'i [u8],
    last: Last,
}

impl Cursor<'_> {
    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((byte, rest)) => {
                self.bytes = rest;
                *byte
            }
            None => 0,
        }
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 || shift > 63 {
                return number;
            }
        }
    }

    fn time(&mut self) {
        let number = self.number();
        let delta = if number & 1 == 0 {
            unzigzag(number >> 1).wrapping_mul(MS)
        } else {
            // The flag took a bit of the number: it stands behind it.
            unzigzag(number >> 1 | self.number() << 63)
        };
        self.last.time_ns = self.last.time_ns.wrapping_add(delta);
    }

    fn piece(&mut self) -> Piece {
        let tag = self.byte();
        let newline = tag & 4 != 0;
        if tag & 2 != 0 {
            let word = WORDS[usize::from(self.byte()) % WORDS.len()].0;
            return Piece { what: What::Word(word), newline };
        }
        let start = self.last.end.wrapping_add(unzigzag(self.number()) as u64);
        let length = self.number();
        self.last.end = start.wrapping_add(length);
        let what = if tag & 1 == 0 { What::Text(start, length) } else { What::Json(start, length) };
        Piece { what, newline }
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Milliseconds where it is whole ones, as all harnesses write; else nanoseconds.
fn put_time(bytes: &mut Vec<u8>, delta_ns: i64) {
    if delta_ns % MS == 0 {
        put(bytes, zigzag(delta_ns / MS) << 1);
    } else {
        let number = zigzag(delta_ns);
        put(bytes, number << 1 | 1);
        put(bytes, number >> 63);
    }
}

/// Small numbers of both signs to small numbers.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Makes room by an eighth, not by doubling: the room counts against the budget.
pub(crate) fn grow<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 8).max(64 / size_of::<T>()));
    }
}

const MS: i64 = 1_000_000;
/// How many messages share a mark.
const STRIDE: u32 = 32;
/// The most bytes a piece takes, and a message beside its pieces.
const PIECE_MAX: usize = 21;
const MESSAGE_MAX: usize = 36;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::chat::kind::Tool;

    #[test]
    fn words_stand_at_their_numbers() {
        for (at, (word, _)) in WORDS.iter().enumerate() {
            assert_eq!(*word as usize, at);
        }
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(messages in vec((0u32..40, any::<i64>(), any::<u64>(), vec(piece(), 0..4)), 0..100)) {
            let mut index = Index::default();
            for number in 0..16 {
                prop_assert_eq!(index.tools.tool(format!("t{number}").as_bytes()), Ok(Tool::Named(number)));
            }
            for (code, time_ns, length, pieces) in &messages {
                let draft = Draft { kind: Kind::from_code(*code), length: *length, pieces: pieces.clone() };
                index.push(&draft, *time_ns);
            }
            prop_assert_eq!(index.len() as usize, messages.len());
            for from in [0, 1, 31, 32, 33, 64, messages.len()] {
                for (entry, (code, time_ns, length, pieces)) in index.entries(from as u32).zip(messages.iter().skip(from)) {
                    prop_assert_eq!(entry.kind.code(), *code);
                    prop_assert_eq!((entry.time_ns(), entry.length()), (*time_ns, *length));
                    prop_assert_eq!(&entry.pieces().collect::<Vec<_>>(), pieces);
                    prop_assert_eq!(index.find(entry.name().as_bytes()), Some(entry.id()));
                    prop_assert!(entry.name() != "00000000-user" || entry.kind == Kind::User);
                }
                prop_assert_eq!(index.entries(from as u32).count(), messages.len().saturating_sub(from));
            }
        }
    }

    fn piece() -> impl Strategy<Value = Piece> {
        let span = || (0..1u64 << 62, 0..1u64 << 40);
        let what = prop_oneof![
            span().prop_map(|(start, length)| What::Text(start, length)),
            span().prop_map(|(start, length)| What::Json(start, length)),
            (0..WORDS.len()).prop_map(|at| What::Word(WORDS[at].0)),
        ];
        (what, any::<bool>()).prop_map(|(what, newline)| Piece { what, newline })
    }
}
