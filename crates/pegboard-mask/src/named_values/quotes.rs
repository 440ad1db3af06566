//! Tells which quotes are open at a place of a line.

use memchr::{memchr3, memrchr};

/// The quotes that are open at a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OpenQuotes {
    double: bool,
    single: bool,
    /// Whether a quote with a backslash is open, as in JSON within JSON.
    escaped: bool,
}

impl OpenQuotes {
    /// The quote that ends a value without quotes of its own.
    pub(super) fn quote(self) -> Option<u8> {
        match (self.double, self.single) {
            (true, _) => Some(b'"'),
            (false, true) => Some(b'\''),
            (false, false) => None,
        }
    }

    /// Whether a quote, with or without a backslash, closes a string.
    pub(super) fn is_closed_by(self, quote: u8, is_escaped: bool) -> bool {
        match is_escaped {
            true => self.escaped,
            false => self.quote() == Some(quote),
        }
    }
}

/// Follows the quotes of a text. Places are asked for in order, so that each byte is read once.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    at: usize,
    open: OpenQuotes,
}

impl Quotes {
    /// The quotes that are open at `at`, counted from the start of its line.
    pub(super) fn open_at(&mut self, bytes: &[u8], at: usize) -> OpenQuotes {
        if at < self.at {
            return self.open;
        }
        if let Some(line) = memrchr(b'\n', &bytes[self.at..at]) {
            self.at += line + 1;
            self.open = OpenQuotes::default();
        }
        while let Some(step) = memchr3(b'"', b'\'', b'\\', &bytes[self.at..at]) {
            self.at += step;
            self.pass(bytes);
        }
        self.at = self.at.max(at);
        self.open
    }

    fn pass(&mut self, bytes: &[u8]) {
        let place = self.at;
        self.at += 1;
        match bytes[place] {
            b'"' => {
                self.open.double = !self.open.double;
                self.open.escaped = false;
            }
            b'\'' if !self.open.double && !is_apostrophe(bytes, place) => self.open.single = !self.open.single,
            b'\\' => {
                self.at += bytes[self.at..].iter().take_while(|b| **b == b'\\').count();
                let is_odd = (self.at - place) % 2 == 1;
                if is_odd && bytes.get(self.at) == Some(&b'"') {
                    self.open.escaped = !self.open.escaped;
                    self.at += 1;
                }
            }
            _ => {}
        }
    }
}

/// Whether a quote stands between two letters, as in `don't`.
fn is_apostrophe(bytes: &[u8], at: usize) -> bool {
    let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
    at > 0 && is_letter(bytes.get(at - 1)) && is_letter(bytes.get(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> OpenQuotes {
        Quotes::default().open_at(text.as_bytes(), text.len())
    }

    #[test]
    fn quotes_are_counted_from_the_start_of_the_line() {
        assert_eq!(open("a \"b").quote(), Some(b'"'));
        assert_eq!(open("a \"b\" c").quote(), None);
        assert_eq!(open("a \"b\nc").quote(), None);
        assert_eq!(open("it doesn't matter: 'x").quote(), Some(b'\''));
        assert_eq!(open("it doesn't matter").quote(), None);
        assert_eq!(open(r#"{"a": "b\\"#).quote(), Some(b'"'));
    }

    #[test]
    fn quotes_within_a_string_are_counted_apart() {
        let inner = open(r#"{"a": "{\"b\": \"c"#);
        assert!(inner.is_closed_by(b'"', true) && inner.is_closed_by(b'"', false));
        let outer = open(r#"{"a": "{\"b\": "#);
        assert!(!outer.is_closed_by(b'"', true) && outer.is_closed_by(b'"', false));
    }
}
