//! From the bytes of a file to the text of a message.
//!
//! Owns: the escapes of JSON strings (RFC 8259, section 7) and the lenient reading of UTF-8. Must not know: where the
//! bytes stand, or what the text is for.
//!
//! The scanner that measures a string and the renderer that writes it both read it with the two functions here, so a
//! length told by `stat` is the length a read gives. Both take pieces of a text: what a piece ends in the middle of is
//! left for the next one.

/// What stands at a backslash.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Escape {
    /// A character, spelt by this many bytes.
    Char(char, usize),
    /// The bytes end before the escape does.
    Cut,
    /// No escape of JSON.
    Invalid,
}

/// Reads the escape at the front of `bytes`, which is a backslash; `more` bytes may follow them. Half a surrogate pair is
/// U+FFFD.
pub(crate) fn escape(bytes: &[u8], more: bool) -> Escape {
    let Some(&letter) = bytes.get(1) else { return Escape::Cut };
    match simple(letter) {
        Some(byte) => Escape::Char(char::from(byte), 2),
        None if letter == b'u' => unicode(bytes, more),
        None => Escape::Invalid,
    }
}

/// The character that a backslash and this letter stand for.
#[inline]
pub(crate) const fn simple(letter: u8) -> Option<u8> {
    match SIMPLE[letter as usize] {
        0 => None,
        byte => Some(byte),
    }
}

fn unicode(bytes: &[u8], more: bool) -> Escape {
    let half = Escape::Char(char::REPLACEMENT_CHARACTER, 6);
    let first = match unit(bytes) {
        Ok(unit) => unit,
        Err(end) => return end,
    };
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).map_or(half, |char| Escape::Char(char, 6));
    }
    #[cfg(feature = "planted")]
    if engine::planted::is(engine::planted::Bug::PairSplit) {
        return half;
    }
    // The first half of a pair: whether the other half follows decides how long the escape is.
    let rest = &bytes[6..];
    if rest.is_empty() || rest == b"\\" {
        return if more { Escape::Cut } else { half };
    }
    if !rest.starts_with(b"\\u") {
        return half;
    }
    match unit(rest) {
        Ok(second @ 0xdc00..0xe000) => {
            let scalar = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            char::from_u32(scalar).map_or(half, |char| Escape::Char(char, 12))
        }
        Err(Escape::Cut) if more => Escape::Cut,
        _ => half,
    }
}

/// The four digits after `\u`.
fn unit(bytes: &[u8]) -> Result<u32, Escape> {
    let mut unit = 0;
    for at in 2..6 {
        let digit = match bytes.get(at) {
            None => return Err(Escape::Cut),
            Some(byte) => (*byte as char).to_digit(16).ok_or(Escape::Invalid)?,
        };
        unit = unit << 4 | digit;
    }
    Ok(unit)
}

/// Hands `bytes` on as UTF-8, with U+FFFD for each maximal part that is not (what `String::from_utf8_lossy` does).
/// Answers how many bytes were read: all, or, if there is `more` to come, all but a character begun at the end.
pub(crate) fn lossy(bytes: &[u8], more: bool, mut each: impl FnMut(&[u8])) -> usize {
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(text) => {
                each(text.as_bytes());
                return bytes.len();
            }
            Err(error) => {
                let (valid, broken) = rest.split_at(error.valid_up_to());
                each(valid);
                match error.error_len() {
                    None if more => return bytes.len() - broken.len(),
                    None => {
                        each(REPLACEMENT);
                        return bytes.len();
                    }
                    Some(length) => {
                        each(REPLACEMENT);
                        rest = &broken[length..];
                    }
                }
            }
        }
    }
}

/// How a stretch of a file spells a text.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Spelling {
    /// As the inside of a JSON string.
    Escaped,
    /// As it is.
    Plain,
}

/// Writes the text that `raw` spells into `out`, whole characters only. Answers how much was read and how much written:
/// it stops where the next character does not fit, or where reading it takes the bytes that are still to come, if
/// `more` are.
pub(crate) fn decode(raw: &[u8], spelling: Spelling, more: bool, out: &mut [u8]) -> (usize, usize) {
    let (mut read, mut written) = (0, 0);
    while read < raw.len() && written < out.len() {
        let window = &raw[read..raw.len().min(read + out.len() - written)];
        let run = match spelling {
            Spelling::Escaped => memchr::memchr(b'\\', window).unwrap_or(window.len()),
            Spelling::Plain => window.len(),
        };
        let valid = match std::str::from_utf8(&window[..run]) {
            Ok(_) => run,
            Err(error) => error.valid_up_to(),
        };
        out[written..written + valid].copy_from_slice(&window[..valid]);
        read += valid;
        written += valid;
        if valid > 0 && valid == run {
            continue;
        }
        let Some((char, length)) = character(&raw[read..], spelling, more) else { break };
        if char.len_utf8() > out.len() - written {
            break;
        }
        written += char.encode_utf8(&mut out[written..]).len();
        read += length;
    }
    (read, written)
}

