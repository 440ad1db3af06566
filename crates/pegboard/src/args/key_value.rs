//! Arguments written as `key: value` or `key=value`, one after the other with commas or line breaks between them.

use super::{
    MAX_PAIRS,
    node::Node,
    scalar,
    schema::{Kinds, Shape},
    typed_value, yaml,
};

/// The longest text that is tried.
const MAX_BYTES: usize = 256 << 10;

/// The pairs, if the text consists of nothing else. Of two values for one key the later one counts.
pub(super) fn read(text: &str) -> Option<Node> {
    let mut fields = Vec::new();
    for piece in pieces(text)? {
        let (key, value) = pair(&text[piece.start..piece.end])?;
        put(&mut fields, key, value_of(value));
    }
    (!fields.is_empty()).then_some(Node::Map(fields))
}

/// The pairs as the schema means them: a comma inside a string or a list ends nothing, and a value becomes only what is declared.
pub(super) fn guided(text: &str, shape: Shape<'_>) -> Option<Node> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    for piece in pieces(text)? {
        let whole = &text[piece.start..piece.end];
        let started = pair(whole).filter(|(key, _)| match found.last() {
            Some((current, ..)) => piece.on_new_line || starts_another(key, current, shape),
            None => true,
        });
        let whole_end = piece.start + whole.trim_end().len();
        match (started, found.last_mut()) {
            (Some((key, value)), _) => found.push((key, whole_end - value.len(), whole_end)),
            (None, Some((_, _, end))) => *end = whole_end,
            (None, None) => return None,
        }
    }
    // Words such as `Note: buy milk` are no arguments of a tool that knows none of the names and takes one text.
    let is_known = |key: &str| shape.knows(key) || shape.nearest(key).is_some();
    if found.is_empty() || (shape.only().is_some() && !found.iter().any(|(key, ..)| is_known(key))) {
        return None;
    }
    let mut fields = Vec::new();
    for (key, start, end) in found {
        let value = &text[start..end];
        let node = match shape.property(key) {
            Some(declared) => typed_value::unquoted_value(value, declared),
            None => value_of(value),
        };
        put(&mut fields, key, node);
    }
    Some(Node::Map(fields))
}

/// Whether `key` after a comma is a name of its own rather than a part of the value of `current`.
fn starts_another(key: &str, current: &str, shape: Shape<'_>) -> bool {
    let takes_commas = shape.property(current).is_some_and(|declared| {
        let kinds = declared.kinds();
        kinds != Kinds::ANY && (kinds.has(Kinds::STRING) || kinds.has(Kinds::ARRAY))
    });
    !takes_commas || shape.knows(key) || shape.nearest(key).is_some()
}

fn put(fields: &mut Vec<(String, Node)>, key: &str, value: Node) {
    match fields.iter_mut().find(|(known, _)| known == key) {
        Some((_, known)) => *known = value,
        None => fields.push((key.to_owned(), value)),
    }
}

/// A value of which nothing is declared.
pub(super) fn value_of(text: &str) -> Node {
    if let Some(inner) = typed_value::unquoted(text) {
        return Node::Text(inner);
    }
    if text.starts_with(['[', '{'])
        && let Some(node) = Node::json(text).or_else(|| yaml::read(text))
        && node.is_collection()
    {
        return node;
    }
    scalar::scalar(text)
}

/// A part of the text between two separators.
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) on_new_line: bool,
}

/// The parts that are not blank. Separators inside quotes and brackets do not count, where these close.
pub(super) fn pieces(text: &str) -> Option<Vec<Piece>> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let bytes = text.as_bytes();
    let (mut pieces, mut start, mut on_new_line) = (Vec::new(), 0, true);
    // Whether a value may begin here, so that a quote or bracket would be its own.
    let (mut at_value, mut groups_close) = (true, true);
    let mut at = 0;
    while at <= bytes.len() {
        let byte = bytes.get(at).copied();
        match byte {
            None | Some(b',' | b'\n') => {
                if !text[start..at].trim().is_empty() {
                    pieces.push(Piece {
                        start,
                        end: at,
                        on_new_line,
                    });
                    if pieces.len() > MAX_PAIRS {
                        return None;
                    }
                }
                start = at + 1;
                on_new_line = byte == Some(b'\n');
                at_value = true;
            }
            Some(b'"' | b'\'' | b'[' | b'{') if at_value && groups_close => {
                at_value = false;
                match end_of_group(bytes, at) {
                    Some(end) => at = end,
                    // Looking for the end again and again would take for ever.
                    None => groups_close = false,
                }
            }
            Some(b':' | b'=') => at_value = true,
            Some(byte) => at_value &= byte.is_ascii_whitespace(),
        }
        at += 1;
    }
    Some(pieces)
}

/// Where the quote or bracket that opens at `at` is closed.
fn end_of_group(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut quote, mut depth, mut here) = (None, 0_usize, at);
    while let Some(byte) = bytes.get(here) {
        match (quote, byte) {
            (Some(_), b'\\') => here += 1,
            (Some(open), byte) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, b'[' | b'{') => depth += 1,
            (None, b']' | b'}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        if quote.is_none() && depth == 0 {
            return Some(here);
        }
        here += 1;
    }
    None
}

