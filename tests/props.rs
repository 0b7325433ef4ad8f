//! Laws of paths and of directory cursors, over anything that could be asked.
//!
//! (Those of names, of messages and records, and of error texts stand beside the code they are about.)

use backend::name::{Name, Rel, Root};
use proptest::collection::vec;
use proptest::prelude::*;
use proto::Dialect;
use tests::check::{Client, refused, why};
use tests::rigs::engine::Engine;
use tests::suite::Stage;
use tests::world::WorldSpec;

proptest! {
    /// A path is the list of names it was joined from, whichever way it is looked at.
    #[test]
    fn a_path_is_its_names(names in vec("[^/\0]{1,40}", 0..12)) {
        let names: Vec<Name<'_>> = names.iter().filter_map(|name| Name::of_harness(name)).collect();
        let path = names.iter().fold(Rel::base(), |path, name| path.join(*name));
        prop_assert!(path.components().eq(names.iter().copied()));
        prop_assert_eq!(path.depth(), names.len());
        prop_assert_eq!(path.name(), names.last().map(|name| name.as_str()));
        let spelt = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("/");
        prop_assert_eq!(path.as_str(), &spelt);
        prop_assert_eq!(Rel::from_harness(&spelt), (!names.is_empty()).then(|| path.clone()));
        let mut up = path;
        for left in (0..names.len()).rev() {
            up = up.parent().expect("a path with a name has a parent");
            prop_assert!(up.components().eq(names[..left].iter().copied()));
        }
        prop_assert_eq!(up.parent(), None);
    }

    /// Whatever text is taken for a path, it leads neither up nor away.
    #[test]
    fn no_text_is_a_path_that_leads_elsewhere(text in "[a./\0~ ]{0,12}|\\PC{0,40}") {
        if let Some(path) = Rel::from_harness(&text) {
            prop_assert!(!text.starts_with('/') && !text.contains('\0'));
            prop_assert!(path.components().all(|name| !matches!(name.as_str(), "" | "." | "..")));
            prop_assert_eq!(path.as_str(), text);
        }
    }

    /// Nothing that a client spells and that passes the boundary is more than one name.
    #[test]
    fn what_passes_is_one_name_as_it_was_spelt(bytes in vec(any::<u8>(), 0..40), root in prop::sample::select(&Root::HARNESSES[..])) {
        if let Some(name) = Name::vet(&bytes, root) {
            prop_assert_eq!(name.as_bytes(), &bytes[..]);
            prop_assert_eq!(Rel::base().join(name).depth(), 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However a directory is read, and wherever it is gone back to, what comes is what a read of all of it gives there.
    #[test]
    fn a_directory_reads_the_same_however_it_is_read(
        dialect in prop::sample::select(&Dialect::ALL[..]),
        lengths in vec(1_usize..60, 0..40),
        moves in vec((any::<prop::sample::Index>(), 100_u32..900), 1..24),
    ) {
        let spec = lengths.iter().enumerate().fold(WorldSpec::new().dir("hermes/many"), |spec, (number, length)| {
            spec.file(format!("hermes/many/{number:03}{}", "x".repeat(*length)), vec![b'x'; *length])
        });
        let stage = Stage::new(&Engine, dialect);
        let (_arena, mut client) = stage.client(&spec);
        let fid = client.open_path("hermes/many");
        reads_the_same(&mut client, fid, lengths.len(), &moves)?;
    }
}

fn reads_the_same(
    client: &mut Client,
    fid: u32,
    count: usize,
    moves: &[(prop::sample::Index, u32)],
) -> Result<(), TestCaseError> {
    let whole = client.list_all(fid, 1 << 20);
    prop_assert_eq!(whole.len(), count);
    // Where a read may begin: at the start, and where one has ended. Each with how many entries lie before it.
    let mut ends = vec![(0, 0)];
    for (from, size) in moves {
        let (offset, before) = ends[from.index(ends.len())];
        let (entries, end) = client.list(fid, offset, *size).expect("a read from where one has ended");
        if offset == 0 {
            // The names are taken anew, and no earlier end means anything.
            ends.truncate(1);
        }
        prop_assert_eq!(&entries[..], &whole[before..before + entries.len()]);
        // A name of 63 bytes takes less than 200, so something always fits unless there is nothing left.
        prop_assert!(!entries.is_empty() || before == count || *size < 200);
        ends.push((end, before + entries.len()));
        if client.dialect() != Dialect::Linux {
            refused(client.list(fid, end + 1, *size), why::BAD_OFFSET);
        }
    }
    Ok(())
}
