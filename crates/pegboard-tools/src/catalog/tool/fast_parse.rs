//! Parses tools of the usual form directly from text, without a JSON tree.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    Checks, TaskSupport, Tool,
    parse::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_TITLE, MAX_TOOL_NAME, is_for_model, max_result, pack_rest},
};
use crate::catalog::{
    argument_order::ArgumentOrder,
    definition_hash::CachedHash,
    header_arguments::HeaderRule,
    list_warning::ListWarning,
    listing_item::Item,
    sanitize::{MAX_DESCRIPTION, has_invisible},
    schema::{Schema, normalize::SchemaNormalizer},
};
use pegboard_base::{json_scan::Scan, name::ServerName};

/// Parses the tools of one server.
pub(in crate::catalog) struct ToolParser {
    server: ServerName,
    headers: HeaderRule,
    normalizer: SchemaNormalizer,
    /// Problems of tools that are usable despite them.
    pub(in crate::catalog) warnings: Vec<ListWarning>,
}

/// The fields of a tool definition.
#[derive(Default)]
struct ToolFields {
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Schema>,
    order: ArgumentOrder,
    output_schema: Option<Schema>,
    annotations: Option<Map<String, Value>>,
    /// All other fields.
    rest: Map<String, Value>,
}

impl ToolParser {
    pub(in crate::catalog) fn new(server: &ServerName, headers: HeaderRule) -> Self {
        Self {
            server: server.clone(),
            headers,
            normalizer: SchemaNormalizer::default(),
            warnings: Vec::new(),
        }
    }

    /// A new parser for the same server.
    pub(in crate::catalog) fn to_fresh(&self) -> Self {
        Self::new(&self.server, self.headers)
    }

    /// Parses one item of `tools/list`, or returns the reason why it is rejected.
    pub(in crate::catalog) fn parse(&mut self, item: Item) -> Result<Tool, String> {
        if let Item::Text(text) = &item
            && let Some(tool) = self.parse_plain(text)
        {
            return Ok(tool);
        }
        let order = match &item {
            Item::Text(text) => ArgumentOrder::read(text),
            Item::Tree(_) => ArgumentOrder::default(),
        };
        let tree = item
            .tree()
            .map_err(|error| format!("a tool that cannot be read was left out: {error}"))?;
        let tool = Tool::parse(&self.server, tree, self.headers, &mut self.warnings)?;
        Ok(Tool { order, ..tool })
    }

    /// Parses a tool of the usual form; `None` for anything unusual, which the slow parser handles.
    fn parse_plain(&mut self, item: &[u8]) -> Option<Tool> {
        if memchr::memmem::find(item, b"x-mcp-header").is_some() {
            return None;
        }
        let mut scan = Scan::new(item);
        let mut fields = ToolFields::default();
        scan.fields(|scan, key| fields.read(key, scan, &mut self.normalizer))?;
        let name = fields.name.filter(|name| (1..=MAX_TOOL_NAME).contains(&name.len()))?;
        let needs_work = |text: &Option<String>, limit: usize| {
            let text = text.as_deref().unwrap_or_default();
            text.len() > limit || has_invisible(text)
        };
        if !scan.is_at_end()
            || name.chars().any(char::is_control)
            || needs_work(&fields.title, MAX_TITLE)
            || needs_work(&fields.description, MAX_DESCRIPTION)
        {
            return None;
        }
        Some(Tool {
            server: self.server.clone(),
            name,
            title: fields.title,
            description: fields.description,
            input_schema: fields.input_schema?,
            order: fields.order,
            output_schema: fields.output_schema,
            annotations: fields.annotations,
            max_result: max_result(&fields.rest),
            task_support: TaskSupport::parse(&fields.rest),
            mirrored: Vec::new(),
            for_model: is_for_model(&fields.rest),
            more: pack_rest(fields.rest),
            removed: Vec::new(),
            hash: CachedHash::default(),
            checks: Checks::default(),
        })
    }
}

impl ToolFields {
    /// Parses the value of a field. Duplicate fields are unusual.
    fn read(&mut self, key: &str, scan: &mut Scan<'_>, normalizer: &mut SchemaNormalizer) -> Option<()> {
        let (depth, bytes) = (MAX_SCHEMA_DEPTH, MAX_SCHEMA_BYTES);
        let text = |scan: &mut Scan<'_>| scan.text().map(Cow::into_owned);
        let is_first = match key {
            "name" => self.name.replace(text(scan)?).is_none(),
            "title" => self.title.replace(text(scan)?).is_none(),
            "description" => self.description.replace(text(scan)?).is_none(),
            "inputSchema" => {
                let (schema, order) = normalizer.arguments(scan, depth, bytes)?;
                self.order = order;
                self.input_schema.replace(schema).is_none()
            }
            "outputSchema" => {
                if scan.peek() != Some(b'{') {
                    return None;
                }
                let schema = normalizer.schema(scan, depth, bytes)?;
                self.output_schema.replace(schema).is_none()
            }
            "annotations" => match scan.value(0)? {
                Value::Object(annotations) => self.annotations.replace(annotations).is_none(),
                _ => return None,
            },
            _ => self.rest.insert(key.to_owned(), scan.value(0)?).is_none(),
        };
        is_first.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_tools_need_no_tree_and_others_are_read_alike() {
        let server = ServerName::parse("fx").unwrap();
        let mut parser = ToolParser::new(&server, HeaderRule::Enforced);
        let schema = r#"{"type":"object","properties":{"b":{"type":"string"},"a":{}},"required":["b","a"]}"#;
        let mut check = |text: &str, is_plain: bool| {
            assert_eq!(parser.parse_plain(text.as_bytes()).is_some(), is_plain, "{text}");
            let from_text = parser.parse(Item::Text(text.to_owned().into()));
            let from_tree = parser.parse(Item::Tree(serde_json::from_str(text).unwrap()));
            assert_eq!(from_text, from_tree, "{text}");
        };
        check(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#), true);
        check(
            &format!(
                r#"{{"title":"T","annotations":{{"readOnlyHint":true}},"icons":[{{}}],"name":"t","description":"d\n","inputSchema":{schema},
                "outputSchema":{schema},"_meta":{{"ui":{{"visibility":["app"]}},"anthropic/maxResultSizeChars":9}}}}"#
            ),
            true,
        );
        for unusual in [
            r#"{"name":"t"}"#.to_owned(),
            format!(r#"{{"name":"","inputSchema":{schema}}}"#),
            format!(r#"{{"name":"a\u0007","inputSchema":{schema}}}"#),
            format!(r#"{{"name":"t","name":"u","inputSchema":{schema}}}"#),
            format!(r#"{{"name":"t","title":7,"inputSchema":{schema}}}"#),
            format!(r#"{{"name":"t","title":"a\u200bb","inputSchema":{schema}}}"#),
            format!(r#"{{"name":"t","outputSchema":null,"inputSchema":{schema}}}"#),
            format!(
                r#"{{"name":"t","description":"{}","inputSchema":{schema}}}"#,
                "d".repeat(9000)
            ),
            r#"{"name":"t","inputSchema":{"properties":{}}}"#.to_owned(),
            "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"description\":\"a\u{202e}b\"}}".to_owned(),
        ] {
            check(&unusual, false);
        }
        let broken = Item::Text(r#"{"name":"\ud800"}"#.into());
        assert!(parser.parse(broken).unwrap_err().contains("cannot be read"));
    }
}
