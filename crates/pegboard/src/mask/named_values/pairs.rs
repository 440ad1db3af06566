//! Pairs of a name and a value that are two fields of one object: `{"name": "DB_PASSWORD", "value": "…"}`, in JSON, YAML and XML, in
//! either order.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::mask::pattern;

/// How far from the name the value may be, in bytes.
const MAX_DISTANCE: usize = 600;
/// Fields that hold the name of a value.
const NAME_FIELDS: &[&str] = &["name", "key", "header", "variable", "option", "field", "keyname"];

/// Returns the position of the value that belongs to the name in this range, if the range is the value of a field for names.
pub(super) fn value_of_name(text: &str, name: &Range<usize>) -> Option<usize> {
    let (field, start) = field_before(text, name.start)?;
    let is_name_field =
        |known: &&str| field.len() >= known.len() && field[field.len() - known.len()..].eq_ignore_ascii_case(known);
    NAME_FIELDS
        .iter()
        .any(|known| is_name_field(&known))
        .then(|| sibling(text, start, name.end))?
}

/// Returns the position of the value in the object around a range.
pub(super) fn sibling(text: &str, start: usize, end: usize) -> Option<usize> {
    static VALUE: LazyLock<Option<Regex>> =
        LazyLock::new(|| pattern::compile(r#"(?i)(?:^|[^a-z0-9])[a-z]*value\\*["']?[ \t]*[:=]\s*"#).ok());
    let expression = VALUE.as_ref()?;
    let bytes = text.as_bytes();
    let after = &bytes[end..(end + MAX_DISTANCE).min(bytes.len())];
    let after = &after[..object_end(after)];
    if let Some(found) = expression.find(after) {
        return Some(end + found.end());
    }
    let from = start.saturating_sub(MAX_DISTANCE);
    let before = &bytes[from..start];
    let begin = object_start(before);
    expression
        .find(&before[begin..])
        .map(|found| from + begin + found.end())
}

/// The word before a joint before `at`, and its start.
fn field_before(text: &str, at: usize) -> Option<(&str, usize)> {
    let bytes = text.as_bytes();
    let mut at = at;
    let mut back = |is_such: fn(u8) -> bool| {
        let limit = at.saturating_sub(24);
        let from = at;
        while at > limit && is_such(bytes[at - 1]) {
            at -= 1;
        }
        (at, from)
    };
    back(|b| matches!(b, b'"' | b'\'' | b'\\'));
    back(|b| matches!(b, b' ' | b'\t'));
    let (sign, from) = back(|b| matches!(b, b':' | b'='));
    if from - sign != 1 {
        return None;
    }
    back(|b| matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'\\'));
    let (start, end) = back(|b| b.is_ascii_alphanumeric() || b == b'_');
    (start < end).then(|| (&text[start..end], start))
}

/// The end of the object that a text begins in: its brace, the end of its tag, or the next item of a list.
fn object_end(text: &[u8]) -> usize {
    let is_item = |at: usize| {
        let rest = &text[at + 1..];
        let blank = rest.iter().take_while(|b| b" \t>+|".contains(b)).count();
        rest[blank..].starts_with(b"- ") || rest.starts_with(b"\n") || rest.starts_with(b"---")
    };
    let ends = |at: usize, byte: u8| {
        matches!(byte, b'}' | b'{')
            || (byte == b'\n' && is_item(at))
            || (byte == b'>' && at > 0 && matches!(text[at - 1], b'/' | b'"' | b'\''))
    };
    text.iter()
        .enumerate()
        .position(|(at, byte)| ends(at, *byte))
        .unwrap_or(text.len())
}

/// The start of the object that a text ends in.
fn object_start(text: &[u8]) -> usize {
    let is_item = |at: usize| {
        let rest = &text[at + 1..];
        let blank = rest.iter().take_while(|b| b" \t>+|".contains(b)).count();
        rest[blank..].starts_with(b"- ")
    };
    let begins = |at: usize, byte: u8| matches!(byte, b'{' | b'}' | b'<') || (byte == b'\n' && is_item(at));
    let start = text.iter().enumerate().rev().find(|(at, byte)| begins(*at, **byte));
    start.map_or(0, |(at, _)| at + 1)
}
