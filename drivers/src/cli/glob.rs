//! Wildcards in paths, which no shell can expand for a tree that is not mounted.
//!
//! As sh(1) has them: `*`, `?` and `[...]` match within a name, a leading dot only if it is spelled out, and a backslash before
//! one of these characters, or before another backslash, takes its meaning.

use drivers::client::{Client, Error, TreePath, is_directory};

/// The paths that `spelled` stands for: itself, or those that match, in the order of the server's listings.
///
/// # Errors
/// Nothing matches, or a directory on the way cannot be listed.
pub(super) fn expand(client: &mut Client, spelled: &[u8]) -> Result<Vec<TreePath>, ExpandError> {
    let parts: Vec<Part> = spelled.split(|&byte| byte == b'/').map(Part::parse).collect();
    let mut found = vec![(TreePath::default(), true)];
    let mut wild = false;
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::Name(name) if matches!(name.as_slice(), [] | [b'.']) => {}
            // Whether it exists is for whoever uses the path to find out; behind a wildcard it must.
            Part::Name(name) => {
                let joined = found.iter().map(|(path, _)| path.join(name));
                found = if wild {
                    existing(client, joined.collect())?
                } else {
                    joined.map(|path| (path, true)).collect()
                };
            }
            Part::Pattern(pattern) => {
                wild = true;
                let more = at + 1 < parts.len();
                found = matching(client, &found, pattern, more)?;
            }
        }
    }
    if found.is_empty() {
        Err(ExpandError::NoMatch)
    } else {
        Ok(found.into_iter().map(|(path, _)| path).collect())
    }
}

/// The names in these directories that match; only directories, if there is `more` to come, even if that is but a slash.
fn matching(
    client: &mut Client,
    directories: &[(TreePath, bool)],
    pattern: &[Piece],
    more: bool,
) -> Result<Vec<(TreePath, bool)>, Error> {
    let mut found = Vec::new();
    for (path, _) in directories.iter().filter(|(_, directory)| *directory) {
        let entries = match client.list(path) {
            Ok(entries) => entries,
            // It is gone, or never was: nothing in it matches.
            Err(error) if error.is_absence() => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let directory = is_directory(entry.qid);
            if (directory || !more) && matches(pattern, &entry.name) {
                found.push((path.join(&entry.name), directory));
            }
        }
    }
    Ok(found)
}

