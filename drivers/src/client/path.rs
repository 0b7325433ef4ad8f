//! Where a file is in a server's tree.

use std::fmt;

use super::escape::Escaped;

/// The names from the root to a file. Written with slashes; every path is from the root, with or without a leading slash.
///
/// Names are bytes. `.` and empty names stand for nothing and are dropped; `..` is kept, and means what the server says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TreePath(Vec<Box<[u8]>>);

impl TreePath {
    /// The path that these bytes spell.
    pub fn parse(bytes: &[u8]) -> Self {
        let names = bytes.split(|&byte| byte == b'/').filter(|name| !matches!(name, [] | [b'.']));
        Self(names.map(Box::from).collect())
    }

    /// The path of `name` in the directory that is at this path.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut names = Vec::with_capacity(self.0.len() + 1);
        names.extend_from_slice(&self.0);
        names.push(name.into());
        Self(names)
    }

    /// The names, from the root on.
    pub fn names(&self) -> &[Box<[u8]>] {
        &self.0
    }

    /// The last name; none at the root.
    pub fn last(&self) -> Option<&[u8]> {
        self.0.last().map(|name| &**name)
    }
}

impl fmt::Display for TreePath {
    /// Escaped, and always from the root.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str("/");
        }
        self.0.iter().try_for_each(|name| write!(out, "/{}", Escaped(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::TreePath;

    #[test]
    fn every_spelling_starts_at_the_root() {
        for (spelled, shown) in [
            ("", "/"),
            ("/", "/"),
            (".", "/"),
            ("a", "/a"),
            ("/a//b/./c/", "/a/b/c"),
            ("a/../b", "/a/../b"),
            ("a\n", "/a\\n"),
        ] {
            assert_eq!(TreePath::parse(spelled.as_bytes()).to_string(), shown, "{spelled:?}");
        }
    }
}