/// The key and the value of one part.
fn pair(piece: &str) -> Option<(&str, &str)> {
    let piece = piece.trim();
    let at = piece.find([':', '='])?;
    let (key, value) = (piece[..at].trim(), &piece[at + 1..]);
    let key = ["\"", "'", "`"]
        .iter()
        .find_map(|quote| key.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(key);
    let mut letters = key.chars();
    let is_key = letters
        .next()
        .is_some_and(|first| first.is_alphabetic() || "_$".contains(first))
        && letters.all(|letter| letter.is_alphanumeric() || "_-.$".contains(letter));
    // `http://…`, `a == b`, `std::io` and `C:\…` are no pairs.
    let is_value = !value.starts_with("//") && !value.starts_with([':', '=', '\\']);
    (is_key && is_value).then(|| (key, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shown(node: Option<Node>) -> Option<String> {
        node.map(|node| serde_json::to_string(&node).unwrap())
    }

    #[test]
    fn pairs_are_separated_by_commas_or_line_breaks() {
        for (text, expected) in [
            ("namespace: default", r#"{"namespace":"default"}"#),
            ("namespace=default", r#"{"namespace":"default"}"#),
            ("a: 1, b: two", r#"{"a":1,"b":"two"}"#),
            ("a=1\nb=true\n", r#"{"a":1,"b":true}"#),
            ("a: 1,\r\n b = none", r#"{"a":1,"b":null}"#),
            ("a: x=y", r#"{"a":"x=y"}"#),
            ("url: http://x/y?z=1", r#"{"url":"http://x/y?z=1"}"#),
            ("'a': \"x, y\", `b`: 'p, q'", r#"{"a":"x, y","b":"p, q"}"#),
            (
                "a: [1, 2], b: {\"c\": 1, \"d\": 2}",
                r#"{"a":[1, 2],"b":{"c": 1, "d": 2}}"#,
            ),
            ("a: [x, y]", r#"{"a":["x","y"]}"#),
            ("a: don't, b: can't", r#"{"a":"don't","b":"can't"}"#),
            ("a: [open, b: 2", r#"{"a":"[open","b":2}"#),
            ("a: 1, a: 2", r#"{"a":2}"#),
            ("a:", r#"{"a":""}"#),
        ] {
            assert_eq!(shown(read(text)).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_among_the_pairs_makes_the_whole_a_text() {
        for text in [
            "just words",
            "a: 1, and more",
            "tags: a,b,c, name: x",
            "http://example.com",
            "at 10:30",
            "10:30",
            "x == y",
            "std::io",
            "C:\\temp",
            "two words: x",
            "",
            ",\n,",
        ] {
            assert_eq!(shown(read(text)), None, "{text}");
        }
        assert_eq!(shown(read(&"a: 1,".repeat(2000))), None);
    }

    fn schema() -> Value {
        json!({"properties": {
            "tags": {"type": "array", "items": {"type": "string"}},
            "name": {"type": "string"},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "limit": {"type": "integer"},
            "on": {"type": "boolean"},
            "either": {"type": ["integer", "string"]},
        }})
    }

    #[test]
    fn the_schema_tells_which_commas_belong_to_a_value() {
        let schema = schema();
        for (text, expected) in [
            ("tags: a,b,c, name: x", r#"{"tags":["a","b","c"],"name":"x"}"#),
            (
                "name: one, two: three, limit: 5",
                r#"{"name":"one, two: three","limit":5}"#,
            ),
            ("name: x\nlabel: y", r#"{"name":"x","label":"y"}"#),
            ("name: x, limt: 5", r#"{"name":"x","limt":5}"#),
            ("limit: 5, other: x", r#"{"limit":5,"other":"x"}"#),
            ("ids: 1, 2, x", r#"{"ids":[1,2,"x"]}"#),
            ("ids: [1, 2]", r#"{"ids":[1, 2]}"#),
            ("tags: 'a, b', c", r#"{"tags":["a, b","c"]}"#),
            ("tags:", r#"{"tags":[]}"#),
            ("name: 5, limit: 5, on: TRUE", r#"{"name":"5","limit":5,"on":true}"#),
            ("name: \"5\", either: 5", r#"{"name":"5","either":5}"#),
            ("limit: many", r#"{"limit":"many"}"#),
            ("name=null", r#"{"name":"null"}"#),
        ] {
            assert_eq!(
                shown(guided(text, Shape::new(&schema))).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        assert_eq!(shown(guided("words, name: x", Shape::new(&schema))), None);
    }

    #[test]
    fn a_label_that_the_tool_does_not_know_is_part_of_its_only_text() {
        let schema = json!({"properties": {"query": {"type": "string"}}});
        assert_eq!(shown(guided("Note: buy milk", Shape::new(&schema))), None);
        assert_eq!(
            shown(guided("query: buy milk", Shape::new(&schema))).as_deref(),
            Some(r#"{"query":"buy milk"}"#)
        );
    }
}
