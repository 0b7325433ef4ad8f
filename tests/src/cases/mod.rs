//! The 52 numbered facts about 9P servers, as cases. A fact that needs more of some rigs is split: `22` and `22w`.

pub mod attach;
pub mod directories;
pub mod flush;
pub mod framing;
pub mod linux;
pub mod open_read;
pub mod qids;
pub mod stat;
pub mod version;
pub mod walk;

use crate::suite::Case;
use crate::world::WorldSpec;

/// All of them, in the order of their numbers.
pub fn all() -> Vec<Case> {
    [
        version::CASES,
        attach::CASES,
        walk::CASES,
        open_read::CASES,
        directories::CASES,
        stat::CASES,
        flush::CASES,
        framing::CASES,
        qids::CASES,
        linux::CASES,
    ]
    .concat()
}

/// A few files of every plain sort.
fn small() -> WorldSpec {
    WorldSpec::new()
        .file("hermes/notes.txt", NOTES)
        .file("hermes/empty.txt", "")
        .file("hermes/dir/a.txt", "a")
        .file("hermes/dir/b.txt", "bb")
        .file("hermes/dir/sub/c.txt", "ccc")
        .dir("hermes/bare")
}

/// What `hermes/notes.txt` holds.
const NOTES: &[u8] = b"hello, world\n";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_fact_has_a_case_and_every_case_an_id_of_its_own() {
        let cases = super::all();
        let number = |id: &str| id.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse::<u32>();
        let numbers: Vec<_> = cases.iter().map(|case| number(case.id).expect("a number")).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>(), (1..=52).collect());
        assert_eq!(cases.iter().map(|case| case.id).collect::<BTreeSet<_>>().len(), cases.len());
    }
}
