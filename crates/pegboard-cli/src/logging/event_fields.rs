//! The fields of a tracing event as text.

use std::fmt;

use tracing::{
    Event,
    field::{Field, Visit},
};

/// The fields of an event, in order. A name may be there twice.
#[derive(Debug, Default)]
pub(super) struct EventFields(Vec<(&'static str, String)>);

impl EventFields {
    pub(super) fn read(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        fields
    }

    /// The first field of a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let named = self.0.iter().find(|(known, _)| *known == name);
        named.map(|(_, value)| value.as_str())
    }

    /// All fields, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// All fields of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(known, _)| *known == name);
        named.map(|(_, value)| value.as_str())
    }
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

/// Undoes `escape_debug`, with which the library quotes what servers wrote. Quotes may be escaped or not.
pub(super) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match rest.next() {
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some('0') => plain.push('\0'),
            Some('u') => {
                let digits: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                plain.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(c) => plain.push(c),
            None => plain.push('\\'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_quotes_is_read_back() {
        for text in [
            "plain",
            "a\tb\n\r\0",
            "\\ \\n \"x\" 'y'",
            "\u{1b}[2J \u{200b} 日本 ñ",
            r#"{"a":"\"\\\u001b"}"#,
        ] {
            let quoted = text.escape_debug().to_string();
            assert_eq!(unescape(&quoted), text);
            assert_eq!(unescape(&quoted.replace("\\\"", "\"")), text);
        }
    }
}
