//! Reads `key=value` arguments from a command line: `limit=3`, `tags=a,b`, `filter.state=open`.

use super::{
    arguments::Arguments,
    error::ArgumentsError,
    node::Node,
    schema::{JsonTypes, Subschema},
    typed_value,
};

/// The most steps in a dotted path. A key with more is a plain name.
const MAX_PATH_STEPS: usize = 32;

/// Builds arguments from pairs. A dotted key is a path into objects and lists, unless the tool declares an argument of that exact name.
pub(super) fn read<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    subschema: Subschema<'_>,
) -> Result<Arguments, ArgumentsError> {
    let mut whole = Node::Map(Vec::new());
    for (key, value) in pairs {
        let steps: Vec<&str> = if is_path(key, subschema) {
            key.split('.').collect()
        } else {
            vec![key]
        };
        insert(Some(&mut whole), &steps, value, Some(subschema)).map_err(|error| match error {
            InsertError::Twice => ArgumentsError::Twice(key.to_owned()),
            InsertError::Gap => ArgumentsError::Gap(key.to_owned()),
        })?;
    }
    Ok(whole.into_arguments())
}

/// Whether a key is a dotted path into an object or list that the schema declares.
fn is_path(key: &str, subschema: Subschema<'_>) -> bool {
    let Some((first, rest)) = key.split_once('.') else {
        return false;
    };
    let next = rest.split('.').next().unwrap_or_default();
    let is_inside = |subschema: Subschema<'_>| {
        let types = subschema.types();
        !types.has(JsonTypes::STRING)
            && (types.has(JsonTypes::OBJECT) || (types.has(JsonTypes::ARRAY) && list_index(next).is_some()))
    };
    !subschema.declares(key)
        && key.split('.').count() <= MAX_PATH_STEPS
        && !rest.split('.').any(str::is_empty)
        && subschema.property(first).is_some_and(is_inside)
}

/// Why a value cannot be inserted at its path.
enum InsertError {
    /// The path has a value already, and it is not a list that can be extended.
    Twice,
    /// The list has no items yet before this index.
    Gap,
}

/// Inserts a value at the path `steps` below `existing`. If there is no existing node, returns the new one for the caller to insert.
fn insert(
    existing: Option<&mut Node>,
    steps: &[&str],
    text: &str,
    subschema: Option<Subschema<'_>>,
) -> Result<Option<Node>, InsertError> {
    let Some((step, rest)) = steps.split_first() else {
        return match (existing, value(text, subschema)) {
            (None, value) => Ok(Some(value)),
            // For a list, `tag=a tag=b` means the same as `tag=a,b`.
            (Some(Node::List(items)), Node::List(more)) => {
                items.extend(more);
                Ok(None)
            }
            (Some(_), _) => Err(InsertError::Twice),
        };
    };
    let at = list_index(step).filter(|_| subschema.is_some_and(|subschema| subschema.types().has(JsonTypes::ARRAY)));
    let mut created = None;
    let node = match (existing, at) {
        (Some(node), _) => node,
        (None, Some(_)) => created.insert(Node::List(Vec::new())),
        (None, None) => created.insert(Node::Map(Vec::new())),
    };
    match (node, at) {
        (Node::Map(fields), _) => {
            let inside = subschema.and_then(|subschema| subschema.property(step));
            let existing = fields.iter_mut().find(|(known, _)| known == step);
            let new = insert(existing.map(|(_, value)| value), rest, text, inside)?;
            fields.extend(new.map(|new| ((*step).to_owned(), new)));
        }
        (Node::List(items), Some(at)) if at <= items.len() => {
            let inside = subschema.and_then(Subschema::items);
            let new = insert(items.get_mut(at), rest, text, inside)?;
            items.extend(new);
        }
        (Node::List(_), Some(_)) => return Err(InsertError::Gap),
        _ => return Err(InsertError::Twice),
    }
    Ok(created)
}

/// Parses a step as a zero-based list index.
fn list_index(step: &str) -> Option<usize> {
    step.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| step.parse().ok())
        .flatten()
}

