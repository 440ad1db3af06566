//! Lists of tools, resources and prompts as MCP writes them.

use std::time::Duration;

use pegboard::{
    catalog::{Prompt, Resource},
    toolset::ListedTool,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::pages::page;
use crate::protocol::{Answer, CacheScope, Params, RawResult, RpcError};

/// A page of a list, with `define` applied to its items. Modern clients are told not to keep it: it may change at any time, and differs between
/// principals.
pub(super) fn list<T>(key: &str, items: &[T], params: &Params, define: impl Fn(&T) -> Value) -> Answer {
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
    Ok(RawResult::from_text(json.into(), false).cached(Duration::ZERO, CacheScope::Private))
}

fn write(json: &mut Vec<u8>, value: &impl Serialize) -> Result<(), RpcError> {
    serde_json::to_writer(json, value)
        .map_err(|error| RpcError::new(RpcError::INTERNAL, format!("the list cannot be written: {error}")))
}

/// How the tools of an endpoint are listed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToolStyle {
    /// Under the names of their servers, instead of those of the view.
    pub(super) own_names: bool,
    /// For a legacy client: whether a tool of a modern server may run as a task is up to the server.
    pub(super) may_be_tasks: bool,
}

/// The definition of a tool.
pub(super) fn tool(listed: &ListedTool, style: ToolStyle) -> Value {
    let mut definition = listed.tool.definition();
    if !style.own_names {
        definition["name"] = listed.name.as_str().into();
    }
    if style.may_be_tasks && definition.get("execution").is_none() {
        definition["execution"] = json!({ "taskSupport": "optional" });
    }
    definition
}

/// The definition of a resource under this URI.
pub(super) fn resource(resource: &Resource, uri: &str) -> Value {
    let mut definition = resource.definition(false);
    definition["uri"] = uri.into();
    named(definition, uri)
}

/// The definition of a resource template under this URI template.
pub(super) fn template(template: &Resource, uri: &str) -> Value {
    let mut definition = template.definition(true);
    definition["uriTemplate"] = uri.into();
    named(definition, uri)
}

/// The protocol requires a name.
fn named(mut definition: Value, uri: &str) -> Value {
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
