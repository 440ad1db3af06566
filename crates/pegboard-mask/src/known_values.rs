//! Finds known secrets in a text, in every form in which a program writes them.
//!
//! A text is not searched for a list of encodings. Four-byte [grams](grams) of the written forms tell where a secret may be, which most texts
//! pass without a hit. Around a hit the text is [decoded](view) in every way that is known, again if the result has a hit as well, and each
//! result is searched for the plain values, whatever their case.

mod grams;
mod view;

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memchr;

pub(super) use self::view::MIN_LEN;
use self::{
    grams::Grams,
    view::{Escapes, View},
};
use super::{span::Span, withheld::Failed};
use pegboard_base::secret::Secret;

/// The shortest value that is found in another case, or with a line break in it. Shorter ones match by chance.
const MIN_DISTINCT: usize = 10;
/// How often a text is decoded: base64 in base64 in a JSON string.
const MAX_DEPTH: usize = 3;
/// How many times as long as a value its longest written form is, and how much may stand between its lines.
const MAX_GROWTH: usize = 10;
const MAX_BETWEEN: usize = 64;
/// How many bytes are decoded for each byte of a text, and for any text.
const MAX_WORK: usize = 256;
const MIN_WORK: usize = 4 << 20;
/// The name under which known secrets are counted.
const COUNTED_AS: &str = "secret";
const PLACEHOLDER: &str = "[MASKED_SECRET]";

/// The length from which on a value is searched in parts, in bytes.
const MAX_CHUNK: usize = 1024;

/// The most secrets in one segment. Building a matcher for them takes milliseconds, which bounds the cost of learning one secret.
const MAX_SEGMENT: usize = 256;

/// The matchers of all known secrets.
///
/// The secrets are kept in immutable segments. New secrets form a new segment, merged with the smaller ones at the end, so each secret is
/// built into a matcher only a few times and not whenever another one is learned.
#[derive(Default)]
pub(super) struct KnownValues {
    /// The largest first.
    segments: Vec<Arc<Segment>>,
}

/// The matcher of some secrets.
struct Segment {
    secrets: Vec<Secret>,
    /// Whether no secret has a character that JSON escapes.
    is_printable: bool,
    matcher: Matcher,
    /// The values that the matcher finds.
    values: Vec<String>,
    /// The grams of every written form; a text without any of them holds no secret.
    grams: Grams,
    /// How far from a gram its value may begin or end.
    reach: usize,
}

enum Matcher {
    /// None of the secrets is long enough to be searched.
    Empty,
    Values(AhoCorasick),
    /// The values are too large for a matcher, so every text is withheld.
    Broken,
}

impl std::fmt::Debug for KnownValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count: usize = self.segments.iter().map(|segment| segment.values.len()).sum();
        write!(f, "{count} values")
    }
}

impl KnownValues {
    pub(super) fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        Self::default().with(secrets.into_iter().collect())
    }

    /// Returns these values and `new`.
    pub(super) fn with(&self, mut new: Vec<Secret>) -> Self {
        let mut segments = self.segments.clone();
        while let Some(small) = segments.pop_if(|last| last.len() <= new.len() && last.len() + new.len() <= MAX_SEGMENT)
        {
            new.extend(small.secrets.iter().cloned());
        }
        segments.extend(
            new.chunks(MAX_SEGMENT)
                .map(|part| Arc::new(Segment::new(part.to_vec()))),
        );
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.len()));
        Self { segments }
    }

    /// Drops values that are no longer held. A segment is rebuilt once half of its values are gone.
    pub(super) fn without(&self, is_held: impl Fn(&Secret) -> bool) -> Self {
        let mut kept = Vec::new();
        let mut segments = self.segments.clone();
        segments.retain(|segment| {
            let held: Vec<Secret> = segment
                .secrets
                .iter()
                .filter(|secret| is_held(secret))
                .cloned()
                .collect();
            let stays = held.len() * 2 > segment.len();
            if !stays {
                kept.extend(held);
            }
            stays
        });
        Self { segments }.with(kept)
    }

    /// Finds the values in a text. Fails if a segment has no matcher.
    pub(super) fn find(&self, text: &str) -> Result<Vec<Span>, Failed> {
        let mut spans = Vec::new();
        for segment in &self.segments {
            segment.find(text, &mut spans)?;
        }
        Ok(spans)
    }

    /// Whether a text holds a value. Fails if a segment has no matcher.
    pub(super) fn occur_in(&self, text: &str) -> Result<bool, Failed> {
        self.find(text).map(|found| !found.is_empty())
    }

    /// Whether no value has a character that JSON escapes.
    pub(super) fn are_printable(&self) -> bool {
        self.segments.iter().all(|segment| segment.is_printable)
    }

    /// Whether the whole text is one of the values.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.segments.iter().any(|segment| segment.contains(text))
    }

    #[cfg(test)]
    pub(super) fn broken() -> Self {
        let segment = Segment {
            matcher: Matcher::Broken,
            ..Segment::new(vec![Secret::new("hunter2hunter2")])
        };
        Self {
            segments: vec![Arc::new(segment)],
        }
    }
}

