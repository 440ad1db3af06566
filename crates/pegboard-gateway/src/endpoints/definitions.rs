//! Lists of tools, resources and prompts as MCP writes them.

use std::time::Duration;

use pegboard::{
    catalog::{Prompt, Resource},
    toolset::Listing,
};
use serde_json::{Value, json};

use super::pages::page;
use crate::protocol::{Answer, CacheScope, Params, RawResult};

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
