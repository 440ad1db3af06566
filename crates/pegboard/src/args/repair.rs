//! Mends the slips that models make when they write JSON, where only one thing can have been meant, and says what was mended.

use super::{node::Node, scalar};

/// How deep the mended value may be nested.
const MAX_DEPTH: usize = 64;

/// The object that the text was meant to be, and what was mended.
pub(super) fn object(text: &str) -> Option<(Node, Vec<&'static str>)> {
    let mut reader = Reader::new(unfenced(text));
    if reader.text.len() != text.trim().len() {
        reader.mended("a code fence");
    }
    if reader.text.starts_with('{')
        && let Some(node) = Node::json(reader.text)
    {
        return Some((node, reader.mended));
    }
    let node = reader.value(0)?;
    reader.skip_blanks();
    let is_all = reader.at == reader.text.len();
    (is_all && matches!(node, Node::Map(_))).then_some((node, reader.mended))
}

/// The text inside a Markdown code fence.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let after_language = inner.and_then(|inner| inner.split_once('\n'));
    after_language.map_or(text, |(_, inner)| inner.trim())
}

/// Reads JSON and what is nearly JSON.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    mended: Vec<&'static str>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            mended: Vec::new(),
        }
    }

    fn mended(&mut self, what: &'static str) {
        if !self.mended.contains(&what) {
            self.mended.push(what);
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes the character if it comes next, blanks aside.
    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += wanted.len_utf8();
        }
        is_next
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_blanks();
        match self.peek()? {
            '{' => self.map(depth),
            '[' => self.list(depth),
            '"' | '\'' => self.string().map(Node::Text),
            _ => self.word(),
        }
    }

    fn map(&mut self, depth: usize) -> Option<Node> {
        self.take('{');
        let mut fields: Vec<(String, Node)> = Vec::new();
        while !self.take('}') {
            let name = self.name()?;
            if !self.take(':') || fields.len() >= super::MAX_PAIRS || fields.iter().any(|(known, _)| *known == name) {
                return None;
            }
            fields.push((name, self.value(depth + 1)?));
            self.separator('}')?;
        }
        Some(Node::Map(fields))
    }

    fn list(&mut self, depth: usize) -> Option<Node> {
        self.take('[');
        let mut items = Vec::new();
        while !self.take(']') {
            items.push(self.value(depth + 1)?);
            self.separator(']')?;
        }
        Some(Node::List(items))
    }

    /// A comma, or the end that is left for the caller to take.
    fn separator(&mut self, end: char) -> Option<()> {
        let is_comma = self.take(',');
        self.skip_blanks();
        let is_end = self.peek() == Some(end);
        if is_comma && is_end {
            self.mended("a trailing comma");
        }
        (is_comma || is_end).then_some(())
    }

    fn name(&mut self) -> Option<String> {
        self.skip_blanks();
        if self.peek()? == '"' || self.peek()? == '\'' {
            return self.string();
        }
        let name = self.bare();
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
        if is_name {
            self.mended("a name without quotes");
        }
        is_name.then(|| name.to_owned())
    }

    /// Letters and signs up to the next blank or mark of JSON.
    fn bare(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || ",:{}[]\"'".contains(c))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn word(&mut self) -> Option<Node> {
        let word = self.bare();
        let node = match word {
            "true" | "false" | "null" => return Node::json(word),
            "True" => Node::bool(true),
            "False" => Node::bool(false),
            "None" => Node::null(),
            number => {
                let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '-');
                return is_number
                    .then(|| scalar::scalar(number))
                    .filter(|node| matches!(node, Node::Raw(_)));
            }
        };
        self.mended("a literal of Python");
        Some(node)
    }

    /// A text in either kind of quotes. It is written anew as JSON, which then reads it.
    fn string(&mut self) -> Option<String> {
        let quote = self.peek()?;
        if quote == '\'' {
            self.mended("single quotes");
        }
        let (mut json, mut letters) = (String::from("\""), self.rest().char_indices().skip(1));
        while let Some((at, letter)) = letters.next() {
            match letter {
                end if end == quote => {
                    self.at += at + 1;
                    json.push('"');
                    return serde_json::from_str(&json).ok();
                }
                '\\' => match letters.next()?.1 {
                    '\'' => json.push('\''),
                    next if "\"\\/bfnrtu".contains(next) => json.extend(['\\', next]),
                    next if next.is_control() => return None,
                    next => {
                        self.mended.push("a backslash that stands for itself");
                        self.mended.dedup();
                        json.extend(['\\', '\\', next]);
                    }
                },
                '"' => json.push_str("\\\""),
                letter if letter.is_control() && letter.is_ascii() => {
                    self.mended.push("a line break inside a text");
                    self.mended.dedup();
                    json.push_str(&format!("\\u{:04x}", u32::from(letter)));
                }
                letter => json.push(letter),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, &[&str])>) {
        let read = object(text).map(|(node, mended)| (serde_json::to_string(&node).unwrap(), mended));
        let expected = expected.map(|(json, mended)| (json.to_owned(), mended.to_vec()));
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn a_slip_is_mended_and_told() {
        for (text, json, mended) in [
            ("{\"a\": 1,}", r#"{"a":1}"#, "a trailing comma"),
            ("{\"a\": [1, 2,],}", r#"{"a":[1,2]}"#, "a trailing comma"),
            ("```json\n{\"a\": 1}\n```", r#"{"a": 1}"#, "a code fence"),
            ("```\n{\"a\": 1}\n```", r#"{"a": 1}"#, "a code fence"),
            ("{'a': 'it\\'s \"so\"'}", r#"{"a":"it's \"so\""}"#, "single quotes"),
            (
                "{\"a\": True, \"b\": None, \"c\": False}",
                r#"{"a":true,"b":null,"c":false}"#,
                "a literal of Python",
            ),
            ("{a: 1, b_2: \"x\"}", r#"{"a":1,"b_2":"x"}"#, "a name without quotes"),
            ("{\"a\": \"x\ny\"}", r#"{"a":"x\ny"}"#, "a line break inside a text"),
            (
                "{\"a\": \"\\d+\"}",
                r#"{"a":"\\d+"}"#,
                "a backslash that stands for itself",
            ),
        ] {
            check(text, Some((json, &[mended])));
        }
        check(
            "```json\n{'a': True,}\n```",
            Some((
                r#"{"a":true}"#,
                &[
                    "a code fence",
                    "single quotes",
                    "a literal of Python",
                    "a trailing comma",
                ],
            )),
        );
    }

    #[test]
    fn numbers_keep_their_digits() {
        check(
            "{\"n\": 123456789012345678901234567890, \"m\": 1.10,}",
            Some((
                r#"{"n":123456789012345678901234567890,"m":1.10}"#,
                &["a trailing comma"],
            )),
        );
    }

    #[test]
    fn what_could_mean_several_things_is_not_mended() {
        for text in [
            "{\"a\": 1",
            "{\"a\": \"cut off",
            "{\"a\" 1}",
            "{\"a\": 1 \"b\": 2}",
            "{\"a\": 1, \"a\": 2,}",
            "{\"a\": yes}",
            "{\"a\": 007}",
            "{\"a\": NaN}",
            "{\"a\": 1} and more",
            "{,}",
            "[1,]",
            "words",
            "",
        ] {
            check(text, None);
        }
        check(&format!("{}1{}", "{'a':".repeat(70), "}".repeat(70)), None);
    }
}
