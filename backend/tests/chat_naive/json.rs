//! JSON by the book, for the oracle: a recursive parser of whole lines, strict but for lone surrogates and bytes that are
//! not UTF-8.

/// A value, with the bytes it was read from.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) data: Data,
    pub(crate) raw: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Number,
    String(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.data {
            Data::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn str(&self) -> Option<&str> {
        match &self.data {
            Data::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.str()
    }

    /// A text that is a type, an id, a time or a role. None of these is longer than 256 bytes.
    pub(crate) fn word(&self, key: &str) -> Option<&str> {
        self.text(key).filter(|word| word.len() <= 256)
    }

    pub(crate) fn array(&self) -> Option<&[Self]> {
        match &self.data {
            Data::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        matches!(self.data, Data::Bool(true))
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    pub(crate) fn json(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

/// A line, whole; `None` if it is not one JSON value.
pub(crate) fn parse(line: &[u8]) -> Option<Value> {
    let mut parser = Parser { bytes: line, at: 0 };
    parser.blank();
    let value = parser.value(0)?;
    parser.blank();
    (parser.at == line.len()).then_some(value)
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        word.bytes().try_for_each(|byte| self.eat(byte))
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > 1000 {
            return None;
        }
        let start = self.at;
        let data = match self.peek()? {
            b'n' => self.word("null").map(|()| Data::Null),
            b't' => self.word("true").map(|()| Data::Bool(true)),
            b'f' => self.word("false").map(|()| Data::Bool(false)),
            b'"' => self.string().map(Data::String),
            b'[' => self.array(depth),
            b'{' => self.object(depth),
            _ => self.number(),
        }?;
        Some(Value { data, raw: self.bytes[start..self.at].to_vec() })
    }

    fn number(&mut self) -> Option<Data> {
        let digits = |parser: &mut Self| {
            let start = parser.at;
            while parser.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                parser.at += 1;
            }
            (parser.at > start).then_some(())
        };
        let _ = self.eat(b'-');
        if self.eat(b'0').is_none() {
            digits(self)?;
        }
        if self.eat(b'.').is_some() {
            digits(self)?;
        }
        if self.eat(b'e').is_some() || self.eat(b'E').is_some() {
            let _ = self.eat(b'-').or_else(|| self.eat(b'+'));
            digits(self)?;
        }
        Some(Data::Number)
    }

    fn array(&mut self, depth: usize) -> Option<Data> {
        self.eat(b'[')?;
        self.blank();
        let mut items = Vec::new();
        if self.eat(b']').is_some() {
            return Some(Data::Array(items));
        }
        loop {
            self.blank();
            items.push(self.value(depth + 1)?);
            self.blank();
            if self.eat(b']').is_some() {
                return Some(Data::Array(items));
            }
            self.eat(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Option<Data> {
        self.eat(b'{')?;
        self.blank();
        let mut members = Vec::new();
        if self.eat(b'}').is_some() {
            return Some(Data::Object(members));
        }
        loop {
            self.blank();
            let name = self.string()?;
            self.blank();
            self.eat(b':')?;
            self.blank();
            members.push((name, self.value(depth + 1)?));
            self.blank();
            if self.eat(b'}').is_some() {
                return Some(Data::Object(members));
            }
            self.eat(b',')?;
        }
    }

    fn string(&mut self) -> Option<String> {
        self.eat(b'"')?;
        let (mut text, mut plain) = (String::new(), Vec::new());
        let flush = |plain: &mut Vec<u8>, text: &mut String| {
            text.push_str(&String::from_utf8_lossy(plain));
            plain.clear();
        };
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => {
                    flush(&mut plain, &mut text);
                    return Some(text);
                }
                0..0x20 => return None,
                b'\\' => {
                    flush(&mut plain, &mut text);
                    let letter = self.peek()?;
                    self.at += 1;
                    text.push(match letter {
                        b'"' | b'\\' | b'/' => letter as char,
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.unicode()?,
                        _ => return None,
                    });
                }
                byte => plain.push(byte),
            }
        }
    }

    fn unicode(&mut self) -> Option<char> {
        let first = self.hex()?;
        if (0xd800..0xdc00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            // Of what is no number the next turn of the loop complains.
            if let Some(second) = self.hex()
                && let Some(Ok(char)) = char::decode_utf16([first, second]).next()
            {
                return Some(char);
            }
            self.at = before;
        }
        Some(char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Option<u16> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        self.at += 4;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
}
