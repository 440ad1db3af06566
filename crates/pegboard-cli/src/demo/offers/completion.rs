//! Completions for the arguments of prompts and of the resource template.

use pegboard_gateway::RpcError;
use serde_json::{Map, Value, json};

use super::resources::{COUNT_TEMPLATE, MAX_COUNT};
use crate::demo::fields::object;

const NAMES: [&str; 5] = ["Ada", "Alan", "Barbara", "Edsger", "Grace"];

/// The limit on the values of one response.
const MAX_VALUES: usize = 100;

pub(in crate::demo) fn complete(params: &Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
    let field = |object: &str, key: &str| {
        params
            .get(object)
            .and_then(|object| object.get(key))
            .and_then(Value::as_str)
    };
    let (Some(argument), Some(typed)) = (field("argument", "name"), field("argument", "value")) else {
        return Err(RpcError::invalid_params("`argument` needs a `name` and a `value`"));
    };
    let values = match (
        field("ref", "type"),
        field("ref", "name"),
        field("ref", "uri"),
        argument,
    ) {
        (Some("ref/prompt"), Some("greet"), _, "name") => starting_with(typed, NAMES.map(str::to_owned)),
        (Some("ref/prompt"), Some("review"), _, "text") => Vec::new(),
        (Some("ref/resource"), _, Some(COUNT_TEMPLATE), "n") => {
            starting_with(typed, (1..=MAX_COUNT).map(|number| number.to_string()))
        }
        _ => {
            return Err(RpcError::invalid_params(format!(
                "`ref` and the argument `{argument}` name nothing known here"
            )));
        }
    };
    let total = values.len();
    let shown: Vec<_> = values.into_iter().take(MAX_VALUES).collect();
    let has_more = total > shown.len();
    Ok(object([(
        "completion",
        json!({"values": shown, "total": total, "hasMore": has_more}),
    )]))
}

/// The values that start with the typed text, case-insensitively.
fn starting_with(typed: &str, values: impl IntoIterator<Item = String>) -> Vec<String> {
    let typed = typed.to_lowercase();
    values
        .into_iter()
        .filter(|value| value.to_lowercase().starts_with(&typed))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reference: &Value, name: &str, value: &str, expected: Result<&[&str], i64>) {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        let got = complete(params.as_object().unwrap()).map_err(|fault| fault.code);
        assert_eq!(
            got.map(|result| result["completion"]["values"].clone()),
            expected.map(|all| json!(all)),
            "{params}"
        );
    }

    #[test]
    fn arguments_are_completed_from_what_was_typed() {
        let greet = json!({"type": "ref/prompt", "name": "greet"});
        let count = json!({"type": "ref/resource", "uri": "demo://count/{n}"});
        check(&greet, "name", "a", Ok(&["Ada", "Alan"]));
        check(&greet, "name", "x", Ok(&[]));
        check(&greet, "other", "", Err(-32602));
        check(&count, "n", "10", Ok(&["10", "100"]));
        check(&json!({"type": "ref/prompt", "name": "review"}), "text", "", Ok(&[]));
        check(&json!({"type": "ref/prompt", "name": "none"}), "name", "", Err(-32602));
        check(&json!("greet"), "name", "", Err(-32602));
    }
}
