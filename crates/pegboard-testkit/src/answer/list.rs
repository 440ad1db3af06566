//! The lists of tools (with pages and faults), resources and prompts.

use pegboard_protocol::code;
use serde_json::{Map, Value, json};

use super::{act::Act, request::Request};
use crate::{
    fault::{Bomb, Fault},
    script::Script,
};

pub(super) fn tools(script: &Script, faults: &[Fault], request: &Request<'_>) -> Vec<Act> {
    let cursor = request.params["cursor"].as_str();
    let page = match cursor {
        None => 0,
        Some(cursor) => match cursor
            .strip_prefix("page-")
            .and_then(|number| number.parse::<usize>().ok())
        {
            Some(page) => page,
            None if cursor == "again" => 0,
            None => return vec![Act::Answer(request.error(code::INVALID_PARAMS, "unknown cursor", None))],
        },
    };
    if faults
        .iter()
        .any(|fault| matches!(fault, Fault::HangingPage { page: hanging } if *hanging as usize == page + 1))
    {
        return vec![Act::Hang];
    }
    let all = definitions(script, faults);
    let size = script.page_size.unwrap_or(usize::MAX).max(1);
    let mut shown: Vec<Value> = all.iter().skip(page.saturating_mul(size)).take(size).cloned().collect();
    let mut next = (page.saturating_add(1).saturating_mul(size) < all.len()).then(|| format!("page-{}", page + 1));
    for fault in faults {
        match fault {
            Fault::EndlessPages => {
                shown.push(tool(&format!("tool_on_page_{page}"), json!({ "type": "object" })));
                next = Some(format!("page-{}", page + 1));
            }
            Fault::RepeatedCursor => next = Some("again".into()),
            _ => {}
        }
    }
    let mut result = json!({ "tools": shown });
    if let Some(next) = next {
        result["nextCursor"] = next.into();
    }
    vec![Act::Answer(request.cacheable_result(script, result))]
}

/// The definitions of all tools, including those that faults add or change.
fn definitions(script: &Script, faults: &[Fault]) -> Vec<Value> {
    let mut tools: Vec<Value> = script
        .tools
        .iter()
        .map(|tool| Value::Object(tool.definition.clone()))
        .collect();
    let object = || json!({ "type": "object" });
    for fault in faults {
        match fault {
            Fault::ManyTools { count } => {
                tools.extend((0..*count).map(|number| tool(&format!("extra_{number}"), object())));
            }
            Fault::DuplicateTools => tools.extend(tools.clone()),
            Fault::LongToolName { length } => tools.push(tool(&"n".repeat(*length), object())),
            Fault::OddToolName => tools.push(tool("odd name/🦀", object())),
            Fault::BrokenSchema => {
                tools.push(tool(
                    "broken_schema",
                    json!({ "type": 7, "properties": "none", "required": { "a": 1 } }),
                ));
            }
            Fault::BrokenMcpHeader => {
                let schema = json!({
                    "type": "object",
                    "properties": { "region": { "type": "string", "x-mcp-header": "bad header\r\nX-Evil: 1" } },
                });
                tools.push(tool("broken_header", schema));
            }
            Fault::NoInputSchema => tools.push(json!({ "name": "no_schema", "description": "Has no schema." })),
            Fault::SchemaBomb { kind } => tools.push(tool("bomb", bomb(*kind))),
            Fault::ToolsChange => {
                for tool in &mut tools {
                    tool["description"] = "Now says something else.".into();
                }
            }
            _ => {}
        }
    }
    tools
}

fn tool(name: &str, schema: Value) -> Value {
    let mut tool = Map::new();
    tool.insert("name".into(), name.into());
    tool.insert("description".into(), "Added by a fault.".into());
    tool.insert("inputSchema".into(), schema);
    Value::Object(tool)
}

fn bomb(kind: Bomb) -> Value {
    match kind {
        // Parsers often stop at 128 levels. A deeper schema would cost the whole list and not only this tool.
        Bomb::Depth => (0..100).fold(json!({ "type": "string" }), |inner, _| json!({ "not": inner })),
        Bomb::RefCycle => json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } },
        }),
        Bomb::RemoteRef => json!({
            "type": "object",
            "properties": { "a": { "$ref": "http://127.0.0.1:9/schema.json" } },
        }),
        Bomb::HugeEnum => {
            let values: Vec<String> = (0..100_000).map(|number| format!("value-{number}")).collect();
            json!({ "type": "object", "properties": { "a": { "enum": values } } })
        }
        Bomb::Pattern => json!({
            "type": "object",
            "properties": { "a": { "type": "string", "pattern": "^(a+)+$" } },
        }),
    }
}
