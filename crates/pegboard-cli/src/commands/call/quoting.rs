//! Quotes what the user has written in error messages.

/// The most characters of an expression that an error quotes.
const MAX_QUOTED: usize = 200;

/// A text for an error message, cut if it is long.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
