//! Secrets that are known, in every form in which they may come back.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

use super::{Failed, span::Span};
use crate::secret::Secret;

/// Shorter values are not looked for: `1` or `true` would hide half of every text.
pub(super) const MIN_LEN: usize = 6;
/// Shorter pieces of an encoded secret could be anything.
const MIN_ENCODED: usize = 10;
/// The name that finds are counted under.
const NAME: &str = "secret";
const MARK: &str = "[MASKED_SECRET]";
/// A text is looked at in steps of this many bytes, four bytes at a time: every value is long enough to hold one such place.
const STEP: usize = MIN_LEN - 3;

/// The most secrets of one segment. A matcher for all of them takes milliseconds to build, which is the most that learning one secret costs.
const SEGMENT: usize = 256;

/// Known secrets, ready to be looked for.
///
/// They are kept in segments that never change. New secrets become a segment of their own, together with the smaller ones at the end, so
/// that each secret is built into a matcher a few times, and not whenever another one is learned.
#[derive(Default)]
pub(super) struct Values {
    /// The largest first.
    segments: Vec<Arc<Segment>>,
}

/// The matcher of some secrets.
struct Segment {
    secrets: Vec<Secret>,
    matcher: Matcher,
    count: usize,
    /// The first places of every form, to tell quickly that a text holds none.
    places: HashSet<[u8; 4]>,
    /// One bit for each of them by its hash, which is quicker still.
    bits: Vec<u64>,
}

enum Matcher {
    /// None of the secrets is long enough to be looked for.
    Nothing,
    Forms(AhoCorasick),
    /// The forms are too large for a matcher: nothing may be let through.
    Broken,
}

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count: usize = self.segments.iter().map(|segment| segment.count).sum();
        write!(f, "{count} values")
    }
}

impl Values {
    pub(super) fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        Self::default().with(secrets.into_iter().collect())
    }

    /// These values and further ones.
    pub(super) fn with(&self, mut new: Vec<Secret>) -> Self {
        let mut segments = self.segments.clone();
        while let Some(small) = segments.pop_if(|last| last.len() <= new.len() && last.len() + new.len() <= SEGMENT) {
            new.extend(small.secrets.iter().cloned());
        }
        segments.extend(new.chunks(SEGMENT).map(|part| Arc::new(Segment::new(part.to_vec()))));
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.len()));
        Self { segments }
    }

    /// The values without those that are no longer held. A segment is built anew once half of it has gone.
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

    /// Where they stand in a text. Fails if one of them cannot be looked for.
    pub(super) fn find(&self, text: &str) -> Result<Vec<Span>, Failed> {
        let mut spans = Vec::new();
        for segment in &self.segments {
            segment.find(text, &mut spans)?;
        }
        Ok(spans)
    }

    /// Whether a text is one of them, whole.
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
        let mut forms = BTreeSet::new();
        for secret in &secrets {
            let value = secret.expose().trim();
            if value.len() >= MIN_LEN && !is_common(value) {
                forms.extend(forms_of(value));
            }
        }
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms);
        let places: HashSet<[u8; 4]> = forms
            .iter()
            .flat_map(|form| form.as_bytes().windows(4).take(STEP))
            .filter_map(|place| place.try_into().ok())
            .collect();
        let mut bits = vec![0; if places.is_empty() { 0 } else { WORDS }];
        for place in &places {
            let hash = hash(*place);
            bits[hash / 64] |= 1 << (hash % 64);
        }
        Self {
            secrets,
            places,
            bits,
            count: forms.len(),
            matcher: match built {
                _ if forms.is_empty() => Matcher::Nothing,
                Ok(matcher) => Matcher::Forms(matcher),
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
            Matcher::Forms(matcher) if self.may_be_in(text) => {
                let found = matcher.find_iter(text);
                spans.extend(found.map(|found| Span::new(found.range(), NAME, MARK)));
                Ok(())
            }
            Matcher::Forms(_) | Matcher::Nothing => Ok(()),
            Matcher::Broken => Err(Failed),
        }
    }

    /// Whether a text holds a place of a form. Most texts do not, and are not looked at any closer.
    fn may_be_in(&self, text: &str) -> bool {
        let is_place = |place: &[u8]| {
            let Ok(place) = <[u8; 4]>::try_from(place) else {
                return false;
            };
            let hash = hash(place);
            self.bits[hash / 64] >> (hash % 64) & 1 == 1 && self.places.contains(&place)
        };
        !self.bits.is_empty() && text.as_bytes().windows(4).step_by(STEP).any(is_place)
    }

    fn contains(&self, text: &str) -> bool {
        match &self.matcher {
            Matcher::Forms(matcher) => matcher.find(text).is_some_and(|found| found.range() == (0..text.len())),
            Matcher::Nothing => false,
            Matcher::Broken => true,
        }
    }
}