/// The character at the front of `raw`, and how many bytes spell it; `None` where more bytes are needed to tell. What
/// is no escape is U+FFFD for its backslash: a file rewritten under its spans must not stop a read.
pub(crate) fn character(raw: &[u8], spelling: Spelling, more: bool) -> Option<(char, usize)> {
    const BAD: char = char::REPLACEMENT_CHARACTER;
    if spelling == Spelling::Escaped && raw.first() == Some(&b'\\') {
        return match escape(raw, more) {
            Escape::Char(char, length) => Some((char, length)),
            Escape::Cut if more => None,
            Escape::Cut | Escape::Invalid => Some((BAD, 1)),
        };
    }
    let front = &raw[..raw.len().min(4)];
    let valid = match std::str::from_utf8(front) {
        Ok(text) => text,
        Err(error) => match (error.valid_up_to(), error.error_len()) {
            (0, Some(length)) => return Some((BAD, length)),
            (0, None) => return if more { None } else { Some((BAD, front.len())) },
            (valid, _) => std::str::from_utf8(&front[..valid]).unwrap_or_default(),
        },
    };
    valid.chars().next().map(|char| (char, char.len_utf8()))
}

/// What each letter stands for behind a backslash; 0 for nothing.
const SIMPLE: [u8; 256] = {
    let mut table = [0; 256];
    table[b'n' as usize] = b'\n';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table[b't' as usize] = b'\t';
    table[b'r' as usize] = b'\r';
    table[b'b' as usize] = 8;
    table[b'f' as usize] = 12;
    table
};
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn whole(raw: &[u8], spelling: Spelling) -> String {
        let mut out = vec![0; raw.len() * 3];
        let (read, written) = decode(raw, spelling, false, &mut out);
        assert_eq!(read, raw.len());
        String::from_utf8(out[..written].to_vec()).unwrap()
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        let text = whole(br#"a\n\"\\\/\t\r\b\f\u00e9\ud83d\ude00z"#, Spelling::Escaped);
        assert_eq!(text, "a\n\"\\/\t\r\u{8}\u{c}\u{e9}\u{1f600}z");
    }

    #[test]
    fn half_a_surrogate_pair_is_a_replacement_character() {
        for (raw, text) in [
            (r"\ud83d", "\u{fffd}"),
            (r"\ude00x", "\u{fffd}x"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\ud83d\n", "\u{fffd}\n"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
        ] {
            assert_eq!(whole(raw.as_bytes(), Spelling::Escaped), text, "{raw}");
        }
    }

    #[test]
    fn what_is_no_escape_or_is_cut_is_told_apart() {
        assert_eq!(escape(b"\\", true), Escape::Cut);
        assert_eq!(escape(br"\u12", true), Escape::Cut);
        assert_eq!(escape(br"\ud83d", true), Escape::Cut);
        assert_eq!(escape(br"\ud83d\", true), Escape::Cut);
        assert_eq!(escape(br"\ud83d\ude", true), Escape::Cut);
        assert_eq!(escape(br"\d", true), Escape::Invalid);
        assert_eq!(escape(br"\u12g4", true), Escape::Invalid);
        assert_eq!(escape(br"\ud83d\uxyzw", true), Escape::Char(char::REPLACEMENT_CHARACTER, 6));
        assert_eq!(escape(br"\ud83d\ude", false), Escape::Char(char::REPLACEMENT_CHARACTER, 6));
        assert_eq!(escape(br"\ud83d", false), Escape::Char(char::REPLACEMENT_CHARACTER, 6));
        assert_eq!(escape(br"\u12", false), Escape::Cut);
    }

    proptest! {
        #[test]
        fn plain_bytes_decode_as_the_standard_library_has_it(raw in vec(byte(), 0..40)) {
            prop_assert_eq!(whole(&raw, Spelling::Plain), String::from_utf8_lossy(&raw));
            let mut pieces = Vec::new();
            prop_assert_eq!(lossy(&raw, false, |text| pieces.extend_from_slice(text)), raw.len());
            prop_assert_eq!(String::from_utf8(pieces).unwrap(), String::from_utf8_lossy(&raw));
        }

        #[test]
        fn a_text_decoded_in_pieces_is_the_whole_text(raw in vec(byte(), 0..40), window in 13usize..16, room in 4usize..9) {
            for spelling in [Spelling::Plain, Spelling::Escaped] {
                let (mut at, mut text) = (0, Vec::new());
                while at < raw.len() {
                    let end = raw.len().min(at + window);
                    let mut out = vec![0; room];
                    let (read, written) = decode(&raw[at..end], spelling, end < raw.len(), &mut out);
                    prop_assert!(read > 0);
                    text.extend_from_slice(&out[..written]);
                    at += read;
                }
                prop_assert_eq!(String::from_utf8(text).unwrap(), whole(&raw, spelling));
            }
        }
    }

    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![
            any::<u8>(),
            Just(b'\\'),
            Just(b'u'),
            Just(b'd'),
            Just(b'8'),
            Just(b'0'),
            Just(0xe2),
            Just(0x82),
            Just(0xac)
        ]
    }
}
