//! Shared code of the built-in tools: their names, listing, arguments and replies. They carry a server name that no server of the board has, so
//! that they cannot be mistaken for tools of a server.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::listing::ListedTool;
use crate::{
    call::{self, Audience, CallGuard, RouteTable, Routed, ToolCall, View},
    server::Server,
};
use pegboard_base::name::{self, NameStyle, ServerName};
use pegboard_config::Reading;
use pegboard_tools::{
    args::Arguments,
    catalog::{Tool, ToolKind},
    outcome::{Failure, Kind, Outcome, Reply},
    provider::Provider,
};

/// The reply to a call of a built-in tool, or the call itself if it is of another tool.
pub(super) type BuiltinReply<'a> = Result<Reply, Box<(ToolCall, CallGuard<'a>)>>;

/// A server name that no server of the board has.
pub(super) fn server_name(servers: &[Server]) -> ServerName {
    let is_taken = |name: &str| {
        let mut names = servers.iter().map(|server| server.name().as_str());
        names.any(|taken| taken.eq_ignore_ascii_case(name))
    };
    ServerName::choose_free("pegboard", is_taken)
}

/// What the names of a view's built-in tools depend on.
#[derive(Clone, Copy)]
pub(super) struct Home<'a> {
    /// The server name that they carry.
    pub(super) name: &'a ServerName,
    pub(super) view: &'a View,
    /// The other tools of the view.
    pub(super) routes: &'a RouteTable,
}

impl Home<'_> {
    /// The name of a built-in tool. To clients it is the tool's own name, unless another tool has that. Agents see it with a prefix even in a
    /// view with bare names, because a server that comes later could have a tool of that name.
    fn name_of(&self, tool: &Tool) -> String {
        let own = tool.name.as_str();
        let is_taken = || {
            let mut routes = self.routes.routes().iter();
            routes.any(|route| route.name == own || route.tool.name == own)
        };
        if self.view.audience == Audience::Client && !is_taken() {
            return own.to_owned();
        }
        let (style, rules) = self.view.names();
        let style = match style {
            NameStyle::Bare => NameStyle::Dunder,
            prefixed => prefixed,
        };
        let mut names = name::expose(&[(self.name.as_str(), own)], &style, &rules);
        names.pop().unwrap_or_else(|| name::dunder(self.name.as_str(), own))
    }
}

/// A built-in tool as a view lists it.
pub(super) fn to_listed(home: Home<'_>, definition: Value) -> ListedTool {
    let tool = Tool::parse_built_in(home.name, definition).expect("what we define is a tool");
    let (provider, budget) = home.view.dialect();
    ListedTool {
        available: true,
        kind: ToolKind::BuiltIn,
        risk: tool.risk(true),
        name: home.name_of(&tool),
        definition: match provider {
            Provider::Mcp => None,
            provider => provider.define(&tool, budget).ok().map(Arc::new),
        },
        tool: Arc::new(tool),
    }
}

/// Whether a name may be that of the built-in tool `own`. A cheap prefilter for [`matches()`].
pub(super) fn may_match(name: &str, own: &str) -> bool {
    name.contains(own) || call::fold_name(name).contains(own)
}

/// Whether a name means the built-in tool: as it is listed, in another name style, bare if no server has a tool of that name, or misspelled
/// if no other tool matches.
pub(super) fn matches(name: &str, listed: &ListedTool, routes: &RouteTable, audience: Audience) -> bool {
    let own = listed.tool.name.as_str();
    is_name_of(name, listed)
        || (name == own && !routes.routes().iter().any(|route| route.tool.name == own))
        || (is_nearly_name_of(name, listed) && matches!(routes.find_forgiving(name, audience), Routed::Nowhere))
}

/// Whether the name is the qualified name of the tool, in any style.
fn is_name_of(name: &str, listed: &ListedTool) -> bool {
    name == listed.name || styles(listed).iter().any(|style| name == style)
}

fn styles(listed: &ListedTool) -> [String; 4] {
    let (home, own) = (listed.tool.server.as_str(), listed.tool.name.as_str());
    let dunder = name::dunder(home, own);
    [
        name::format_dotted(home, own),
        format!("mcp__{dunder}"),
        format!("mcp_{home}_{own}"),
        dunder,
    ]
}

fn is_nearly_name_of(name: &str, listed: &ListedTool) -> bool {
    let own = [&listed.name, &listed.tool.name];
    let near: Vec<String> = styles(listed)
        .iter()
        .chain(own)
        .map(|name| call::fold_name(name))
        .collect();
    let variants = call::name_variants(name);
    variants.iter().any(|variant| near.contains(&call::fold_name(variant)))
}

/// Parses the arguments of a call of a built-in tool, given as JSON or as text, and converts them back from the provider's schema. Text is parsed
/// as the call says; otherwise by `default_reading`, because there is no server whose settings could apply.
pub(super) fn read(
    call: &mut ToolCall,
    listed: &ListedTool,
    default_reading: Reading,
    audience: Audience,
) -> Result<Map<String, Value>, Failure> {
    let invalid = |problem: String| {
        let name = match audience.knows_listed_names() {
            true => listed.name.clone(),
            false => listed.tool.dotted_name(),
        };
        Failure::new(Kind::InvalidArguments, format!("{name} was not called: {problem}"))
    };
    if let Some(problem) = call.invalid_arguments.take() {
        return Err(invalid(problem));
    }
    if let Some(text) = call.text.take() {
        let schema = listed.tool.input_schema.tree();
        let read = Arguments::read(&text, call.reading.unwrap_or(default_reading), schema);
        let read = read.map_err(|error| invalid(error.to_string()))?;
        call.arguments = read.arguments;
        call.notes.extend(read.notes);
    }
    let reverse = listed.definition.as_ref().map(|definition| &definition.reverse);
    if let Some(own) = reverse.and_then(|reverse| reverse.apply(&call.arguments)) {
        call.arguments = own;
    }
    call.arguments.by_name().map_err(invalid)
}

/// A string argument, if present. Numbers are converted.
pub(super) fn text(arguments: &Map<String, Value>, key: &str) -> Result<Option<String>, Failure> {
    match arguments.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(Failure::new(Kind::InvalidArguments, format!("`{key}` must be a text"))),
    }
}

/// The reply to a call of a built-in tool.
pub(super) fn reply(call: &ToolCall, tool: &Tool, outcome: Outcome, latency: Duration) -> Reply {
    let mut reply = call.unanswered(outcome, latency);
    reply.name = tool.dotted_name();
    reply.server = Some(tool.server.clone());
    reply.tool = Some(tool.name.clone());
    reply.attempts = 1;
    reply.warnings.clone_from(&call.notes);
    reply.original_bytes = match &reply.outcome {
        Outcome::Done(answer) => answer.text().len(),
        _ => 0,
    };
    reply
}

/// Notes in the reply that the name of the tool was misspelled and repaired.
pub(super) fn note_repair(reply: &mut Reply, called: &str, listed: &ListedTool) {
    if called != listed.tool.name && !is_name_of(called, listed) && reply.repaired.is_none() {
        let (called, name) = (called.escape_debug(), listed.tool.dotted_name());
        reply.repaired = Some(format!("`{called}` was taken for `{name}`"));
    }
}
