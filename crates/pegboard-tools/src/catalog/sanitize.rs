//! Removes invisible characters from servers' text, because a model would read text that a person cannot see.

use serde_json::Value;

use super::schema::SCHEMA_MAPS;

/// The longest description, in bytes; the rest is truncated.
pub(super) const MAX_DESCRIPTION: usize = 8 << 10;
/// Marks where a text was truncated.
const ELLIPSIS: char = '…';

/// Removes invisible characters: control characters except newlines and tabs, direction marks, and zero-width characters. This
/// includes carriage returns, so `\r\n` becomes `\n`.
pub fn remove_invisible(text: &mut String) {
    if has_invisible(text) {
        text.retain(|c| !is_invisible(c));
    }
}

/// Joins a text into one line and sanitizes it.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    remove_invisible(&mut line);
    line
}

/// Truncates a text to at most `limit` bytes, at a character boundary.
pub fn truncate(text: &mut String, limit: usize) {
    if text.len() > limit {
        let room = limit.saturating_sub(ELLIPSIS.len_utf8());
        text.truncate(text.floor_char_boundary(room));
        if limit >= ELLIPSIS.len_utf8() {
            text.push(ELLIPSIS);
        }
    }
}

/// Sanitizes and truncates a text for display.
pub(super) fn for_display(mut text: String, limit: usize) -> String {
    remove_invisible(&mut text);
    truncate(&mut text, limit);
    text
}

/// Sanitizes the descriptive texts of a schema. The data of `default`, `const`, `enum`, `examples` and `required` stays unchanged.
pub(super) fn sanitize_schema(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    (key, Value::Object(schemas)) if SCHEMA_MAPS.contains(&key) => {
                        schemas.values_mut().for_each(sanitize_schema);
                    }
                    ("default" | "const" | "enum" | "examples" | "required", _) => {}
                    ("description" | "title" | "$comment", Value::String(words)) => remove_invisible(words),
                    (_, value) => sanitize_schema(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(sanitize_schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes invisible characters from all strings of a value, but not from its keys. The JSON reader limits the depth, so recursion is safe.
pub(super) fn sanitize_value(value: &mut Value) {
    match value {
        Value::String(text) => remove_invisible(text),
        Value::Array(items) => items.iter_mut().for_each(sanitize_value),
        Value::Object(fields) => fields.values_mut().for_each(sanitize_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns whether a text has invisible characters. Most texts are ASCII, where looking at the bytes is enough.
pub fn has_invisible(text: &str) -> bool {
    let odd = |byte: u8| (byte < b' ') & (byte != b'\n') & (byte != b'\t') | (byte >= 0x7f);
    // No early exit, so that the compiler vectorises the loop.
    let has_odd = text.bytes().fold(0, |found, byte| found | u8::from(odd(byte))) != 0;
    has_odd && text.chars().any(is_invisible)
}

/// Returns whether `c` is invisible or changes how other characters appear.
pub fn is_invisible(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        // Soft hyphen, joiners, fillers.
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        '\u{3164}' | '\u{ffa0}' => true,
        // Zero-width characters and direction marks.
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        // Variation selectors except the two that choose between text and emoji.
        '\u{fe00}'..='\u{fe0d}' => true,
        // Musical marks, tags, further selectors.
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_unseen_is_left() {
        for (text, expected) in [
            (
                "plain ünïcödé 日本 ❤\u{fe0f}\n\ttext",
                "plain ünïcödé 日本 ❤\u{fe0f}\n\ttext",
            ),
            ("a\u{200b}b\u{200d}c\u{feff}", "abc"),
            ("\x1b[31mred\x1b[0m\u{9b}", "[31mred[0m"),
            ("dos\r\nlines\r", "dos\nlines"),
            ("left\u{202e}right\u{2066}", "leftright"),
            ("tags\u{e0041}\u{e0042}", "tags"),
            ("\0\u{7f}\u{ad}", ""),
        ] {
            assert_eq!(has_invisible(text), text != expected, "{text:?}");
            let mut cleaned = text.to_owned();
            remove_invisible(&mut cleaned);
            assert_eq!(cleaned, expected);
        }
        assert_eq!(one_line(" a\n\u{200b}b \t c "), "a b c");
    }

    #[test]
    fn a_property_may_be_named_like_a_keyword() {
        let mut schema = json!({"properties": {
            "default": {"description": "a\u{200b}"}, "enum": {"title": "b\u{200b}"},
        }, "default": "\u{200b}"});
        sanitize_schema(&mut schema);
        let expected = json!({"properties": {
            "default": {"description": "a"}, "enum": {"title": "b"},
        }, "default": "\u{200b}"});
        assert_eq!(schema, expected);
    }

    #[test]
    fn the_descriptions_of_a_schema_are_sanitized_and_its_data_is_not() {
        let mut schema = json!({"title": "T\u{200b}", "properties": {
            "description": {"type": "string", "description": "de\u{202e}sc", "default": "\u{200b}", "enum": ["\u{200b}"]},
        }});
        sanitize_schema(&mut schema);
        assert_eq!(
            schema,
            json!({"title": "T", "properties": {
                "description": {"type": "string", "description": "desc", "default": "\u{200b}", "enum": ["\u{200b}"]},
            }})
        );
    }

    proptest! {
        #[test]
        fn a_look_at_bytes_finds_what_a_look_at_characters_finds(text in any::<String>()) {
            prop_assert_eq!(has_invisible(&text), text.chars().any(is_invisible));
        }

        #[test]
        fn a_cut_text_keeps_to_its_limit_and_is_a_beginning(text in any::<String>(), limit in 0_usize..40) {
            let mut short = text.clone();
            remove_invisible(&mut short);
            let whole = short.clone();
            truncate(&mut short, limit);
            prop_assert!(short.len() <= limit);
            prop_assert!(whole == short || whole.starts_with(short.trim_end_matches(ELLIPSIS)));
            prop_assert!(!short.chars().any(is_invisible));
        }
    }
}
