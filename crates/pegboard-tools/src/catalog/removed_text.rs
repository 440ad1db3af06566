//! Invisible characters that are removed from a tool's texts. A person does not see them and a model does, so what they spell is kept for
//! the scanner.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    sanitize::{has_invisible, is_invisible},
    schema::SCHEMA_MAPS,
};

/// The most texts with invisible characters that are remembered for one tool.
const MAX_TEXTS: usize = 8;
/// The longest hidden message that is kept, in bytes.
const MAX_MESSAGE: usize = 512;

/// A text of a definition with invisible characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemovedText {
    /// Where the text stands, such as `inputSchema.properties.a.description`.
    pub(crate) at: String,
    pub(crate) kind: Invisible,
    /// What Unicode tag characters spell; empty without them.
    pub(crate) message: String,
}

/// The worst kind of invisible character in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Invisible {
    /// Spaces and joiners without width.
    ZeroWidth,
    /// Escape sequences and other control characters.
    Control,
    /// Characters that change the direction of text.
    Direction,
    /// Tag characters, which spell ASCII text.
    Tags,
}

/// Finds the texts of a definition from which invisible characters are removed.
pub(super) fn find_in_item(item: &Map<String, Value>) -> Vec<RemovedText> {
    let mut found = Vec::new();
    for key in ["title", "description"] {
        if let Some(Value::String(text)) = item.get(key) {
            found.extend(find_in_text(key, text));
        }
    }
    for key in ["inputSchema", "outputSchema"] {
        item.get(key)
            .into_iter()
            .for_each(|schema| find_in_schema(key, schema, &mut found));
    }
    found.truncate(MAX_TEXTS);
    found
}

/// Searches the texts that `sanitize_schema` changes. The JSON reader limits the depth.
fn find_in_schema(at: &str, schema: &Value, found: &mut Vec<RemovedText>) {
    if found.len() >= MAX_TEXTS {
        return;
    }
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                let at = || format!("{at}.{key}");
                match (key.as_str(), value) {
                    (key, Value::Object(schemas)) if SCHEMA_MAPS.contains(&key) => {
                        for (name, schema) in schemas {
                            find_in_schema(&format!("{}.{name}", at()), schema, found);
                        }
                    }
                    ("default" | "const" | "enum" | "examples" | "required", _) => {}
                    ("description" | "title" | "$comment", Value::String(text)) => {
                        found.extend(find_in_text(&at(), text))
                    }
                    (_, value) => find_in_schema(&at(), value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_in_schema(at, item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Describes the invisible characters of one text, if it has any that ordinary text has not.
pub(crate) fn find_in_text(at: &str, text: &str) -> Option<RemovedText> {
    if !has_invisible(text) {
        return None;
    }
    let is_joined = |at: usize| is_joiner_of_script(&text[..at], &text[at..]);
    let kinds = text
        .char_indices()
        .filter(|(at, c)| is_invisible(*c) && !is_joined(*at))
        .filter_map(|(at, c)| kind_of(c, at));
    let kind = kinds.max()?;
    let tags = text.chars().filter_map(|c| match u32::from(c) {
        code @ 0xe0020..=0xe007e => char::from_u32(code - 0xe0000),
        _ => None,
    });
    Some(RemovedText {
        at: at.to_owned(),
        kind,
        message: tags.take(MAX_MESSAGE).collect(),
    })
}

fn kind_of(c: char, at: usize) -> Option<Invisible> {
    match c {
        // Line ends of other systems, and a byte order mark where one belongs.
        '\r' => None,
        '\u{feff}' if at == 0 => None,
        // A soft hyphen is invisible unless a line breaks there, so copied prose contains it.
        '\u{ad}' => None,
        '\u{2028}' | '\u{2029}' => None,
        '\u{e0000}'..='\u{e0fff}' => Some(Invisible::Tags),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some(Invisible::Direction)
        }
        c if c.is_control() => Some(Invisible::Control),
        _ => Some(Invisible::ZeroWidth),
    }
}

/// Returns whether a joiner connects characters of a script that uses joiners, or parts of an emoji.
fn is_joiner_of_script(before: &str, rest: &str) -> bool {
    let mut rest = rest.chars();
    let is_joiner = matches!(rest.next(), Some('\u{200c}' | '\u{200d}'));
    let needs_joiners =
        |c: char| matches!(c, '\u{600}'..='\u{e7f}' | '\u{fe0f}' | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}');
    is_joiner && before.chars().next_back().is_some_and(needs_joiners) && rest.next().is_some_and(needs_joiners)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(text: &str) -> Option<Invisible> {
        find_in_text("x", text).map(|removed| removed.kind)
    }

    #[test]
    fn ordinary_text_has_no_suspicious_characters() {
        for text in [
            "",
            "plain",
            "dos\r\n",
            "\u{feff}mark",
            "می\u{200c}خواهم",
            "👩\u{200d}💻",
            "co\u{ad}operate",
        ] {
            assert_eq!(found(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_worst_character_counts_and_tags_are_spelled_out() {
        assert_eq!(found("a\u{200b}b"), Some(Invisible::ZeroWidth));
        assert_eq!(found("a\u{200d}b"), Some(Invisible::ZeroWidth));
        assert_eq!(found("\u{1b}[2J\u{200b}"), Some(Invisible::Control));
        assert_eq!(found("\u{1b}\u{202e}"), Some(Invisible::Direction));
        let hidden: String = "read me"
            .chars()
            .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
            .collect();
        let removed = find_in_text("x", &format!("Adds.{hidden}")).unwrap();
        assert_eq!((removed.kind, removed.message.as_str()), (Invisible::Tags, "read me"));
    }

    #[test]
    fn every_text_that_is_sanitized_is_searched() {
        let item = json!({
            "title": "\u{202e}",
            "inputSchema": {"properties": {"a": {"description": "\u{200b}", "enum": ["\u{200b}"]}}, "anyOf": [{"title": "\u{200b}"}]},
        });
        let places: Vec<String> = find_in_item(item.as_object().unwrap())
            .into_iter()
            .map(|removed| removed.at)
            .collect();
        assert_eq!(
            places,
            [
                "title",
                "inputSchema.anyOf.title",
                "inputSchema.properties.a.description"
            ]
        );
    }
}
