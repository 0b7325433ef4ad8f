//! What is known of one record: its values that matter, by position.
//!
//! Owns: the tape a [`Scanner`](super::scan::Scanner) writes and the way a harness reads it. Must not know: JSON's
//! grammar, or what any harness makes of a value.
//!
//! A tape holds a node for each value under a key its [`Fields`] name, and for each element of such an array. Of a
//! string it keeps the front, never the whole: enough to tell types, names and ids, and what a text begins with.

/// A key that matters, and how its value is read.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Field {
    /// The key.
    pub(crate) name: &'static str,
    /// How much of the value is on the tape.
    pub(crate) read: Read,
}

/// How much of a value is on the tape. Strings, numbers and words are there whole under all of them.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Read {
    /// An object or array with what matters in it.
    Inside,
    /// An object or array as one node.
    Whole,
    /// Of an object, its keys as strings, and none of its values; an array as under [`Read::Inside`].
    Keys,
}

/// Names a [`Field`]: its index in the table.
pub(crate) type Key = u8;

/// The keys that matter in the records of one harness, to be found by name.
#[derive(Debug)]
pub(crate) struct Fields {
    list: &'static [Field],
    /// Key + 1 by hash, 0 for none; a collision takes the next free place.
    places: [u8; PLACES],
}

impl Fields {
    /// A table of at most 64 fields, no two of one name; made when the program is compiled.
    pub(crate) const fn new(list: &'static [Field]) -> Self {
        assert!(list.len() <= PLACES / 2);
        let mut places = [0; PLACES];
        let mut key = 0;
        while key < list.len() {
            let mut place = hash(list[key].name.as_bytes());
            while places[place] != 0 {
                place = (place + 1) % PLACES;
            }
            places[place] = key as u8 + 1;
            key += 1;
        }
        Self { list, places }
    }

    /// The key of that name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Key> {
        let mut place = hash(name);
        loop {
            let key = self.places[place].checked_sub(1)?;
            if self.list[usize::from(key)].name.as_bytes() == name {
                return Some(key);
            }
            place = (place + 1) % PLACES;
        }
    }

    /// How the values under a key are read.
    pub(crate) fn read(&self, key: Key) -> Read {
        self.list[usize::from(key)].read
    }
}

const fn hash(name: &[u8]) -> usize {
    match name {
        [first, .., last] => (name.len() * 37 + *first as usize * 5 + *last as usize) % PLACES,
        _ => 0,
    }
}

/// Makes a table of [`Fields`] and a constant of type [`Key`] for each.
macro_rules! fields {
    ($table:ident: $( $KEY:ident $name:literal $read:ident, )+) => {
        fields!(@keys 0; $( $KEY )+);
        static $table: $crate::chat::tape::Fields = $crate::chat::tape::Fields::new(&[
            $( $crate::chat::tape::Field { name: $name, read: $crate::chat::tape::Read::$read } ),+
        ]);
    };
    (@keys $at:expr; $KEY:ident $( $rest:ident )*) => {
        const $KEY: $crate::chat::tape::Key = $at;
        fields!(@keys $at + 1; $( $rest )*);
    };
    (@keys $at:expr;) => {};
}
pub(crate) use fields;

/// What a value is.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

/// One value. Positions count from the beginning of the transcript.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// The key it stands under; [`NO_KEY`] in an array.
    pub(crate) key: Key,
    /// Whether its text ends a line.
    pub(crate) ends_line: bool,
    /// Bytes of the heap that hold its front.
    pub(crate) kept: u16,
    /// Where in the heap they begin.
    pub(crate) heap: u32,
    /// The node after it and all it holds; [`OPEN`] while it is being read.
    pub(crate) next: u32,
    /// First byte: of a string, the one after the quote.
    pub(crate) start: u64,
    /// The byte after the last: of a string, the quote.
    pub(crate) end: u64,
    /// Bytes of the text of a string.
    pub(crate) text: u64,
    /// Bytes between `start` and `end` read as UTF-8: more than there are where they are not.
    pub(crate) wide: u64,
}

/// The values of one record, in the order they stand in. The first is the record itself, an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    pub(crate) nodes: Vec<Node>,
    pub(crate) heap: Vec<u8>,
}

impl Tape {
    /// The record; `None` before its first byte.
    pub(crate) fn record(&self) -> Option<Value<'_>> {
        (!self.nodes.is_empty()).then_some(Value { tape: self, at: 0 })
    }

    /// Bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        self.nodes.len() * size_of::<Node>() + self.heap.len()
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.heap.clear();
        // One huge record must not be paid for until the daemon ends.
        self.nodes.shrink_to(KEPT_NODES);
        self.heap.shrink_to(KEPT_NODES);
    }
}

/// A value on a tape.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Value<'t> {
    tape: &'t Tape,
    at: u32,
}

impl<'t> Value<'t> {
    /// Its node.
    pub(crate) fn node(self) -> &'t Node {
        &self.tape.nodes[self.at as usize]
    }

    /// What it is.
    pub(crate) fn kind(self) -> Kind {
        self.node().kind
    }

    /// The member of an object under a key: the first, if it has several.
    pub(crate) fn get(self, key: Key) -> Option<Self> {
        if self.kind() != Kind::Object {
            return None;
        }
        self.items().find(|value| value.node().key == key)
    }

    /// The elements of an array, or the members of an object that are on the tape.
    pub(crate) fn items(self) -> impl Iterator<Item = Self> + Clone {
        let end = self.node().next.min(self.tape.nodes.len() as u32);
        let mut next = self.at + 1;
        std::iter::from_fn(move || {
            let value = Self { tape: self.tape, at: next };
            (next < end).then(|| {
                next = value.node().next;
                value
            })
        })
    }

    /// A string's text, where it is short enough to be kept ([`KEPT`] bytes); `None` for any other value.
    pub(crate) fn text(self) -> Option<&'t [u8]> {
        let node = self.node();
        (node.kind == Kind::String && u64::from(node.kept) == node.text).then(|| self.front())
    }

    /// What a string's text, or a number, begins with; empty for any other value.
    pub(crate) fn front(self) -> &'t [u8] {
        let node = self.node();
        &self.tape.heap[node.heap as usize..][..usize::from(node.kept)]
    }

    /// The whole part of a number that is not negative.
    pub(crate) fn integer(self) -> Option<u64> {
        let digits = self.front().split(|byte| !byte.is_ascii_digit()).next()?;
        (self.kind() == Kind::Number).then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
    }

    /// Whether it is the word `true`.
    pub(crate) fn is_true(self) -> bool {
        self.kind() == Kind::True
    }
}

/// The most bytes of a string that a tape keeps.
pub(crate) const KEPT: usize = 256;
/// The key of what stands in an array.
pub(crate) const NO_KEY: Key = u8::MAX;
/// The end of what has not ended.
pub(crate) const OPEN: u32 = u32::MAX;

const PLACES: usize = 128;
const KEPT_NODES: usize = 4096;
