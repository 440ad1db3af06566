//! One tool as its server describes it, and the HTTP headers that its schema asks for.

use serde::{Deserialize, Serialize};
mod fast_parse;
pub(super) use fast_parse::Reader;
use serde_json::{Map, Value};

use super::{
    HeaderRule, MAX_DESCRIPTION, MAX_TOOL_NAME,
    definition_hash::Kept,
    sanitize::{clean, clean_schema, cut},
    schema::Schema,
    take_text,
};
use crate::{
    args::LazyValidator,
    name::{self, ServerName},
};

/// The largest schema that is accepted, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// The deepest schema that is accepted.
const MAX_SCHEMA_DEPTH: usize = 32;
/// The longest name for people that is kept.
const MAX_TITLE: usize = 256;

/// One tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// The server that offers it.
    pub server: ServerName,
    /// The name its server knows it by.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// What its arguments look like: a JSON Schema whose root is an object.
    pub input_schema: Schema,
    /// What its structured answer looks like.
    pub output_schema: Option<Schema>,
    /// What its server says about its effects. A hint, not a promise.
    pub annotations: Option<Map<String, Value>>,
    /// How many characters the server says that a result of it may have.
    pub(crate) max_result: Option<usize>,
    /// Whether a call of it may, must or must not run as a task that is asked for its result later.
    pub task_support: TaskSupport,
    /// Arguments that are repeated in HTTP headers: the path of properties, and the header's name after `Mcp-Param-`.
    pub(crate) mirrored: Vec<(Vec<String>, String)>,
    /// Whether a model may see it. Some tools are for a server's own pages only.
    pub(crate) for_model: bool,
    pub(super) hash: Kept,
    pub(crate) checks: Checks,
}

/// The tool's schemas, ready for checking.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Checks {
    pub(crate) input: LazyValidator,
    pub(crate) output: LazyValidator,
}

/// Whether a tool runs as a task: its server answers at once with a handle, and is asked for the result later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskSupport {
    /// It never does.
    #[default]
    Forbidden,
    /// It does when it is asked to.
    Optional,
    /// It always does.
    Required,
}

impl TaskSupport {
    fn read(item: &Map<String, Value>) -> Self {
        let word = item.get("execution").and_then(|execution| execution.get("taskSupport"));
        match word.and_then(Value::as_str) {
            Some("optional") => Self::Optional,
            Some("required") => Self::Required,
            _ => Self::Forbidden,
        }
    }
}

impl Tool {
    /// The name that people use: `server.tool`.
    pub fn dotted_name(&self) -> String {
        name::dotted(self.server.as_str(), &self.name)
    }

    /// What is wrong with the schemas, so that nothing is compared with them, as far as calls have found out.
    pub(crate) fn unchecked(&self) -> Option<String> {
        let input = self.checks.input.unusable().map(|why| ("arguments", why));
        let output = || Some(("answers", self.checks.output.unusable()?));
        let (what, why) = input.or_else(output)?;
        Some(format!(
            "the {what} of tool `{}` are not checked: its schema cannot be used: {why}",
            self.name
        ))
    }

    /// A tool of our own, described as a server would describe it.
    pub(crate) fn built_in(server: &ServerName, item: Value) -> Result<Self, String> {
        let mut warnings = Vec::new();
        let tool = Self::read(server, item, HeaderRule::Ignored, &mut warnings)?;
        warnings.pop().map_or(Ok(tool), Err)
    }

    /// Reads one item of `tools/list`, or says in a sentence why it cannot be used. What is wrong with a tool that can be used is added to
    /// `warnings`.
    pub(super) fn read(
        server: &ServerName,
        item: Value,
        headers: HeaderRule,
        warnings: &mut Vec<String>,
    ) -> Result<Self, String> {
        let Value::Object(mut item) = item else {
            return Err("a tool that is not an object was left out".to_owned());
        };
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
            HeaderRule::Enforced => mirrored_arguments(&input_schema).map_err(left_out)?,
            HeaderRule::Ignored => Vec::new(),
        };
        let input_schema = within_bounds(input_schema, "inputSchema").map_err(left_out)?;
        // A tool can be called without it; its answers are not checked then.
        let output_schema = match item.remove("outputSchema") {
            None | Some(Value::Null) => None,
            Some(schema) => within_bounds(schema, "outputSchema")
                .map_err(|why| warnings.push(format!("the outputSchema of tool `{name}` was left out: {why}")))
                .ok(),
        };
        let annotations = match item.remove("annotations") {
            Some(Value::Object(annotations)) => Some(annotations),
            _ => None,
        };
        Ok(Self {
            server: server.clone(),
            title: words(&mut item, "title", MAX_TITLE),
            description: words(&mut item, "description", MAX_DESCRIPTION),
            for_model: is_for_model(&item),
            hash: Kept::default(),
            input_schema,
            output_schema,
            annotations,
            max_result: max_result(&item),
            task_support: TaskSupport::read(&item),
            mirrored,
            checks: Checks::default(),
            name,
        })
    }
}

