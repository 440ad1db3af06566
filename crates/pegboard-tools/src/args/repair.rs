//! Repairs the syntax errors that models make in JSON, where the intended value is unambiguous, and lists the repairs.

use super::{
    node::{MAX_PAIRS, Node},
    scalar,
};

/// The deepest nesting that is repaired.
const MAX_DEPTH: usize = 64;

/// Returns the object that the text was meant to be, and the repairs.
pub(super) fn object(text: &str) -> Option<(Node, Vec<&'static str>)> {
    let mut reader = LenientParser::new(strip_fence(text));
    if reader.text.len() != text.trim().len() {
        reader.note("a code fence");
    }
    if reader.text.starts_with('{')
        && let Some(node) = Node::json(reader.text)
    {
        return Some((node, reader.repairs));
    }
    let node = reader.value(0)?;
    reader.skip_blanks();
    let is_all = reader.at == reader.text.len();
    (is_all && matches!(node, Node::Map(_))).then_some((node, reader.repairs))
}

/// The text inside a Markdown code fence.
fn strip_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let after_language = inner.and_then(|inner| inner.split_once('\n'));
    after_language.map_or(text, |(_, inner)| inner.trim())
}

/// A lenient JSON parser.
struct LenientParser<'t> {
    text: &'t str,
    at: usize,
    repairs: Vec<&'static str>,
}

impl<'t> LenientParser<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            repairs: Vec::new(),
        }
    }

    fn note(&mut self, what: &'static str) {
        if !self.repairs.contains(&what) {
            self.repairs.push(what);
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

    /// Skips whitespace, and consumes the character if it comes next.
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
            if !self.take(':') || fields.len() >= MAX_PAIRS || fields.iter().any(|(known, _)| *known == name) {
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

    /// Consumes a comma, or checks that `end` comes next and leaves it to the caller.
    fn separator(&mut self, end: char) -> Option<()> {
        let is_comma = self.take(',');
        self.skip_blanks();
        let is_end = self.peek() == Some(end);
        if is_comma && is_end {
            self.note("a trailing comma");
        }
        (is_comma || is_end).then_some(())
    }

    fn name(&mut self) -> Option<String> {
        self.skip_blanks();
        if self.peek()? == '"' || self.peek()? == '\'' {
            return self.string();
        }
        let name = self.read_bare();
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
        if is_name {
            self.note("a name without quotes");
        }
        is_name.then(|| name.to_owned())
    }

    /// Consumes the text up to the next whitespace or JSON punctuation.
    fn read_bare(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || ",:{}[]\"'".contains(c))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn word(&mut self) -> Option<Node> {
        let word = self.read_bare();
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
        self.note("a literal of Python");
        Some(node)
    }

    /// Consumes a string in single or double quotes. It is rewritten as a JSON string, which serde_json then unescapes.
    fn string(&mut self) -> Option<String> {
        let quote = self.peek()?;
        if quote == '\'' {
            self.note("single quotes");
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
                        self.repairs.push("a backslash that stands for itself");
                        self.repairs.dedup();
                        json.extend(['\\', '\\', next]);
                    }
                },
                '"' => json.push_str("\\\""),
                letter if letter.is_control() && letter.is_ascii() => {
                    self.repairs.push("a line break inside a text");
                    self.repairs.dedup();
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
        let read = object(text).map(|(node, repairs)| (serde_json::to_string(&node).unwrap(), repairs));
        let expected = expected.map(|(json, repairs)| (json.to_owned(), repairs.to_vec()));
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn a_slip_is_repaired_and_reported() {
        for (text, json, repairs) in [
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
            check(text, Some((json, &[repairs])));
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
    fn what_could_mean_several_things_is_not_repaired() {
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
