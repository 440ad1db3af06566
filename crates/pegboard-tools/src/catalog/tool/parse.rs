//! Parses a tool of any form from a JSON tree.

use serde_json::{Map, Value};

use super::{Checks, MAX_RESULT_SIZE, TaskSupport, Tool};
use crate::catalog::{
    argument_order::ArgumentOrder,
    definition_hash::{CachedHash, DefinitionHash},
    header_arguments::{HeaderRule, header_arguments},
    list_warning::ListWarning,
    removed_text,
    sanitize::{MAX_DESCRIPTION, for_display, sanitize_schema},
    schema::Schema,
};
use pegboard_base::{diagnosis::Code, name::ServerName};

/// The longest accepted tool name, in bytes.
pub(super) const MAX_TOOL_NAME: usize = 128;
/// The largest accepted schema, in bytes of JSON.
pub(super) const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// The longest text of the other fields that is kept; longer ones are replaced by their hash.
const MAX_MORE_BYTES: usize = 4 << 10;
/// The deepest accepted nesting of a schema.
pub(super) const MAX_SCHEMA_DEPTH: usize = 32;
/// The longest display name, in bytes; the rest is truncated.
pub(super) const MAX_TITLE: usize = 256;

impl Tool {
    /// Parses the definition of a tool: one item of a server's `tools/list`. Programs need this only to test their own callbacks. Fails with the
    /// reason if a listing would leave the tool out.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_base::{diagnosis::Code, name::ServerName}; pub use pegboard_config as config; pub use pegboard_tools::*; }
    /// # use pegboard::{ServerName, Tool};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server: ServerName = "crm".parse()?;
    /// let tool = Tool::from_definition(&server, serde_json::json!({"name": "find", "inputSchema": {"type": "object"}}))?;
    /// assert_eq!(tool.dotted_name(), "crm.find");
    /// assert!(Tool::from_definition(&server, serde_json::json!({"title": "no name"})).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_definition(server: &ServerName, definition: Value) -> Result<Self, String> {
        Self::parse(server, definition, HeaderRule::Ignored, &mut Vec::new())
    }

    /// Creates a built-in tool from its definition.
    #[doc(hidden)]
    pub fn parse_built_in(server: &ServerName, item: Value) -> Result<Self, String> {
        let mut warnings = Vec::new();
        let tool = Self::parse(server, item, HeaderRule::Ignored, &mut warnings)?;
        warnings.pop().map_or(Ok(tool), |warning| Err(warning.message))
    }

    /// Parses one item of `tools/list`, or returns the reason why it is rejected. Problems of a usable tool are added to `warnings`.
    pub(in crate::catalog) fn parse(
        server: &ServerName,
        item: Value,
        headers: HeaderRule,
        warnings: &mut Vec<ListWarning>,
    ) -> Result<Self, String> {
        let Value::Object(mut item) = item else {
            return Err("a tool that is not an object was left out".to_owned());
        };
        let removed = removed_text::find_in_item(&item);
        let name = match take_text(&mut item, "name") {
            None => return Err("a tool without a name was left out".to_owned()),
            Some(name) if name.is_empty() => return Err("a tool with an empty name was left out".to_owned()),
            Some(name) if name.len() > MAX_TOOL_NAME => {
                let start: String = name.chars().take(32).collect();
                return Err(format!(
                    "tool `{start}…` was left out: its name is longer than {MAX_TOOL_NAME} bytes"
                ));
            }
            Some(name) if name.chars().any(char::is_control) => {
                return Err(format!("tool {name:?} was left out: its name has control characters"));
            }
            Some(name) => name,
        };
        let left_out = |why: String| format!("tool `{name}` was left out: {why}");
        let input_schema = input_schema(item.remove("inputSchema")).map_err(left_out)?;
        let mirrored = match headers {
            HeaderRule::Enforced => header_arguments(&input_schema).map_err(left_out)?,
            // The server does not read headers, but clients of a gateway may send them.
            HeaderRule::Ignored => header_arguments(&input_schema).unwrap_or_default(),
        };
        let input_schema = within_bounds(input_schema, "inputSchema").map_err(left_out)?;
        // Without an output schema the tool is still usable; its results are not validated.
        let output_schema = match item.remove("outputSchema") {
            None | Some(Value::Null) => None,
            Some(schema) => within_bounds(schema, "outputSchema")
                .map_err(|why| {
                    let warning = format!("the outputSchema of tool `{name}` was left out: {why}");
                    warnings.push(ListWarning::new(Code::ToolLeftOut, warning));
                })
                .ok(),
        };
        let annotations = match item.remove("annotations") {
            Some(Value::Object(annotations)) => Some(annotations),
            _ => None,
        };
        let title = take_text(&mut item, "title");
        let description = take_text(&mut item, "description");
        Ok(Self {
            server: server.clone(),
            title: title.map(|text| for_display(text, MAX_TITLE)),
            description: description.map(|text| for_display(text, MAX_DESCRIPTION)),
            for_model: is_for_model(&item),
            hash: CachedHash::default(),
            input_schema,
            order: ArgumentOrder::default(),
            output_schema,
            annotations,
            max_result: max_result(&item),
            task_support: TaskSupport::parse(&item),
            mirrored,
            more: pack_rest(item),
            removed,
            checks: Checks::default(),
            name,
        })
    }
}

