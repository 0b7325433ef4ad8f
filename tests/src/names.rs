//! The tables of names that the boundary hides and lets pass.
//!
//! Owns: reading `data/names-hidden.txt` and `data/names-innocent.txt`. Must not know: the rules that decide.

use std::collections::BTreeSet;

/// A name and where the table says something of it.
#[derive(Clone, Debug)]
pub struct Line {
    /// The roots it is about.
    pub roots: Vec<&'static str>,
    /// The name.
    pub name: Vec<u8>,
    /// Whether a disk can hold a file of that name.
    pub exists: bool,
}

impl Line {
    /// Whether it is about a root.
    pub fn is_of(&self, root: &str) -> bool {
        self.roots.contains(&root)
    }
}

/// The lines about a root, each name once: several rules may give the same name as their example.
pub fn of<'l>(lines: &'l [Line], root: &str) -> Vec<&'l Line> {
    let mut seen = BTreeSet::new();
    lines.iter().filter(|line| line.is_of(root) && seen.insert(&line.name)).collect()
}

/// Names that neither resolve nor list.
pub fn hidden() -> Vec<Line> {
    table(include_str!("../data/names-hidden.txt"))
}

/// Names that are served.
pub fn innocent() -> Vec<Line> {
    table(include_str!("../data/names-innocent.txt"))
}

fn table(text: &'static str) -> Vec<Line> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(parse).collect()
}

fn parse(line: &'static str) -> Line {
    let mut columns = line.split('\t');
    let mut column = || columns.next().unwrap_or_else(|| panic!("three columns: {line}"));
    let (roots, name, rule) = (column(), column(), column());
    let roots = if roots == "*" { ROOTS.to_vec() } else { roots.split(',').collect() };
    assert!(roots.iter().all(|root| ROOTS.contains(root)), "roots: {line}");
    Line { roots, name: unescape(name), exists: rule != "malformed" }
}

/// `\u{..}` is a character, `\xNN` a byte, `\t` a tab, `\\` a backslash.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let (kind, after) = rest[at + 1..].split_at(1);
        rest = match kind {
            "u" => {
                let (number, after) = after[1..].split_once('}').expect("a closed character");
                let number = u32::from_str_radix(number, 16).expect("a hexadecimal number");
                let character = char::from_u32(number).expect("a character");
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                after
            }
            "x" => {
                out.push(u8::from_str_radix(&after[..2], 16).expect("two hexadecimal digits"));
                &after[2..]
            }
            "t" => {
                out.push(b'\t');
                after
            }
            "\\" => {
                out.push(b'\\');
                after
            }
            other => panic!("an unknown escape: {other}"),
        };
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

const ROOTS: &[&str] = &["claude", "codex", "omp", "hermes", "dsh"];

#[cfg(test)]
mod tests {
    use super::{hidden, innocent, unescape};

    #[test]
    fn the_tables_are_read_whole() {
        assert!(hidden().len() > 400 && innocent().len() > 200);
        assert!(hidden().iter().any(|line| line.name == b"mcp.json" && line.exists));
        assert!(hidden().iter().any(|line| line.name == b"a/b" && !line.exists));
        assert!(hidden().iter().any(|line| line.roots == ["hermes"]));
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescape(r"a\x00\u{e9}\t\\b"), b"a\0\xc3\xa9\t\\b");
    }
}
