//! Parses YAML into a located tree.
//!
//! The tree is built from the parser's events: saphyr's own loader recurses, and a few kilobytes of `- - -` would overflow its stack.

use std::collections::{BTreeMap, HashSet};

mod scalar;

pub use scalar::YamlScalar;

use saphyr_parser::{Event, Parser, ScanError, Span};

use super::node::{KeyValue, Location, MAX_DEPTH, Node, SyntaxError, Value};

/// The most values in one file, including those that an alias repeats.
const MAX_NODES: usize = 200_000;

pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| scan_error(&error))?;
        builder.take(event, span)?;
    }
    Ok(builder.root.unwrap_or(Node::new(Value::Null, Location::START)))
}

fn scan_error(error: &ScanError) -> SyntaxError {
    let marker = error.marker();
    SyntaxError::new(Location::new(marker.line(), marker.col() + 1), error.info())
}

/// A collection whose end has not been parsed.
struct OpenCollection {
    node: Node,
    anchor: usize,
    /// In a map: the key that waits for its value.
    key: Option<(String, Location)>,
    /// In a map: the keys so far.
    keys: HashSet<String>,
    size: Size,
}

/// The size of a subtree, its root included.
#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    depth: usize,
}

impl Size {
    const ONE: Self = Self { nodes: 1, depth: 1 };
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<OpenCollection>,
    /// The nodes marked by `&name`, which aliases refer to.
    anchors: BTreeMap<usize, (Node, Size)>,
    nodes: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), SyntaxError> {
        let at = Location::new(span.start.line(), span.start.col() + 1);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(SyntaxError::new(at, "a second document; a config has only one"))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some((node, size)) => {
                    let (node, size) = (Node::new(node.value.clone(), at), *size);
                    self.add(node, size)
                }
                None => Err(SyntaxError::new(at, "an alias inside what it stands for")),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let value = YamlScalar::new(text, style, tag.as_deref())
                    .ok_or_else(|| SyntaxError::new(at, "the value does not fit its tag"))?;
                let node = Node::new(scalar(value), at);
                if anchor > 0 {
                    self.anchors.insert(anchor, (node.clone(), Size::ONE));
                }
                self.add(node, Size::ONE)
            }
            Event::SequenceStart(anchor, _) => self.start(Value::List(Vec::new()), anchor, at),
            Event::MappingStart(anchor, _) => self.start(Value::Map(Vec::new()), anchor, at),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    fn start(&mut self, value: Value, anchor: usize, at: Location) -> Result<(), SyntaxError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(SyntaxError::too_deep(at));
        }
        self.open.push(OpenCollection {
            node: Node::new(value, at),
            anchor,
            key: None,
            keys: HashSet::new(),
            size: Size::ONE,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), SyntaxError> {
        let Some(mut done) = self.open.pop() else {
            return Ok(());
        };
        if let Value::Map(entries) = &mut done.node.value {
            merge(entries);
        }
        if done.anchor > 0 {
            self.anchors.insert(done.anchor, (done.node.clone(), done.size));
        }
        self.add(done.node, done.size)
    }

    /// Adds a complete node to the innermost open collection.
    fn add(&mut self, node: Node, size: Size) -> Result<(), SyntaxError> {
        let at = node.at;
        // The children of a complete collection were counted one by one, those of an alias were not. Counting both
        // ways over-counts deep collections by their depth at most, which the limit has room for.
        self.nodes = self.nodes.saturating_add(size.nodes);
        if self.nodes > MAX_NODES {
            return Err(SyntaxError::new(at, format!("more than {MAX_NODES} values")));
        }
        // An alias may hold another alias, line after line, without the text itself being nested.
        if self.open.len() + size.depth > MAX_DEPTH {
            return Err(SyntaxError::too_deep(at));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.size.nodes = open.size.nodes.saturating_add(size.nodes);
        open.size.depth = open.size.depth.max(size.depth + 1);
        match &mut open.node.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match open.key.take() {
                None => open.key = Some((key_text(node)?, at)),
                Some((key, at)) => {
                    if !open.keys.insert(key.clone()) {
                        return Err(SyntaxError::duplicate(at, &key));
                    }
                    entries.push(KeyValue { key, at, value: node });
                }
            },
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => {}
        }
        Ok(())
    }
}

/// Resolves `<<: *defaults`: adds the entries of the other map whose keys are not set.
fn merge(entries: &mut Vec<KeyValue>) {
    let Some(at) = entries.iter().position(|entry| entry.key == "<<") else {
        return;
    };
    let maps = match entries.remove(at).value.value {
        Value::List(items) => items.into_iter().map(|item| item.value).collect(),
        value => vec![value],
    };
    let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for map in maps {
        if let Value::Map(merged) = map {
            entries.extend(merged.into_iter().filter(|entry| known.insert(entry.key.clone())));
        }
    }
}

fn scalar(value: YamlScalar<'_>) -> Value {
    match value {
        YamlScalar::Null => Value::Null,
        YamlScalar::Bool(value) => Value::Bool(value),
        YamlScalar::Int(value) => Value::Int(value),
        YamlScalar::Float(value) => Value::Float(value),
        YamlScalar::Text(text) => Value::Text(text.into_owned()),
    }
}

fn key_text(node: Node) -> Result<String, SyntaxError> {
    match node.value {
        Value::Text(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Int(value) => Ok(value.to_string()),
        Value::Null | Value::Float(_) | Value::List(_) | Value::Map(_) => {
            Err(SyntaxError::new(node.at, "a key must be a text"))
        }
    }
}