impl TaskSupport {
    pub(super) fn parse(item: &Map<String, Value>) -> Self {
        let word = item.get("execution").and_then(|execution| execution.get("taskSupport"));
        match word.and_then(Value::as_str) {
            Some("optional") => Self::Optional,
            Some("required") => Self::Required,
            _ => Self::Forbidden,
        }
    }
}

/// The remaining fields of a definition as JSON, or their hash if they are long: an icon may be an image.
pub(in crate::catalog) fn pack_rest(rest: Map<String, Value>) -> Option<Box<str>> {
    if rest.is_empty() {
        return None;
    }
    let text = Value::Object(rest).to_string();
    Some(match text.len() > MAX_MORE_BYTES {
        true => format!("\"sha256:{}\"", DefinitionHash::compute(&text)).into(),
        false => text.into(),
    })
}

/// The result size declared in `_meta`.
pub(super) fn max_result(item: &Map<String, Value>) -> Option<usize> {
    let chars = item.get("_meta")?.get(MAX_RESULT_SIZE)?.as_u64()?;
    usize::try_from(chars).ok()
}

/// Returns the input schema with an object at its root. A missing schema allows any object; a value that is not a schema is rejected.
fn input_schema(schema: Option<Value>) -> Result<Value, String> {
    let mut schema = match schema {
        None | Some(Value::Null | Value::Bool(true)) => Map::new(),
        Some(Value::Object(schema)) => schema,
        Some(other) => return Err(format!("its inputSchema is {}, not an object", kind_of(&other))),
    };
    match schema.get("type") {
        None | Some(Value::Null) => {
            schema.insert("type".into(), "object".into());
        }
        Some(Value::String(kind)) if kind == "object" => {}
        Some(other) => {
            return Err(format!(
                "its inputSchema has the type {other}, and arguments are always an object"
            ));
        }
    }
    match schema.get("properties") {
        None | Some(Value::Object(_)) => {}
        Some(Value::Null) => {
            schema.remove("properties");
        }
        Some(other) => {
            return Err(format!(
                "the properties of its inputSchema are {}, not an object",
                kind_of(other)
            ));
        }
    }
    Ok(Value::Object(schema))
}

fn within_bounds(mut schema: Value, what: &str) -> Result<Schema, String> {
    if depth(&schema) > MAX_SCHEMA_DEPTH {
        return Err(format!("its {what} is nested deeper than {MAX_SCHEMA_DEPTH}"));
    }
    sanitize_schema(&mut schema);
    let schema = Schema::from(schema);
    let bytes = schema.as_str().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!(
            "its {what} has {bytes} bytes, and {MAX_SCHEMA_BYTES} are allowed"
        ));
    }
    Ok(schema)
}

/// The nesting depth of a value. The JSON reader limits it to 128, so recursion is safe.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns whether `_meta.ui.visibility`, if set, includes the model.
pub(super) fn is_for_model(item: &Map<String, Value>) -> bool {
    let visibility = item.get("_meta").and_then(|meta| meta.get("ui")?.get("visibility"));
    match visibility {
        Some(Value::Array(readers)) => readers.iter().any(|reader| reader == "model"),
        Some(Value::String(reader)) => reader == "model",
        _ => true,
    }
}

fn take_text(item: &mut Map<String, Value>, key: &str) -> Option<String> {
    match item.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}
