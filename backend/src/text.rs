//! What may stand in a line that somebody reads on a terminal. Owns that one rule; knows nothing of where a line comes from.

/// Characters that move a cursor, end a line, or change the order in which others are shown: the controls (general category
/// Cc), the two separators (Zl, Zp), and the characters with the property `Bidi_Control` (Unicode, `PropList.txt`).
pub fn is_unprintable(c: char) -> bool {
    let separates_lines = matches!(c, '\u{2028}' | '\u{2029}');
    let reorders =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || separates_lines || reorders
}
