//! Lists of tools, resources and prompts as MCP writes them.

use std::time::Duration;

use pegboard::{
    catalog::{Prompt, Resource},
    toolset::Listing,
};
use serde_json::{Map, Value, json};

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
    let mut definitions = listing.definitions();
    for (definition, listed) in definitions.iter_mut().zip(&listing.tools) {
        if style.own_names {
            definition["name"] = listed.tool.name.as_str().into();
        }
        if style.may_be_tasks && definition.get("execution").is_none() {
            definition["execution"] = json!({ "taskSupport": "optional" });
        }
    }
    definitions
}

/// The definition of a resource under this URI.
pub(super) fn resource(resource: &Resource, uri: &str) -> Value {
    let mut shown = described("uri", uri, resource);
    if let Some(size) = resource.size {
        shown.insert("size".into(), size.into());
    }
    shown.into()
}

/// The definition of a resource template under this URI template.
pub(super) fn template(template: &Resource, uri: &str) -> Value {
    described("uriTemplate", uri, template).into()
}

fn described(key: &str, uri: &str, resource: &Resource) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert(key.into(), uri.into());
    // The protocol requires a name.
    shown.insert("name".into(), resource.name.as_deref().unwrap_or(uri).into());
    let texts = [
        ("title", &resource.title),
        ("description", &resource.description),
        ("mimeType", &resource.mime_type),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            shown.insert(key.into(), text.as_str().into());
        }
    }
    shown
}

/// The definition of a prompt under this name.
pub(super) fn prompt(prompt: &Prompt, name: &str) -> Value {
    let mut shown = json!({ "name": name });
    if let Some(title) = &prompt.title {
        shown["title"] = title.as_str().into();
    }
    if let Some(description) = &prompt.description {
        shown["description"] = description.as_str().into();
    }
    if !prompt.arguments.is_empty() {
        shown["arguments"] = prompt.arguments.clone().into();
    }
    shown
}
