//! Single records of JSON, read leniently.

use serde_json::Value;

/// The record a line holds, if it is one. NULs around it (a crash leaves them) are passed over; bytes that are not UTF-8
/// and half surrogate pairs are U+FFFD.
pub(super) fn record(line: &[u8]) -> Option<Value> {
    let line = trim(line);
    if line.first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice(line)
        .ok()
        .or_else(|| serde_json::from_slice(&mended(line)).ok())
        .filter(Value::is_object)
}

/// A string somewhere in a record, by the names that lead to it; `None` if there is none, or an empty one.
pub(super) fn text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    at(value, names)?.as_str().filter(|text| !text.is_empty())
}

/// What stands somewhere in a record.
pub(super) fn at<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().try_fold(value, |value, name| value.get(*name))
}

/// Whether a record is of a type.
pub(super) fn is(value: &Value, kind: &str) -> bool {
    text(value, &["type"]) == Some(kind)
}

fn trim(line: &[u8]) -> &[u8] {
    let is_filler = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    let start = line.iter().position(|byte| !is_filler(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !is_filler(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

/// The line with what a strict reader refuses replaced: rarely needed, so it may cost a copy.
fn mended(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let taken = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.extend_from_slice(br"\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => rest.len().min(2),
        };
        out.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
    }
    out.extend_from_slice(rest);
    out
}

/// The number of a `\uXXXX` at the front.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(br"\u")?.get(..4)?;
    u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_through_what_crashes_leave() {
        for line in
            [&b"{\"a\":\"b\"}"[..], b"\0\0{\"a\":\"b\"}\0\0\0", b" {\"a\":\"b\"}\r", b"{\"a\":\"b\"}\n"]
        {
            assert_eq!(text(&record(line).unwrap(), &["a"]), Some("b"), "{line:?}");
        }
        for line in [&b""[..], b"\0\0", b"[1]", b"7", b"\"a\"", b"{\"a\":", b"{\"a\":1}{\"a\":1}", b"null"] {
            assert!(record(line).is_none(), "{line:?}");
        }
    }

    #[test]
    fn half_pairs_and_bad_bytes_become_replacement_characters() {
        let cases: [(&[u8], &str); 6] = [
            (br#"{"a":"x\ud83dy"}"#, "x\u{fffd}y"),
            (br#"{"a":"\ude00"}"#, "\u{fffd}"),
            (br#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}"),
            (br#"{"a":"\ud83d\n"}"#, "\u{fffd}\n"),
            (br#"{"a":"\\ud83d"}"#, "\\ud83d"),
            (b"{\"a\":\"x\xff\"}", "x\u{fffd}"),
        ];
        for (line, expected) in cases {
            assert_eq!(text(&record(line).unwrap(), &["a"]), Some(expected), "{line:?}");
        }
    }

    #[test]
    fn a_path_through_a_record_may_lead_nowhere() {
        let value = record(br#"{"a":{"b":"c","n":1,"e":""},"l":["x"]}"#).unwrap();
        assert_eq!(text(&value, &["a", "b"]), Some("c"));
        for names in [&["a"][..], &["a", "n"], &["a", "e"], &["a", "b", "c"], &["l", "0"], &["z", "y"]] {
            assert_eq!(text(&value, names), None, "{names:?}");
        }
    }
}