/// Those of the paths at which there is something, and whether it is a directory.
fn existing(client: &mut Client, paths: Vec<TreePath>) -> Result<Vec<(TreePath, bool)>, Error> {
    let mut found = Vec::new();
    for path in paths {
        match client.stat(&path) {
            Ok(stat) => found.push((path, stat.is_directory())),
            Err(error) if error.is_absence() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Why a path stands for nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExpandError {
    /// There is nothing like it.
    #[error("no match")]
    NoMatch,
    /// It cannot be known.
    #[error(transparent)]
    Client(#[from] Error),
}

/// What stands between two slashes.
#[derive(Debug, Eq, PartialEq)]
enum Part {
    Name(Vec<u8>),
    Pattern(Vec<Piece>),
}

/// A piece of a pattern, for one character unless it says otherwise.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Piece {
    Exactly(Unit),
    Any,
    /// Any number of characters.
    AnyRun,
    /// One between these, or, if not `inside`, one that is not.
    Class {
        ranges: Vec<(Unit, Unit)>,
        inside: bool,
    },
}

impl Part {
    fn parse(text: &[u8]) -> Self {
        let units = units(text);
        let mut rest = units.as_slice();
        let mut pieces = Vec::new();
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            pieces.push(match first {
                BACKSLASH => match after.split_first() {
                    Some((&next, behind)) if SPECIAL.contains(&next) => {
                        rest = behind;
                        Piece::Exactly(next)
                    }
                    _ => Piece::Exactly(first),
                },
                STAR => Piece::AnyRun,
                QUESTION => Piece::Any,
                OPEN => match class(after) {
                    Some((class, behind)) => {
                        rest = behind;
                        class
                    }
                    None => Piece::Exactly(first),
                },
                _ => Piece::Exactly(first),
            });
        }
        let name: Option<Vec<Unit>> = pieces
            .iter()
            .map(|piece| if let Piece::Exactly(unit) = piece { Some(*unit) } else { None })
            .collect();
        match name {
            Some(name) => Self::Name(name.into_iter().flat_map(Unit::bytes).collect()),
            None => Self::Pattern(pieces),
        }
    }
}

/// A class, and what is behind its closing bracket; `None` if nothing closes it. A bracket that comes first, and a dash that
/// comes first or last, stand for themselves.
fn class(after_open: &[Unit]) -> Option<(Piece, &[Unit])> {
    let inside = !matches!(after_open.first(), Some(&(BANG | CARET)));
    let mut rest = if inside { after_open } else { &after_open[1..] };
    let mut ranges = Vec::new();
    loop {
        let (&low, after) = rest.split_first()?;
        if low == CLOSE && !ranges.is_empty() {
            return Some((Piece::Class { ranges, inside }, after));
        }
        rest = after;
        let low = if low == BACKSLASH { take(&mut rest)? } else { low };
        let high = match rest {
            [DASH, CLOSE, ..] => low,
            [DASH, BACKSLASH, high, behind @ ..] | [DASH, high, behind @ ..] => {
                rest = behind;
                *high
            }
            _ => low,
        };
        ranges.push((low, high));
    }
}

fn take(rest: &mut &[Unit]) -> Option<Unit> {
    let (&first, after) = rest.split_first()?;
    *rest = after;
    Some(first)
}

/// Whether a name matches. Takes time in proportion to both lengths multiplied, whatever the pattern.
fn matches(pattern: &[Piece], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&Piece::Exactly(Unit::Char('.'))) {
        return false;
    }
    let name = units(name);
    let (mut at, mut piece) = (0, 0);
    // Behind the last run, and how much of the name it has taken: if all else fails it takes one more.
    let mut run = None;
    while at < name.len() {
        match pattern.get(piece) {
            Some(Piece::AnyRun) => {
                piece += 1;
                run = Some((piece, at));
            }
            Some(one) if is_one(one, name[at]) => {
                piece += 1;
                at += 1;
            }
            _ => {
                let Some((behind, taken)) = run else { return false };
                run = Some((behind, taken + 1));
                (piece, at) = (behind, taken + 1);
            }
        }
    }
    pattern[piece..].iter().all(|piece| *piece == Piece::AnyRun)
}

fn is_one(piece: &Piece, unit: Unit) -> bool {
    match piece {
        Piece::Exactly(exactly) => *exactly == unit,
        Piece::Any => true,
        Piece::AnyRun => false,
        Piece::Class { ranges, inside } => {
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&unit)) == *inside
        }
    }
}

/// A character of a name, or a byte that is none.
#[derive(Copy, Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Unit {
    Char(char),
    Byte(u8),
}

impl Unit {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Char(c) => c.to_string().into_bytes(),
            Self::Byte(byte) => vec![byte],
        }
    }
}

fn units(text: &[u8]) -> Vec<Unit> {
    let chunks = text.utf8_chunks();
    let units = chunks.flat_map(|chunk| {
        let chars = chunk.valid().chars().map(Unit::Char);
        chars.chain(chunk.invalid().iter().copied().map(Unit::Byte))
    });
    units.collect()
}

