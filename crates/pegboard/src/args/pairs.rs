//! Arguments as a person types them on a command line: `limit=3`, `tags=a,b`, `filter.state=open`.

use super::{
    Arguments, ArgumentsError,
    node::Node,
    schema::{Kinds, Shape},
    typed,
};

/// The arguments that the pairs make. A key with points leads into objects, unless the tool has an argument of that very name.
pub(super) fn read<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    shape: Shape<'_>,
) -> Result<Arguments, ArgumentsError> {
    let mut fields = Vec::new();
    for (key, value) in pairs {
        let steps: Vec<&str> = if leads_into_an_object(key, shape) {
            key.split('.').collect()
        } else {
            vec![key]
        };
        put(&mut fields, &steps, value, shape).ok_or_else(|| ArgumentsError::Twice(key.to_owned()))?;
    }
    Ok(Node::Map(fields).into_arguments())
}

fn leads_into_an_object(key: &str, shape: Shape<'_>) -> bool {
    let Some((first, rest)) = key.split_once('.') else {
        return false;
    };
    let is_object = |shape: Shape<'_>| shape.kinds() == Kinds::OBJECT;
    !shape.knows(key) && !rest.split('.').any(str::is_empty) && shape.property(first).is_some_and(is_object)
}

/// Puts a value where it belongs. Nothing comes back when something is there already and neither is a list.
fn put(fields: &mut Vec<(String, Node)>, steps: &[&str], text: &str, shape: Shape<'_>) -> Option<()> {
    let (name, rest) = steps.split_first()?;
    let declared = shape.property(name);
    let known = fields
        .iter_mut()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value);
    if !rest.is_empty() {
        let inside = declared.unwrap_or(shape);
        return match known {
            Some(Node::Map(inner)) => put(inner, rest, text, inside),
            Some(_) => None,
            None => {
                let mut inner = Vec::new();
                put(&mut inner, rest, text, inside)?;
                fields.push(((*name).to_owned(), Node::Map(inner)));
                Some(())
            }
        };
    }
    let value = match declared {
        Some(shape) if shape.kinds() != Kinds::ANY => typed::value(text, shape),
        _ => Node::json(text).unwrap_or_else(|| Node::Text(text.to_owned())),
    };
    match (known, value) {
        (None, value) => fields.push(((*name).to_owned(), value)),
        // `tag=a tag=b` for a list is as good as `tag=a,b`.
        (Some(Node::List(items)), Node::List(more)) => items.extend(more),
        (Some(_), _) => return None,
    }
    Some(())
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
    fn an_argument_that_is_no_list_is_given_once() {
        check(&[("a", "1"), ("a", "2")], Err("the argument `a` is given twice"));
        check(
            &[("filter", "{}"), ("filter.n", "2")],
            Err("the argument `filter.n` is given twice"),
        );
    }
}
