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

#[cfg(test)]
mod tests {
    use super::{ROUNDS, fold, fold_once};

    #[test]
    fn folds_as_unicode_defines() {
        for (name, folded) in [
            ("SKILL.md", "skill.md"),
            ("\u{ff34}\u{ff4f}\u{ff4b}", "tok"),
            ("\u{1d413}\u{24de}\u{1d4f}", "tok"),
            ("\u{212a}\u{17f}", "ks"),
            ("\u{fb01}\u{fb00}\u{fb06}", "fiffst"),
            ("Stra\u{df}e \u{1e9e}", "strasse ss"),
            ("\u{2024}\u{2025}\u{2026}", "......"),
            ("\u{3a3}\u{3c2}", "\u{3c3}\u{3c3}"),
            ("E\u{301}", "\u{e9}"),
            ("a\u{ad}\u{200b}\u{200d}\u{2060}\u{fe0f}\u{feff}\u{3164}\u{e0041}b", "ab"),
            // The ignorable stands between a letter and its accent, which meet once it is gone.
            ("e\u{34f}\u{301}", "\u{e9}"),
            // Capital alpha with its iota below: two letters when folded.
            ("\u{1fbc}", "\u{3b1}\u{3b9}"),
            ("\u{441}\u{41e}", "\u{441}\u{43e}"),
            ("", ""),
            ("\u{200b}", ""),
        ] {
            assert_eq!(fold(name).as_deref(), Some(folded), "{name:?}");
        }
    }

    #[test]
    fn has_one_letter_i() {
        let with_dots = ["\u{130}", "i\u{307}", "I\u{307}", "i\u{307}\u{307}", "\u{131}\u{307}"];
        for name in ["I", "i", "\u{131}", "\u{1d6a4}"].into_iter().chain(with_dots) {
            assert_eq!(fold(name).as_deref(), Some("i"), "{name:?}");
        }
    }

    #[test]
    fn every_character_settles_well_before_the_limit() {
        for c in ('\0'..='\u{32fff}').chain('\u{e0000}'..='\u{e0fff}') {
            let name = String::from(c);
            let folded = (0..ROUNDS / 2 - 1).fold(name.clone(), |text, _| fold_once(&text));
            assert_eq!(fold_once(&folded), folded, "{c:?}");
            assert_eq!(fold(&name), Some(folded), "{c:?}");
        }
    }
}
