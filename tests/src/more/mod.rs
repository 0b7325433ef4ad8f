//! Cases beyond the list of protocol facts: the boundary, files that change, sizes, and peers that misbehave.

mod boundary;
mod crowd;
mod large;
mod links;
mod live;
mod survive;

use crate::suite::Case;

/// All of them.
pub fn all() -> Vec<Case> {
    [boundary::CASES, links::CASES, live::CASES, large::CASES, survive::CASES, crowd::CASES].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_an_id_of_its_own() {
        let cases = [crate::cases::all(), super::all()].concat();
        assert_eq!(cases.iter().map(|case| case.id).collect::<BTreeSet<_>>().len(), cases.len());
    }
}
