//! Reads a bare word as a boolean, null, a number, or else a string.

use super::{node::Node, schema::JsonTypes};

/// Infers the type of a word. Numbers that JSON cannot represent, or not in the same spelling (`007`, `+49…`, `NaN`), stay strings.
pub(super) fn scalar(text: &str) -> Node {
    let text = text.trim();
    boolean(text)
        .or_else(|| null(text))
        .or_else(|| number(text))
        .unwrap_or_else(|| Node::Text(text.to_owned()))
}

/// Reads a word as one of `types`. Returns `None` if it can be none of them.
pub(super) fn parse_as(text: &str, types: JsonTypes) -> Option<Node> {
    let trimmed = text.trim();
    let of = |kind: JsonTypes, read: fn(&str) -> Option<Node>| types.has(kind).then(|| read(trimmed)).flatten();
    of(JsonTypes::BOOLEAN, boolean)
        .or_else(|| of(JsonTypes::NUMBER, number))
        .or_else(|| of(JsonTypes::INTEGER, integer))
        .or_else(|| of(JsonTypes::NULL, null))
        .or_else(|| types.has(JsonTypes::STRING).then(|| Node::Text(text.to_owned())))
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

fn null(text: &str) -> Option<Node> {
    let is_null = text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("none");
    is_null.then(Node::null)
}

/// Parses a number as JSON writes it, or one without the zero before its decimal point.
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

/// Parses a number without a fraction.
fn integer(text: &str) -> Option<Node> {
    is_whole(text).then(|| number(text)).flatten()
}

/// Whether a JSON number has no fraction.
pub(super) fn is_whole(number: &str) -> bool {
    !number.contains(['.', 'e', 'E']) || number.parse::<f64>().is_ok_and(|value| value.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: &Node) -> String {
        serde_json::to_string(node).unwrap()
    }

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
        let check = |text: &str, types: JsonTypes, expected: Option<&str>| {
            assert_eq!(
                parse_as(text, types).map(|node| shown(&node)).as_deref(),
                expected,
                "{text}"
            );
        };
        check("5", JsonTypes::STRING, Some("\"5\""));
        check("true", JsonTypes::STRING, Some("\"true\""));
        check("null", JsonTypes::STRING, Some("\"null\""));
        check(" padded ", JsonTypes::STRING, Some("\" padded \""));
        check("5", JsonTypes::INTEGER, Some("5"));
        check("5.0", JsonTypes::INTEGER, Some("5.0"));
        check("5.5", JsonTypes::INTEGER, None);
        check("5.5", JsonTypes::NUMBER, Some("5.5"));
        check("yes", JsonTypes::BOOLEAN, None);
        check("none", JsonTypes::NULL.and(JsonTypes::STRING), Some("null"));
        check("5", JsonTypes::INTEGER.and(JsonTypes::STRING), Some("5"));
        check("x", JsonTypes::INTEGER.and(JsonTypes::STRING), Some("\"x\""));
        check("x", JsonTypes::OBJECT, None);
    }
}
