//! The nodes of a YAML text and where they are.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use pegboard_config::YamlScalar;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::Value;

use crate::document::tree::Tree;

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 64;
/// The most nodes that are read, aliases counted with what they stand for.
const MAX_NODES: usize = 100_000;

/// A node and its bytes in the text. A block map starts at its first key and ends with its last value.
#[derive(Debug, Clone)]
pub(super) struct YamlNode {
    pub(super) kind: NodeKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether it is in braces or brackets.
    pub(super) is_flow: bool,
    /// Whether an anchor or a tag is at it.
    is_marked: bool,
}

#[derive(Debug, Clone)]
pub(super) enum NodeKind {
    Scalar(Value),
    List(Vec<YamlNode>),
    Map(Vec<(YamlNode, YamlNode)>),
    /// What the alias stands for.
    Alias(Tree),
}

impl YamlNode {
    /// The text of a key.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The value of a key of a map.
    pub(super) fn below(&self, name: &str) -> Option<&Self> {
        match &self.kind {
            NodeKind::Map(entries) => {
                let entry = entries.iter().find(|(key, _)| key.text() == Some(name));
                entry.map(|(_, value)| value)
            }
            NodeKind::Scalar(_) | NodeKind::List(_) | NodeKind::Alias(_) => None,
        }
    }

    /// Adds where the scalars are, also those that are keys.
    pub(super) fn scalars(&self, found: &mut Vec<Range<usize>>) {
        match &self.kind {
            NodeKind::Scalar(_) => found.push(self.start..self.end),
            NodeKind::List(items) => items.iter().for_each(|item| item.scalars(found)),
            NodeKind::Map(entries) => entries.iter().for_each(|(key, value)| {
                key.scalars(found);
                value.scalars(found);
            }),
            NodeKind::Alias(_) => {}
        }
    }

    /// Whether nothing is written where the value should be.
    pub(super) fn is_empty_scalar(&self) -> bool {
        matches!(self.kind, NodeKind::Scalar(Value::Null)) && self.start == self.end
    }

    /// Whether an anchor, alias or tag is in it.
    pub(super) fn has_reference(&self) -> bool {
        self.is_marked
            || match &self.kind {
                NodeKind::Scalar(_) => false,
                NodeKind::Alias(_) => true,
                NodeKind::List(items) => items.iter().any(Self::has_reference),
                NodeKind::Map(entries) => entries
                    .iter()
                    .any(|(key, value)| key.has_reference() || value.has_reference()),
            }
    }

    pub(super) fn tree(&self) -> Tree {
        match &self.kind {
            NodeKind::Scalar(value) => Tree::Leaf(value.clone()),
            NodeKind::Alias(tree) => tree.clone(),
            NodeKind::List(items) => Tree::List(items.iter().map(Self::tree).collect()),
            NodeKind::Map(entries) => {
                let mut merged = Vec::new();
                let mut result: Vec<(String, Tree)> = Vec::new();
                for (key, value) in entries {
                    match key.text() {
                        Some("<<") => merged.push(value.tree()),
                        Some(text) => result.push((text.to_owned(), value.tree())),
                        None => result.push((key.tree().value().to_string(), value.tree())),
                    }
                }
                for tree in merged {
                    let maps = if let Tree::List(items) = tree {
                        items
                    } else {
                        vec![tree]
                    };
                    for map in maps {
                        if let Tree::Map(more) = map {
                            let known: HashSet<&str> = result.iter().map(|(key, _)| key.as_str()).collect();
                            let new = more.into_iter().filter(|(key, _)| !known.contains(key.as_str()));
                            let new: Vec<_> = new.collect();
                            result.extend(new);
                        }
                    }
                }
                Tree::Map(result)
            }
        }
    }
}

/// The root of the document, `None` if the text has nothing but comments.
pub(super) fn read(text: &str) -> Result<Option<YamlNode>, String> {
    let mut bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    bytes.push(text.len());
    let mut builder = Builder {
        text,
        bytes,
        root: None,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        documents: 0,
        nodes: 0,
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| format!("line {}: {}", error.marker().line(), error.info()))?;
        builder.take(event, span)?;
    }
    Ok(builder.root)
}

struct OpenNode {
    node: YamlNode,
    anchor: usize,
    key: Option<YamlNode>,
    /// The keys of a map so far.
    known: HashSet<String>,
}

struct Builder<'a> {
    text: &'a str,
    /// The byte position of every character.
    bytes: Vec<usize>,
    root: Option<YamlNode>,
    open: Vec<OpenNode>,
    anchors: BTreeMap<usize, Tree>,
    documents: usize,
    nodes: usize,
}

