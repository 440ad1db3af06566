//! `calculate`: arithmetic.

mod parser;

use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{Failure, Output, at_most, harmless};

const MAX_EXPRESSION: usize = 1000;

/// The largest magnitude up to which an `f64` holds every integer: 2^53.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    expression: String,
}

pub(super) fn definition() -> Value {
    json!({
        "name": "calculate",
        "title": "Calculator",
        "description": "Works out an arithmetic expression: + - * / % ^, parentheses, unary minus, and the functions \
            sqrt(x), abs(x), round(x), min(a, b, …) and max(a, b, …). Numbers are doubles. ^ binds tightest and to the \
            right, so -2^2 is -4; % is the remainder and has the sign of its left side.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "For example (2 + 3) * 4 or sqrt(2) ^ 2",
                    "minLength": 1,
                    "maxLength": MAX_EXPRESSION,
                    "examples": ["6 * 7"],
                }
            },
            "required": ["expression"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"value": {"type": "number", "description": "The value of the expression"}},
            "required": ["value"],
        },
        "annotations": harmless(),
    })
}

pub(super) fn run(arguments: Arguments) -> Result<Output, Failure> {
    let Arguments { expression } = arguments;
    at_most("expression", &expression, MAX_EXPRESSION)?;
    let value = parser::evaluate(&expression).map_err(|trouble| Failure(trouble.to_string()))?;
    Ok(Output::structured(json!({"value": number(value)})))
}

/// An integer if the value is whole, so that it is written without a fraction.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < MAX_EXACT {
        json!(value as i64)
    } else {
        json!(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        for (expression, value) in [
            ("6*7", "42"),
            ("1/2", "0.5"),
            ("-0", "0"),
            ("2^60", "1.152921504606847e+18"),
        ] {
            let output = run(Arguments {
                expression: expression.into(),
            })
            .unwrap();
            assert_eq!(output.structured.unwrap()["value"].to_string(), value, "{expression}");
        }
    }

    #[test]
    fn a_long_expression_is_refused_before_it_is_read() {
        let expression = "1".repeat(MAX_EXPRESSION + 1);
        assert!(
            run(Arguments { expression })
                .unwrap_err()
                .0
                .contains("more than 1000 characters")
        );
    }
}
