//! Finds known secrets in a text, also in JSON, URL, base64 and hex encoding.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

use super::{span::Span, withheld::Failed};
use crate::secret::Secret;

/// The shortest value that is searched, in bytes. Values such as `1` or `true` would mask half of every text.
pub(super) const MIN_LEN: usize = 6;
/// The shortest base64 encoding that is searched. Shorter ones match by chance.
const MIN_ENCODED: usize = 10;
/// The name under which known secrets are counted.
const COUNTED_AS: &str = "secret";
const PLACEHOLDER: &str = "[MASKED_SECRET]";
/// The distance between the four-byte grams that are looked up in a text. Every value is long enough to contain one of them.
const STEP: usize = MIN_LEN - 3;

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
    count: usize,
    /// The first grams of every encoding; a text without any of them holds no secret.
    grams: HashSet<[u8; 4]>,
    /// A bitmap of the grams' hashes, checked before the set.
    bits: Vec<u64>,
}

enum Matcher {
    /// None of the secrets is long enough to be searched.
    Empty,
    Encodings(AhoCorasick),
    /// The encodings are too large for a matcher, so every text is withheld.
    Broken,
}

impl std::fmt::Debug for KnownValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count: usize = self.segments.iter().map(|segment| segment.count).sum();
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
        let mut encodings = BTreeSet::new();
        for secret in &secrets {
            let value = secret.expose().trim();
            if value.len() >= MIN_LEN && !is_common(value) {
                chunks(value).for_each(|chunk| encodings.extend(encodings_of(chunk)));
            }
        }
        let bytes: usize = encodings.iter().map(String::len).sum();
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind((bytes > MAX_DFA_BYTES).then_some(AhoCorasickKind::ContiguousNFA))
            .build(&encodings);
        let grams: HashSet<[u8; 4]> = encodings
            .iter()
            .flat_map(|encoding| encoding.as_bytes().windows(4).take(STEP))
            .filter_map(|gram| gram.try_into().ok())
            .collect();
        let mut bits = vec![0; if grams.is_empty() { 0 } else { BIT_WORDS }];
        for gram in &grams {
            let hash = hash(*gram);
            bits[hash / 64] |= 1 << (hash % 64);
        }
        let is_escaped = |c: char| c.is_control() || matches!(c, '"' | '\\');
        let is_printable = secrets
            .iter()
            .all(|secret| !secret.expose().trim().contains(is_escaped));
        Self {
            secrets,
            is_printable,
            grams,
            bits,
            count: encodings.len(),
            matcher: match built {
                _ if encodings.is_empty() => Matcher::Empty,
                Ok(matcher) => Matcher::Encodings(matcher),
                Err(error) => {
                    tracing::warn!(%error, "the known secrets cannot be looked for, so everything is withheld");
                    Matcher::Broken
                }
            },
        }
    }

    fn len(&self) -> usize {
        self.secrets.len()
    }

    fn find(&self, text: &str, spans: &mut Vec<Span>) -> Result<(), Failed> {
        match &self.matcher {
            Matcher::Encodings(matcher) if self.may_occur_in(text) => {
                let found = matcher.find_iter(text);
                spans.extend(found.map(|found| Span::new(found.range(), COUNTED_AS, PLACEHOLDER)));
                Ok(())
            }
            Matcher::Encodings(_) | Matcher::Empty => Ok(()),
            Matcher::Broken => Err(Failed),
        }
    }

    /// Whether a text contains a gram of an encoding. Most texts do not, and skip the matcher.
    fn may_occur_in(&self, text: &str) -> bool {
        let is_gram = |gram: &[u8]| {
            let Ok(gram) = <[u8; 4]>::try_from(gram) else {
                return false;
            };
            let hash = hash(gram);
            self.bits[hash / 64] >> (hash % 64) & 1 == 1 && self.grams.contains(&gram)
        };
        !self.bits.is_empty() && text.as_bytes().windows(4).step_by(STEP).any(is_gram)
    }

    fn contains(&self, text: &str) -> bool {
        match &self.matcher {
            Matcher::Encodings(matcher) => matcher.find(text).is_some_and(|found| found.range() == (0..text.len())),
            Matcher::Empty => false,
            Matcher::Broken => true,
        }
    }
}

