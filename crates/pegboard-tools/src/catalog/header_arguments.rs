//! Arguments that a tool's schema mirrors into HTTP headers with `x-mcp-header`.

use serde_json::{Map, Value};

use super::schema::SCHEMA_MAPS;

/// Whether a tool's `x-mcp-header` annotations are validated. They matter only where arguments are mirrored into HTTP headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderRule {
    /// A tool with an invalid annotation is rejected.
    Enforced,
    /// A tool with an invalid annotation is kept, without mirrored arguments.
    Ignored,
}

/// The arguments annotated with `x-mcp-header`, or why an annotation is invalid: it must be a header token, unique regardless of case, on a
/// property of a primitive type that is reached through `properties` only.
pub(super) fn header_arguments(schema: &Value) -> Result<Vec<(Vec<String>, String)>, String> {
    let mut found = Vec::new();
    collect_annotations(schema, &mut Vec::new(), &mut found)?;
    if count_annotations(schema) != found.len() {
        return Err("an `x-mcp-header` stands where no argument can be read from".to_owned());
    }
    for (at, (_, header)) in found.iter().enumerate() {
        if found[..at].iter().any(|(_, other)| other.eq_ignore_ascii_case(header)) {
            return Err(format!("two arguments claim the header `{header}`"));
        }
    }
    Ok(found)
}

fn collect_annotations(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, String)>,
) -> Result<(), String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(mark) = property.get("x-mcp-header") {
            let header = mark.as_str().unwrap_or_default();
            if header.is_empty() || !header.bytes().all(is_token_byte) {
                return Err(format!("`x-mcp-header` of `{}` is not a header name", path.join(".")));
            }
            let kind = property.get("type").and_then(Value::as_str).unwrap_or("anything");
            if !matches!(kind, "string" | "integer" | "boolean") {
                return Err(format!(
                    "`x-mcp-header` stands on `{}`, whose type is {kind}",
                    path.join(".")
                ));
            }
            found.push((path.clone(), header.to_owned()));
        }
        collect_annotations(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// Counts the annotations anywhere in a schema, except in the data of `default`, `const`, `enum` and `examples`.
fn count_annotations(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match key.as_str() {
                key if SCHEMA_MAPS.contains(&key) && value.is_object() => value
                    .as_object()
                    .into_iter()
                    .flat_map(Map::values)
                    .map(count_annotations)
                    .sum(),
                "x-mcp-header" => 1,
                "default" | "const" | "enum" | "examples" => 0,
                _ => count_annotations(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(count_annotations).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn a_name_for_a_header_makes_a_header_of_that_name_or_is_refused(
            name in "\\PC{0,12}|[!-~]{1,12}|[a-z-]{1,8}(\r\n|\n|\r|:| |\x00|\t)[a-z: -]{0,12}|(?i:authorization|host|cookie|content-length)",
        ) {
            let schema = json!({"properties": {"a": {"type": "string", "x-mcp-header": name}}});
            let is_token = !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte));
            match header_arguments(&schema) {
                Ok(found) => {
                    let header = http::HeaderName::try_from(format!("mcp-param-{}", found[0].1)).expect("a header name");
                    prop_assert!(is_token);
                    prop_assert_eq!(header.as_str(), format!("mcp-param-{}", name.to_ascii_lowercase()));
                }
                Err(_) => prop_assert!(!is_token, "{:?} is refused", name),
            }
        }

        #[test]
        fn two_arguments_never_share_a_header(name in "[A-Za-z][A-Za-z0-9-]{0,8}", upper: bool) {
            let other = if upper { name.to_ascii_uppercase() } else { name.to_ascii_lowercase() };
            let schema = json!({"properties": {
                "a": {"type": "string", "x-mcp-header": name}, "b": {"type": "string", "x-mcp-header": other},
            }});
            prop_assert!(header_arguments(&schema).is_err());
        }
    }
}
