//! Parses JSON with comments into a located tree.

use std::collections::HashSet;

use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged as _, parse_to_ast};

use super::{
    lines::LineStarts,
    node::{KeyValue, Location, MAX_DEPTH, Node, SyntaxError, Value},
};

pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    let lines = LineStarts::new(text);
    let options = json_options();
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        let message = error.kind().to_string();
        SyntaxError::new(lines.place(error.range().start), lower_first(&message))
    })?;
    match parsed.value {
        Some(value) => node(&value, &lines, 1),
        None => Ok(Node::new(Value::Null, Location::START)),
    }
}

/// What is read as JSON: comments and trailing commas too.
#[doc(hidden)]
pub fn json_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn node(value: &ast::Value<'_>, lines: &LineStarts<'_>, depth: usize) -> Result<Node, SyntaxError> {
    let at = lines.place(value.range().start);
    if depth > MAX_DEPTH {
        return Err(SyntaxError::too_deep(at));
    }
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::StringLit(literal) => Value::Text(literal.value.to_string()),
        ast::Value::NumberLit(literal) => number(literal.value, at)?,
        ast::Value::Array(array) => Value::List(
            array
                .elements
                .iter()
                .map(|item| node(item, lines, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        ast::Value::Object(object) => {
            let mut seen = HashSet::new();
            let mut entries = Vec::with_capacity(object.properties.len());
            for property in &object.properties {
                let key = property.name.as_str();
                let at = lines.place(property.range.start);
                if !seen.insert(key) {
                    return Err(SyntaxError::duplicate(at, key));
                }
                entries.push(KeyValue {
                    key: key.to_owned(),
                    at,
                    value: node(&property.value, lines, depth + 1)?,
                });
            }
            Value::Map(entries)
        }
    };
    Ok(Node::new(value, at))
}

fn number(text: &str, at: Location) -> Result<Value, SyntaxError> {
    if let Ok(value) = text.parse() {
        return Ok(Value::Int(value));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Value::Float(value)),
        _ => Err(SyntaxError::new(at, "the number is too large")),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
