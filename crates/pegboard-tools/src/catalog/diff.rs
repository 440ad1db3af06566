//! Compares two catalogs of one server, by name and by field.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Catalog, Prompt, Resource, tool::Tool};

/// The differences between two catalogs, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CatalogDiff {
    /// Tools, by name.
    #[serde(skip_serializing_if = "Changes::is_empty")]
    pub tools: Changes,
    /// Resources, by URI.
    #[serde(skip_serializing_if = "Changes::is_empty")]
    pub resources: Changes,
    /// Resource templates, by URI template.
    #[serde(skip_serializing_if = "Changes::is_empty")]
    pub templates: Changes,
    /// Prompts, by name.
    #[serde(skip_serializing_if = "Changes::is_empty")]
    pub prompts: Changes,
}

/// The differences among items of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Changes {
    /// New items.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Removed items.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Items whose description changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
}

/// An item whose description changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Changed {
    /// The item.
    pub name: String,
    /// The fields that differ.
    pub fields: Vec<&'static str>,
}

impl CatalogDiff {
    /// Computes the differences between `old` and `new`. The order of keys within a schema does not count.
    #[doc(hidden)]
    pub fn between(old: &Catalog, new: &Catalog) -> Self {
        Self {
            tools: Changes::between(
                &old.tools,
                &new.tools,
                |tool| &tool.name,
                |old, new| tool_fields(old, new),
            ),
            resources: Changes::between(&old.resources, &new.resources, |item| &item.uri, resource_fields),
            templates: Changes::between(&old.templates, &new.templates, |item| &item.uri, resource_fields),
            prompts: Changes::between(&old.prompts, &new.prompts, |prompt| &prompt.name, prompt_fields),
        }
    }

    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        [&self.tools, &self.resources, &self.templates, &self.prompts]
            .into_iter()
            .all(Changes::is_empty)
    }
}

impl Changes {
    fn between<T>(
        old: &[T],
        new: &[T],
        name: impl Fn(&T) -> &String,
        fields: impl Fn(&T, &T) -> Vec<&'static str>,
    ) -> Self {
        // Of two items with the same name the first is used, as in a listing.
        let by_name = |items| -> BTreeMap<_, _> { <[T]>::iter(items).rev().map(|item| (name(item), item)).collect() };
        let (old, new) = (by_name(old), by_name(new));
        let missing_in = |items: &BTreeMap<&String, &T>, other: &BTreeMap<&String, &T>| -> Vec<String> {
            let missing = items.keys().filter(|name| !other.contains_key(**name));
            missing.map(|name| (*name).clone()).collect()
        };
        let in_both = old.iter().filter_map(|(name, old)| Some((name, old, new.get(*name)?)));
        let changed = in_both.map(|(name, old, new)| Changed {
            name: (*name).clone(),
            fields: fields(old, new),
        });
        Self {
            added: missing_in(&new, &old),
            removed: missing_in(&old, &new),
            changed: changed.filter(|changed| !changed.fields.is_empty()).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

fn tool_fields(old: &Tool, new: &Tool) -> Vec<&'static str> {
    names([
        ("title", old.title != new.title),
        ("description", old.description != new.description),
        ("input_schema", old.input_schema != new.input_schema),
        ("output_schema", old.output_schema != new.output_schema),
        ("annotations", old.annotations != new.annotations),
        ("task_support", old.task_support != new.task_support),
        ("meta", old.more != new.more && old.task_support == new.task_support),
    ])
}

fn resource_fields(old: &Resource, new: &Resource) -> Vec<&'static str> {
    names([
        ("name", old.name != new.name),
        ("description", old.description != new.description),
        ("mime_type", old.mime_type != new.mime_type),
        ("title", old.title != new.title),
        ("size", old.size != new.size),
    ])
}

fn prompt_fields(old: &Prompt, new: &Prompt) -> Vec<&'static str> {
    names([
        ("title", old.title != new.title),
        ("description", old.description != new.description),
        ("arguments", old.arguments != new.arguments),
    ])
}

