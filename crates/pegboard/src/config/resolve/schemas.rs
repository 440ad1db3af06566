//! Tools that the config describes, as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::config::{
    setting::{Setting, Values},
    tree::{Node, Value},
};

/// What `tool_schemas` says, by the names of the tools.
pub(super) fn tools(values: &Values) -> BTreeMap<String, Json> {
    let Some(Setting::Map(tools)) = values.get("tool_schemas") else {
        return BTreeMap::new();
    };
    let one = |(name, said): (&String, &Setting)| {
        let Setting::Map(said) = said else { return None };
        let parts = said.iter().filter_map(|(key, part)| match part {
            Setting::Any(whatever) => Some((key.clone(), json(&whatever.0))),
            _ => None,
        });
        Some((name.clone(), Json::Object(parts.collect())))
    };
    tools.iter().filter_map(one).collect()
}

/// A value of the file. How deep it may nest is bounded where the file is read.
fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.clone(), json(&entry.value)));
            Json::Object(entries.collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::config::{Config, Env, Format};

    #[test]
    fn a_tool_is_described_by_its_schema_or_by_all_of_its_definition() {
        let toml = "[servers.fx]\ncommand = 'x'\n[servers.fx.tool_schemas.add]\ndescription = 'Adds.'\ntype = 'object'\n\
                    properties = { a = { type = 'integer', minimum = 0, enum = [1, 2.5, true] } }\n";
        let yaml = "servers:\n  fx:\n    command: x\n    toolSchemas:\n      add:\n        description: Adds.\n        type: object\n        \
                    properties: { a: { type: integer, minimum: 0, enum: [1, 2.5, true] } }\n";
        let expected = json!({
            "description": "Adds.", "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 0, "enum": [1, 2.5, true]}},
        });
        for (text, format) in [(toml, Format::Toml), (yaml, Format::Yaml)] {
            let loaded = Config::from_text(text, format, &Env::new(|_| None));
            assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
            let server = loaded.config.servers.into_values().next().unwrap();
            assert_eq!(server.tool_schemas["add"], expected);
        }
    }

    #[test]
    fn what_is_no_table_is_a_problem() {
        let text = "[servers.fx]\ncommand = 'x'\ntool_schemas = { add = 'object' }\n";
        let loaded = Config::from_text(text, Format::Toml, &Env::new(|_| None));
        assert_eq!(loaded.problems.len(), 1, "{:?}", loaded.problems);
        assert_eq!(loaded.problems[0].field, "servers.fx.tool_schemas.add");
    }
}
