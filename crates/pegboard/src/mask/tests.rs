//! Tests of the masker as a whole.

mod behaviour;
mod corpus;
mod kubernetes;
mod properties;

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use super::{
    pattern_set::PatternSet,
    withheld::{WITHHELD, WITHHELD_NAME},
    *,
};
use crate::secret::Secret;
use corpus::CORPUS;

/// A masker with the default patterns and `patterns`.
fn masker(patterns: &[&str]) -> Masker {
    let policy = Masking {
        patterns: patterns.iter().map(|name| (*name).to_owned()).collect(),
        ..Masking::default()
    };
    Masker::new(&policy, []).unwrap()
}

/// The parts of a case that are the secret: its longest parts.
fn secrets<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
    let is_secret = |part: &&&str| part.len() == longest && !part.contains([' ', ':']);
    parts.iter().filter(is_secret).copied().collect()
}

#[test]
fn every_pattern_hides_what_it_must_and_leaves_what_it_must() {
    for (name, secret, harmless) in CORPUS {
        let only = patterns::named(name).is_some_and(|pattern| !pattern.default);
        let asked: &[&str] = &[name];
        let masker = masker(if only { asked } else { &[] });
        let text = secret.concat();
        let masked = masker.text(&text);
        assert_ne!(masked.text, text, "{name}");
        for part in secrets(secret) {
            assert!(!masked.text.contains(part), "{name}: {}", masked.text);
        }
        let harmless = harmless.concat();
        assert_eq!(masker.text(&harmless).text, harmless, "{name}");
    }
    let tested: BTreeSet<&str> = CORPUS.iter().map(|(name, ..)| *name).collect();
    let missing: Vec<_> = Masker::pattern_names().filter(|name| !tested.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}
