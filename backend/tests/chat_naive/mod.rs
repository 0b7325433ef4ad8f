//! The oracle: the whole transcript in memory, every line parsed, every message a string. Written from the contract
//! (section 10), with nothing of the crate in it.

pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod json;

use std::collections::VecDeque;

use json::{Data, Value};

/// A message as the oracle tells it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Message {
    pub(crate) kind: String,
    pub(crate) text: String,
    pub(crate) time_ms: i64,
}

/// The complete lines of a transcript.
pub(crate) fn lines(transcript: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = transcript.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    // What a crash leaves at the ends of a line is as blank as blanks are.
    let blank = |byte: &u8| matches!(byte, 0 | b' ' | b'\t' | b'\r');
    transcript[..end].split(|byte| *byte == b'\n').map(move |line| {
        let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
        let end = line.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
        &line[start..end]
    })
}

/// The last 256 calls that had an id, and what their tools are called.
#[derive(Default)]
pub(crate) struct Calls(VecDeque<(String, String)>);

impl Calls {
    pub(crate) fn add(&mut self, id: Option<&str>, kind: &str) {
        if let Some(id) = id {
            self.0.push_back((id.into(), kind.into()));
            if self.0.len() > 256 {
                self.0.pop_front();
            }
        }
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|(call, _)| call == id)
    }

    pub(crate) fn result(&self, id: Option<&str>) -> String {
        let call = id.and_then(|id| self.0.iter().rev().find(|(call, _)| call == id));
        match call {
            Some((_, kind)) if kind != "tool-call" => format!("{kind}-result"),
            _ => "tool-result".into(),
        }
    }
}

/// What a tool's name makes its calls' kind.
pub(crate) fn tool_kind(name: &str) -> String {
    let mut kind = String::new();
    for char in name.chars() {
        if kind.len() == 48 {
            break;
        }
        let keeps = char.is_ascii_alphanumeric() || "_.-".contains(char);
        kind.push(if keeps { char.to_ascii_lowercase() } else { '-' });
    }
    let others = [
        "user",
        "assistant",
        "thinking",
        "system",
        "agent",
        "command",
        "file-change",
        "mcp-call",
        "tool-call",
    ];
    if kind.is_empty() || others.contains(&kind.as_str()) || kind.ends_with("-result") {
        return "tool-call".into();
    }
    kind
}

/// A text with a newline at its end.
pub(crate) fn line(text: &str) -> String {
    if text.ends_with('\n') { text.into() } else { format!("{text}\n") }
}

/// Milliseconds since 1970 of a timestamp of RFC 3339.
pub(crate) fn time_ms(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| {
        text.get(range)?.chars().try_fold(0, |sum, digit| Some(sum * 10 + i64::from(digit.to_digit(10)?)))
    };
    let marks = [(4, "-"), (7, "-"), (13, ":"), (16, ":")];
    let parted = marks.iter().all(|(at, mark)| text.get(*at..at + 1) == Some(*mark));
    if !parted || !matches!(text.get(10..11)?, "T" | "t" | " ") {
        return None;
    }
    let (fraction, offset) = zone(text.get(19..)?)?;
    let nanos = match fraction.strip_prefix('.') {
        None if fraction.is_empty() => 0,
        Some(digits) if !digits.is_empty() && digits.chars().all(|char| char.is_ascii_digit()) => {
            format!("{digits}00000000")[..9].parse().ok()?
        }
        _ => return None,
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = |year| if leap(year) { 366 } else { 365 };
    let after = (1970..year).map(length).sum::<i64>();
    let mut days = after - (year..1970).map(length).sum::<i64>();
    let lengths: [i64; 12] = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = lengths.get(usize::try_from(month - 1).ok()?)?;
    if day < 1 || day > *length || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    days += lengths.iter().take(month as usize - 1).sum::<i64>() + day - 1;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    // What 64 bits of nanoseconds hold.
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos).map(|time| time.div_euclid(1_000_000))
}

/// What stands before the zone at the end of a timestamp, and by how many seconds the zone is ahead.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(fraction) = text.strip_suffix(['Z', 'z']) {
        return Some((fraction, 0));
    }
    let (fraction, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (sign, time) = zone.split_at_checked(1)?;
    let (hours, minutes) = time.split_once(':')?;
    if [hours, minutes].iter().any(|part| part.len() != 2 || !part.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let ahead = (hours <= 23 && minutes <= 59).then_some((hours * 60 + minutes) * 60)?;
    match sign {
        "+" => Some((fraction, ahead)),
        "-" => Some((fraction, -ahead)),
        _ => None,
    }
}

/// The elements of a content: it may be one.
pub(crate) fn elements(content: &Value) -> Vec<&Value> {
    match &content.data {
        Data::Array(items) => items.iter().filter(|item| !item.is_null()).collect(),
        Data::Null => Vec::new(),
        _ => vec![content],
    }
}
