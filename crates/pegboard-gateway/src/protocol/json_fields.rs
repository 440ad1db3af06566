//! Finds the fields of a JSON object in its text, without a tree. The text must be valid JSON.

use std::ops::Range;

use memchr::memchr2;

/// How deep objects and arrays may nest. Parsers of servers and clients have limits of this order.
pub(super) const MAX_DEPTH: usize = 128;

/// A field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonField<'a> {
    /// The key between its quotes, escapes as written.
    key: &'a [u8],
    has_escapes: bool,
    /// Where the value stands in the text of the object.
    pub(super) value: Range<usize>,
}

impl JsonField<'_> {
    /// The key without escapes.
    pub(super) fn key(&self) -> Option<String> {
        let quoted = [b"\"", self.key, b"\""].concat();
        serde_json::from_slice(&quoted).ok()
    }

    /// Returns `true` if the field has this key, which must need no escapes.
    pub(super) fn is(&self, key: &str) -> bool {
        if !self.has_escapes {
            return self.key == key.as_bytes();
        }
        self.key().is_some_and(|unescaped| unescaped == key)
    }
}

/// An iterator over the top-level fields of an object.
#[derive(Clone, Debug)]
pub(super) struct JsonFields<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

/// Iterates over the fields of an object. Anything else has none.
pub(super) fn fields(object: &[u8]) -> JsonFields<'_> {
    let mut fields = JsonFields {
        text: object,
        at: 0,
        depth: 1,
    };
    fields.skip_space();
    if fields.peek() == Some(b'{') {
        fields.at += 1;
    } else {
        fields.at = object.len();
    }
    fields
}

impl JsonFields<'_> {
    /// How deep the values so far nest, the object itself included.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Skips a string whose opening quote is next. Returns the range between the quotes, and whether it has escapes.
    fn skip_string(&mut self) -> Option<(Range<usize>, bool)> {
        let start = self.at + 1;
        let mut has_escapes = false;
        self.at = start;
        loop {
            self.at += memchr2(b'"', b'\\', self.text.get(self.at..)?)?;
            if self.peek() == Some(b'"') {
                self.at += 1;
                return Some((start..self.at - 1, has_escapes));
            }
            has_escapes = true;
            self.at += 2;
        }
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut open = 0;
        loop {
            match self.peek()? {
                b'"' => {
                    self.skip_string()?;
                }
                b'{' | b'[' => {
                    open += 1;
                    self.depth = self.depth.max(open + 1);
                    self.at += 1;
                }
                b'}' | b']' => {
                    open -= 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
            // A number or a word ends before the next of these.
            if open == 0 && matches!(self.peek(), None | Some(b',' | b'}' | b' ' | b'\n' | b'\r' | b'\t')) {
                return Some(());
            }
        }
    }
}

impl<'a> Iterator for JsonFields<'a> {
    type Item = JsonField<'a>;

    fn next(&mut self) -> Option<JsonField<'a>> {
        self.skip_space();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_space();
        }
        if self.peek() != Some(b'"') {
            return None;
        }
        let (key, has_escapes) = self.skip_string()?;
        self.skip_space();
        self.at += 1;
        self.skip_space();
        let start = self.at;
        self.skip_value()?;
        Some(JsonField {
            key: self.text.get(key)?,
            has_escapes,
            value: start..self.at,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn list(text: &str) -> Vec<(String, String)> {
        fields(text.as_bytes())
            .map(|field| {
                (
                    String::from_utf8(field.key.to_vec()).unwrap(),
                    text[field.value].to_owned(),
                )
            })
            .collect()
    }

    #[test]
    fn fields_are_found_whatever_stands_between_them() {
        let text = " {\"a\" : {\"b\":[1,{\"c\":\"}\"}]} ,\n\"d\":\"x\\\"},\\\\\",\"e\":-1.5e3,\"f\":null , \"g\":[] } ";
        let found = list(text);
        let found: Vec<_> = found
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("a", r#"{"b":[1,{"c":"}"}]}"#),
                ("d", r#""x\"},\\""#),
                ("e", "-1.5e3"),
                ("f", "null"),
                ("g", "[]"),
            ]
        );
        assert_eq!(list("{}"), []);
        assert_eq!(list("[1]"), []);
    }

    #[test]
    fn a_key_with_escapes_is_still_that_key() {
        let field = fields(br#"{"na\u006de":1}"#).next().unwrap();
        assert!(field.is("name"));
        assert!(!field.is("nam"));
    }

    #[test]
    fn depth_counts_the_deepest_value() {
        let mut all = fields(br#"{"a":1,"b":[[{}]],"c":{}}"#);
        all.by_ref().for_each(drop);
        assert_eq!(all.depth(), 4);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f32>().prop_map(|float| Value::from(f64::from(float))),
            ".*".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_same_fields_are_found_as_by_a_parser(map in prop::collection::btree_map(".*", value(), 0..5), pretty: bool) {
            let map: Map<String, Value> = map.into_iter().collect();
            let text = if pretty { serde_json::to_string_pretty(&map) } else { serde_json::to_string(&map) }.unwrap();
            let found: Map<String, Value> = list(&text)
                .into_iter()
                .map(|(key, value)| {
                    let key = serde_json::from_str(&format!("\"{key}\"")).unwrap();
                    (key, serde_json::from_str(&value).unwrap())
                })
                .collect();
            prop_assert_eq!(found, map);
        }

        #[test]
        fn broken_text_never_panics(text in ".*") {
            fields(text.as_bytes()).for_each(drop);
        }
    }
}
