//! A value's text, read as what its schema declares it to be.

use super::{
    key_value::pieces,
    node::Node,
    scalar,
    schema::{Kinds, Shape},
    yaml,
};

/// The value of an argument with this schema. What cannot be what is declared stays text, and the check says so.
pub(super) fn value(text: &str, shape: Shape<'_>) -> Node {
    let kinds = shape.kinds();
    let is_collection = (kinds.has(Kinds::ARRAY) && text.trim_start().starts_with('['))
        || (kinds.has(Kinds::OBJECT) && text.trim_start().starts_with('{'));
    if is_collection
        && let Some(node) = Node::json(text).or_else(|| yaml::read(text))
        && node.is_collection()
    {
        return node;
    }
    if let Some(node) = scalar::declared(text, kinds) {
        return node;
    }
    if kinds.has(Kinds::ARRAY) {
        return list(text, shape.items());
    }
    Node::Text(text.to_owned())
}

/// The same where texts may stand in quotes.
pub(super) fn unquoted_value(text: &str, shape: Shape<'_>) -> Node {
    match unquoted(text) {
        Some(inner) if shape.kinds().has(Kinds::STRING) => Node::Text(inner),
        _ => value(text, shape),
    }
}

/// A list without brackets: `a, b, c`.
fn list(text: &str, items: Option<Shape<'_>>) -> Node {
    let item = |text: &str| match items {
        Some(shape) => unquoted_value(text, shape),
        None => super::key_value::value_of(text),
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

/// What stands between the quotes, if the whole text stands between quotes.
pub(super) fn unquoted(text: &str) -> Option<String> {
    if text.starts_with('"') {
        return serde_json::from_str(text).ok();
    }
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains('\'')).then(|| inner.to_owned())
}
