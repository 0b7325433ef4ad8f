//! Kinds of messages and the names of their files.
//!
//! Owns: the one spelling of `<id>-<kind>`, the grammar of a tool's kind, and the table of tool names of one chat. Must
//! not know: which record gives which kind.

use std::borrow::Cow;

use hashbrown::HashTable;

use super::digest;

/// What a message is.
#[derive(Copy, Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Kind {
    /// What a person said.
    User,
    /// What the model said.
    Assistant,
    /// What the model thought.
    Thinking,
    /// What was put in for the model, or noted for the person.
    System,
    /// What another agent said.
    Agent,
    /// A command run by code.
    Command,
    /// Files changed by code.
    FileChange,
    /// A tool of an MCP server called by code.
    McpCall,
    /// A call of a tool.
    Call(Tool),
    /// What a call came to.
    Result(Tool),
}

/// The tool of a call.
#[derive(Copy, Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Tool {
    /// One without a usable name, or none that is known.
    Nameless,
    /// One by its number in [`Tools`].
    Named(u16),
}

impl Kind {
    /// A number for it, the smaller the more common.
    pub(crate) fn code(self) -> u32 {
        let tool = |tool| match tool {
            Tool::Nameless => 0,
            Tool::Named(number) => 2 * u32::from(number) + 2,
        };
        match self {
            Self::Call(of) => PLAIN.len() as u32 + tool(of),
            Self::Result(of) => PLAIN.len() as u32 + tool(of) + 1,
            plain => PLAIN.iter().position(|(kind, _)| *kind == plain).unwrap_or_default() as u32,
        }
    }

    /// The kind of a code that [`Kind::code`] gave.
    pub(crate) fn from_code(code: u32) -> Self {
        let Some(tool) = code.checked_sub(PLAIN.len() as u32) else { return PLAIN[code as usize].0 };
        let of = match (tool / 2).checked_sub(1) {
            None => Tool::Nameless,
            Some(number) => Tool::Named(number as u16),
        };
        if tool % 2 == 0 { Self::Call(of) } else { Self::Result(of) }
    }
}

const PLAIN: [(Kind, &str); 8] = [
    (Kind::User, "user"),
    (Kind::Assistant, "assistant"),
    (Kind::Thinking, "thinking"),
    (Kind::System, "system"),
    (Kind::Agent, "agent"),
    (Kind::Command, "command"),
    (Kind::FileChange, "file-change"),
    (Kind::McpCall, "mcp-call"),
];
const NAMELESS: &str = "tool-call";
const RESULT: &str = "-result";

/// The names of the tools that one chat has called, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    names: Vec<Box<str>>,
    numbers: HashTable<u16>,
}

/// A chat with more tool names than [`TOOLS`].
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) struct TooManyTools;

impl Tools {
    /// The tool of a name as a record spells it, for which UTF-8 is expected; a new one is added.
    pub(crate) fn tool(&mut self, name: &[u8]) -> Result<Tool, TooManyTools> {
        let Some(name) = usable(&String::from_utf8_lossy(name)) else { return Ok(Tool::Nameless) };
        let hash = digest(name.as_bytes());
        if let Some(number) = self.numbers.find(hash, |number| *self.names[usize::from(*number)] == *name) {
            return Ok(Tool::Named(*number));
        }
        if self.names.len() == TOOLS {
            return Err(TooManyTools);
        }
        let number = self.names.len() as u16;
        self.names.push(name.into());
        self.numbers
            .insert_unique(hash, number, |number| digest(self.names[usize::from(*number)].as_bytes()));
        Ok(Tool::Named(number))
    }

    /// How a kind is spelt.
    pub(crate) fn spell(&self, kind: Kind) -> Cow<'_, str> {
        let name = |tool| match tool {
            Tool::Named(number) => self.names.get(usize::from(number)).map_or(NAMELESS, |name| name),
            Tool::Nameless => NAMELESS,
        };
        match kind {
            Kind::Call(tool) => Cow::Borrowed(name(tool)),
            Kind::Result(Tool::Nameless) => Cow::Borrowed("tool-result"),
            Kind::Result(tool) => Cow::Owned([name(tool), RESULT].concat()),
            plain => Cow::Borrowed(PLAIN[plain.code() as usize].1),
        }
    }

    /// Bytes it takes beside itself.
    pub(crate) fn memory(&self) -> usize {
        self.names.capacity() * size_of::<Box<str>>()
            + self.names.iter().map(|name| name.len()).sum::<usize>()
            + self.numbers.allocation_size()
    }
}

