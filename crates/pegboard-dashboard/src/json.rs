//! JSON as text of a bounded length: servers choose how long and how deep it is.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// The longest JSON of a page, in bytes. Line ends and spaces count too.
pub(crate) const MAX_PRETTY: usize = 200_000;
/// The longest value within a line.
const MAX_BRIEF: usize = 200;

/// A value with line ends, cut where it gets too long.
pub(crate) fn pretty(value: &Value) -> String {
    let mut text = Bounded::new(MAX_PRETTY);
    let mut serializer = serde_json::Serializer::pretty(&mut text);
    let is_whole = value.serialize(&mut serializer).is_ok();
    text.into_text(is_whole, "\n…")
}

/// A value on one line, cut where it gets long.
pub(crate) fn brief(value: &Value) -> String {
    let mut text = Bounded::new(MAX_BRIEF);
    let is_whole = serde_json::to_writer(&mut text, value).is_ok();
    text.into_text(is_whole, "…")
}

/// Takes so many bytes and no more.
struct Bounded {
    bytes: Vec<u8>,
    room: usize,
}

impl Bounded {
    fn new(room: usize) -> Self {
        Self {
            bytes: Vec::new(),
            room,
        }
    }

    fn into_text(self, is_whole: bool, rest: &str) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if !is_whole {
            text.truncate(text.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
            text.push_str(rest);
        }
        text
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room);
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.room -= taken;
        match taken == bytes.len() {
            true => Ok(taken),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_written_until_it_gets_too_long() {
        assert_eq!(brief(&json!({"a": [1, "b"]})), r#"{"a":[1,"b"]}"#);
        assert_eq!(pretty(&json!({"a": 1})), "{\n  \"a\": 1\n}");
        let long = json!("ä".repeat(300));
        assert!(brief(&long).ends_with("ä…"), "{}", brief(&long));
        let mut deep = json!(vec![1; 100_000]);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert_eq!(pretty(&deep).len(), MAX_PRETTY + "\n…".len());
    }
}
