//! Splits a text at commas and line breaks, outside quotes and brackets.

use super::node::MAX_PAIRS;

/// The longest text that is split, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// The byte range of the text between two separators.
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) on_new_line: bool,
}

/// Splits a text at commas and line breaks and skips blank pieces. Separators inside quotes or brackets do not count, unless the quote or
/// bracket is never closed. Returns `None` if the text is too long or has too many pieces.
pub(super) fn pieces(text: &str) -> Option<Vec<Piece>> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let bytes = text.as_bytes();
    let (mut pieces, mut start, mut on_new_line) = (Vec::new(), 0, true);
    // Only a quote or bracket at the start of a value opens a group; the apostrophe in `don't` does not.
    let (mut at_value, mut groups_close) = (true, true);
    let mut at = 0;
    while at <= bytes.len() {
        let byte = bytes.get(at).copied();
        match byte {
            None | Some(b',' | b'\n') => {
                if !text[start..at].trim().is_empty() {
                    pieces.push(Piece {
                        start,
                        end: at,
                        on_new_line,
                    });
                    if pieces.len() > MAX_PAIRS {
                        return None;
                    }
                }
                start = at + 1;
                on_new_line = byte == Some(b'\n');
                at_value = true;
            }
            Some(b'"' | b'\'' | b'[' | b'{') if at_value && groups_close => {
                at_value = false;
                match end_of_group(bytes, at) {
                    Some(end) => at = end,
                    // Searching for the end once per opening mark would make the split quadratic.
                    None => groups_close = false,
                }
            }
            Some(b':' | b'=') => at_value = true,
            Some(byte) => at_value &= byte.is_ascii_whitespace(),
        }
        at += 1;
    }
    Some(pieces)
}

/// Finds the end of the quoted or bracketed group that opens at `at`.
fn end_of_group(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut quote, mut depth, mut here) = (None, 0_usize, at);
    while let Some(byte) = bytes.get(here) {
        match (quote, byte) {
            (Some(_), b'\\') => here += 1,
            (Some(open), byte) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, b'[' | b'{') => depth += 1,
            (None, b']' | b'}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        if quote.is_none() && depth == 0 {
            return Some(here);
        }
        here += 1;
    }
    None
}
