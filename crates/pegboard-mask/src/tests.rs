//! Tests of the masker as a whole.

mod behaviour;
mod kubernetes;
mod properties;
mod regressions;
mod vectors;

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use super::{
    pattern_set::PatternSet,
    withheld::{WITHHELD, WITHHELD_NAME},
    *,
};
use crate::corpus::CORPUS;
use pegboard_base::secret::Secret;
use vectors::VECTORS;

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
        let only = patterns::find_named(name).is_some_and(|pattern| !pattern.default);
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

/// The masker of a class: with the default patterns, and with its own if that is off by default.
fn masker_of(name: &str, is_default: bool) -> Masker {
    let asked: &[&str] = &[name];
    masker(if is_default { &[] } else { asked })
}

#[test]
fn samples_of_every_class_are_hidden_as_text_with_any_prefix() {
    for (name, is_default, secret, harmless) in VECTORS {
        let masker = masker_of(name, *is_default);
        let (text, harmless) = (secret.concat(), harmless.concat());
        for prefix in [
            "",
            "    ",
            "> ",
            "+",
            "# ",
            "12: ",
            "| ",
            "2026-03-01T10:00:00Z INFO ",
            "\u{1b}[32m",
        ] {
            let lines: Vec<String> = text.lines().map(|line| format!("{prefix}{line}")).collect();
            let shown = masker.text(&lines.join("\n")).text.into_owned();
            for part in secrets(secret) {
                assert!(!shown.contains(part), "{name} after {prefix:?}: {shown}");
            }
        }
        assert_eq!(masker.text(&harmless).text, harmless, "{name}");
    }
}

#[test]
fn samples_of_every_class_are_hidden_as_structured_content() {
    for (name, is_default, secret, harmless) in VECTORS {
        let masker = masker_of(name, *is_default);
        let text = secret.concat();
        let mut values = vec![serde_json::json!({"note": text, "list": [text]})];
        // An assignment becomes a field, and a document a value.
        if let Some((key, value)) = text.split_once(": ").or_else(|| text.split_once('='))
            && !key.contains(['{', ';', '?', '/', ' '])
        {
            values.push(serde_json::json!({ key: value }));
            values.push(serde_json::json!([{"name": key, "value": value}, {"value": value, "key": key}]));
        }
        values.extend(serde_json::from_str::<serde_json::Value>(&text));
        for mut value in values {
            masker.value(&mut value);
            for part in secrets(secret) {
                assert!(!value.to_string().contains(part), "{name}: {value}");
            }
        }
        let mut value = serde_json::json!({"note": harmless.concat()});
        let before = value.clone();
        masker.value(&mut value);
        assert_eq!(value, before, "{name}");
    }
}

#[test]
fn samples_of_every_class_are_hidden_when_their_lines_come_one_by_one() {
    for (name, is_default, secret, _) in VECTORS {
        let masker = masker_of(name, *is_default);
        for prefix in ["", "> ", "[stderr] "] {
            let mut carried = Carried::default();
            let text = secret.concat();
            let lines = text.lines().map(|line| format!("{prefix}{line}"));
            let shown: Vec<String> = { lines }
                .map(|line| masker.next_text(&line, &mut carried).text.into_owned())
                .collect();
            for part in secrets(secret) {
                assert!(!shown.concat().contains(part), "{name}: {shown:?}");
            }
        }
    }
}

#[test]
fn the_lines_of_a_putty_key_are_hidden_one_by_one_too() {
    let (_, _, secret, _) = VECTORS.iter().find(|(name, ..)| *name == "putty_private_key").unwrap();
    let (masker, mut carried) = (masker(&[]), Carried::default());
    let text = secret.concat();
    let shown: Vec<String> = text
        .lines()
        .map(|line| masker.next_text(line, &mut carried).text.into_owned())
        .collect();
    let hidden: Vec<&str> = secret
        .iter()
        .filter(|part| part.len() > 50 && !part.contains(' '))
        .copied()
        .collect();
    assert_eq!(hidden.len(), 2);
    assert!(hidden.iter().all(|part| !shown.concat().contains(part)), "{shown:?}");
}

#[test]
fn samples_with_a_distinctive_format_are_hidden_in_base64_and_percent_encoding() {
    use base64::{
        Engine as _,
        engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
    };

    for (name, is_default, secret, _) in VECTORS {
        if !patterns::find_named(name).is_some_and(|pattern| pattern.is_distinctive() && *is_default) {
            continue;
        }
        let masker = masker(&[]);
        let text = secret.concat();
        let once = STANDARD.encode(format!("the value: {text}"));
        let twice = URL_SAFE_NO_PAD.encode(&once);
        for encoded in [once, twice] {
            let shown = masker.text(&encoded).text.into_owned();
            assert!(!shown.contains(&encoded[..20]), "{name}: {shown}");
        }
    }
}

/// The text of a sample, and the secrets in it.
fn joined(pieces: &[regressions::Piece]) -> (String, Vec<String>) {
    let (mut text, mut secrets) = (String::new(), Vec::new());
    for piece in pieces {
        match piece {
            regressions::Piece::Open(part) => text.push_str(part),
            regressions::Piece::Secret(parts) => {
                let secret = parts.concat();
                text.push_str(&secret);
                secrets.push(secret);
            }
        }
    }
    (text, secrets)
}

#[test]
fn secrets_in_the_formats_of_many_vendors_and_tools_are_hidden() {
    let masker = masker(&[]);
    let mut seen = Vec::new();
    for (name, pieces) in regressions::SECRETS {
        let (text, secrets) = joined(pieces);
        let shown = masker.text(&text).text.into_owned();
        // A secret is seen if a third of it is.
        let is_seen = |secret: &String| {
            shown.contains(&secret[..secret.len() / 3]) || shown.contains(&secret[secret.len() - secret.len() / 3..])
        };
        if secrets.iter().any(is_seen) {
            seen.push((name, shown));
        }
    }
    assert!(
        seen.is_empty(),
        "{} of {} seen: {seen:#?}",
        seen.len(),
        regressions::SECRETS.len()
    );
}

#[test]
fn ordinary_texts_that_look_like_secrets_are_left_as_they_are() {
    let masker = masker(&[]);
    let shown = |text: &str| masker.text(text).text.into_owned();
    let changed: Vec<_> = regressions::ORDINARY
        .iter()
        .filter(|(_, text)| shown(text) != *text)
        .map(|(name, text)| (name, shown(text)))
        .collect();
    assert!(
        changed.is_empty(),
        "{} of {} changed: {changed:#?}",
        changed.len(),
        regressions::ORDINARY.len()
    );
}