fn names<const N: usize>(fields: [(&'static str, bool); N]) -> Vec<&'static str> {
    let differing = fields.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::catalog::HeaderRule;
    use pegboard_base::name::ServerName;

    fn catalog(tools: Value, resources: Value, templates: Value, prompts: Value) -> Catalog {
        let server = ServerName::parse("fx").unwrap();
        let items = |list: Value| serde_json::from_value::<Vec<Value>>(list).unwrap();
        let mut catalog = Catalog::default();
        catalog.read_tools(&server, items(tools), HeaderRule::Ignored);
        catalog.resources = catalog.read_resources(&server, items(resources), "uri");
        catalog.templates = catalog.read_resources(&server, items(templates), "uriTemplate");
        catalog.read_prompts(&server, items(prompts));
        catalog
    }

    fn tools(tools: Value) -> Catalog {
        catalog(tools, json!([]), json!([]), json!([]))
    }

    #[test]
    fn the_change_log_of_a_server_that_changed_everything() {
        let old = catalog(
            json!([
                {"name": "create", "description": "Makes one.", "annotations": {"readOnlyHint": false}},
                {"name": "delete"},
                {"name": "list", "title": "List", "inputSchema": {"type": "object", "properties": {"a": {}}}},
                {"name": "same", "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}}},
            ]),
            json!([{"uri": "file:///a", "name": "a", "mimeType": "text/plain"}, {"uri": "file:///b"}]),
            json!([{"uriTemplate": "file:///{x}", "description": "Any file."}]),
            json!([{"name": "greet", "arguments": [{"name": "who"}]}, {"name": "leave"}]),
        );
        let new = catalog(
            json!([
                {"name": "same", "inputSchema": {"properties": {"b": {}, "a": {}}, "type": "object"}},
                {"name": "list", "title": "All", "description": "Now told.", "outputSchema": {"type": "object"}},
                {"name": "create", "description": "Makes one.", "annotations": {"readOnlyHint": true}},
                {"name": "update"},
                {"name": "archive"},
            ]),
            json!([{"uri": "file:///a", "name": "A", "mimeType": "text/html"}, {"uri": "file:///c"}]),
            json!([{"uriTemplate": "file:///{x}", "description": "Any file at all."}]),
            json!([{"name": "greet", "arguments": [{"name": "who", "required": true}]}]),
        );
        let golden = json!(
            {
              "tools": {
                "added": ["archive", "update"],
                "removed": ["delete"],
                "changed": [
                  {"name": "create", "fields": ["annotations"]},
                  {"name": "list", "fields": ["title", "description", "input_schema", "output_schema"]}
                ]
              },
              "resources": {
                "added": ["file:///c"],
                "removed": ["file:///b"],
                "changed": [{"name": "file:///a", "fields": ["name", "mime_type"]}]
              },
              "templates": {"changed": [{"name": "file:///{x}", "fields": ["description"]}]},
              "prompts": {"removed": ["leave"], "changed": [{"name": "greet", "fields": ["arguments"]}]}
            }
        );
        assert_eq!(serde_json::to_value(CatalogDiff::between(&old, &new)).unwrap(), golden);
    }

    #[test]
    fn each_field_of_a_tool_is_noticed_by_name() {
        let check = |field: &str, value: Value, expected: &'static str| {
            let old = tools(json!([{"name": "t"}]));
            let new = tools(json!([{"name": "t", field: value}]));
            let told = Changed {
                name: "t".into(),
                fields: vec![expected],
            };
            assert_eq!(CatalogDiff::between(&old, &new).tools.changed, [told]);
        };
        check("title", json!("T"), "title");
        check("description", json!("d"), "description");
        check("inputSchema", json!({"properties": {}}), "input_schema");
        check("outputSchema", json!({}), "output_schema");
        check("annotations", json!({}), "annotations");
    }

    #[test]
    fn the_same_catalogue_in_another_order_is_no_change() {
        let old = tools(json!([{"name": "a"}, {"name": "b"}]));
        let new = tools(json!([{"name": "b"}, {"name": "a"}]));
        let diff = CatalogDiff::between(&old, &new);
        assert!(diff.is_empty());
        assert_eq!(serde_json::to_value(&diff).unwrap(), json!({}));
        assert!(!CatalogDiff::between(&old, &tools(json!([]))).is_empty());
    }

    #[test]
    fn of_two_resources_with_one_address_the_first_counts() {
        let once = catalog(json!([]), json!([{"uri": "a:1", "name": "x"}]), json!([]), json!([]));
        let twice = json!([{"uri": "a:1", "name": "x"}, {"uri": "a:1", "name": "y"}]);
        let twice = catalog(json!([]), twice, json!([]), json!([]));
        assert!(CatalogDiff::between(&once, &twice).is_empty());
    }
}
