//! Lines for people, cut out of what people and models wrote.

/// The first line of a prompt that says anything, at most [`HEADLINE_CHARS`] characters of it.
pub(super) fn headline(prompt: &str) -> Option<String> {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(HEADLINE_CHARS).collect())
}

/// A word that may be part of a file name: what is no ASCII letter or digit, nor one of `. _ -`, is `-`.
pub(super) fn file_word(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    text.chars().take(FILE_WORD_CHARS).map(plain).collect()
}

const HEADLINE_CHARS: usize = 80;
const FILE_WORD_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_is_the_first_line_with_anything_on_it() {
        assert_eq!(headline("\n \t\n  fix the build \nplease"), Some("fix the build".into()));
        assert_eq!(headline(" \n"), None);
        assert_eq!(headline(&"ü".repeat(200)), Some("ü".repeat(80)));
    }

    #[test]
    fn a_file_word_holds_nothing_special() {
        assert_eq!(file_word("general-purpose"), "general-purpose");
        assert_eq!(file_word("../a b\u{0}ü/c"), "..-a-b---c");
    }
}
