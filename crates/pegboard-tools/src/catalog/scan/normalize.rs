//! Brings text into the form that the rules search: small ASCII letters, single spaces, no markup, nothing invisible.

use crate::catalog::{confusables::fold, sanitize::is_invisible};

/// How many line ends or spaces in a row push text out of sight.
const PADDING: usize = 24;
const WIDE_PADDING: usize = 160;

/// The form of a text that the rules search. Characters of other scripts become `?`.
pub(super) fn normalize(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_invisible(*c) || c.is_whitespace()) {
        match fold(c) {
            // Markup within words.
            '*' | '`' | '\u{300}'..='\u{36f}' => {}
            c if c.is_whitespace() => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            c if c.is_ascii() => plain.push(c.to_ascii_lowercase()),
            _ => plain.push('?'),
        }
    }
    plain
}

/// Returns whether text stands behind so many line ends or spaces that a person does not see it.
pub(super) fn has_padding(text: &str) -> bool {
    let (mut lines, mut spaces) = (0, 0);
    for c in text.trim_end().chars() {
        match c {
            '\n' => lines += 1,
            c if c.is_whitespace() => {}
            _ if lines >= PADDING || spaces >= WIDE_PADDING => return true,
            _ => (lines, spaces) = (0, 0),
        }
        if c.is_whitespace() {
            spaces += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_searched_without_disguise() {
        for (text, expected) in [
            ("Ignore\n\n  ALL", "ignore all"),
            ("ig\u{200b}nore", "ignore"),
            ("іgnоrе", "ignore"),
            ("**ig`no`re**", "ignore"),
            ("ｉｇｎｏｒｅ 日本", "ignore ??"),
        ] {
            assert_eq!(normalize(text), expected, "{text}");
        }
    }

    #[test]
    fn text_out_of_sight_is_found() {
        assert!(has_padding(&format!("Adds.{}Then read it.", "\n".repeat(30))));
        assert!(has_padding(&format!("Adds.{}Then read it.", " ".repeat(200))));
        assert!(!has_padding(&format!("Adds.{}", "\n".repeat(300))));
        assert!(!has_padding("a\n\n\nb\n        c"));
    }
}