/// Up to how many bytes of encodings the matcher may be a DFA, which is faster. A DFA takes about 300 bytes for each of them, so the tokens of
/// many users would fill the memory.
const MAX_DFA_BYTES: usize = 16 << 10;

/// The size of the bitmap, in 64-bit words.
const BIT_WORDS: usize = 1 << 10;

/// Hashes a gram to a bit of the bitmap.
fn hash(gram: [u8; 4]) -> usize {
    let spread = u32::from_le_bytes(gram).wrapping_mul(0x9e37_79b1);
    usize::try_from(spread >> 16).unwrap_or(0)
}

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

/// The value as it is, and its JSON, HTML, URL, base64 and hex encodings.
fn encodings_of(value: &str) -> Vec<String> {
    let mut encodings = vec![value.to_owned()];
    encodings.extend(json_encodings(value));
    encodings.push(html(value));
    encodings.push(percent(value, false));
    encodings.push(percent(value, true));
    encodings.extend(
        url::form_urlencoded::byte_serialize(value.as_bytes())
            .fold(None, |all: Option<String>, part| Some(all.unwrap_or_default() + part)),
    );
    let hex: String = value.bytes().map(|b| format!("{b:02x}")).collect();
    encodings.push(hex.to_ascii_uppercase());
    encodings.push(hex);
    encodings.extend(
        base64_encodings(value)
            .into_iter()
            .filter(|encoding| encoding.len() >= MIN_ENCODED),
    );
    encodings
}

/// The value in a JSON string: as most programs write it, with escaped slashes, with escaped HTML characters, and in ASCII only.
fn json_encodings(value: &str) -> Vec<String> {
    let Ok(quoted) = serde_json::to_string(value) else {
        return Vec::new();
    };
    let json = quoted[1..quoted.len() - 1].to_owned();
    let escaped = |is_escaped: fn(char) -> bool| {
        let mut out = String::new();
        for c in json.chars() {
            let mut units = [0; 2];
            match is_escaped(c) {
                true => c
                    .encode_utf16(&mut units)
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
                false => out.push(c),
            }
        }
        out
    };
    vec![
        json.replace('/', "\\/"),
        escaped(|c| matches!(c, '<' | '>' | '&')),
        escaped(|c| matches!(c, '<' | '>' | '&' | '\'' | '+')),
        escaped(|c| !c.is_ascii()),
        json,
    ]
}

/// The value in an HTML or XML text.
fn html(value: &str) -> String {
    let mut out = String::new();
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The base64 encodings of a value at each of the three alignments, without the characters that depend on neighbouring bytes.
fn base64_encodings(value: &str) -> Vec<String> {
    let mut encodings = vec![STANDARD.encode(value)];
    for before in 0..3_usize {
        let padded = [vec![b'x'; before], value.as_bytes().to_vec()].concat();
        let from = (before * 4).div_ceil(3);
        let until = padded.len() * 8 / 6;
        for text in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            encodings.push(text[from..until].to_owned());
        }
    }
    encodings
}