impl Segment {
    fn new(secrets: Vec<Secret>) -> Self {
        let mut values = BTreeSet::new();
        let is_searched = |value: &&str| value.len() >= MIN_LEN && !is_common(value);
        let exposed = secrets.iter().map(|secret| secret.expose().trim());
        let parts: Vec<&str> = exposed.filter(is_searched).flat_map(chunks).collect();
        for part in &parts {
            // In the body of a form, a plus sign stands for a space.
            values.insert(part.replace(' ', "+"));
            values.insert((*part).to_owned());
            if part.len() >= MIN_DISTINCT {
                values.insert(part.chars().rev().collect());
            }
        }
        let bytes: usize = values.iter().map(String::len).sum();
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .kind((bytes > MAX_DFA_BYTES).then_some(AhoCorasickKind::ContiguousNFA))
            .build(&values);
        let is_escaped = |c: char| c.is_control() || matches!(c, '"' | '\\');
        let is_printable = secrets
            .iter()
            .all(|secret| !secret.expose().trim().contains(is_escaped));
        let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
        let matcher = match built {
            _ if values.is_empty() => Matcher::Empty,
            Ok(matcher) => Matcher::Values(matcher),
            Err(error) => {
                tracing::warn!(%error, "the known secrets cannot be looked for, so everything is withheld");
                Matcher::Broken
            }
        };
        Self {
            is_printable,
            matcher,
            grams: Grams::new(parts.into_iter()),
            values: values.into_iter().collect(),
            reach: longest * MAX_GROWTH + MAX_BETWEEN,
            secrets,
        }
    }

    fn len(&self) -> usize {
        self.secrets.len()
    }

    fn find(&self, text: &str, spans: &mut Vec<Span>) -> Result<(), Failed> {
        match &self.matcher {
            Matcher::Values(matcher) => {
                let mut search = Search {
                    segment: self,
                    matcher,
                    work: text.len().saturating_mul(MAX_WORK).saturating_add(MIN_WORK),
                };
                let found = search.run(text.as_bytes(), MIN_LEN, 0)?;
                spans.extend(found.into_iter().map(|range| Span::new(range, COUNTED_AS, PLACEHOLDER)));
                Ok(())
            }
            Matcher::Empty => Ok(()),
            Matcher::Broken => Err(Failed),
        }
    }

    fn contains(&self, text: &str) -> bool {
        let mut spans = Vec::new();
        self.find(text, &mut spans).is_err() || spans.iter().any(|span| span.range == (0..text.len()))
    }
}

/// One search of a text for the values of a segment.
struct Search<'s> {
    segment: &'s Segment,
    matcher: &'s AhoCorasick,
    /// How many more bytes may be decoded. A text that was made to take longer is withheld.
    work: usize,
}

