//! Lists of tools, resources and prompts as MCP writes them.

use std::{borrow::Cow, time::Duration};

use pegboard::{
    catalog::{Prompt, Resource},
    toolset::ListedTool,
};
use pegboard_protocol::code;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::pages::page;
use crate::protocol::{Answer, CacheScope, Params, RawResult, RpcError};

/// A page of a list, with `define` applied to its items. Modern clients are told not to keep it: it may change at any time, and differs between
/// principals.
pub(super) fn list<T, D: Serialize>(key: &str, items: &[T], params: &Params, define: impl Fn(&T) -> D) -> Answer {
    let (items, next) = page(items, params)?;
    let mut json = format!("{{\"{key}\":[").into_bytes();
    // One at a time: the trees of a thousand definitions are large.
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            json.push(b',');
        }
        write(&mut json, &define(item))?;
    }
    json.push(b']');
    if let Some(next) = next {
        json.extend_from_slice(b",\"nextCursor\":");
        write(&mut json, &next)?;
    }
    json.push(b'}');
    Ok(RawResult::from_text(json.into(), false).with_cache(Duration::ZERO, CacheScope::Private))
}

fn write(json: &mut Vec<u8>, value: &impl Serialize) -> Result<(), RpcError> {
    serde_json::to_writer(json, value)
        .map_err(|error| RpcError::new(code::INTERNAL_ERROR, format!("the list cannot be written: {error}")))
}

/// How the tools of an endpoint are listed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToolStyle {
    /// Under the names of their servers, instead of those of the view.
    pub(super) own_names: bool,
    /// For a legacy client: whether a tool of a modern server may run as a task is up to the server.
    pub(super) may_be_tasks: bool,
}

/// The definition of a tool. Its arguments have the order in which their server lists them.
#[derive(Debug, Serialize)]
pub(super) struct ToolDefinition {
    #[serde(flatten)]
    fields: Value,
    #[serde(rename = "inputSchema", skip_serializing_if = "Option::is_none")]
    input_schema: Option<Box<RawValue>>,
}

/// The definition of a tool.
pub(super) fn tool(listed: &ListedTool, style: ToolStyle) -> ToolDefinition {
    let mut definition = listed.tool.definition();
    if !style.own_names {
        definition["name"] = listed.name.as_str().into();
    }
    if style.may_be_tasks && definition.get("execution").is_none() {
        definition["execution"] = json!({ "taskSupport": "optional" });
    }
    let input_schema = match listed.tool.input_schema_as_listed() {
        Cow::Owned(text) => RawValue::from_string(text).ok(),
        // The definition has it in this order.
        Cow::Borrowed(_) => None,
    };
    if let (Some(_), Some(fields)) = (&input_schema, definition.as_object_mut()) {
        fields.remove("inputSchema");
    }
    ToolDefinition {
        fields: definition,
        input_schema,
    }
}

/// The definition of a resource under this URI.
pub(super) fn resource(resource: &Resource, uri: &str) -> Value {
    let mut definition = resource.definition(false);
    definition["uri"] = uri.into();
    ensure_name(definition, uri)
}

/// The definition of a resource template under this URI template.
pub(super) fn template(template: &Resource, uri: &str) -> Value {
    let mut definition = template.definition(true);
    definition["uriTemplate"] = uri.into();
    ensure_name(definition, uri)
}

/// The protocol requires a name.
fn ensure_name(mut definition: Value, uri: &str) -> Value {
    if definition.get("name").is_none() {
        definition["name"] = uri.into();
    }
    definition
}

/// The definition of a prompt under this name.
pub(super) fn prompt(prompt: &Prompt, name: &str) -> Value {
    let mut definition = prompt.definition();
    definition["name"] = name.into();
    definition
}
