//! The lines of a transcript, from either end.
//!
//! Owns: how much of a file is looked at. Must not know: what a line says. Only complete lines count: what follows the last
//! newline is still being written. A file of any size costs [`SEARCH_BYTES`] of reading at most, and [`LINE_BYTES`] and
//! one step of memory; a longer line is passed over. Only a first line that says what a file is may be longer ([`first`]).

use std::ops::ControlFlow;

use engine::port::Effort;

use crate::host::File;

/// Hands the lines to `each`, the last one first, until it breaks or `limit` bytes have been looked at.
pub(super) fn from_end<T>(
    file: &dyn File,
    size: u64,
    limit: u64,
    mut each: impl FnMut(&[u8]) -> ControlFlow<T>,
) -> Option<T> {
    let floor = size.saturating_sub(limit);
    let mut end = size;
    // The end of a line whose beginning is not read yet; `None` before the last newline has been seen, and for a line
    // that is too long.
    let mut open: Option<Vec<u8>> = None;
    let mut step = Vec::new();
    while end > floor {
        let start = end.saturating_sub(STEP_BYTES as u64).max(floor);
        step.resize((end - start) as usize, 0);
        if file.read_at(&mut step, start, Effort::Full).ok()? < step.len() {
            // It shrank: what was read before is of another file.
            return None;
        }
        let mut rest = &step[..];
        while let Some(at) = memchr::memrchr(b'\n', rest) {
            if let Some(mut line) = open.replace(Vec::new()) {
                let found = if line.is_empty() {
                    each(&rest[at + 1..])
                } else {
                    line.splice(..0, rest[at + 1..].iter().copied());
                    each(&line)
                };
                if let ControlFlow::Break(found) = found {
                    return Some(found);
                }
            }
            rest = &rest[..at];
        }
        if let Some(line) = &mut open {
            line.splice(..0, rest.iter().copied());
        }
        open = open.filter(|line| line.len() <= LINE_BYTES);
        end = start;
    }
    match open {
        Some(line) if end == 0 => each(&line).break_value(),
        _ => None,
    }
}

/// Hands the lines to `each`, the first one first, until it breaks or `limit` bytes have been looked at.
pub(super) fn from_start<T>(
    file: &dyn File,
    limit: u64,
    mut each: impl FnMut(&[u8]) -> ControlFlow<T>,
) -> Option<T> {
    let mut at = 0;
    // The beginning of a line whose end is not read yet; `None` for one that is too long.
    let mut open = Some(Vec::new());
    let mut step = vec![0; STEP_BYTES];
    while at < limit {
        let read = file.read_at(&mut step, at, Effort::Full).ok()?;
        let mut rest = &step[..read];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if let Some(mut line) = open.replace(Vec::new()) {
                let found = if line.is_empty() {
                    each(&rest[..end])
                } else {
                    line.extend_from_slice(&rest[..end]);
                    each(&line)
                };
                if let ControlFlow::Break(found) = found {
                    return Some(found);
                }
            }
            rest = &rest[end + 1..];
        }
        if let Some(line) = &mut open {
            line.extend_from_slice(rest);
        }
        open = open.filter(|line| line.len() <= LINE_BYTES);
        if read < step.len() {
            return None;
        }
        at += read as u64;
    }
    None
}

/// The first line, if its end is among the first `limit` bytes.
pub(super) fn first(file: &dyn File, limit: usize) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    while line.len() < limit {
        let from = line.len();
        line.resize(limit.min(from + STEP_BYTES), 0);
        let read = file.read_at(&mut line[from..], from as u64, Effort::Full).ok()?;
        if let Some(end) = memchr::memchr(b'\n', &line[from..from + read]) {
            line.truncate(from + end);
            return Some(line);
        }
        if from + read < line.len() {
            return None;
        }
    }
    None
}

