//! Reads the text of one value as the type that its schema declares.

use super::{
    comma_split::pieces,
    node::Node,
    scalar,
    schema::{JsonTypes, Subschema},
};

/// Reads the value of an argument with this schema. A text that cannot be read as a declared type stays a string, which validation then
/// reports.
pub(super) fn value(text: &str, subschema: Subschema<'_>) -> Node {
    let types = subschema.types();
    let is_collection = (types.has(JsonTypes::ARRAY) && text.trim_start().starts_with('['))
        || (types.has(JsonTypes::OBJECT) && text.trim_start().starts_with('{'));
    if is_collection && let Some(node) = collection(text) {
        return node;
    }
    if let Some(node) = scalar::parse_as(text, types) {
        return node;
    }
    if types.has(JsonTypes::ARRAY) {
        return list(text, subschema.items());
    }
    Node::Text(text.to_owned())
}

/// Like [`value`], but removes the quotes around a string.
pub(super) fn read_possibly_quoted(text: &str, subschema: Subschema<'_>) -> Node {
    match unquote(text) {
        Some(inner) if subschema.types().has(JsonTypes::STRING) => Node::Text(inner),
        _ => value(text, subschema),
    }
}

/// Reads a list without brackets: `a, b, c`.
fn list(text: &str, items: Option<Subschema<'_>>) -> Node {
    let item = |text: &str| match items {
        Some(subschema) => read_possibly_quoted(text, subschema),
        None => read_untyped(text),
    };
    match pieces(text) {
        Some(pieces) => Node::List(
            pieces
                .iter()
                .map(|piece| item(text[piece.start..piece.end].trim()))
                .collect(),
        ),
        None => Node::List(vec![item(text)]),
    }
}

/// Reads a value without a declared type: a quoted text, JSON or YAML in brackets, or else a scalar.
pub(super) fn read_untyped(text: &str) -> Node {
    if let Some(inner) = unquote(text) {
        return Node::Text(inner);
    }
    if text.starts_with(['[', '{'])
        && let Some(node) = collection(text)
    {
        return node;
    }
    scalar::scalar(text)
}

/// Reads a list or a map in brackets, as JSON or else as YAML.
fn collection(text: &str) -> Option<Node> {
    let read = Node::json(text);
    #[cfg(feature = "yaml")]
    let read = read.or_else(|| super::yaml::read(text));
    read.filter(Node::is_collection)
}

/// Returns the content of a quoted text, or `None` if the text is not quoted as a whole.
pub(super) fn unquote(text: &str) -> Option<String> {
    if text.starts_with('"') {
        return serde_json::from_str(text).ok();
    }
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains('\'')).then(|| inner.to_owned())
}
