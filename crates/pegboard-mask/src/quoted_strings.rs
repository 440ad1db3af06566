//! Masks inside quoted strings of JSON, YAML and source code. A secret in one may be escaped, or the string may be a whole document, so the
//! strings are unescaped before they are searched.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    ops::Range,
};

use memchr::{memchr, memchr2};

use super::{counts::Counts, span::Span, withheld::Failed};

/// Adds a span for every quoted string with escapes that holds a secret.
///
/// Sorts `spans` by their start. The cost is linear in the text and, but for the sort, in the number of spans.
pub(super) fn find(
    text: &str,
    spans: &mut Vec<Span>,
    counts: &mut Counts,
    clean: &mut CleanStrings,
    masked: impl Fn(&str, &mut Counts) -> Result<Option<String>, Failed>,
) -> Result<(), Failed> {
    if memchr(b'\\', text.as_bytes()).is_none() {
        return Ok(());
    }
    // Stable, because of spans with the same range the first one is counted.
    spans.sort_by_key(|span| span.range.start);
    let mut coverage = Coverage::default();
    let mut found: Vec<Span> = Vec::new();
    for range in find_quoted_strings(text) {
        let literal = &text[range.clone()];
        // Without escapes the search of the whole text has found the value already.
        if memchr(b'\\', literal.as_bytes()).is_none() || coverage.covers(&range, spans) || clean.has(literal) {
            continue;
        }
        let Ok(unescaped) = serde_json::from_str::<String>(literal) else {
            continue;
        };
        let Some(hidden) = masked(&unescaped, counts)? else {
            clean.add(literal);
            continue;
        };
        let replacement = serde_json::to_string(&hidden).map_err(|_| Failed)?;
        clean.add(&replacement);
        found.push(Span {
            replacement: replacement.into(),
            name: UNCOUNTED.into(),
            range,
        });
    }
    // Spans inside a replaced string are part of it and already counted.
    let mut at = 0;
    spans.retain(|span| {
        while found
            .get(at)
            .is_some_and(|literal| literal.range.end <= span.range.start)
        {
            at += 1;
        }
        let literal = found.get(at).map(|literal| &literal.range);
        !literal.is_some_and(|literal| literal.start <= span.range.start && span.range.end <= literal.end)
    });
    spans.append(&mut found);
    Ok(())
}

/// The name of a span whose secrets were counted already.
pub(super) const UNCOUNTED: &str = "";

/// The hashes of quoted strings without secrets. Later rounds skip them; searching them again would multiply the cost at every depth of
/// quoting.
#[derive(Debug, Default)]
pub(super) struct CleanStrings {
    /// Randomly keyed, so that a server cannot craft a string that collides with a clean one.
    hasher: RandomState,
    hashes: HashSet<u64>,
}

impl CleanStrings {
    fn has(&self, literal: &str) -> bool {
        !self.hashes.is_empty() && self.hashes.contains(&self.hasher.hash_one(literal))
    }

    fn add(&mut self, literal: &str) {
        self.hashes.insert(self.hasher.hash_one(literal));
    }
}

/// Tells whether a span covers a range. Ranges are queried in ascending order.
#[derive(Debug, Default)]
struct Coverage {
    /// How many spans start at or before the last range.
    passed: usize,
    /// The furthest end of those.
    end: usize,
}

impl Coverage {
    /// Whether one span covers all of `range`. `spans` are sorted by their start.
    fn covers(&mut self, range: &Range<usize>, spans: &[Span]) -> bool {
        while let Some(span) = spans.get(self.passed).filter(|span| span.range.start <= range.start) {
            self.end = self.end.max(span.range.end);
            self.passed += 1;
        }
        self.end >= range.end
    }
}

/// Returns the ranges of quoted strings, with their quotes. A string without a closing quote is skipped.
fn find_quoted_strings(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = memchr(b'"', &bytes[at..]) {
        let open = at + open;
        let mut end = open + 1;
        loop {
            match memchr2(b'"', b'\\', &bytes[end..]) {
                None => return found,
                Some(step) if bytes[end + step] == b'"' => {
                    end += step + 1;
                    break;
                }
                Some(step) => end = (end + step + 2).min(bytes.len()),
            }
        }
        found.push(open..end);
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts_are_found_with_their_escapes() {
        let text = r#"{"a": "x\"y", "b\\": 1, "c": "open"#;
        let found: Vec<_> = find_quoted_strings(text)
            .into_iter()
            .map(|range| &text[range])
            .collect();
        assert_eq!(found, [r#""a""#, r#""x\"y""#, r#""b\\""#, r#""c""#]);
    }
}
