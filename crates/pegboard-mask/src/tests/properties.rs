//! In any surroundings a secret is masked, JSON and YAML stay valid, and masking again changes nothing.

use proptest::prelude::*;

use super::*;

const SECRET: &str = "s3cr3t-\"canary\"\\ü/9f2";

fn known() -> Masker {
    let policy = Masking {
        groups: vec!["all".to_owned()],
        ..Masking::default()
    };
    Masker::new(&policy, [Secret::new(SECRET)]).unwrap()
}

/// A secret of the corpus, or the known one.
fn planted() -> impl Strategy<Value = String> {
    let cases = (0..CORPUS.len()).prop_map(|at| CORPUS[at].1.concat());
    prop_oneof![Just(SECRET.to_owned()), cases]
}

fn value(leaf: String) -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::String(leaf)),
        "[ -~]{0,20}".prop_map(serde_json::Value::String),
        any::<i32>().prop_map(Into::into),
        Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[a-zA-Z_]{1,8}|password|token|kind|data", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// YAML in block style, as programs print it.
fn yaml(value: &serde_json::Value, indent: usize, out: &mut String) {
    let pad = "  ".repeat(indent);
    match value {
        serde_json::Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&format!("{pad}{key}:"));
                nested(value, indent, out);
            }
        }
        serde_json::Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("{pad}-"));
                nested(item, indent, out);
            }
        }
        scalar => out.push_str(&format!("{pad}{scalar}\n")),
    }
}

fn nested(value: &serde_json::Value, indent: usize, out: &mut String) {
    match value {
        serde_json::Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            yaml(value, indent + 1, out);
        }
        serde_json::Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            yaml(value, indent + 1, out);
        }
        serde_json::Value::String(text) if is_plain(text) => out.push_str(&format!(" {text}\n")),
        scalar => out.push_str(&format!(" {scalar}\n")),
    }
}

/// A plain scalar of YAML.
fn is_plain(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./+=-@".contains(c))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_planted_secret_survives_and_masking_twice_changes_nothing(
        secret in planted(), before in "[ -~\n]{0,40}", after in "[ -~\n]{0,40}", line in any::<bool>()
    ) {
        let sep = if line { "\n" } else { " " };
        let text = format!("{before}{sep}{secret}{sep}{after}");
        let masker = known();
        let masked = masker.text(&text).text.into_owned();
        prop_assert!(!masked.contains(secret.as_str()), "{masked}");
        prop_assert_eq!(masker.text(&masked).text, masked.as_str());
    }

    #[test]
    fn json_stays_json(secret in planted().prop_flat_map(|secret| value(secret.clone()).prop_map(move |value| (secret.clone(), value)))) {
        let (secret, value) = secret;
        let masker = known();
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let masked = masker.text(&text).text.into_owned();
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&masked);
            prop_assert!(parsed.is_ok(), "{} became {}", text, masked);
            prop_assert!(!parsed.unwrap().to_string().contains(serde_json::to_string(&secret).unwrap().trim_matches('"')));
            prop_assert_eq!(masker.text(&masked).text, masked.as_str());
        }
        let mut structured = value;
        masker.value(&mut structured);
        prop_assert!(!structured.to_string().contains(serde_json::to_string(&secret).unwrap().trim_matches('"')));
        let once = structured.clone();
        masker.value(&mut structured);
        prop_assert_eq!(structured, once);
    }

    #[test]
    fn yaml_stays_yaml(value in planted().prop_flat_map(value)) {
        use saphyr::LoadableYamlNode as _;
        let mut text = String::new();
        yaml(&value, 0, &mut text);
        prop_assume!(saphyr::Yaml::load_from_str(&text).is_ok());
        let masked = known().text(&text).text.into_owned();
        let parsed = saphyr::Yaml::load_from_str(&masked);
        prop_assert!(parsed.is_ok(), "{}became\n{}", text, masked);
    }

    #[test]
    fn nothing_panics_and_nothing_is_withheld(text in "\\PC{0,200}", parts in prop::collection::vec(0..CORPUS.len(), 0..4)) {
        let mut text = text;
        for at in parts {
            let mut cut = text.len() / 2;
            while !text.is_char_boundary(cut) { cut += 1; }
            text.insert_str(cut, &CORPUS[at].1.concat());
        }
        let masked = known().text(&text);
        prop_assert!(masked.counts.iter().all(|(name, _)| name != WITHHELD_NAME));
    }
}
