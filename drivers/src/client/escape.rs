//! Names from a server, in a form that is safe to print and loses nothing.

use std::fmt::{self, Write};

use backend::is_unprintable;

/// Shows a name on one line, so that what is printed can be told from any other name's print: a control character, and
/// whatever else would move a cursor or reorder a line, becomes `\n`, `\t`, `\r`, `\e` or `\u{…}`; a byte that is not UTF-8
/// becomes `\xNN`; a backslash becomes two.
#[derive(Copy, Clone, Debug)]
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => out.write_str("\\\\")?,
                    '\n' => out.write_str("\\n")?,
                    '\t' => out.write_str("\\t")?,
                    '\r' => out.write_str("\\r")?,
                    '\x1b' => out.write_str("\\e")?,
                    c if is_unprintable(c) => write!(out, "\\u{{{:x}}}", u32::from(c))?,
                    c => out.write_char(c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(out, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        assert_eq!(Escaped("plain name, ä".as_bytes()).to_string(), "plain name, ä");
        assert_eq!(Escaped(b"a\x1b[2J\r\n\t\0\x7f").to_string(), r"a\e[2J\r\n\t\u{0}\u{7f}");
        assert_eq!(Escaped("\u{9b}\u{202e}".as_bytes()).to_string(), r"\u{9b}\u{202e}");
        assert_eq!(Escaped(b"a\xff\\").to_string(), r"a\xff\\");
    }

    proptest! {
        #[test]
        fn nothing_unprintable_is_printed(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(!Escaped(&bytes).to_string().chars().any(is_unprintable));
        }

        #[test]
        fn two_names_never_print_alike(
            a in proptest::collection::vec(prop::sample::select(b"\\xfu{1b}e\x1b\xff\n1".to_vec()), 0..8),
            b in proptest::collection::vec(prop::sample::select(b"\\xfu{1b}e\x1b\xff\n1".to_vec()), 0..8),
        ) {
            prop_assert_eq!(a == b, Escaped(&a).to_string() == Escaped(&b).to_string());
        }
    }
}
