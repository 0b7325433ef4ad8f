//! The three dialects of 9P and how a client asks for one.

/// A dialect of 9P. Dialects differ in which messages exist and in a few trailing fields.
#[derive(Copy, Clone, Debug, Eq, Hash, PartialEq)]
pub enum Dialect {
    /// 9P2000, as Plan 9 has it.
    Plain,
    /// 9P2000.u: numeric users and error numbers beside the words.
    Unix,
    /// 9P2000.L: messages shaped like Linux system calls, errors as numbers alone.
    Linux,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Unix, Self::Linux];

    /// The dialect to answer a Tversion's string with; `None` means the answer is `unknown` (version(5)).
    ///
    /// A name with a suffix we do not know is cut at the first dot, so `9P2000.xyz` is plain 9P2000.
    pub fn negotiate(version: &[u8]) -> Option<Self> {
        match version {
            b"9P2000.u" => Some(Self::Unix),
            b"9P2000.L" => Some(Self::Linux),
            _ if version.contains(&0) => None,
            _ => (version.split(|&byte| byte == b'.').next() == Some(b"9P2000")).then_some(Self::Plain),
        }
    }

    /// The name spoken in Tversion and Rversion.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "9P2000",
            Self::Unix => "9P2000.u",
            Self::Linux => "9P2000.L",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect;

    #[test]
    fn a_dialect_answers_to_its_own_name() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::negotiate(dialect.name().as_bytes()), Some(dialect));
        }
    }

    #[test]
    fn an_unknown_suffix_is_cut_at_the_dot() {
        for version in
            ["9P2000.xyz", "9P2000.", "9P2000.U", "9P2000.l", "9P2000.L.1", "9P2000.ux", "9P2000.."]
        {
            assert_eq!(Dialect::negotiate(version.as_bytes()), Some(Dialect::Plain), "{version}");
        }
    }

    #[test]
    fn anything_else_is_unknown() {
        for version in
            ["", ".", "XP2000", "9P1999", "9P200", "9P20001", "9p2000", "unknown", " 9P2000", ".9P2000"]
        {
            assert_eq!(Dialect::negotiate(version.as_bytes()), None, "{version}");
        }
        for version in
            [&b"9P2000\0"[..], b"9P2000.u\0", b"9P2000.L\0x", b"9P2000.\0", b"\09P2000", b"9P2000.\xff\0"]
        {
            assert_eq!(Dialect::negotiate(version), None, "{version:?}");
        }
    }
}