/// The size that `_meta` allows for a result.
fn max_result(item: &Map<String, Value>) -> Option<usize> {
    let chars = item.get("_meta")?.get("anthropic/maxResultSizeChars")?.as_u64()?;
    usize::try_from(chars).ok()
}

/// The input schema with an object at its root. A missing one takes anything; anything but a schema is refused.
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
    clean_schema(&mut schema);
    let schema = Schema::from(schema);
    let bytes = schema.as_str().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!(
            "its {what} has {bytes} bytes, and {MAX_SCHEMA_BYTES} are allowed"
        ));
    }
    Ok(schema)
}

/// How deep a value is nested. The reader of messages has bounded it to 128, so recursion is safe.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The arguments that a schema marks with `x-mcp-header`, or why its marks are wrong: a mark must be a header token, unique without
/// regard to case, and stand on a property of a primitive type that is reached through properties only.
fn mirrored_arguments(schema: &Value) -> Result<Vec<(Vec<String>, String)>, String> {
    let mut found = Vec::new();
    collect_marks(schema, &mut Vec::new(), &mut found)?;
    if count_marks(schema) != found.len() {
        return Err("an `x-mcp-header` stands where no argument can be read from".to_owned());
    }
    for (at, (_, header)) in found.iter().enumerate() {
        if found[..at].iter().any(|(_, other)| other.eq_ignore_ascii_case(header)) {
            return Err(format!("two arguments claim the header `{header}`"));
        }
    }
    Ok(found)
}