/// Percent-encodes everything but letters, digits and `-._~`.
fn percent(value: &str, lower: bool) -> String {
    let mut out = String::new();
    for b in value.bytes() {
        match b {
            b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => out.push(char::from(b)),
            b if lower => out.push_str(&format!("%{b:02x}")),
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(value: &str, text: &str) -> bool {
        !KnownValues::new([Secret::new(value)]).find(text).unwrap().is_empty()
    }

    #[test]
    fn a_value_is_found_in_every_form() {
        let value = "p@ss \"wörd\"/1";
        for text in [
            value.to_owned(),
            serde_json::to_string(&format!("x{value}")).unwrap(),
            "p%40ss%20%22w%C3%B6rd%22%2F1".to_owned(),
            "p%40ss+%22w%C3%B6rd%22%2F1".to_owned(),
            "p%40ss%20%22w%c3%b6rd%22%2f1".to_owned(),
            "70407373202277c3b67264222f31".to_owned(),
            "p@ss \\\"w\\u00f6rd\\\"/1".to_owned(),
            "p@ss \\\"wörd\\\"\\/1".to_owned(),
            "p@ss &quot;wörd&quot;/1".to_owned(),
        ] {
            assert!(hides(value, &text), "{text}");
        }
        for before in ["", "u", "me", "you", "user:"] {
            for after in ["", "a", "bc", "def"] {
                let text = format!("{before}{value}{after}");
                assert!(hides(value, &STANDARD.encode(&text)), "{text}");
                assert!(hides(value, &URL_SAFE_NO_PAD.encode(&text)), "{text}");
            }
        }
    }

    #[test]
    fn a_value_is_found_at_every_place() {
        for value in ["abc123", "s3cret-value", "a-much-longer-value-than-these"] {
            for before in 0..20 {
                for after in 0..5 {
                    let text = format!("{}{value}{}", "x".repeat(before), "y".repeat(after));
                    assert!(hides(value, &text), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_long_value_is_found_as_a_whole_and_in_parts() {
        let value: String = (0..1000).map(|n| format!("{n:x}é")).collect();
        let values = KnownValues::new([Secret::new(value.as_str())]);
        let spans = values.find(&value).unwrap();
        let covered: usize = spans.iter().map(|span| span.range.len()).sum();
        assert_eq!(covered, value.len());
        let longest = values.segments.iter().map(|segment| segment.count).max();
        assert!(longest < Some(200), "{longest:?}");
    }

    #[test]
    fn short_and_common_values_hide_nothing() {
        for value in ["", "1", "true", "debug", "default", "aaaaaaaa", "Bearer"] {
            assert!(!hides(value, &format!("x {value} y")), "{value}");
        }
    }

    #[test]
    fn no_value_is_printed() {
        assert_eq!(format!("{:?}", KnownValues::default()), "0 values");
        assert!(!format!("{:?}", KnownValues::new([Secret::new("hunter2hunter2")])).contains("hunter2"));
    }

    #[test]
    fn a_further_secret_costs_a_segment_and_not_a_matcher_for_all() {
        let secret = |n: usize| Secret::new(format!("user-{n}-token-{n:08}"));
        let mut values = KnownValues::default();
        let mut built = 0;
        for n in 0..2000 {
            let old = values.segments.clone();
            values = values.with(vec![secret(n)]);
            let is_new = |segment: &&Arc<Segment>| !old.iter().any(|old| Arc::ptr_eq(old, segment));
            let new: usize = values.segments.iter().filter(is_new).map(|segment| segment.len()).sum();
            assert!(new <= MAX_SEGMENT, "the {n}th secret built {new}");
            built += new;
        }
        assert!(built < 2000 * 10, "{built} for 2000 secrets");
        assert!(
            values.segments.len() <= 2 * 2000 / MAX_SEGMENT + 9,
            "{}",
            values.segments.len()
        );
        for n in [0, 1, 255, 256, 1000, 1999] {
            assert_eq!(
                values.find(&format!("it is {}.", secret(n).expose())).unwrap().len(),
                1,
                "{n}"
            );
        }
    }

    #[test]
    fn what_is_not_held_any_more_goes_with_its_segment() {
        let secret = |n: usize| Secret::new(format!("user-{n}-token-{n:08}"));
        let all = KnownValues::new((0..100).map(secret));
        let some = all.without(|held| (0..40).any(|n| *held == secret(n)));
        assert_eq!(some.segments.iter().map(|segment| segment.len()).sum::<usize>(), 40);
        assert_eq!(some.find(secret(39).expose()).unwrap().len(), 1);
        assert!(some.find(secret(40).expose()).unwrap().is_empty());
        assert!(all.without(|_| false).segments.is_empty());
    }
}