impl PartialEq for Tools {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

/// The kind a tool's name gives: lower case, everything but letters, digits and `_.-` a dash, at most 48 bytes. `None`
/// if nothing is left or it would read as another kind.
fn usable(name: &str) -> Option<String> {
    let kind: String = name
        .chars()
        .take(KIND_MAX)
        .map(|char| match char {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '.' | '-' => char.to_ascii_lowercase(),
            _ => '-',
        })
        .collect();
    let taken = kind.ends_with(RESULT) || kind == NAMELESS || PLAIN.iter().any(|(_, plain)| *plain == kind);
    (!kind.is_empty() && !taken).then_some(kind)
}

/// Splits a file's name into its id and its kind; `None` unless the id is spelt in eight digits.
pub(crate) fn split(name: &[u8]) -> Option<(u32, &str)> {
    let (digits, rest) = name.split_at_checked(ID_DIGITS)?;
    let kind = rest.strip_prefix(b"-")?;
    let id = digits
        .iter()
        .try_fold(0, |id, digit| digit.is_ascii_digit().then(|| id * 10 + u32::from(digit - b'0')))?;
    Some((id, std::str::from_utf8(kind).ok()?))
}

/// The most distinct tool names in one chat.
pub(crate) const TOOLS: usize = 65_535;
const KIND_MAX: usize = 48;
const ID_DIGITS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tools_name_becomes_a_kind() {
        for (name, kind) in [
            ("Bash", Some("bash")),
            ("mcp__db__get.Row-2", Some("mcp__db__get.row-2")),
            ("a b/c\u{e9}\u{1f600}", Some("a-b-c--")),
            ("exit-results", Some("exit-results")),
            ("", None),
            ("user", None),
            ("Agent", None),
            ("tool-call", None),
            ("tool-result", None),
            ("my-result", None),
            ("File Change", None),
        ] {
            assert_eq!(usable(name).as_deref(), kind, "{name}");
        }
        assert_eq!(usable(&"x".repeat(60)).unwrap().len(), 48);
        assert_eq!(usable(&["x".repeat(41), "-result and more".into()].concat()), None);
    }

    #[test]
    fn codes_and_spellings_are_one_to_one() {
        let mut tools = Tools::default();
        let bash = tools.tool(b"Bash").unwrap();
        let read = tools.tool(b"read").unwrap();
        assert_eq!(tools.tool(b"bASH"), Ok(bash));
        let plain = PLAIN.iter().map(|(kind, _)| *kind);
        let of = |tool| [Kind::Call(tool), Kind::Result(tool)];
        let tools_kinds = [Tool::Nameless, bash, read, Tool::Named(65_534)].into_iter().flat_map(of);
        for (at, kind) in plain.chain(tools_kinds).enumerate() {
            assert_eq!(Kind::from_code(kind.code()), kind);
            assert!(at >= 14 || kind.code() == at as u32);
        }
        assert_eq!(tools.spell(Kind::Result(read)), "read-result");
        assert_eq!(tools.spell(Kind::Call(bash)), "bash");
        assert_eq!(tools.spell(Kind::Result(Tool::Nameless)), "tool-result");
        assert_eq!(tools.spell(Kind::McpCall), "mcp-call");
    }

    #[test]
    fn a_name_too_many_is_loud() {
        let mut tools = Tools::default();
        for number in 0..TOOLS {
            assert_eq!(tools.tool(format!("t{number}").as_bytes()), Ok(Tool::Named(number as u16)));
        }
        assert_eq!(tools.tool(b"one more"), Err(TooManyTools));
        assert_eq!(tools.tool(b"t7"), Ok(Tool::Named(7)));
        assert_eq!(tools.tool(b"user"), Ok(Tool::Nameless));
    }

    #[test]
    fn a_name_has_one_spelling() {
        assert_eq!(split(b"00000012-get_secret"), Some((12, "get_secret")));
        for other in
            ["1-user", "000000001-user", "00000001", "00000001user", "0000000x-user", "+0000001-user", ""]
        {
            assert_eq!(split(other.as_bytes()), None, "{other}");
        }
    }
}