fn collect_marks(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) -> Result<(), String> {
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
        collect_marks(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// How many marks stand anywhere in a schema, values that are data aside.
fn count_marks(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match key.as_str() {
                "x-mcp-header" => 1,
                "default" | "const" | "enum" | "examples" => 0,
                _ => count_marks(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(count_marks).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
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

/// A text for readers.
fn words(item: &mut Map<String, Value>, key: &str, limit: usize) -> Option<String> {
    let mut words = take_text(item, key)?;
    clean(&mut words);
    cut(&mut words, limit);
    Some(words)
}

/// Whether `_meta.ui.visibility`, where it is set, names the model.
fn is_for_model(item: &Map<String, Value>) -> bool {
    let visibility = item.get("_meta").and_then(|meta| meta.get("ui")?.get("visibility"));
    match visibility {
        Some(Value::Array(readers)) => readers.iter().any(|reader| reader == "model"),
        Some(Value::String(reader)) => reader == "model",
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Item;
    use serde_json::json;

    /// However a tool is read, it is the same tool.
    fn read(item: Value) -> Result<Tool, String> {
        let (tool, warnings) = read_warned(item);
        assert!(warnings.is_empty(), "{warnings:?}");
        tool
    }

    fn read_warned(item: Value) -> (Result<Tool, String>, Vec<String>) {
        let server = ServerName::parse("fx").unwrap();
        let read = |item: Item| {
            let mut reader = Reader::new(&server, HeaderRule::Enforced);
            (reader.read(item), reader.warnings)
        };
        let from_text = read(Item::Text(item.to_string().into()));
        let from_tree = read(item.into());
        assert_eq!(from_text, from_tree);
        from_tree
    }

    #[test]
    fn a_missing_input_schema_takes_any_object() {
        for item in [
            json!({"name": "t"}),
            json!({"name": "t", "inputSchema": null}),
            json!({"name": "t", "inputSchema": {}}),
        ] {
            assert_eq!(read(item).unwrap().input_schema.value(), json!({"type": "object"}));
        }
    }

    /// CAT-12
    #[test]
    fn a_tool_is_for_the_model_unless_its_visibility_leaves_the_model_out() {
        for (meta, expected) in [
            (json!(null), true),
            (json!({"ui": {}}), true),
            (json!({"ui": {"visibility": ["model", "app"]}}), true),
            (json!({"ui": {"visibility": ["app"]}}), false),
            (json!({"ui": {"visibility": []}}), false),
            (json!({"ui": {"visibility": "app"}}), false),
            (json!({"ui": {"visibility": 7}}), true),
        ] {
            let tool = read(json!({"name": "t", "_meta": meta})).unwrap();
            assert_eq!(tool.for_model, expected, "{meta}");
        }
    }

    /// CAT-9
    #[test]
    fn words_of_a_tool_are_cleaned_and_cut() {
        let long = "é".repeat(MAX_DESCRIPTION);
        let tool = read(json!({"name": "t", "title": "T\u{200b}itle", "description": long})).unwrap();
        assert_eq!(tool.title.unwrap(), "Title");
        let description = tool.description.unwrap();
        assert!(description.len() <= MAX_DESCRIPTION && description.ends_with('…'));
    }

    #[test]
    fn a_tool_may_say_how_large_its_results_are() {
        let tool = read(json!({"name": "t", "_meta": {"anthropic/maxResultSizeChars": 100_000}})).unwrap();
        assert_eq!(tool.max_result, Some(100_000));
        assert_eq!(
            read(json!({"name": "t", "_meta": {"anthropic/maxResultSizeChars": -1}}))
                .unwrap()
                .max_result,
            None
        );
    }

    #[test]
    fn required_names_are_listed_in_one_order_whatever_the_server_does() {
        let schema = json!({"type": "object", "required": ["b", "a"], "properties": {
            "a": {"type": "object", "required": ["z", "y"]}, "b": {}, "required": {"default": ["q", "p"]},
        }});
        let read = read(json!({"name": "t", "inputSchema": schema}))
            .unwrap()
            .input_schema
            .value();
        assert_eq!(read["required"], json!(["a", "b"]));
        assert_eq!(read["properties"]["a"]["required"], json!(["y", "z"]));
        assert_eq!(read["properties"]["required"]["default"], json!(["q", "p"]));
    }

    #[test]
    fn a_broken_input_schema_says_what_is_wrong() {
        let check = |schema: Value, expected: &str| {
            let problem = read(json!({"name": "t", "inputSchema": schema})).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        };
        check(json!(7), "a number, not an object");
        check(json!({"type": "string"}), "arguments are always an object");
        check(json!({"type": "object", "properties": []}), "a list, not an object");
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({ "items": deep });
        }
        check(json!({"type": "object", "properties": {"x": deep}}), "deeper than 32");
        check(
            json!({"type": "object", "description": "x".repeat(70_000)}),
            "65536 are allowed",
        );
    }

    #[test]
    fn an_output_schema_beyond_the_bounds_costs_only_itself() {
        let check = |schema: Value, why: &str| {
            let item = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema});
            let (tool, warnings) = read_warned(item);
            let tool = tool.unwrap();
            assert_eq!(tool.output_schema, None);
            assert_eq!(tool.input_schema.value(), json!({"type": "object"}));
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(
                warnings[0].starts_with("the outputSchema of tool `t` was left out: ") && warnings[0].contains(why),
                "{warnings:?}"
            );
        };
        check(
            json!({"type": "object", "description": "x".repeat(70_000)}),
            "65536 are allowed",
        );
        let deep = (0..40).fold(json!({}), |inner, _| json!({ "items": inner }));
        check(deep, "deeper than 32");
        let large = json!({"type": "object", "description": "x".repeat(60_000)});
        let tool = read(json!({"name": "t", "outputSchema": large})).unwrap();
        assert_eq!(tool.output_schema.unwrap().value(), large);
    }

    #[test]
    fn header_marks_are_found_on_nested_properties() {
        let tool = read(json!({"name": "t", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "job": {"type": "object", "properties": {"id": {"type": "integer", "x-mcp-header": "Job"}}},
            "other": {"type": "object", "default": {"x-mcp-header": "data, not a mark"}},
        }}}))
        .unwrap();
        assert_eq!(
            tool.mirrored,
            [
                (vec!["job".to_owned(), "id".to_owned()], "Job".to_owned()),
                (vec!["region".to_owned()], "Region".to_owned())
            ]
        );
    }

    #[test]
    fn a_wrong_header_mark_costs_the_tool() {
        let check = |properties: Value, expected: &str| {
            let schema = json!({"type": "object", "properties": properties});
            let problem = read(json!({"name": "t", "inputSchema": schema})).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        };
        check(
            json!({"a": {"type": "string", "x-mcp-header": ""}}),
            "not a header name",
        );
        check(
            json!({"a": {"type": "string", "x-mcp-header": "a b"}}),
            "not a header name",
        );
        check(json!({"a": {"type": "string", "x-mcp-header": 7}}), "not a header name");
        check(
            json!({"a": {"type": "array", "x-mcp-header": "A"}}),
            "whose type is array",
        );
        check(
            json!({"a": {"type": "number", "x-mcp-header": "A"}}),
            "whose type is number",
        );
        check(
            json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
            "two arguments",
        );
        check(
            json!({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}),
            "no argument can be read",
        );
    }
}