const BACKSLASH: Unit = Unit::Char('\\');
const STAR: Unit = Unit::Char('*');
const QUESTION: Unit = Unit::Char('?');
const OPEN: Unit = Unit::Char('[');
const CLOSE: Unit = Unit::Char(']');
const DASH: Unit = Unit::Char('-');
const BANG: Unit = Unit::Char('!');
const CARET: Unit = Unit::Char('^');
const SPECIAL: [Unit; 5] = [BACKSLASH, STAR, QUESTION, OPEN, CLOSE];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_as_in_the_shell() {
        for (pattern, yes, no) in [
            ("*", "a ab ä", ".a"),
            ("a*", "a ab abc", "b ba"),
            ("*a", "a ba", "ab .a"),
            ("*a*b*", "ab xaxbx aab", "ba b a"),
            ("?", "a ä", "ab .".trim()),
            ("a?c", "abc aäc", "ac abbc"),
            ("[abc]", "a b c", "d ab"),
            ("[a-c]x", "ax bx", "dx x"),
            ("[!a-c]", "d -", "a b .".trim()),
            ("[^a]", "b", "a"),
            ("[]]", "]", "["),
            ("[!]]", "a", "]"),
            ("[a-]", "a -", "b"),
            ("[-a]", "a -", "b"),
            ("[ä-ö]", "é", "a"),
            (".*", ".a .", "a"),
            ("[a", "[a", "a"),
            ("[a]*[", "a[ ab[", "a"),
            ("\\*?", "*a", "aa"),
            ("[\\]a]", "] a", "\\"),
            ("*.jsonl", "a.jsonl", ".jsonl a.json"),
        ] {
            let part = Part::parse(pattern.as_bytes());
            let hits = |name: &str| match &part {
                Part::Pattern(pieces) => matches(pieces, name.as_bytes()),
                Part::Name(text) => text == name.as_bytes(),
            };
            for name in yes.split(' ') {
                assert!(hits(name), "{pattern} should match {name}");
            }
            for name in no.split(' ') {
                assert!(!hits(name), "{pattern} should not match {name}");
            }
        }
    }

    #[test]
    fn without_wildcards_a_part_is_a_name() {
        for (text, name) in [
            ("plain", "plain"),
            (r"\*\?\[\]\\", r"*?[]\"),
            (r"a\b\", r"a\b\"),
            ("[", "["),
            ("a]b", "a]b"),
            ("", ""),
        ] {
            assert_eq!(Part::parse(text.as_bytes()), Part::Name(name.into()), "{text}");
        }
        assert_eq!(Part::parse(b"a\xff"), Part::Name(b"a\xff".to_vec()));
    }

    #[test]
    fn a_pattern_of_many_runs_is_no_trap() {
        let Part::Pattern(pieces) = Part::parse("*a".repeat(200).as_bytes()) else { panic!("no pattern") };
        assert!(!matches(&pieces, "a".repeat(199).as_bytes()));
        assert!(matches(&pieces, "a".repeat(4000).as_bytes()));
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_however_it_is_quoted(name in "[^/.][^/]{0,8}") {
            let quoted: String = name
                .chars()
                .flat_map(|c| if "\\*?[]".contains(c) { vec!['\\', c] } else { vec![c] })
                .collect();
            prop_assert_eq!(Part::parse(quoted.as_bytes()), Part::Name(name.clone().into()));
            let pattern = format!("{quoted}*");
            let Part::Pattern(pieces) = Part::parse(pattern.as_bytes()) else { panic!("no pattern") };
            prop_assert!(matches(&pieces, name.as_bytes()));
        }

        #[test]
        fn any_pattern_and_name_end(pattern: Vec<u8>, name: Vec<u8>) {
            if let Part::Pattern(pieces) = Part::parse(&pattern) {
                matches(&pieces, &name);
            }
        }

        #[test]
        fn runs_agree_with_the_plain_definition(pattern in "[ab*?]{0,7}", name in "[ab]{0,7}") {
            if let Part::Pattern(pieces) = Part::parse(pattern.as_bytes()) {
                prop_assert_eq!(matches(&pieces, name.as_bytes()), plainly(pattern.as_bytes(), name.as_bytes()));
            }
        }
    }

    /// What `*` and `?` mean, by trying everything.
    fn plainly(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], name) => name.is_empty(),
            ([b'*', rest @ ..], name) => (0..=name.len()).any(|taken| plainly(rest, &name[taken..])),
            ([first, rest @ ..], [letter, letters @ ..]) => {
                (*first == b'?' || first == letter) && plainly(rest, letters)
            }
            _ => false,
        }
    }
}
