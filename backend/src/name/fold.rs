//! Unicode NFKC case folding of names.
//!
//! NFKC_Casefold is the folding that Unicode defines for identifiers (The Unicode Standard, section 3.13, and UAX #31):
//! compatibility characters become plain ones (`ｔｏｋｅｎ`, `𝐭𝐨𝐤𝐞𝐧`, `ﬁ`), case goes (`K` for kelvin and `ſ` included), and
//! default-ignorable characters (soft hyphen, joiners, variation selectors, tags) disappear. Letters of other scripts
//! that merely look alike stay what they are.

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::{CodePointSetData, props::DefaultIgnorableCodePoint};

/// The folded form of a name: a string that folds to itself. `None` if it does not settle, which no string is known to
/// do.
///
/// The definition folds each character until nothing changes and then normalizes; folding the whole string until
/// nothing changes ends at the same place.
pub(super) fn fold(name: &str) -> Option<String> {
    let mut text = name.to_owned();
    for _ in 0..ROUNDS {
        let folded = fold_once(&text);
        if folded == text {
            return Some(text);
        }
        text = folded;
    }
    None
}

fn fold_once(text: &str) -> String {
    let plain = strip(text);
    let lower = CaseMapper::new().fold_string(&plain);
    ComposingNormalizerBorrowed::new_nfkc().normalize(&lower).into_owned()
}

/// The text without default-ignorable characters, and with one letter i.
///
/// The second goes beyond NFKC_Casefold, which keeps `ı` and makes two characters of `İ`. A Turkish locale changes case
/// by them (`APIKEY` to `apıkey`, `api_key` to `APİ_KEY`), and a name is not to come out of hiding by a change of case.
fn strip(text: &str) -> String {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let mut plain = String::with_capacity(text.len());
    for c in text.chars().filter(|&c| !ignorable.contains(c)) {
        match c {
            DOTLESS_I => plain.push('i'),
            DOT_ABOVE if plain.ends_with('i') => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Three are seen: one that folds, one for what folding brought out, one that finds nothing left to do.
const ROUNDS: usize = 8;

const DOTLESS_I: char = '\u{131}';
const DOT_ABOVE: char = '\u{307}';
