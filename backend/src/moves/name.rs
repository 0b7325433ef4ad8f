//! The name of a zmx session, as a client may write it.

/// A name that may be given to exec and be a file in a directory: 1 to 64 of `A-Z a-z 0-9 . _ -`, not `.` or `..`, and not one that
/// a program would take for an option.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SessionName(Box<str>);

impl SessionName {
    /// The name that was written: one newline at its end does not count.
    pub(super) fn parse(written: &[u8]) -> Option<Self> {
        let name = written.strip_suffix(b"\n").unwrap_or(written);
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = (1..=MOST_BYTES).contains(&name.len()) && name.iter().all(is_plain);
        if !fits || name.starts_with(b"-") || matches!(name, b"." | b"..") {
            return None;
        }
        str::from_utf8(name).ok().map(|name| Self(name.into()))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

const MOST_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::SessionName;

    #[test]
    fn only_plain_names_are_names() {
        let longest = "x".repeat(64);
        for good in ["a", "Z9", "a.b", "a-b_c", "...", "_", "9", ".a", longest.as_str()] {
            for end in ["", "\n"] {
                let parsed = SessionName::parse(format!("{good}{end}").as_bytes());
                assert_eq!(parsed.map(|name| name.0), Some(good.into()), "{good}");
            }
        }
        let too_long = "x".repeat(65);
        for bad in [
            "", "\n", ".", "..", ".\n", "-", "-d", "--help", "a b", "a/b", "/", "a\0", "\0", "a\n\n", "\na",
            "a\r\n", "ä", "a;b", "$a", "`a`", "a\tb", "a=b", "\u{7f}", &too_long,
        ] {
            assert_eq!(SessionName::parse(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(SessionName::parse(b"a\xff"), None);
        // Every byte, alone: those of the contract and no other.
        let allowed =
            (0..=255_u8).filter(|byte| SessionName::parse(&[b'a', *byte]).is_some() && *byte != b'\n');
        assert_eq!(allowed.count(), 26 + 26 + 10 + 3);
    }
}