fn value(text: &str, subschema: Option<Subschema<'_>>) -> Node {
    match subschema {
        Some(subschema) if subschema.types() != JsonTypes::ANY => typed_value::value(text, subschema),
        _ => Node::json(text).unwrap_or_else(|| Node::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(pairs: &[(&str, &str)], expected: Result<&str, &str>) {
        let schema = json!({"properties": {
            "zip": {"type": "string"},
            "n": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "filter": {"type": "object", "properties": {"state": {"type": "string"}, "n": {"type": "integer"}}},
            "a.b": {"type": "string"},
            "rows": {"type": ["array", "null"], "items": {"type": "object", "properties": {"id": {"type": "string"}, "cells": {
                "type": "array", "items": {"type": "integer"}}}}},
        }});
        let read = read(pairs.iter().copied(), Subschema::root(&schema));
        let read = read.map(|arguments| arguments.as_raw().get().to_owned());
        assert_eq!(
            read.map_err(|error| error.to_string()),
            expected.map(str::to_owned).map_err(str::to_owned)
        );
    }

    #[test]
    fn typed_pairs_become_what_the_schema_declares() {
        check(&[("zip", "01234"), ("n", "5")], Ok(r#"{"zip":"01234","n":5}"#));
        check(&[("zip", "\"quoted\"")], Ok(r#"{"zip":"\"quoted\""}"#));
        check(&[("n", "five")], Ok(r#"{"n":"five"}"#));
        check(
            &[("n", "123456789012345678901234567890")],
            Ok(r#"{"n":123456789012345678901234567890}"#),
        );
        check(
            &[("tags", "a,b"), ("ids", "1,2")],
            Ok(r#"{"tags":["a","b"],"ids":[1,2]}"#),
        );
        check(&[("tags", "a"), ("tags", "b")], Ok(r#"{"tags":["a","b"]}"#));
        check(&[("tags", "[\"a,b\"]")], Ok(r#"{"tags":["a,b"]}"#));
        check(&[("filter", "{\"n\": 1}")], Ok(r#"{"filter":{"n": 1}}"#));
    }

    #[test]
    fn what_is_not_declared_is_json_or_text() {
        check(
            &[
                ("flag", "true"),
                ("text", "a b"),
                ("list", "[1,2]"),
                ("empty", ""),
                ("x", "none"),
            ],
            Ok(r#"{"flag":true,"text":"a b","list":[1,2],"empty":"","x":"none"}"#),
        );
    }

    #[test]
    fn a_key_with_points_leads_into_an_object_of_the_schema() {
        check(
            &[("filter.state", "open"), ("filter.n", "1")],
            Ok(r#"{"filter":{"state":"open","n":1}}"#),
        );
        check(&[("a.b", "1"), ("c.d", "1")], Ok(r#"{"a.b":"1","c.d":1}"#));
        check(&[("filter.", "1")], Ok(r#"{"filter.":1}"#));
    }

    #[test]
    fn a_key_with_a_number_leads_into_a_list_of_the_schema() {
        check(
            &[
                ("rows.0.id", "1"),
                ("rows.0.cells.0", "7"),
                ("rows.0.cells.1", "8"),
                ("rows.1.id", "2"),
            ],
            Ok(r#"{"rows":[{"id":"1","cells":[7,8]},{"id":"2"}]}"#),
        );
        check(&[("tags.0", "a,b"), ("tags.1", "c")], Ok(r#"{"tags":["a,b","c"]}"#));
        check(&[("tags.x", "a"), ("zip.0", "b")], Ok(r#"{"tags.x":"a","zip.0":"b"}"#));
        check(
            &[("rows.1.id", "2")],
            Err("the argument `rows.1.id` leaves out items of its list; number them 0, 1, 2 in order"),
        );
        check(
            &[("tags.0", "a"), ("tags.0", "b")],
            Err("the argument `tags.0` is given twice"),
        );
        let deep = format!("filter{}", ".x".repeat(100_000));
        check(&[(deep.as_str(), "1")], Ok(&format!(r#"{{"{deep}":1}}"#)));
    }

    #[test]
    fn an_argument_that_is_no_list_is_given_once() {
        check(&[("a", "1"), ("a", "2")], Err("the argument `a` is given twice"));
        check(
            &[("filter", "{}"), ("filter.n", "2")],
            Err("the argument `filter.n` is given twice"),
        );
    }
}
