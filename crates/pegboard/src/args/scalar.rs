//! What a bare word of a text means: a boolean, nothing, a number, or just the word.

use super::{node::Node, schema::Kinds};

/// What a word means when nobody says what it should be. Numbers that no JSON reader could hold or that would not come back as they were
/// written (`007`, `+49…`, `NaN`) stay text.
pub(super) fn scalar(text: &str) -> Node {
    let text = text.trim();
    boolean(text)
        .or_else(|| nothing(text))
        .or_else(|| number(text))
        .unwrap_or_else(|| Node::Text(text.to_owned()))
}

/// What a word means where one of `kinds` is wanted, or nothing when it can be none of them.
pub(super) fn declared(text: &str, kinds: Kinds) -> Option<Node> {
    let trimmed = text.trim();
    let of = |kind: Kinds, read: fn(&str) -> Option<Node>| kinds.has(kind).then(|| read(trimmed)).flatten();
    of(Kinds::BOOLEAN, boolean)
        .or_else(|| of(Kinds::NUMBER, number))
        .or_else(|| of(Kinds::INTEGER, integer))
        .or_else(|| of(Kinds::NULL, nothing))
        .or_else(|| kinds.has(Kinds::STRING).then(|| Node::Text(text.to_owned())))
}

fn boolean(text: &str) -> Option<Node> {
    if text.eq_ignore_ascii_case("true") {
        Some(Node::bool(true))
    } else if text.eq_ignore_ascii_case("false") {
        Some(Node::bool(false))
    } else {
        None
    }
}

fn nothing(text: &str) -> Option<Node> {
    let is_nothing = text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("none");
    is_nothing.then(Node::null)
}

/// A number in JSON's own spelling, or with the zero before its point left out.
fn number(text: &str) -> Option<Node> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let written = match digits.as_bytes() {
        [b'0'..=b'9', ..] => text.to_owned(),
        [b'.', b'0'..=b'9', ..] => format!("{}0{digits}", &text[..text.len() - digits.len()]),
        _ => return None,
    };
    written.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Node::json(&written)
}

/// A number without a fraction.
fn integer(text: &str) -> Option<Node> {
    is_whole(text).then(|| number(text)).flatten()
}

/// Whether a number, as JSON writes it, has no fraction.
pub(super) fn is_whole(number: &str) -> bool {
    !number.contains(['.', 'e', 'E']) || number.parse::<f64>().is_ok_and(|value| value.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: &Node) -> String {
        serde_json::to_string(node).unwrap()
    }

    /// The rows are those of the first design's table, and the cases beside them.
    #[test]
    fn a_bare_word_means_what_it_looks_like() {
        for (text, expected) in [
            // Booleans.
            ("true", "true"),
            ("True", "true"),
            ("FALSE", "false"),
            // Null.
            ("null", "null"),
            ("None", "null"),
            // Integers.
            ("42", "42"),
            ("-7", "-7"),
            ("0", "0"),
            // Floats.
            ("3.14", "3.14"),
            ("-0.5", "-0.5"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("1e3", "1e3"),
            ("1.10", "1.10"),
            // Everything else is text, trimmed.
            ("  hello world ", "\"hello world\""),
            ("", "\"\""),
            ("yes", "\"yes\""),
            ("nullable", "\"nullable\""),
            // Numbers of any length are exact.
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("0.1000000000000000000001", "0.1000000000000000000001"),
            // What is no number, or would not come back as it was written.
            ("NaN", "\"NaN\""),
            ("Inf", "\"Inf\""),
            ("-inf", "\"-inf\""),
            ("infinity", "\"infinity\""),
            ("1e999", "\"1e999\""),
            ("007", "\"007\""),
            ("-01", "\"-01\""),
            ("+4912345", "\"+4912345\""),
            ("5.", "\"5.\""),
            ("1.2.3", "\"1.2.3\""),
            ("0x1F", "\"0x1F\""),
            ("1_000", "\"1_000\""),
            ("-", "\"-\""),
        ] {
            assert_eq!(shown(&scalar(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_word_becomes_only_what_is_declared() {
        let check = |text: &str, kinds: Kinds, expected: Option<&str>| {
            assert_eq!(
                declared(text, kinds).map(|node| shown(&node)).as_deref(),
                expected,
                "{text}"
            );
        };
        check("5", Kinds::STRING, Some("\"5\""));
        check("true", Kinds::STRING, Some("\"true\""));
        check("null", Kinds::STRING, Some("\"null\""));
        check(" padded ", Kinds::STRING, Some("\" padded \""));
        check("5", Kinds::INTEGER, Some("5"));
        check("5.0", Kinds::INTEGER, Some("5.0"));
        check("5.5", Kinds::INTEGER, None);
        check("5.5", Kinds::NUMBER, Some("5.5"));
        check("yes", Kinds::BOOLEAN, None);
        check("none", Kinds::NULL.and(Kinds::STRING), Some("null"));
        check("5", Kinds::INTEGER.and(Kinds::STRING), Some("5"));
        check("x", Kinds::INTEGER.and(Kinds::STRING), Some("\"x\""));
        check("x", Kinds::OBJECT, None);
    }
}
