//! Where a harness puts the messages it finds in its records.
//!
//! Owns: what outlives a record and is the same for all harnesses: which calls were made last, which records were seen,
//! and the message being put together. Must not know: any harness's words.

use std::collections::VecDeque;

use hashbrown::HashTable;

use super::index::{Draft, Index, Piece, What, Word};
use super::kind::{Kind, Tool};
use super::tape::Value;
use super::{Error, digest};

/// The messages so far, and what the next ones depend on.
#[derive(Clone, Debug)]
pub(crate) struct Out {
    index: Index,
    /// Digests of ids of the last calls that had one, the last one first.
    calls: VecDeque<(u64, Tool)>,
    /// Digests of the ids of records that gave a message.
    seen: HashTable<u64>,
    draft: Draft,
    ends_line: bool,
    time_ns: Option<i64>,
    gave: u32,
}

impl Out {
    pub(crate) fn new(bases: &[u64]) -> Self {
        Self {
            index: Index::new(bases),
            calls: VecDeque::new(),
            seen: HashTable::new(),
            draft: Draft { kind: Kind::User, length: 0, pieces: Vec::new() },
            ends_line: true,
            time_ns: None,
            gave: 0,
        }
    }

    /// The messages so far.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>()
            + self.index.memory()
            + self.seen.allocation_size()
            + self.calls.capacity() * size_of::<(u64, Tool)>()
            + self.draft.pieces.capacity() * size_of::<Piece>()
    }

    /// Whether the two say the same, and will.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        self.index == other.index
            && self.calls == other.calls
            && self.seen.len() == other.seen.len()
            && self.seen.iter().all(|id| other.seen.find(*id, |seen| seen == id).is_some())
    }

    /// Begins a record. Without a time its messages take that of the message before.
    pub(crate) fn record(&mut self, time_ns: Option<i64>) {
        self.time_ns = time_ns;
        self.gave = self.index.len();
    }

    /// The time of a first message that has none of its own.
    pub(crate) fn start(&mut self, time_ns: i64) {
        self.index.start(time_ns);
    }

    /// Whether a record of this id gave a message.
    pub(crate) fn has_seen(&self, id: &[u8]) -> bool {
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::RecordTwice) {
            return false;
        }
        let id = digest(id);
        self.seen.find(id, |seen| *seen == id).is_some()
    }

    /// Remembers the record's id, if the record gave a message.
    pub(crate) fn remember(&mut self, id: &[u8]) {
        if self.index.len() > self.gave {
            let id = digest(id);
            self.seen.insert_unique(id, id, |seen| *seen);
        }
    }

    /// The kind of a call of a tool. One with an id is remembered for its result.
    pub(crate) fn call(&mut self, name: &[u8], id: Option<&[u8]>) -> Result<Kind, Error> {
        let tool = self.index.tools.tool(name)?;
        if let Some(id) = id {
            self.calls.truncate(CALLS - 1);
            self.calls.push_front((digest(id), tool));
        }
        Ok(Kind::Call(tool))
    }

    /// The kind of the result of a call.
    pub(crate) fn result(&self, id: Option<&[u8]>) -> Kind {
        Kind::Result(id.and_then(|id| self.called(id)).unwrap_or(Tool::Nameless))
    }

    /// The tool of one of the last calls.
    pub(crate) fn called(&self, id: &[u8]) -> Option<Tool> {
        let id = digest(id);
        self.calls.iter().find(|(call, _)| *call == id).map(|(_, tool)| *tool)
    }

    /// Begins a message.
    pub(crate) fn begin(&mut self, kind: Kind) {
        self.draft.kind = kind;
        self.draft.length = 0;
        self.draft.pieces.clear();
        self.ends_line = false;
    }

    /// Adds a string's text.
    pub(crate) fn text(&mut self, string: Value<'_>) {
        let node = string.node();
        self.ends_line = node.ends_line;
        self.add(What::Text(node.start, node.end - node.start), node.text);
    }

    /// Adds a value as the JSON it is.
    pub(crate) fn json(&mut self, value: Value<'_>) {
        let node = value.node();
        // A string's node stands between its quotes.
        let quote = u64::from(node.kind == super::tape::Kind::String);
        self.ends_line = false;
        self.add(What::Json(node.start - quote, node.end - node.start + 2 * quote), node.wide + 2 * quote);
    }

    /// Adds a word.
    pub(crate) fn word(&mut self, word: Word) {
        self.ends_line = false;
        self.add(What::Word(word), word.text().len() as u64);
    }

    /// Ends a part: a newline is added if its text lacks one.
    pub(crate) fn line(&mut self) {
        if !self.ends_line
            && let Some(piece) = self.draft.pieces.last_mut()
        {
            piece.newline = true;
            self.draft.length += 1;
        }
    }

    /// A string's text as a part of its own.
    pub(crate) fn text_line(&mut self, string: Value<'_>) {
        self.text(string);
        self.line();
    }

    /// A value's JSON as a part of its own.
    pub(crate) fn json_line(&mut self, value: Value<'_>) {
        self.json(value);
        self.line();
    }

    /// A word as a part of its own.
    pub(crate) fn word_line(&mut self, word: Word) {
        self.word(word);
        self.line();
    }

    /// How many pieces the message has so far.
    pub(crate) fn pieces(&self) -> usize {
        self.draft.pieces.len()
    }

    /// Ends the message.
    pub(crate) fn end(&mut self) {
        let time_ns = self.time_ns.unwrap_or_else(|| self.index.last_time_ns());
        self.index.push(&self.draft, time_ns);
        self.draft.pieces.shrink_to(KEPT_PIECES);
    }

    fn add(&mut self, what: What, length: u64) {
        self.draft.pieces.push(Piece { what, newline: false });
        self.draft.length += length;
    }
}

/// How many calls with an id are remembered.
const CALLS: usize = 256;
const KEPT_PIECES: usize = 1024;
