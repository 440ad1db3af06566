//! Parses arguments written as YAML: maps, lists and scalars, without aliases.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::{node::Node, scalar};

/// The longest text that is parsed as YAML, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// The deepest nesting that is parsed.
const MAX_DEPTH: usize = 64;

/// Parses a YAML map with at least one nested list or map. Returns `None` for flat `key: value` lines, because prose often looks like them.
pub(super) fn parse_nested(text: &str) -> Option<Node> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let Node::Map(fields) = read(text)? else { return None };
    let is_nested = fields.iter().any(|(_, value)| value.is_collection());
    is_nested.then_some(Node::Map(fields))
}

/// Parses a single YAML document.
pub(super) fn read(text: &str) -> Option<Node> {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        builder.take(event.ok()?.0)?;
    }
    builder.root
}

/// Builds a value from parser events.
#[derive(Default)]
struct Builder {
    root: Option<Node>,
    /// The lists and maps that have not ended yet, outermost first.
    open: Vec<OpenCollection>,
}

enum OpenCollection {
    List(Vec<Node>),
    /// The complete fields, and the key whose value comes next.
    Map(Vec<(String, Node)>, Option<String>),
}

impl Builder {
    /// Processes an event. Returns `None` if the document has something that is not supported.
    fn take(&mut self, event: Event<'_>) -> Option<()> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => None,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Some(())
            }
            // Nested aliases can expand exponentially, and models have no use for them.
            Event::Alias(_) => None,
            Event::Scalar(text, style, _, tag) => {
                let is_word = style == ScalarStyle::Plain && tag.is_none();
                self.add(if is_word {
                    word(&text)
                } else {
                    Node::Text(text.into_owned())
                })
            }
            Event::SequenceStart(..) => self.start(OpenCollection::List(Vec::new())),
            Event::MappingStart(..) => self.start(OpenCollection::Map(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop()? {
                OpenCollection::List(items) => self.add(Node::List(items)),
                OpenCollection::Map(fields, _) => self.add(Node::Map(fields)),
            },
        }
    }

    fn start(&mut self, open: OpenCollection) -> Option<()> {
        (self.open.len() < MAX_DEPTH).then(|| self.open.push(open))
    }

    fn add(&mut self, node: Node) -> Option<()> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection::List(items)) => items.push(node),
            Some(OpenCollection::Map(fields, waiting)) => match waiting.take() {
                Some(name) => fields.push((name, node)),
                None => {
                    let name = name(node)?;
                    // A duplicate key means that the text is probably not YAML.
                    if fields.len() >= super::node::MAX_PAIRS || fields.iter().any(|(known, _)| *known == name) {
                        return None;
                    }
                    *waiting = Some(name);
                }
            },
        }
        Some(())
    }
}

fn name(node: Node) -> Option<String> {
    match node {
        Node::Text(text) => Some(text),
        Node::Raw(raw) => Some(raw.get().to_owned()),
        Node::List(_) | Node::Map(_) => None,
    }
}

/// Parses a plain scalar. Unlike in Python, `None` is a string in YAML, as in `clusterIP: None`.
fn word(text: &str) -> Node {
    if text.is_empty() || text == "~" {
        Node::null()
    } else if text.eq_ignore_ascii_case("none") {
        Node::Text(text.to_owned())
    } else {
        scalar::scalar(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let read = parse_nested(text).map(|node| serde_json::to_string(&node).unwrap());
        assert_eq!(read.as_deref(), expected, "{text}");
    }

    #[test]
    fn nested_values_are_read_with_their_types() {
        check(
            "items:\n  - a\n  - 2\n  - '3'\nname: x",
            Some(r#"{"items":["a",2,"3"],"name":"x"}"#),
        );
        check(
            "filter:\n  on: true\n  off: ~\n  ip: None\n  id: 007\n  n: 12345678901234567890123",
            Some(r#"{"filter":{"on":true,"off":null,"ip":"None","id":"007","n":12345678901234567890123}}"#),
        );
        check("{a: [1, .5, .nan], b: {}}", Some(r#"{"a":[1,0.5,".nan"],"b":{}}"#));
        check(
            "text: |\n  one\n  two\nlist: []",
            Some(r#"{"text":"one\ntwo\n","list":[]}"#),
        );
        check("1: [a]", Some(r#"{"1":["a"]}"#));
    }

    #[test]
    fn what_is_not_nested_or_not_one_map_is_left_to_others() {
        for text in [
            "a: 1\nb: 2",
            "just words",
            "- a\n- b",
            "a: [1\nb: 2",
            "a: &x [1]\nb: *x",
            "a: [1]\na: [2]",
            "a: [1]\n---\nb: [2]",
            "[a]: [b]",
            "",
        ] {
            check(text, None);
        }
        let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
        check(&deep, None);
        check(&format!("a: [{}]", "1, ".repeat(200_000)), None);
    }
}
