//! Resolves the settings of individual tools, by name or glob.

use std::collections::BTreeMap;

use crate::{
    fields::{ServerTable, server, tool},
    lifecycle::RetryClass,
    policy::ToolPolicy,
};

/// The queues of individual tools.
pub(super) fn queues(values: ServerTable<'_>) -> BTreeMap<String, String> {
    let tools = values.tables(&server::tools).into_iter();
    tools
        .filter_map(|(name, table)| Some((name.clone(), table.get(&tool::queue)?)))
        .collect()
}

/// Visibility, approval, instructions and required capabilities of individual tools.
pub(super) fn policies(values: ServerTable<'_>) -> BTreeMap<String, ToolPolicy> {
    let tools = values.tables(&server::tools).into_iter();
    let policies = tools.map(|(name, table)| (name.clone(), ToolPolicy::default().overlay(table)));
    policies
        .filter(|(_, policy)| *policy != ToolPolicy::default())
        .collect()
}

/// Whether calls of individual tools can be retried.
pub(super) fn retries(values: ServerTable<'_>) -> BTreeMap<String, RetryClass> {
    let tools = values.tables(&server::tools).into_iter();
    tools
        .filter_map(|(name, table)| Some((name.clone(), table.get(&tool::retry)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Config, Env, Format};

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
