//! Secrets that are known, in every form in which they may come back.

use std::collections::{BTreeSet, HashSet};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

use super::span::Span;
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

/// Known secrets, ready to be looked for.
#[derive(Default)]
pub(super) struct Values {
    all: Option<AhoCorasick>,
    count: usize,
    /// The first places of every form, to tell quickly that a text holds none.
    places: HashSet<[u8; 4]>,
    /// One bit for each of them by its hash, which is quicker still.
    bits: Vec<u64>,
}

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values", self.count)
    }
}

impl Values {
    pub(super) fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut forms = BTreeSet::new();
        for secret in secrets {
            let value = secret.expose().trim();
            if value.len() >= MIN_LEN && !is_common(value) {
                forms.extend(forms_of(value));
            }
        }
        let all = AhoCorasick::builder()
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
            places,
            bits,
            count: forms.len(),
            // Too many to be looked for is no reason to look for none, but there is no such number in practice.
            all: all.ok().filter(|_| !forms.is_empty()),
        }
    }

    pub(super) fn find(&self, text: &str) -> Vec<Span> {
        if !self.may_be_in(text) {
            return Vec::new();
        }
        let found = self.all.iter().flat_map(|all| all.find_iter(text));
        found.map(|found| Span::new(found.range(), NAME, MARK)).collect()
    }

    /// Whether a text holds a place of a form. Most texts do not, and are not looked at any closer.
    fn may_be_in(&self, text: &str) -> bool {
        if self.bits.is_empty() {
            return false;
        }
        let is_place = |place: &[u8]| {
            let Ok(place) = <[u8; 4]>::try_from(place) else {
                return false;
            };
            let hash = hash(place);
            self.bits[hash / 64] >> (hash % 64) & 1 == 1 && self.places.contains(&place)
        };
        text.as_bytes().windows(4).step_by(STEP).any(is_place)
    }

    /// Whether a text is one of them, whole.
    pub(super) fn contains(&self, text: &str) -> bool {
        let found = self.all.as_ref().and_then(|all| all.find(text));
        found.is_some_and(|found| found.range() == (0..text.len()))
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
        !Values::new([Secret::new(value)]).find(text).is_empty()
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
}