impl Builder<'_> {
    fn byte(&self, character: usize) -> usize {
        self.bytes.get(character).copied().unwrap_or(self.text.len())
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), String> {
        let (start, end) = (self.byte(span.start.index()), self.byte(span.end.index()));
        let node = |kind, is_marked| YamlNode {
            kind,
            start,
            end,
            is_flow: false,
            is_marked,
        };
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                match self.documents {
                    1 => Ok(()),
                    _ => Err("the file has several documents".to_owned()),
                }
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(tree) => self.add(node(NodeKind::Alias(tree), true)),
                None => Err("an alias inside what it stands for".to_owned()),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let is_marked = anchor > 0 || tag.is_some();
                let value = YamlScalar::new(text, style, tag.as_deref());
                let value = scalar(value.ok_or("a value does not fit its tag")?);
                let mut node = node(NodeKind::Scalar(value), is_marked);
                // The span of a text over several lines goes on to the next token, that of one in quotes behind a comment.
                let written = &self.text[start..end];
                let length = quoted_length(written, style);
                node.end = start + length.unwrap_or_else(|| written.trim_end().len());
                if anchor > 0 {
                    self.anchors.insert(anchor, node.tree());
                }
                self.add(node)
            }
            Event::SequenceStart(anchor, tag) => {
                let is_marked = anchor > 0 || tag.is_some();
                self.start(node(NodeKind::List(Vec::new()), is_marked), anchor, '[')
            }
            Event::MappingStart(anchor, tag) => {
                let is_marked = anchor > 0 || tag.is_some();
                self.start(node(NodeKind::Map(Vec::new()), is_marked), anchor, '{')
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(start),
        }
    }

    fn start(&mut self, mut node: YamlNode, anchor: usize, brace: char) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        node.is_flow = self.text[node.start..].starts_with(brace);
        self.open.push(OpenNode {
            node,
            anchor,
            key: None,
            known: HashSet::new(),
        });
        Ok(())
    }

    fn end(&mut self, brace: usize) -> Result<(), String> {
        let Some(mut done) = self.open.pop() else {
            return Ok(());
        };
        let node = &mut done.node;
        let children = match &node.kind {
            NodeKind::Map(entries) => {
                let first = entries.first().map(|(key, _)| key.start);
                let last = entries.last().map(|(key, value)| {
                    if value.is_empty_scalar() {
                        key.end + 1
                    } else {
                        value.end
                    }
                });
                first.zip(last)
            }
            NodeKind::List(items) => items
                .first()
                .zip(items.last())
                .map(|(first, last)| (first.start, last.end)),
            NodeKind::Scalar(_) | NodeKind::Alias(_) => None,
        };
        match children {
            _ if node.is_flow => node.end = brace + 1,
            Some((first, last)) => {
                node.start = node.start.min(first);
                node.end = last;
            }
            None => {}
        }
        if done.anchor > 0 {
            self.anchors.insert(done.anchor, done.node.tree());
        }
        self.add(done.node)
    }

    fn add(&mut self, node: YamlNode) -> Result<(), String> {
        self.nodes += match &node.kind {
            NodeKind::Alias(tree) => size(tree),
            _ => 1,
        };
        if self.nodes > MAX_NODES {
            return Err("it has too many values".to_owned());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.kind {
            NodeKind::List(items) => items.push(node),
            NodeKind::Map(entries) => match open.key.take() {
                None => open.key = Some(node),
                Some(key) => {
                    if let Some(text) = key.text()
                        && !open.known.insert(text.to_owned())
                    {
                        return Err(format!("the key {text:?} is there twice"));
                    }
                    entries.push((key, node));
                }
            },
            NodeKind::Scalar(_) | NodeKind::Alias(_) => {}
        }
        Ok(())
    }
}

/// The length of a text in quotes, with them.
fn quoted_length(written: &str, style: ScalarStyle) -> Option<usize> {
    let (quote, escape) = match style {
        ScalarStyle::DoubleQuoted => (b'"', b'\\'),
        // Two quotes are an escaped one.
        ScalarStyle::SingleQuoted => (b'\'', b'\''),
        ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => return None,
    };
    let bytes = written.as_bytes();
    let mut at = 1;
    loop {
        let byte = *bytes.get(at)?;
        let is_escape = byte == escape && (escape != quote || bytes.get(at + 1) == Some(&quote));
        if byte == quote && !is_escape {
            return Some(at + 1);
        }
        at += if is_escape { 2 } else { 1 };
    }
}

fn size(tree: &Tree) -> usize {
    match tree {
        Tree::Leaf(_) => 1,
        Tree::List(items) => items.iter().map(size).sum::<usize>() + 1,
        Tree::Map(entries) => entries.iter().map(|(_, value)| size(value)).sum::<usize>() + 1,
    }
}

fn scalar(value: YamlScalar<'_>) -> Value {
    match value {
        YamlScalar::Null => Value::Null,
        YamlScalar::Bool(value) => value.into(),
        YamlScalar::Int(value) => value.into(),
        YamlScalar::Float(value) => value.into(),
        YamlScalar::Text(text) => text.into_owned().into(),
    }
}
