//! Reads `key: value` or `key=value` pairs that are separated by commas or line breaks.

use super::{
    comma_split::pieces,
    node::Node,
    schema::{JsonTypes, Subschema},
    typed_value,
};

/// Reads the pairs, if the text consists of nothing else. The last value of a key wins.
pub(super) fn read(text: &str) -> Option<Node> {
    let mut fields = Vec::new();
    for piece in pieces(text)? {
        let (key, value) = pair(&text[piece.start..piece.end])?;
        put(&mut fields, key, typed_value::read_untyped(value));
    }
    (!fields.is_empty()).then_some(Node::Map(fields))
}

/// Reads the pairs by the schema: a comma inside a declared string or list does not end its value, and a value is read as its declared
/// type.
pub(super) fn parse_guided(text: &str, subschema: Subschema<'_>) -> Option<Node> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    for piece in pieces(text)? {
        let whole = &text[piece.start..piece.end];
        let started = pair(whole).filter(|(key, _)| match found.last() {
            Some((current, ..)) => piece.on_new_line || starts_another(key, current, subschema),
            None => true,
        });
        let whole_end = piece.start + whole.trim_end().len();
        match (started, found.last_mut()) {
            (Some((key, value)), _) => found.push((key, whole_end - value.len(), whole_end)),
            (None, Some((_, _, end))) => *end = whole_end,
            (None, None) => return None,
        }
    }
    // For a tool with one text argument, `Note: buy milk` is that text, not an argument `Note`.
    let is_known = |key: &str| subschema.declares(key) || subschema.find_nearest(key).is_some();
    if found.is_empty() || (subschema.sole_argument().is_some() && !found.iter().any(|(key, ..)| is_known(key))) {
        return None;
    }
    let mut fields = Vec::new();
    for (key, start, end) in found {
        let value = &text[start..end];
        let node = match subschema.property(key) {
            Some(declared) => typed_value::read_possibly_quoted(value, declared),
            None => typed_value::read_untyped(value),
        };
        put(&mut fields, key, node);
    }
    Some(Node::Map(fields))
}

/// Whether `key` after a comma starts a new pair instead of continuing the value of `current`.
fn starts_another(key: &str, current: &str, subschema: Subschema<'_>) -> bool {
    let takes_commas = subschema.property(current).is_some_and(|declared| {
        let types = declared.types();
        types != JsonTypes::ANY && (types.has(JsonTypes::STRING) || types.has(JsonTypes::ARRAY))
    });
    !takes_commas || subschema.declares(key) || subschema.find_nearest(key).is_some()
}

fn put(fields: &mut Vec<(String, Node)>, key: &str, value: Node) {
    match fields.iter_mut().find(|(known, _)| known == key) {
        Some((_, known)) => *known = value,
        None => fields.push((key.to_owned(), value)),
    }
}

/// Splits one piece into key and value.
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
    // `http://…`, `a == b`, `std::io` and `C:\…` are not pairs.
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
                shown(parse_guided(text, Subschema::root(&schema))).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        assert_eq!(shown(parse_guided("words, name: x", Subschema::root(&schema))), None);
    }

    #[test]
    fn a_label_that_the_tool_does_not_know_is_part_of_its_only_text() {
        let schema = json!({"properties": {"query": {"type": "string"}}});
        assert_eq!(shown(parse_guided("Note: buy milk", Subschema::root(&schema))), None);
        assert_eq!(
            shown(parse_guided("query: buy milk", Subschema::root(&schema))).as_deref(),
            Some(r#"{"query":"buy milk"}"#)
        );
    }
}
