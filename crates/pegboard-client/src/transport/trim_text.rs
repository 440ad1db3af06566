//! Trims the start of messages, and shortens server text for error messages.

use bytes::Bytes;

/// Removes a byte order mark and whitespace in front of a message.
pub(super) fn trim_start(message: Bytes) -> Bytes {
    let text = message.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    match message.len() - text.len() {
        0 => message,
        skipped => message.slice(skipped..),
    }
}

/// Shortens a text to its first 200 characters, on one line and without control characters.
pub(super) fn preview(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: String = line.chars().filter(|c| !c.is_control()).collect();
    let mut shown: String = printed.chars().take(200).collect();
    if shown.len() < printed.len() {
        // The last word is dropped: a truncated secret would not be recognised by the masker.
        let end = shown
            .rfind([' ', '"', '\'', ',', ';', '<', '>', '{', '}', '=', '&'])
            .unwrap_or(0);
        shown.truncate(end);
        shown.push('…');
    }
    shown
}
