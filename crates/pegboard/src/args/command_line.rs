//! Arguments as a person types them on a command line: `limit=3`, `tags=a,b`, `filter.state=open`.

use super::{
    Arguments, ArgumentsError,
    node::Node,
    schema::{Kinds, Shape},
    typed_value,
};

/// How deep a key leads at most. One with more points is taken as a name.
const MAX_STEPS: usize = 32;

/// The arguments that the pairs make. A key with points leads into objects and lists, unless the tool has an argument of that very name.
pub(super) fn read<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    shape: Shape<'_>,
) -> Result<Arguments, ArgumentsError> {
    let mut whole = Node::Map(Vec::new());
    for (key, value) in pairs {
        let steps: Vec<&str> = if leads_inside(key, shape) {
            key.split('.').collect()
        } else {
            vec![key]
        };
        put(Some(&mut whole), &steps, value, Some(shape)).map_err(|wrong| match wrong {
            Wrong::Twice => ArgumentsError::Twice(key.to_owned()),
            Wrong::Gap => ArgumentsError::Gap(key.to_owned()),
        })?;
    }
    Ok(whole.into_arguments())
}

/// Whether the points of a key separate the steps to a place inside an object or a list that the schema declares.
fn leads_inside(key: &str, shape: Shape<'_>) -> bool {
    let Some((first, rest)) = key.split_once('.') else {
        return false;
    };
    let next = rest.split('.').next().unwrap_or_default();
    let is_inside = |shape: Shape<'_>| {
        let kinds = shape.kinds();
        !kinds.has(Kinds::STRING) && (kinds.has(Kinds::OBJECT) || (kinds.has(Kinds::ARRAY) && place(next).is_some()))
    };
    !shape.knows(key)
        && key.split('.').count() <= MAX_STEPS
        && !rest.split('.').any(str::is_empty)
        && shape.property(first).is_some_and(is_inside)
}

/// Why a value cannot be put where its key leads.
enum Wrong {
    /// Something is there already, and neither is a list.
    Twice,
    /// Items of the list before it are left out.
    Gap,
}

/// Puts a value where the steps lead from `known`. Where nothing is known yet, what belongs there comes back.
fn put(known: Option<&mut Node>, steps: &[&str], text: &str, shape: Option<Shape<'_>>) -> Result<Option<Node>, Wrong> {
    let Some((step, rest)) = steps.split_first() else {
        return match (known, value(text, shape)) {
            (None, value) => Ok(Some(value)),
            // `tag=a tag=b` for a list is as good as `tag=a,b`.
            (Some(Node::List(items)), Node::List(more)) => {
                items.extend(more);
                Ok(None)
            }
            (Some(_), _) => Err(Wrong::Twice),
        };
    };
    let at = place(step).filter(|_| shape.is_some_and(|shape| shape.kinds().has(Kinds::ARRAY)));
    let mut fresh = None;
    let node = match (known, at) {
        (Some(node), _) => node,
        (None, Some(_)) => fresh.insert(Node::List(Vec::new())),
        (None, None) => fresh.insert(Node::Map(Vec::new())),
    };
    match (node, at) {
        (Node::Map(fields), _) => {
            let inside = shape.and_then(|shape| shape.property(step));
            let known = fields.iter_mut().find(|(known, _)| known == step);
            let new = put(known.map(|(_, value)| value), rest, text, inside)?;
            fields.extend(new.map(|new| ((*step).to_owned(), new)));
        }
        (Node::List(items), Some(at)) if at <= items.len() => {
            let inside = shape.and_then(Shape::items);
            let new = put(items.get_mut(at), rest, text, inside)?;
            items.extend(new);
        }
        (Node::List(_), Some(_)) => return Err(Wrong::Gap),
        _ => return Err(Wrong::Twice),
    }
    Ok(fresh)
}

/// The place in a list that a step names, counted from zero.
fn place(step: &str) -> Option<usize> {
    step.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| step.parse().ok())
        .flatten()
}

fn value(text: &str, shape: Option<Shape<'_>>) -> Node {
    match shape {
        Some(shape) if shape.kinds() != Kinds::ANY => typed_value::value(text, shape),
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
        let read = read(pairs.iter().copied(), Shape::new(&schema));
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
