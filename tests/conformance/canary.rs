//! The suite has to fail where a server is wrong: every lie is seen by the cases that are about it.

use std::collections::BTreeSet;

use proto::Dialect;
use tests::rigs::engine::Engine;
use tests::rigs::liar::{Liar, Lie};
use tests::suite::{self, Case, Verdict};
use tests::{cases, more};

/// Each lie, and cases that must see it in every dialect they are of.
const SEEN: &[(Lie, &[&str])] = &[
    (Lie::LargeMsize, &["1"]),
    (Lie::LongRead, &["22", "23", "24", "live.grows"]),
    (Lie::EmptyRead, &["22", "23", "24", "40", "live.replaced"]),
    (Lie::OtherByte, &["23", "24", "40", "44p", "live.shrinks"]),
    (Lie::ShiftedRead, &["23", "24", "40"]),
    (Lie::SmallIounit, &["21"]),
    (Lie::OnePath, &["10", "46", "46n"]),
    (Lie::OtherVersion, &["10", "46v"]),
    (Lie::OtherLength, &["29", "30t", "48", "live.grows"]),
    (Lie::LostEntry, &["25", "28", "46", "49", "boundary.list"]),
    (Lie::HiddenEntry, &["25", "49", "boundary.list", "links.hidden"]),
    (
        Lie::OtherReason,
        &["8", "13", "16", "17", "18", "20", "22", "26", "34", "50", "51", "boundary.walk", "live.vanishes"],
    ),
    (Lie::Obliging, &["4", "7", "14", "15", "33", "39", "42", "43", "52"]),
    (Lie::NoFlush, &["35", "36", "37", "38"]),
    (Lie::LateAnswer, &["36"]),
    (Lie::Twice, &["1", "9", "44p"]),
    (Lie::Swapped, &["44p"]),
    (Lie::NeverCloses, &["41", "5"]),
    (Lie::WholeWalk, &["13", "14", "18"]),
];

#[test]
fn every_lie_is_seen() {
    let all = [cases::all(), more::all()].concat();
    let mut unseen = Vec::new();
    for (lie, ids) in SEEN {
        for case in ids.iter().map(|id| by_id(&all, id)) {
            for dialect in case.dialects {
                if let Verdict::Passed | Verdict::Declined(_) = verdict(case, *lie, *dialect) {
                    unseen.push(format!("{lie:?} by case {} in {}", case.id, dialect.name()));
                }
            }
        }
    }
    assert!(unseen.is_empty(), "not seen:\n{}", unseen.join("\n"));
}

#[test]
fn what_sees_a_lie_passes_without_one() {
    let all = [cases::all(), more::all()].concat();
    let ids: BTreeSet<_> = SEEN.iter().flat_map(|(_, ids)| *ids).collect();
    for id in ids {
        let case = by_id(&all, id);
        for dialect in case.dialects {
            assert_eq!(verdict(case, Lie::Nothing, *dialect), Verdict::Passed, "{id}");
        }
    }
}

#[test]
fn what_a_rig_declines_is_not_run() {
    let all = [cases::all(), more::all()].concat();
    let case = by_id(&all, "crowd.descriptors");
    assert!(matches!(verdict(case, Lie::Nothing, Dialect::Plain), Verdict::Declined(_)));
    let undeclared = Case { needs: &[], ..*case };
    assert!(matches!(verdict(&undeclared, Lie::Nothing, Dialect::Plain), Verdict::Failed(_)));
}

fn by_id<'c>(all: &'c [Case], id: &str) -> &'c Case {
    all.iter().find(|case| case.id == id).unwrap_or_else(|| panic!("there is no case {id}"))
}

fn verdict(case: &Case, lie: Lie, dialect: Dialect) -> Verdict {
    suite::run(case, &Liar::new(Engine, lie), dialect)
}