impl Search<'_> {
    /// Returns the ranges of a text that hold a value of at least `min` bytes. Costs one pass over a text without grams.
    fn run(&mut self, text: &[u8], min: usize, depth: usize) -> Result<Vec<Range<usize>>, Failed> {
        let (segment, reach) = (self.segment, self.segment.reach);
        let mut all = Vec::new();
        let mut places = segment.grams.places(text).peekable();
        while let Some(first) = places.next() {
            let mut near = vec![first];
            let mut window = first.saturating_sub(reach)..first + reach;
            while let Some(next) = places.next_if(|next| *next <= window.end + reach) {
                window.end = next + reach;
                near.push(next);
            }
            window.end = window.end.min(text.len());
            let part = &text[window.clone()];
            let mut found = self.find_values(part, min);
            // Grams in plain values are explained.
            let mut explained = found.iter().peekable();
            near.retain(|place| {
                let place = place - window.start;
                while explained.next_if(|range| range.end <= place).is_some() {}
                explained.peek().is_none_or(|range| place < range.start)
            });
            if depth < MAX_DEPTH && !near.is_empty() {
                for (view, min) in views(part) {
                    self.work = self.work.checked_sub(view.bytes.len()).ok_or(Failed)?;
                    let inner = self.run(&view.bytes, min, depth + 1)?;
                    found.extend(inner.iter().filter_map(|range| view.source(range)));
                }
            }
            all.extend(
                found
                    .into_iter()
                    .map(|range| range.start + window.start..range.end + window.start),
            );
        }
        Ok(all)
    }

    /// Returns the ranges of values that are not encoded, in order.
    fn find_values(&self, text: &[u8], min: usize) -> Vec<Range<usize>> {
        let is_value = |found: &aho_corasick::Match| {
            let (value, part) = (
                self.segment.values[found.pattern().as_usize()].as_bytes(),
                &text[found.range()],
            );
            part.len() >= min && (part == value || is_distinct(value))
        };
        self.matcher
            .find_iter(text)
            .filter(is_value)
            .map(|found| found.range())
            .collect()
    }
}

/// Decodes a text in every way that changes it, and returns for each result how long the values that count in it are.
fn views(text: &[u8]) -> Vec<(View, usize)> {
    let has = |byte: u8| memchr(byte, text).is_some();
    let mut views = vec![
        (view::decode_runs(text, 6, view::base64_digit), MIN_LEN),
        (view::decode_runs(text, 5, view::base32_digit), MIN_LEN),
        (view::decode_hex(text), MIN_LEN),
        (view::decode_decimals(text), MIN_LEN),
        (view::join_spaced(text), MIN_DISTINCT),
    ];
    let unescaped = view::unescape(text, Escapes::Common);
    if has(b'\n') || has(b'"') || has(b'\'') {
        let joined = view::unescape(text, Escapes::Joined);
        if joined.bytes.len() < unescaped.bytes.len() {
            views.push((joined, MIN_DISTINCT));
        }
    }
    if unescaped.bytes.len() < text.len() {
        views.push((unescaped, MIN_LEN));
    }
    if has(b'=') {
        let quoted_printable = view::unescape(text, Escapes::QuotedPrintable);
        if quoted_printable.bytes.len() < text.len() {
            views.push((quoted_printable, MIN_LEN));
        }
    }
    views
}

/// Whether a value is the same secret in another case. Words are written in any case, so only values with letters and digits are.
fn is_distinct(value: &[u8]) -> bool {
    value.len() >= MIN_DISTINCT && value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// Up to how many bytes of values the matcher may be a DFA, which is faster. A DFA takes about 300 bytes for each of them, so the tokens of
/// many users would fill the memory.
const MAX_DFA_BYTES: usize = 16 << 10;

/// Whether a value is a common word or one repeated character. Configs have such values under secret names, and masking them would mask half
/// of every text.
fn is_common(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let words = [
        "bearer",
        "default",
        "disabled",
        "enabled",
        "required",
        "optional",
        "production",
        "development",
        "localhost",
        "password",
        "secret",
    ];
    words.contains(&lower.as_str()) || value.bytes().all(|b| b == value.as_bytes()[0])
}

/// Splits a long value into parts that are searched one by one, so that the size of a matcher stays in proportion.
fn chunks(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        // The last part must be long enough to be searched.
        let end = match rest.len() {
            0 => return None,
            1..MAX_CHUNK => rest.len(),
            _ => rest.floor_char_boundary(MAX_CHUNK / 2),
        };
        let (chunk, after) = rest.split_at(end);
        rest = after;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests;
