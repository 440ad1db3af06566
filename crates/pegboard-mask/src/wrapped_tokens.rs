//! Finds tokens that a line break divides, as in a mail, a narrow terminal or an indented block.

use std::ops::Range;

use memchr::memchr_iter;

use super::plausibility;

/// The shortest part of a token before a line break. Lines that end with a shorter word are prose.
const MIN_BEFORE: usize = 10;
/// The shortest part of a token after a line break.
const MIN_AFTER: usize = 6;
/// How many lines a token may have. Longer ones are keys and certificates, which have patterns of their own.
const MAX_LINES: usize = 8;
/// How long a part of a token in one line may be. Longer lines are no wrapped text.
const MAX_PART: usize = 512;

/// The ends of some lines that may be one token.
#[derive(Debug)]
pub(super) struct WrappedToken {
    pub(super) joined: String,
    /// The parts of the text that are joined.
    parts: Vec<Range<usize>>,
}

impl WrappedToken {
    /// Whether a keyword, in lower case, is in the first part.
    pub(super) fn begins_with_one_of(&self, keywords: &[&str]) -> bool {
        let first = self.joined[..self.parts[0].len()].to_ascii_lowercase();
        keywords.iter().any(|keyword| first.contains(keyword))
    }

    /// Returns the ranges of the text that are joined to this range.
    pub(super) fn parts(&self, joined: &Range<usize>) -> Vec<Range<usize>> {
        let mut from = 0;
        let mut found = Vec::new();
        for part in &self.parts {
            let (start, end) = (joined.start.max(from), joined.end.min(from + part.len()));
            if start < end {
                found.push(part.start + start - from..part.start + end - from);
            }
            from += part.len();
        }
        found
    }
}

/// Finds words at the end of a line that go on in the next one: it holds nothing but a part of a token.
pub(super) fn find(text: &str) -> impl Iterator<Item = WrappedToken> {
    let bytes = text.as_bytes();
    let mut done = 0;
    memchr_iter(b'\n', bytes).filter_map(move |end| {
        if end < done {
            return None;
        }
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        let len = line.iter().rev().take(MAX_PART).take_while(|b| is_part(**b)).count();
        if len < MIN_BEFORE {
            return None;
        }
        let first = line.len() - len..line.len();
        let mut parts = vec![first];
        let mut next = end + 1;
        while parts.len() < MAX_LINES
            && let Some(part) = next_part(text, next)
        {
            next = bytes[part.end..]
                .iter()
                .position(|b| *b == b'\n')
                .map_or(bytes.len(), |at| part.end + at + 1);
            parts.push(part);
        }
        if parts.len() == 1 {
            return None;
        }
        done = parts.last().map_or(0, |part| part.end);
        let joined = parts.iter().map(|part| &text[part.clone()]).collect();
        Some(WrappedToken { joined, parts })
    })
}

/// The part of a token that is all of the line at `start`, but for indentation and quotes.
fn next_part(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes().get(start..)?;
    let indent = bytes
        .iter()
        .take(MAX_PART)
        .take_while(|b| b" \t>|#\"'".contains(b))
        .count();
    let len = bytes[indent..]
        .iter()
        .take(MAX_PART)
        .take_while(|b| is_part(**b))
        .count();
    let rest = &bytes[indent + len..];
    let after = rest
        .iter()
        .take(MAX_PART)
        .take_while(|b| b" \t\r\"',;)".contains(b))
        .count();
    let is_last = rest.get(after).is_none_or(|b| *b == b'\n');
    let part = start + indent..start + indent + len;
    (len >= MIN_AFTER && is_last && plausibility::is_token_like(&text[part.clone()])).then_some(part)
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.+/=~".contains(&byte)
}
