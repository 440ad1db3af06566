//! Lists of tools, resources and prompts as MCP writes them.

use std::time::Duration;

use pegboard::{
    Toolset,
    catalog::{Prompt, Resource, ToolKind},
    toolset::Listing,
};
use serde_json::{Value, json};

use super::pages::page;
use crate::protocol::{Answer, CacheScope, Params, RawResult};

/// The tools of a view with a budget.
const DISCOVERY: [&str; 3] = ["find_tools", "describe_tool", "call_tool"];

/// A page of a list. Modern clients are told not to keep it: it may change at any time, and differs between principals.
pub(super) fn list(key: &str, items: &[Value], params: &Params) -> Answer {
    let (items, next) = page(items, params)?;
    let mut list = json!({ key: items });
    if let Some(next) = next {
        list["nextCursor"] = next.into();
    }
    Ok(RawResult::new(&list)?.cached(Duration::ZERO, CacheScope::Private))
}

/// How the tools of an endpoint are listed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToolStyle {
    /// Under the names of their servers, instead of those of the view.
    pub(super) own_names: bool,
    /// For a legacy client: whether a tool of a modern server may run as a task is up to the server.
    pub(super) may_be_tasks: bool,
}

/// The definitions of tools.
pub(super) fn tools(listing: &Listing, style: ToolStyle) -> Vec<Value> {
    let definitions = listing.tools.iter().map(|listed| {
        let mut definition = listed.tool.definition();
        if !style.own_names {
            definition["name"] = listed.name.as_str().into();
        }
        if style.may_be_tasks && definition.get("execution").is_none() {
            definition["execution"] = json!({ "taskSupport": "optional" });
        }
        definition
    });
    definitions.collect()
}

/// Lists the tools that find, describe and call others under their plain names, unless a server has a tool of that name.
pub(super) fn use_plain_names(listing: &mut Listing, toolset: &Toolset) {
    for listed in &mut listing.tools {
        let plain = listed.tool.name.as_str();
        if listed.kind == ToolKind::BuiltIn && DISCOVERY.contains(&plain) && !toolset.has_tool_named(plain) {
            listed.name = plain.to_owned();
        }
    }
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
