//! Adds tools that the config defines, for a server that cannot list them itself.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::{Catalog, header_arguments::HeaderRule, list_warning::ListWarning, tool::Tool};
use pegboard_base::{diagnosis::Code, name::ServerName};

/// Other programs' keys for parts of a definition.
const SPELLINGS: [(&str, &str); 3] = [
    ("input_schema", "inputSchema"),
    ("parameters", "inputSchema"),
    ("output_schema", "outputSchema"),
];

impl Catalog {
    /// Adds the tools of the config that the server has not listed itself.
    #[doc(hidden)]
    pub fn add_configured(&mut self, server: &ServerName, configured: &BTreeMap<String, Value>, headers: HeaderRule) {
        for (name, definition) in configured {
            if self.tool(name).is_some() {
                continue;
            }
            match Tool::parse(server, item(name, definition), headers, &mut self.warnings) {
                Ok(tool) => self.tools.push(Arc::new(tool)),
                Err(problem) => self.warnings.push(ListWarning::new(Code::ToolLeftOut, problem)),
            }
            // `Catalog::tool` uses binary search.
            self.tools.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
}

/// The listing item for a configured tool: the config has either the argument schema with the tool's description in it, or the item itself.
fn item(name: &str, definition: &Value) -> Value {
    let definition = definition.as_object().cloned().unwrap_or_default();
    let is_schema = ["type", "properties", "$ref"]
        .iter()
        .any(|key| definition.contains_key(*key));
    let is_item = definition.contains_key("inputSchema")
        || SPELLINGS.iter().any(|(spelling, _)| definition.contains_key(*spelling));
    let mut item = match is_item && !is_schema {
        true => definition,
        false => item_of_schema(definition),
    };
    for (spelling, key) in SPELLINGS {
        if let Some(part) = item.remove(spelling) {
            item.entry(key).or_insert(part);
        }
    }
    item.insert("name".into(), name.into());
    item.into()
}

/// Wraps a schema into an item, and moves its title and description to the tool.
fn item_of_schema(mut schema: Map<String, Value>) -> Map<String, Value> {
    let mut item = Map::new();
    for key in ["title", "description"] {
        item.extend(schema.remove(key).map(|text| (key.to_owned(), text)));
    }
    item.insert("inputSchema".into(), schema.into());
    item
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_and_a_definition_describe_the_same_tool() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let server = ServerName::parse("fx").unwrap();
        for definition in [
            json!({"type": "object", "description": "Adds.", "properties": {"a": {"type": "integer"}}}),
            json!({"description": "Adds.", "inputSchema": schema}),
            json!({"description": "Adds.", "input_schema": schema}),
            json!({"description": "Adds.", "parameters": schema}),
        ] {
            let mut catalog = Catalog::default();
            catalog.add_configured(&server, &[("add".to_owned(), definition)].into(), HeaderRule::Ignored);
            let tool = &catalog.tools[0];
            assert_eq!(
                (tool.name.as_str(), tool.description.as_deref()),
                ("add", Some("Adds."))
            );
            assert_eq!(tool.input_schema.value(), schema);
        }
    }

    #[test]
    fn what_is_listed_wins_and_what_cannot_be_read_costs_only_itself() {
        let server = ServerName::parse("fx").unwrap();
        let mut catalog = Catalog::default();
        catalog.read_tools(
            &server,
            vec![json!({"name": "b", "description": "listed"})],
            HeaderRule::Ignored,
        );
        let configured = ["c", "b", "a"].map(|name| (name.to_owned(), json!({"description": "configured"})));
        let mut configured = BTreeMap::from(configured);
        configured.insert("bad".into(), json!({"type": "string"}));
        catalog.add_configured(&server, &configured, HeaderRule::Ignored);
        let tools: Vec<_> = catalog
            .tools
            .iter()
            .map(|tool| (tool.name.as_str(), tool.description.as_deref()))
            .collect();
        assert_eq!(
            tools,
            [
                ("a", Some("configured")),
                ("b", Some("listed")),
                ("c", Some("configured"))
            ]
        );
        assert_eq!(catalog.warnings.len(), 1, "{:?}", catalog.warnings);
    }
}
