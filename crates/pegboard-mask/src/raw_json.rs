//! Searches JSON text for secrets without parsing it.

use std::{borrow::Cow, sync::LazyLock};

use memchr::{memchr, memmem::Finder};

use super::masker::{MAX_DEPTH, Masker};
use pegboard_base::json_scan;

/// The keys of base64-encoded bytes, and the key next to them, without the quote that opens them. Such bytes are decoded before they are
/// searched.
static BYTES: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new(b"blob\""), Finder::new(b"mimeType\"")]);

/// A JSON text with all its escapes decoded, for searches. It is no JSON any more.
#[derive(Debug)]
pub struct DecodedJson<'t> {
    text: Cow<'t, str>,
    /// Whether what each string stands for is a part of `text`, perhaps with spaces after characters that were escaped.
    is_whole: bool,
}

impl<'t> DecodedJson<'t> {
    /// Decodes a JSON text for searches by `masker`. Returns `None` if it is not UTF-8.
    pub fn new(json: &'t [u8], masker: &Masker) -> Option<Self> {
        let whole = |text: Cow<'t, str>| Self { text, is_whole: true };
        if memchr(b'\\', json).is_none() {
            return str::from_utf8(json).ok().map(|text| whole(text.into()));
        }
        if masker.reads_spaced()
            && let Some(text) = json_scan::unescape_spaced(json)
        {
            return String::from_utf8(text).ok().map(|text| whole(text.into()));
        }
        let (text, is_whole) = json_scan::unescape_all(str::from_utf8(json).ok()?);
        Some(Self {
            text: text.into(),
            is_whole,
        })
    }

    /// Whether `is_found` finds nothing in any string.
    pub fn has_none(&self, is_found: impl Fn(&str) -> bool) -> bool {
        self.is_whole && !is_found(&self.text)
    }
}

impl Masker {
    /// Whether a space after each quote, line feed and tab hides nothing from [`is_surely_clean_json`](Self::is_surely_clean_json).
    fn reads_spaced(&self) -> bool {
        self.patterns.reads_spaced() && self.values.are_printable()
    }

    /// Whether JSON text certainly holds no secret that [`Masker::value`] or the masking of an answer's content blocks would mask. A text in
    /// which a part looks like one is not clean, even if it turns out to be harmless.
    #[doc(hidden)]
    pub fn is_surely_clean_json(&self, json: &DecodedJson<'_>) -> bool {
        let text = json.text.as_bytes();
        if !json.is_whole || BYTES.iter().any(|key| key.find(text).is_some()) {
            return false;
        }
        // Strings inside strings are unescaped too, as often as the masker does it.
        let mut text = Cow::Borrowed(&*json.text);
        for _ in 0..=MAX_DEPTH {
            if !self.finds_nothing(&text) {
                return false;
            }
            if memchr(b'\\', text.as_bytes()).is_none() {
                return true;
            }
            text = Cow::Owned(json_scan::unescape_all(&text).0);
        }
        true
    }

    fn finds_nothing(&self, text: &str) -> bool {
        !self.patterns.may_find(text, &self.values) && matches!(self.values.find(text), Ok(found) if found.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Masking;
    use pegboard_base::secret::Secret;

    fn masker() -> Masker {
        Masker::new(
            &Masking::default(),
            [Secret::new("hunter2hunter2"), Secret::new("20261116")],
        )
        .unwrap()
    }

    fn is_clean(json: &str) -> bool {
        is_clean_for(&masker(), json)
    }

    fn is_clean_for(masker: &Masker, json: &str) -> bool {
        masker.is_surely_clean_json(&DecodedJson::new(json.as_bytes(), masker).unwrap())
    }

    #[test]
    fn plain_json_is_clean_with_and_without_escapes() {
        for json in [
            "{}",
            r#"{"content":[{"type":"text","text":"all is well\nline two \"quoted\" C:\\new\\dir \u00e9"}]}"#,
            r#"{"content":[{"type":"text","text":"{\"a\": \"b \\\"c\\\" \\\\d\"}"}],"n":1.5}"#,
        ] {
            assert!(is_clean(json), "{json}");
        }
    }

    #[test]
    fn a_secret_is_seen_behind_every_kind_of_escape() {
        let nested = |depth: usize| {
            let mut text = "hunter2hunter2".replace('h', "\\u0068");
            for _ in 0..depth {
                text = Value::from(format!("\"{text}\"")).to_string();
                text = text[1..text.len() - 1].to_owned();
            }
            format!(r#"{{"a":"{text}"}}"#)
        };
        let mut all: Vec<String> = (0..=3).map(nested).collect();
        all.extend([
            r#"{"a":"hunter2hunter2"}"#.to_owned(),
            r#"{"\u0068unter2hunter2":1}"#.to_owned(),
            r#"{"a":20261116}"#.to_owned(),
            r#"{"a":"\ud83d"}"#.to_owned(),
            r#"{"resource":{"blob":"cGFzc3dvcmQ9eA=="}}"#.to_owned(),
            r#"{"re\u0073ource":{"bl\u006fb":"cGFzc3dvcmQ9eA=="}}"#.to_owned(),
        ]);
        for json in all {
            assert!(!is_clean(&json), "{json}");
        }
    }

    #[test]
    fn a_secret_right_after_an_escape_is_seen() {
        for escape in [r"\n", r"\t", r#"\""#] {
            for token in [
                "hunter2hunter2",
                concat!("SK", "0123456789abcdef0123456789abcdef"),
                concat!("ghp", "_16C7e42F292c6912E7710c838347Ae178B4a"),
                // The same token in base64.
                "Z2hwXzE2QzdlNDJGMjkyYzY5MTJFNzcxMGM4MzgzNDdBZTE3OEI0YQ==",
            ] {
                let json = format!(r#"{{"text":"a{escape}{token}{escape}b"}}"#);
                assert!(!is_clean(&json), "{json}");
            }
        }
    }

    #[test]
    fn a_known_secret_with_characters_that_are_escaped_is_seen() {
        for secret in ["hunter2\"hunter2", "hunter2\nhunter2", "hunter2\\hunter2"] {
            let masker = Masker::new(&Masking::default(), [Secret::new(secret)]).unwrap();
            for text in [secret.to_owned(), Value::from(secret).to_string()] {
                assert!(!is_clean_for(&masker, &json!({ "text": text }).to_string()), "{text}");
            }
            assert!(is_clean_for(&masker, r#"{"text":"all\n\"is\" well"}"#));
        }
    }

    #[test]
    fn whatever_is_masked_in_a_tree_is_not_clean() {
        for value in [
            json!({"password": "correct horse"}),
            json!({"name": "DB_PASSWORD", "value": "correct horse"}),
            json!({"kind": "Secret", "data": {"a": "Yg=="}}),
            json!({"kind": "SecretList", "items": [{"data": {"a": "Yg=="}}]}),
            json!({"lease_id": "", "request_id": "1", "data": {"a": "swordfish"}}),
            json!({"isSecret": true, "value": "swordfish"}),
            json!({"auth": "dXNlcjpwYXNzd29yZA=="}),
            json!({"passwords": ["correct horse"]}),
        ] {
            let mut masked = value.clone();
            let counts = masker().value(&mut masked);
            assert!(counts.is_empty() || !is_clean(&value.to_string()), "{value}");
        }
    }
}
