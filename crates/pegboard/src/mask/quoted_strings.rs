//! Quoted texts, as JSON, YAML and programs have them. A secret in one may be written with escapes, or be a document of its own, so they are looked at as they are meant.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    ops::Range,
};

use memchr::{memchr, memchr2};

use super::{Counts, Failed, span::Span};

/// Adds a span for every quoted text with escapes in it that holds something to hide.
///
/// Sorts `spans` by their start. The cost is linear in the text and, but for the sort, in the number of spans.
pub(super) fn find(
    text: &str,
    spans: &mut Vec<Span>,
    counts: &mut Counts,
    clean: &mut Clean,
    masked: impl Fn(&str, &mut Counts) -> Result<Option<String>, Failed>,
) -> Result<(), Failed> {
    if memchr(b'\\', text.as_bytes()).is_none() {
        return Ok(());
    }
    // Stable: of spans at the same place the first one gives its name to the find.
    spans.sort_by_key(|span| span.range.start);
    let mut reach = Reach::default();
    let mut found: Vec<Span> = Vec::new();
    for range in quoted(text) {
        let literal = &text[range.clone()];
        // The same value is found outside of the quotes as well when nothing in it is escaped.
        if memchr(b'\\', literal.as_bytes()).is_none() || reach.covers(&range, spans) || clean.has(literal) {
            continue;
        }
        let Ok(meant) = serde_json::from_str::<String>(literal) else {
            continue;
        };
        let Some(hidden) = masked(&meant, counts)? else {
            clean.add(literal);
            continue;
        };
        let with = serde_json::to_string(&hidden).map_err(|_| Failed)?;
        clean.add(&with);
        found.push(Span {
            with: with.into(),
            name: UNCOUNTED.into(),
            range,
        });
    }
    // What was found in the escaped form is part of it, and is counted there.
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

/// The name of a span whose finds were counted already.
pub(super) const UNCOUNTED: &str = "";

/// Quoted texts in which nothing is left to hide, by their hashes. They stay as they are when the text around them is looked through again,
/// and are not looked through again each time: that would multiply at every depth of quoting.
#[derive(Debug, Default)]
pub(super) struct Clean {
    /// Its keys are random, so that no text can be made to look like another.
    hasher: RandomState,
    hashes: HashSet<u64>,
}

impl Clean {
    fn has(&self, literal: &str) -> bool {
        !self.hashes.is_empty() && self.hashes.contains(&self.hasher.hash_one(literal))
    }

    fn add(&mut self, literal: &str) {
        self.hashes.insert(self.hasher.hash_one(literal));
    }
}

/// How far the spans reach that begin at or before a place. Places are asked for in ascending order.
#[derive(Debug, Default)]
struct Reach {
    /// How many spans begin at or before the last place.
    passed: usize,
    /// The furthest end of those.
    end: usize,
}

impl Reach {
    /// Whether one span covers all of `range`. `spans` are sorted by their start.
    fn covers(&mut self, range: &Range<usize>, spans: &[Span]) -> bool {
        while let Some(span) = spans.get(self.passed).filter(|span| span.range.start <= range.start) {
            self.end = self.end.max(span.range.end);
            self.passed += 1;
        }
        self.end >= range.end
    }
}

/// The quoted texts, with their quotes. One that is not closed is left out.
fn quoted(text: &str) -> Vec<Range<usize>> {
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
        let found: Vec<_> = quoted(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, [r#""a""#, r#""x\"y""#, r#""b\\""#, r#""c""#]);
    }
}