/// How many words of bits there are.
const WORDS: usize = 1 << 10;

/// A number below the number of bits.
fn hash(place: [u8; 4]) -> usize {
    let spread = u32::from_le_bytes(place).wrapping_mul(0x9e37_79b1);
    usize::try_from(spread >> 16).unwrap_or(0)
}

/// Values that stand under secret names and would hide half of every text.
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

/// The value, and how it looks in JSON, URLs, base64 and hexadecimal digits.
fn forms_of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    if let Ok(json) = serde_json::to_string(value) {
        forms.push(json.trim_matches('"').to_owned());
    }
    forms.push(percent(value, false));
    forms.push(percent(value, true));
    forms.extend(
        url::form_urlencoded::byte_serialize(value.as_bytes())
            .fold(None, |all: Option<String>, part| Some(all.unwrap_or_default() + part)),
    );
    let hex: String = value.bytes().map(|b| format!("{b:02x}")).collect();
    forms.push(hex.to_ascii_uppercase());
    forms.push(hex);
    forms.extend(encoded(value).into_iter().filter(|form| form.len() >= MIN_ENCODED));
    forms
}

/// In base64 a value looks different at each of three places. The characters that depend on its neighbours are left out.
fn encoded(value: &str) -> Vec<String> {
    let mut forms = vec![STANDARD.encode(value)];
    for before in 0..3_usize {
        let padded = [vec![b'x'; before], value.as_bytes().to_vec()].concat();
        let from = (before * 4).div_ceil(3);
        let until = padded.len() * 8 / 6;
        for text in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            forms.push(text[from..until].to_owned());
        }
    }
    forms
}

/// Everything but letters, digits and `-._~` as percent codes.
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
        !Values::new([Secret::new(value)]).find(text).unwrap().is_empty()
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
    fn short_and_common_values_hide_nothing() {
        for value in ["", "1", "true", "debug", "default", "aaaaaaaa", "Bearer"] {
            assert!(!hides(value, &format!("x {value} y")), "{value}");
        }
    }

    #[test]
    fn no_value_is_printed() {
        assert_eq!(format!("{:?}", Values::default()), "0 values");
        assert!(!format!("{:?}", Values::new([Secret::new("hunter2hunter2")])).contains("hunter2"));
    }

    #[test]
    fn a_further_secret_costs_a_segment_and_not_a_matcher_for_all() {
        let secret = |n: usize| Secret::new(format!("user-{n}-token-{n:08}"));
        let mut values = Values::default();
        let mut built = 0;
        for n in 0..2000 {
            let old = values.segments.clone();
            values = values.with(vec![secret(n)]);
            let is_new = |segment: &&Arc<Segment>| !old.iter().any(|old| Arc::ptr_eq(old, segment));
            let new: usize = values.segments.iter().filter(is_new).map(|segment| segment.len()).sum();
            assert!(new <= SEGMENT, "the {n}th secret built {new}");
            built += new;
        }
        assert!(built < 2000 * 10, "{built} for 2000 secrets");
        assert!(
            values.segments.len() <= 2 * 2000 / SEGMENT + 9,
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
        let all = Values::new((0..100).map(secret));
        let some = all.without(|held| (0..40).any(|n| *held == secret(n)));
        assert_eq!(some.segments.iter().map(|segment| segment.len()).sum::<usize>(), 40);
        assert_eq!(some.find(secret(39).expose()).unwrap().len(), 1);
        assert!(some.find(secret(40).expose()).unwrap().is_empty());
        assert!(all.without(|_| false).segments.is_empty());
    }
}
