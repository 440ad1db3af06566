//! Checks the headers that repeat arguments of a tool (`Mcp-Param-…`): an intermediary that routes requests by these headers must be able to rely
//! on them.

use pegboard::catalog::Tool;
use pegboard_protocol::code;
use serde_json::Value;

use crate::protocol::{Params, RpcError};

/// Fails unless each annotated argument is repeated by its header, and each of these headers repeats an argument. Other headers are ignored.
pub(super) fn check(tool: &Tool, params: &Params, headers: &[(String, String)]) -> Result<(), RpcError> {
    let arguments = params.field("arguments").unwrap_or_default();
    // What is no JSON is refused later.
    let arguments: Value = serde_json::from_slice(&arguments).unwrap_or_default();
    for (path, name) in tool.mirrored_arguments() {
        let argument = path.iter().try_fold(&arguments, |value, key| value.get(key));
        let argument = argument.filter(|value| !value.is_null());
        let header = headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        let path = path.join(".");
        let problem = match (argument, header) {
            (None, None) => continue,
            (Some(argument), Some((_, header))) if repeats(header, argument) => continue,
            (Some(_), Some(_)) => format!("the Mcp-Param-{name} header is not the argument `{path}`"),
            (Some(_), None) => format!("the Mcp-Param-{name} header is missing, which repeats the argument `{path}`"),
            (None, Some(_)) => format!("the Mcp-Param-{name} header repeats the argument `{path}`, which is missing"),
        };
        return Err(RpcError::new(code::HEADER_MISMATCH, problem));
    }
    Ok(())
}

/// Whether a header repeats an argument. Numbers are compared by value.
fn repeats(header: &str, argument: &Value) -> bool {
    match argument {
        Value::String(text) => header == text,
        Value::Bool(value) => header == if *value { "true" } else { "false" },
        Value::Number(number) => match (header.parse::<i64>(), number.as_i64()) {
            (Ok(header), Some(number)) => header == number,
            _ => header.parse::<f64>().ok() == number.as_f64(),
        },
        // No header can repeat these; the schema refuses them.
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_header_repeats_an_argument_by_its_text_or_value() {
        for (header, argument, expected) in [
            ("eu", json!("eu"), true),
            ("EU", json!("eu"), false),
            ("", json!(""), true),
            ("42", json!(42), true),
            ("42.0", json!(42), true),
            ("42", json!(42.0), true),
            ("43", json!(42), false),
            ("9007199254740993", json!(9_007_199_254_740_992_i64), false),
            ("x", json!(42), false),
            ("true", json!(true), true),
            ("True", json!(true), false),
            ("1", json!(true), false),
            ("[]", json!([]), false),
        ] {
            assert_eq!(repeats(header, &argument), expected, "{header} {argument}");
        }
    }
}
