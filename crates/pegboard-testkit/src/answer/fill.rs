//! Texts with `{name}` in them: filled with arguments, and matched as URI templates.

use serde_json::{Map, Value};

/// Replaces `{name}` in every text of `value` by the argument of that name. Names without an argument stay.
pub(super) fn fill(value: &Value, arguments: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(fill_text(text, arguments)),
        Value::Array(items) => items.iter().map(|item| fill(item, arguments)).collect(),
        Value::Object(members) => {
            let filled = members
                .iter()
                .map(|(key, member)| (key.clone(), fill(member, arguments)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

pub(super) fn fill_text(text: &str, arguments: &Value) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let argument = after
            .split_once('}')
            .and_then(|(name, tail)| Some((arguments.get(name)?, tail)));
        match argument {
            Some((value, tail)) => {
                match value {
                    Value::String(value) => filled.push_str(value),
                    value => filled.push_str(&value.to_string()),
                }
                rest = tail;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The variables of a URI that matches the template; a variable is at least one character long and has no `/`.
pub(super) fn match_template(template: &str, uri: &str) -> Option<Value> {
    let mut variables = Map::new();
    let (mut template, mut uri) = (template, uri);
    while let Some((literal, after)) = template.split_once('{') {
        let (name, tail) = after.split_once('}')?;
        uri = uri.strip_prefix(literal)?;
        let next = tail.split('{').next().unwrap_or_default();
        let end = if next.is_empty() { uri.len() } else { uri.find(next)? };
        let (value, rest) = uri.split_at(end);
        if value.is_empty() || value.contains('/') {
            return None;
        }
        variables.insert(name.to_owned(), value.into());
        (template, uri) = (tail, rest);
    }
    (template == uri).then_some(Value::Object(variables))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_names_of_arguments_are_replaced() {
        let text = json!(["{a} and {b}", { "inner": "{a}{" }]);
        assert_eq!(
            fill(&text, &json!({ "a": "x{b}" })),
            json!(["x{b} and {b}", { "inner": "x{b}{" }])
        );
    }

    #[test]
    fn a_template_matches_whole_uris_only() {
        let template = "test://template/{id}/data";
        assert_eq!(
            match_template(template, "test://template/7/data"),
            Some(json!({ "id": "7" }))
        );
        assert_eq!(match_template("note://{id}", "note://x"), Some(json!({ "id": "x" })));
        for other in [
            "test://template//data",
            "test://template/7/data/more",
            "test://template/a/b/data",
        ] {
            assert_eq!(match_template(template, other), None, "{other}");
        }
    }
}
