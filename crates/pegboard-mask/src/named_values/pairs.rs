//! Pairs of a name and a value that are two fields of one object: `{"name": "DB_PASSWORD", "value": "…"}`, in JSON, YAML and XML, in
//! either order.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::pattern;

/// How far from the name the value may be, in bytes.
const MAX_DISTANCE: usize = 600;
/// Fields that hold the name of a value.
const NAME_FIELDS: &[&str] = &[
    "name", "key", "header", "variable", "option", "field", "keyname", "label",
];

/// Returns the position of the value that belongs to the name in this range, if the range is the value of a field for names.
pub(super) fn value_of_name(text: &str, name: &Range<usize>) -> Option<usize> {
    let (field, start) = field_before(text, name.start)?;
    is_name_field(field).then(|| sibling(text, start, name.end))?
}

/// Whether a range is the value of a field for names.
pub(super) fn is_name(text: &str, name: &Range<usize>) -> bool {
    field_before(text, name.start).is_some_and(|(field, _)| is_name_field(field))
}

/// Returns the start of a field `type="password"`, if the range is its value.
pub(super) fn input_type(text: &str, kind: &Range<usize>) -> Option<usize> {
    let (field, start) = field_before(text, kind.start)?;
    let is_type = field.eq_ignore_ascii_case("type") && text[kind.clone()].eq_ignore_ascii_case("password");
    is_type.then_some(start)
}

/// Returns the position of the value of an HTML field for passwords: `<input type="password" value="…">`. Its type is at this place.
pub(super) fn value_of_input(text: &str, start: usize, end: usize) -> Option<usize> {
    let at = sibling(text, start, end)?;
    let between = if at > end { end..at } else { at..start };
    let is_attribute = text[..at]
        .strip_suffix("value=")
        .is_some_and(|before| before.ends_with(|c: char| c.is_ascii_whitespace()));
    let is_quoted = text[at..].starts_with(['"', '\'', '\\']);
    (is_attribute && is_quoted && !text[between].contains(['<', '>'])).then_some(at)
}

fn is_name_field(field: &str) -> bool {
    let ends =
        |known: &&str| field.len() >= known.len() && field[field.len() - known.len()..].eq_ignore_ascii_case(known);
    field == "id" || NAME_FIELDS.iter().any(ends)
}

/// Returns the position of the value in the object around a range.
pub(super) fn sibling(text: &str, start: usize, end: usize) -> Option<usize> {
    static VALUE: LazyLock<Option<Regex>> =
        LazyLock::new(|| pattern::compile(r#"(?i)(?:^|[^a-z0-9])[a-z]*value\\*["']?[ \t]*[:=]\s*"#).ok());
    let expression = VALUE.as_ref()?;
    let bytes = text.as_bytes();
    let after = &bytes[end..(end + MAX_DISTANCE).min(bytes.len())];
    let after = &after[..object_end(after)];
    // `Value::` is a path of source code.
    let is_path = |at: usize| bytes[at - 1] == b':' && bytes.get(at) == Some(&b':');
    if let Some(found) = expression.find(after) {
        return Some(end + found.end()).filter(|at| !is_path(*at));
    }
    let from = start.saturating_sub(MAX_DISTANCE);
    let before = &bytes[from..start];
    let begin = object_start(before);
    expression
        .find(&before[begin..])
        .map(|found| from + begin + found.end())
        .filter(|at| !is_path(*at))
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

/// The end of the object that a text begins in: its brace, the end of its tag, or the next item of a list. Braces in strings are none.
fn object_end(text: &[u8]) -> usize {
    let is_item = |at: usize| {
        let rest = &text[at + 1..];
        let blank = rest.iter().take_while(|b| b" \t>+|".contains(b)).count();
        rest[blank..].starts_with(b"- ") || rest.starts_with(b"\n") || rest.starts_with(b"---")
    };
    let is_string = matches!(text.first(), Some(b'"'));
    let mut at = usize::from(is_string);
    while at < text.len() {
        match text[at] {
            b'}' | b'{' => return at,
            b'\n' if is_item(at) => return at,
            b'>' if at > 0 && matches!(text[at - 1], b'/' | b'"' | b'\'') => return at,
            b'"' if is_string => at = string_end(text, at),
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The place of the quote that closes the string at `at`; the quote itself if there is none.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(step) = text
        .get(end..)
        .and_then(|rest| memchr::memchr3(b'"', b'\\', b'\n', rest))
    {
        end += step;
        match text[end] {
            b'"' => return end,
            b'\\' => end += 2,
            _ => break,
        }
    }
    at
}

/// The start of the object that a text ends in.
fn object_start(text: &[u8]) -> usize {
    let is_item = |at: usize| {
        let rest = &text[at + 1..];
        let blank = rest.iter().take_while(|b| b" \t>+|".contains(b)).count();
        rest[blank..].starts_with(b"- ")
    };
    let is_quote = |at: usize| text[at] == b'"' && (at == 0 || text[at - 1] != b'\\');
    let is_string = text.last() == Some(&b'"');
    let mut at = text.len().saturating_sub(usize::from(is_string));
    while at > 0 {
        at -= 1;
        match text[at] {
            b'{' | b'}' | b'<' => return at + 1,
            b'\n' if is_item(at) => return at + 1,
            b'"' if is_string && is_quote(at) => at = (0..at).rev().find(|at| is_quote(*at)).unwrap_or(at),
            _ => {}
        }
    }
    0
}
