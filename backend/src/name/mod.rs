//! The boundary: what may be named below a root.
//!
//! The daemon must never become a reader of credentials, so the rule is a type and not a check: nothing below a root
//! is looked up, listed or opened but by a [`Name`] or by a list of them, a [`Rel`]. There are two ways to make a name.
//! [`Name::vet`] takes the bytes of a client or of a directory on disk and refuses what is hidden.
//! [`Name::of_harness`] takes a name that harness code worked out itself, and looks at its form only.
//!
//! This module knows names, not files: it makes no system call, keeps no state, and does not know which directory a
//! name stands in. Symbolic links, mount points and file kinds are the host's business; the one thing about content
//! that belongs here is the first bytes of a database ([`is_database`]), the other half of a rule on names.

mod database;
mod fold;
mod rel;
mod rules;

pub use database::{DATABASE_HEAD_BYTES, is_database};
pub use rel::Rel;

/// A directory that files are opened beneath: the data of one harness, or the process table.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Root {
    /// Claude Code, `~/.claude`.
    Claude,
    /// Codex, `~/.codex`.
    Codex,
    /// omp, `~/.omp/agent`.
    Omp,
    /// hermes, `~/.hermes`.
    Hermes,
    /// dsh, `~/.dsh`.
    Dsh,
    /// The process table, `/proc`. No client names anything below it.
    Proc,
}

impl Root {
    /// The roots that belong to a harness, in the order of the tree.
    pub const HARNESSES: [Self; 5] = [Self::Claude, Self::Codex, Self::Omp, Self::Hermes, Self::Dsh];

    /// The name of the root in the tree, on the command line and in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Omp => "omp",
            Self::Hermes => "hermes",
            Self::Dsh => "dsh",
            Self::Proc => "proc",
        }
    }
}

/// One path component that may be served.
///
/// It is UTF-8, 1 to [`Name::MAX_BYTES`] bytes long, holds neither `/` nor NUL, and is neither `.` nor `..`.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    /// The longest name, in bytes: `NAME_MAX` of `<linux/limits.h>`. A longer one exists on no Linux filesystem.
    pub const MAX_BYTES: usize = 255;

    /// The name these bytes spell, unless it is malformed or hidden below `root`.
    ///
    /// This is the only way for bytes of a client or of a directory on disk. The rules look at the name after Unicode
    /// NFKC case folding with default-ignorable characters removed, so no other spelling of a hidden name passes; the
    /// name itself is kept as it was spelled. A name in plain ASCII costs no allocation.
    #[must_use]
    pub fn vet(bytes: &'a [u8], root: Root) -> Option<Self> {
        let name = Self::of_harness(str::from_utf8(bytes).ok()?)?;
        let hidden = if name.0.is_ascii() {
            let mut lower = [0; Self::MAX_BYTES];
            let lower = &mut lower[..name.0.len()];
            lower.copy_from_slice(name.as_bytes());
            lower.make_ascii_lowercase();
            rules::hides(name.0, lower, root)
        } else {
            hidden_when_folded(name.0, root)
        };
        (!hidden).then_some(name)
    }

    /// The name that harness code derived: an encoded project directory, a word of the harness's own layout, a file
    /// name that matches its grammar. `None` if it is malformed; what is hidden by name passes.
    ///
    /// No byte of a client may reach this.
    #[must_use]
    pub fn of_harness(name: &'a str) -> Option<Self> {
        let formed = !is_nothing(name)
            && name.len() <= Self::MAX_BYTES
            && memchr::memchr2(b'/', 0, name.as_bytes()).is_none();
        formed.then_some(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// The name as bytes.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0.as_bytes()
    }

    /// Whether the name is on the short list of databases that are served below `root`. A file of any other name is not
    /// to be opened once its content [is a database](is_database).
    #[must_use]
    pub fn is_served_database(self, root: Root) -> bool {
        rules::serves_database(self.0, root)
    }
}

/// The general form of the decision in [`Name::vet`], for a name of any characters.
fn hidden_when_folded(name: &str, root: Root) -> bool {
    // A name that folds to nothing or to a dot is the spelling of another name in disguise, and one that does not
    // fold is not understood: both are hidden.
    fold::fold(name).is_none_or(|folded| is_nothing(&folded) || rules::hides(name, folded.as_bytes(), root))
}

/// Whether a path component is no name of a file: empty, the directory itself or its parent.
fn is_nothing(name: &str) -> bool {
    matches!(name, "" | "." | "..")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Name, Root, fold, hidden_when_folded};

    /// Pieces that the rules speak of, so that random names often come near one.
    const PIECES: &str = "auth aut api key _ - . .. token tok creds cred ential jwt private secret pass word wd cookie \
                          keyring .key .pem .p12 .env .age .asc .db .sqlite -wal -shm state.db history.db .git .ssh \
                          id_rsa id_ ed25519 settings config models mcp .json .yml cordis session_ request_dump bws_ \
                          op_cache webhook pairing backups ssh # ~ .tmp .swp .tar .zip .tgz x 1 K A S \u{1} \u{7f}";

    fn near_names() -> impl Strategy<Value = String> {
        prop::collection::vec(
            (prop::sample::select(PIECES.split(' ').collect::<Vec<_>>()), any::<bool>()),
            1..6,
        )
        .prop_map(|pieces| {
            pieces
                .into_iter()
                .map(|(piece, upper)| if upper { piece.to_ascii_uppercase() } else { piece.to_owned() })
                .collect()
        })
    }

    fn roots() -> impl Strategy<Value = Root> {
        prop::sample::select(&Root::HARNESSES[..])
    }

    proptest! {
        #[test]
        fn the_fast_path_decides_as_the_general_one(name in near_names(), root in roots()) {
            prop_assume!(Name::of_harness(&name).is_some());
            prop_assert_eq!(Name::vet(name.as_bytes(), root).is_none(), hidden_when_folded(&name, root));
        }

        #[test]
        fn ascii_folds_to_its_lower_case(name in "[ -~]{0,40}") {
            prop_assert_eq!(fold::fold(&name), Some(name.to_ascii_lowercase()));
        }
    }
}
