//! Tools of our own that a view shows beside those of servers: under the name of a server that nobody has, so that they cannot be
//! taken for others.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::ListedTool;
use crate::{
    args::Arguments,
    call::{RouteTable, ToolCall, View},
    catalog::Tool,
    config::Reading,
    name::{self, NameStyle, ServerName},
    outcome::{Failure, Kind, Outcome, Reply},
    provider::Provider,
    server::Server,
};

/// The name of a server that the board does not have.
pub(super) fn home(servers: &[Server]) -> ServerName {
    let is_taken = |name: &str| {
        let mut names = servers.iter().map(|server| server.name().as_str());
        names.any(|taken| taken.eq_ignore_ascii_case(name))
    };
    ServerName::free("pegboard", is_taken)
}

/// A tool of ours as a view shows it. Where tools are shown under their own names, another one could have this name, so it keeps its prefix.
pub(super) fn listed(home: &ServerName, definition: Value, view: &View) -> ListedTool {
    let tool = Tool::built_in(home, definition).expect("what we define is a tool");
    let (style, rules) = view.names();
    let style = match style {
        NameStyle::Bare => NameStyle::Dunder,
        prefixed => prefixed,
    };
    let mut names = name::expose(&[(home.as_str(), &tool.name)], &style, &rules);
    let (provider, budget) = view.dialect();
    ListedTool {
        name: names.pop().unwrap_or_else(|| name::dunder(home.as_str(), &tool.name)),
        definition: match provider {
            Provider::Mcp => None,
            provider => provider.define(&tool, budget).ok().map(Arc::new),
        },
        tool: Arc::new(tool),
    }
}

/// Whether a name means the tool: as it is shown, in any other style, or alone when no server has a tool of that name.
pub(super) fn means(name: &str, listed: &ListedTool, routes: &RouteTable) -> bool {
    let (home, own) = (listed.tool.server.as_str(), listed.tool.name.as_str());
    let dunder = name::dunder(home, own);
    name == listed.name
        || name == dunder
        || name == name::dotted(home, own)
        || name.strip_prefix("mcp__") == Some(&dunder)
        || name == format!("mcp_{home}_{own}")
        || (name == own && !routes.routes().iter().any(|route| route.tool.name == own))
}

/// The arguments of a call of a tool of ours. What a provider's schema has made of them is undone.
pub(super) fn arguments(call: &ToolCall, listed: &ListedTool) -> Map<String, Value> {
    let schema = listed.tool.input_schema.tree();
    let read = call.text.as_deref();
    let read = read.and_then(|text| Arguments::read(text, Reading::Guided, schema).ok());
    let given = read.as_ref().map_or(&call.arguments, |read| &read.arguments);
    let definition = listed.definition.as_ref();
    let own = definition.and_then(|definition| definition.reverse.apply(given));
    serde_json::from_str(own.as_ref().unwrap_or(given).as_str()).unwrap_or_default()
}

/// One of the arguments, if it is there: a text, or what can be written as one.
pub(super) fn text(given: &Map<String, Value>, key: &str) -> Result<Option<String>, Failure> {
    match given.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(Failure::new(Kind::InvalidArguments, format!("`{key}` must be a text"))),
    }
}

/// The reply to a call of a tool of ours.
pub(super) fn reply(call: &ToolCall, tool: &Tool, outcome: Outcome, latency: Duration) -> Reply {
    let mut reply = Reply::unanswered(&call.id, tool.dotted_name(), outcome, latency);
    reply.asked.clone_from(&call.name);
    reply.server = Some(tool.server.clone());
    reply.tool = Some(tool.name.clone());
    reply.attempts = 1;
    reply.original_bytes = match &reply.outcome {
        Outcome::Done(answer) => answer.text().len(),
        _ => 0,
    };
    reply
}
