//! The timestamps of records.
//!
//! Owns: RFC 3339 to nanoseconds since 1970. Must not know: clocks, or time zones by name.

/// Nanoseconds since 1970 of a timestamp such as `2026-11-02T10:00:05.120Z`; `None` for anything else, and for a time
/// that 64 bits do not hold. Digits past the ninth of a fraction are dropped; a leap second is the second after it.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        text.get(from..to)?
            .iter()
            .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
    };
    let is = |at: usize, set: &[u8]| text.get(at).is_some_and(|byte| set.contains(byte));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let digits =
        if is(19, b".") { text[20..].iter().take_while(|byte| byte.is_ascii_digit()).count() } else { 0 };
    let zone = if is(19, b".") { 20 + digits } else { 19 };
    if zone == 20 {
        return None;
    }
    let fraction = digits.min(9);
    let nanos = number(20, 20 + fraction).unwrap_or(0) * 10_i64.pow(9 - fraction as u32);
    let offset = match text.get(zone..)? {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(zone + 1, zone + 3)?, number(zone + 4, zone + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if *sign == b'-' { -60 } else { 60 }
        }
        _ => return None,
    };
    let seconds = days(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second - offset;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Days since 1970 of a date of the Gregorian calendar; `None` if there is no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // A year that begins in March puts the leap day last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let since_march = (153 * month + 2) / 5 + day - 1;
    Some(
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + since_march
            - FROM_YEAR_0,
    )
}

/// Days from 1 March of the year 0 to 1 January 1970.
const FROM_YEAR_0: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_nanoseconds_since_1970() {
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-02T10:00:05.120Z", 1_793_613_605_120_000_000),
            ("2026-11-02T12:00:05.12+02:00", 1_793_613_605_120_000_000),
            ("2026-11-02T09:30:05.120-00:30", 1_793_613_605_120_000_000),
            ("2026-11-02t10:00:05.1200000009z", 1_793_613_605_120_000_000),
            ("1969-12-31T23:59:59.999999999Z", -1),
            ("2000-02-29T00:00:00Z", 951_782_400_000_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000_000),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(ns), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_timestamp() {
        for text in [
            "",
            "2026-11-02",
            "2026-11-02T10:00:05",
            "2026-11-02T10:00:05.Z",
            "2026-11-02T10:00:05Z ",
            "2026-13-02T10:00:05Z",
            "2026-02-29T10:00:05Z",
            "2026-11-02T24:00:05Z",
            "2026-11-02T10:00:05+0200",
            "2026-11-02T10:00:05+2:00",
            "-026-11-02T10:00:05Z",
            "9999-11-02T10:00:05Z",
            "0001-01-01T00:00:00Z",
            "1762205005120",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
