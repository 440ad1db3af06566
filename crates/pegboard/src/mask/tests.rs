//! What the masker promises.

mod corpus;
mod kubernetes;
mod promises;
mod properties;

use std::collections::BTreeSet;

use super::*;
use corpus::CORPUS;

/// A masker that looks for what is on by default, and for `patterns` as well.
fn masker(patterns: &[&str]) -> Masker {
    let mut policy = Masking::default();
    policy.patterns = patterns.iter().map(|name| (*name).to_owned()).collect();
    Masker::new(&policy, []).unwrap()
}

/// The parts of a case that are the secret: the longest ones.
fn secrets<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
    let is_secret = |part: &&&str| part.len() == longest && !part.contains([' ', ':']);
    parts.iter().filter(is_secret).copied().collect()
}

#[test]
fn every_pattern_hides_what_it_must_and_leaves_what_it_must() {
    for (name, secret, harmless) in CORPUS {
        let only = patterns::named(name).is_some_and(|rule| !rule.default);
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

#[test]
fn zz_vectors() {
    let Ok(text) = std::fs::read_to_string("/work/shared/masking-vectors.json") else { return };
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut policy = Masking::default();
    policy.groups = vec!["pii".into()];
    let masker = Masker::new(&policy, []).unwrap();
    let mut bad = 0;
    for class in all["classes"].as_array().unwrap() {
        let join = |v: &serde_json::Value| v.as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect::<String>();
        for v in class["secret"].as_array().unwrap() {
            let text = join(v);
            let m = masker.text(&text);
            if m.text == text { bad += 1; println!("LEAK {} {text}", class["id"]); } else { println!("ok {} -> {}", class["id"], m.text); }
        }
        for v in class["harmless"].as_array().unwrap() {
            let text = join(v);
            let m = masker.text(&text);
            if m.text != text { bad += 1; println!("OVER {} {text} -> {}", class["id"], m.text); }
        }
    }
    assert_eq!(bad, 0);
}