/// How much of one transcript is searched for one answer.
pub(super) const SEARCH_BYTES: u64 = 4 << 20;
/// Where what is written last is to be found.
pub(super) const TAIL_BYTES: u64 = 64 << 10;
/// The longest line that is looked at.
const LINE_BYTES: usize = 1 << 20;
const STEP_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Errno, Meta};

    struct Bytes(Vec<u8>);

    impl File for Bytes {
        fn read_at(&self, buf: &mut [u8], offset: u64, _: Effort) -> Result<usize, Errno> {
            let rest = self.0.get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(buf.len());
            buf[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        }

        fn meta(&self) -> Result<Meta, Errno> {
            Err(Errno::NOSYS)
        }
    }

    fn all(bytes: &[u8], limit: u64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let file = Bytes(bytes.to_vec());
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let none: Option<()> = from_start(&file, limit, |line| {
            up.push(line.to_vec());
            ControlFlow::Continue(())
        });
        assert!(none.is_none());
        let none: Option<()> = from_end(&file, bytes.len() as u64, limit, |line| {
            down.push(line.to_vec());
            ControlFlow::Continue(())
        });
        assert!(none.is_none());
        down.reverse();
        (up, down)
    }

    #[test]
    fn both_directions_give_the_complete_lines() {
        for (bytes, expected) in [
            (&b""[..], &[][..]),
            (b"cut", &[]),
            (b"a\n", &[&b"a"[..]]),
            (b"a\nb\ncut", &[b"a", b"b"]),
            (b"\n\na\n", &[b"", b"", b"a"]),
        ] {
            assert_eq!(
                all(bytes, 1 << 20),
                (
                    expected.iter().map(|l| l.to_vec()).collect::<Vec<_>>(),
                    expected.iter().map(|l| l.to_vec()).collect()
                )
            );
        }
    }

    #[test]
    fn lines_may_span_steps_and_too_long_ones_are_passed_over() {
        let long = |len: usize| vec![b'x'; len];
        let lines = [
            long(3),
            long(STEP_BYTES - 4),
            long(STEP_BYTES * 3),
            vec![],
            long(LINE_BYTES + STEP_BYTES),
            long(7),
        ];
        let bytes = [lines.join(&b'\n'), b"\n".to_vec()].concat();
        let kept: Vec<_> = lines.iter().filter(|line| line.len() <= LINE_BYTES).cloned().collect();
        let (up, down) = all(&bytes, 1 << 30);
        assert!(up == kept && down == kept);
    }

    #[test]
    fn no_more_than_the_limit_is_looked_at() {
        let bytes: Vec<u8> = (0..400_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let (up, down) = all(&bytes, 200_000);
        assert_eq!(up.first().unwrap(), b"0");
        assert_eq!(down.last().unwrap(), b"399999");
        for part in [up, down] {
            let sum: usize = part.iter().map(|line| line.len() + 1).sum();
            assert!((199_980..=200_000 + STEP_BYTES).contains(&sum), "{sum}");
        }
    }

    #[test]
    fn the_first_line_is_no_other() {
        let long = vec![b'x'; 3 * STEP_BYTES];
        for (bytes, expected) in [
            (&b""[..], None),
            (b"cut", None),
            (b"\nb\n", Some(&b""[..])),
            (b"a\nb\n", Some(b"a")),
            (&[&long[..], b"\nb\n"].concat(), Some(&long[..])),
            (&[&long[..], &long, b"\nb\n"].concat(), None),
        ] {
            assert!(first(&Bytes(bytes.to_vec()), 4 * STEP_BYTES).as_deref() == expected, "{}", bytes.len());
        }
    }

    #[test]
    fn a_break_ends_the_search() {
        let file = Bytes(b"1\n2\n3\n".to_vec());
        let first = |line: &[u8]| ControlFlow::Break(line.to_vec());
        assert_eq!(from_start(&file, 100, first), Some(b"1".to_vec()));
        assert_eq!(from_end(&file, 6, 100, first), Some(b"3".to_vec()));
    }

    #[test]
    fn a_file_that_shrank_gives_nothing() {
        let file = Bytes(b"1\n2\n3\n".to_vec());
        assert_eq!(from_end(&file, 9, 100, |line| ControlFlow::Break(line.to_vec())), None);
    }
}
