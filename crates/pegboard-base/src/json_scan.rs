//! A fast pull parser for simple JSON: it copies long strings once and builds only the values that the caller requests.
//!
//! It does not report errors. `None` always means: parse with serde_json, which handles all of JSON and explains errors.

mod skip;
mod strings;

pub use strings::unescape_spaced;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

/// The nesting limit of serde_json.
pub(crate) const MAX_DEPTH: usize = 127;

/// Decodes all JSON escapes in a text, inside and outside of quotes. What a quoted string in the text stands for is a part of the result. Returns
/// whether no escape is malformed; such an escape is kept as it is.
pub fn unescape_all(text: &str) -> (String, bool) {
    let mut out = Vec::with_capacity(text.len());
    let is_valid = strings::unescape_all(text.as_bytes(), &mut out);
    // Escapes are ASCII, and stand for whole characters.
    (String::from_utf8(out).unwrap_or_default(), is_valid)
}

/// A position in a JSON text.
#[derive(Debug, Clone)]
pub struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// Starts at the first byte of a JSON text.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The byte offset from the start.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Skips whitespace and returns the next byte without consuming it.
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                _ => return Some(*byte),
            }
        }
        None
    }

    /// Skips whitespace, and consumes `byte` if it comes next.
    pub fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Whether only whitespace is left.
    pub fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Reads an object. Calls `field` with each key; it must read the value.
    pub fn fields(&mut self, mut field: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        if !self.eat(b'{') {
            return None;
        }
        if self.eat(b'}') {
            return Some(());
        }
        loop {
            let key = self.key()?;
            field(self, &key)?;
            if !self.eat(b',') {
                return self.eat(b'}').then_some(());
            }
        }
    }

    /// Reads a key and the colon after it.
    pub fn key(&mut self) -> Option<Cow<'a, str>> {
        let key = self.text()?;
        self.eat(b':').then_some(key)
    }

    /// Reads an array. Calls `item` at each item; it must read the item.
    pub fn items(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if !self.eat(b'[') {
            return None;
        }
        if self.eat(b']') {
            return Some(());
        }
        loop {
            item(self)?;
            if !self.eat(b',') {
                return self.eat(b']').then_some(());
            }
        }
    }

    /// Reads a string.
    pub fn text(&mut self) -> Option<Cow<'a, str>> {
        if !self.eat(b'"') {
            return None;
        }
        let (text, read) = strings::read(self.bytes.get(self.at..)?)?;
        self.at += read;
        Some(text)
    }

    /// Reads an unsigned integer.
    pub fn number(&mut self) -> Option<u64> {
        self.peek();
        let rest = self.bytes.get(self.at..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 1 && rest[0] == b'0' {
            return None;
        }
        let number = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        self.at += digits;
        // The number must end here: a fraction or an exponent would change its value.
        matches!(rest.get(digits), None | Some(b',' | b'}' | b']' | b' ' | b'\t')).then_some(number)
    }

    /// Reads `true` or `false`.
    pub fn boolean(&mut self) -> Option<bool> {
        self.peek();
        let rest = self.bytes.get(self.at..)?;
        let value = rest.starts_with(b"true");
        if !value && !rest.starts_with(b"false") {
            return None;
        }
        self.at += if value { 4 } else { 5 };
        Some(value)
    }

    /// Reads any value at nesting depth `depth`. Fails beyond serde_json's nesting limit.
    pub fn value(&mut self, depth: usize) -> Option<Value> {
        let value: Value = self.read()?;
        (depth + nesting(&value) <= MAX_DEPTH).then_some(value)
    }

    /// Skips any value.
    pub fn skip(&mut self) -> Option<()> {
        self.read::<&serde_json::value::RawValue>().map(|_| ())
    }

    fn read<T: Deserialize<'a>>(&mut self) -> Option<T> {
        let mut values = serde_json::Deserializer::from_slice(self.bytes.get(self.at..)?).into_iter::<T>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }
}

/// The nesting depth of a value. The parser has bounded it, so recursion is safe.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(nesting).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_field_by_field() {
        let mut scan = Scan::new(br#" { "a" : 12 , "b" : [ true , false ] , "c\n" : {"x":[1]} , "d" : "e" } "#);
        let mut values = Vec::new();
        let read = scan.fields(|scan, key| {
            values.push(match key {
                "a" => scan.number()?.to_string(),
                "b" => {
                    let mut all = String::new();
                    scan.items(|scan| {
                        all.push_str(&scan.boolean()?.to_string());
                        Some(())
                    })?;
                    all
                }
                "c\n" => scan.value(1)?.to_string(),
                _ => scan.text()?.into_owned(),
            });
            Some(())
        });
        assert_eq!(read, Some(()));
        assert!(scan.is_at_end());
        assert_eq!(values, ["12", "truefalse", r#"{"x":[1]}"#, "e"]);
    }

    #[test]
    fn what_is_not_simple_is_left_to_serde_json() {
        for text in [
            "",
            "{",
            "[]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":1,}"#,
            r#"{"a":1"#,
            r#"{"a":1]"#,
            "{a:1}",
        ] {
            assert_eq!(Scan::new(text.as_bytes()).fields(|scan, _| scan.skip()), None, "{text}");
        }
        for text in ["-1", "1.0", "1e0", "01", "x", "", "99999999999999999999"] {
            assert_eq!(Scan::new(text.as_bytes()).number(), None, "{text}");
        }
        assert_eq!(Scan::new(b"null").boolean(), None);
    }

    #[test]
    fn values_have_the_nesting_limit_of_serde_json() {
        for (depth, is_read) in [(126, true), (127, true), (128, false), (200_000, false)] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(serde_json::from_str::<Value>(&text).is_ok(), is_read, "{depth}");
            assert_eq!(Scan::new(text.as_bytes()).value(0).is_some(), is_read, "{depth}");
            assert_eq!(Scan::new(text.as_bytes()).value(1).is_some(), depth < 127, "{depth}");
        }
    }
}
