//! Tool discovery, for views with more tools than their model should be shown: built-in tools find, describe and call the others.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    builtin_definitions::{CALL, DESCRIBE, FIND, MAX_FOUND},
    builtin_tools::{self, BuiltinReply},
    listing::ListedTool,
    search::FoundTool,
    toolset_handle::Toolset,
};
use crate::call::{CallGuard, Routed, ToolCall};
use pegboard_config::Reading;
use pegboard_tools::{
    args::Arguments,
    outcome::{Answer, Failure, Kind, Outcome},
};

/// How many tools `find_tools` returns by default.
const DEFAULT_FOUND: usize = 5;
/// The most characters of a description in search results.
const SHORT: usize = 160;
/// How many tools a warning names.
const NAMED: usize = 5;

impl Toolset {
    /// The tools to show to a model: all of them if they fit into the view's budget, otherwise the discovery tools and those that are always
    /// shown. Returns a warning if not all of the latter fit.
    pub(super) fn within_budget(&self, tools: Vec<ListedTool>) -> (Vec<ListedTool>, Option<String>) {
        let Some(budget) = self.view.tool_budget else {
            return (tools, None);
        };
        let tokens = |tools: &[ListedTool]| tools.iter().map(ListedTool::tokens).sum::<usize>();
        if tokens(&tools) <= budget {
            return (tools, None);
        }
        let discovery = self.snapshot(|snapshot| snapshot.discovery.clone());
        let mut shown: Vec<ListedTool> = discovery.all().into_iter().cloned().collect();
        let mut left = budget.saturating_sub(tokens(&shown));
        let mut left_out = Vec::new();
        for tool in tools.into_iter().filter(|tool| self.is_always_shown(tool)) {
            let cost = tool.tokens();
            if cost <= left {
                left -= cost;
                shown.push(tool);
            } else {
                left_out.push(tool.name);
            }
        }
        (shown, no_room(budget, &left_out))
    }

    fn is_always_shown(&self, listed: &ListedTool) -> bool {
        let servers = self.servers();
        let server = servers.iter().find(|server| *server.name() == listed.tool.server);
        // Built-in tools have no server.
        server.is_none_or(|server| {
            let always = &server.config().policy.always_load;
            always
                .iter()
                .any(|glob| pegboard_tools::filter::fits(glob, &listed.tool.name))
        })
    }

    /// Answers a call of a discovery tool, or returns the call if it is of another tool.
    pub(super) async fn discover<'a>(
        &'a self,
        mut call: ToolCall,
        started: Instant,
        mut guard: CallGuard<'a>,
    ) -> BuiltinReply<'a> {
        let names_one = || {
            [FIND, DESCRIBE, CALL]
                .iter()
                .any(|name| builtin_tools::may_match(&call.name, name))
        };
        if self.view.tool_budget.is_none() || !names_one() {
            return Err(Box::new((call, guard)));
        }
        let (discovery, routes) = self.snapshot(|snapshot| (snapshot.discovery.clone(), snapshot.table.clone()));
        let meant = discovery
            .all()
            .into_iter()
            .find(|tool| builtin_tools::matches(&call.name, tool, &routes, self.view.audience));
        let Some(listed) = meant else {
            return Err(Box::new((call, guard)));
        };
        let called = call.name.clone();
        // A forwarded call counts as one call, of the tool that it is forwarded to.
        if listed.tool.name != CALL {
            guard.built_in(&listed.tool);
        }
        let outcome = match self.answer(listed, &mut call).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => {
                // The reply is that of the forwarded call.
                let mut reply = Box::pin(self.call_opened(call, started, guard, None)).await;
                builtin_tools::note_repair(&mut reply, &called, listed);
                return Ok(reply);
            }
            Err(failure) => Outcome::Refused(failure),
        };
        guard.built_in(&listed.tool);
        let mut reply = builtin_tools::reply(&call, &listed.tool, outcome, started.elapsed());
        builtin_tools::note_repair(&mut reply, &called, listed);
        guard.complete(&reply);
        Ok(reply)
    }

    /// The outcome of a discovery tool; `None` if `call` was rewritten into a call of another tool.
    async fn answer(&self, listed: &ListedTool, call: &mut ToolCall) -> Result<Option<Outcome>, Failure> {
        let name = listed.tool.name.as_str();
        // Lenient parsing is harmless for reads. A forwarded call is parsed as strictly as any other.
        let default_reading = if name == CALL { Reading::Json } else { Reading::Guided };
        let arguments = builtin_tools::read(call, listed, default_reading, self.view.audience)?;
        match name {
            FIND => self.found(&arguments).await.map(Some),
            DESCRIBE => self.described(&arguments).map(Some),
            _ => forward(call, &arguments).map(|()| None),
        }
    }

    async fn found(&self, arguments: &Map<String, Value>) -> Result<Outcome, Failure> {
        let query = text(arguments, "query")?;
        let limit = arguments
            .get("limit")
            .and_then(Value::as_u64)
            .and_then(|limit| usize::try_from(limit).ok());
        let found = self
            .search(query, limit.unwrap_or(DEFAULT_FOUND).clamp(1, MAX_FOUND))
            .await;
        let lines: Vec<String> = found.iter().map(line).collect();
        let text = match lines.as_slice() {
            [] => "No tool fits these words. Try others, or fewer.".to_owned(),
            lines => lines.join("\n"),
        };
        Ok(Outcome::Done(Answer::from_text(text)))
    }

    fn described(&self, arguments: &Map<String, Value>) -> Result<Outcome, Failure> {
        let name = text(arguments, "name")?;
        let route = match self.table().find_forgiving(name, self.view.audience) {
            Routed::To(route) | Routed::Repaired(route) => route,
            Routed::Hidden(tool) => return Err(self.unknown(&tool).failure),
            Routed::Ambiguous(candidates) => return Err(self.ambiguous(name, &candidates)),
            Routed::Nowhere => return Err(self.unknown(name).failure),
        };
        let tool = &route.tool;
        // Arguments are converted back from the provider's dialect, so the schema is shown in that dialect.
        let (description, arguments) = match &route.definition {
            Some(definition) => (&definition.description, json!(definition.schema)),
            None => (&tool.description, json!(tool.input_schema)),
        };
        let described = json!({
            "name": route.name, "description": description, "arguments": arguments, "annotations": tool.annotations,
        });
        let text = serde_json::to_string_pretty(&described).unwrap_or_default();
        Ok(Outcome::Done(Answer::from_text(text)))
    }
}

/// A warning about tools that should always be shown and do not fit into the budget, if there are any.
fn no_room(budget: usize, left_out: &[String]) -> Option<String> {
    let named = left_out.iter().take(NAMED).map(|name| format!("`{name}`"));
    let named: Vec<String> = named.collect();
    let more = match left_out.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!left_out.is_empty()).then(|| {
        format!(
            "a budget of {budget} tokens has no room for tools that are always to be listed: {}{more}",
            named.join(", ")
        )
    })
}

fn line(found: &FoundTool) -> String {
    let description = found.tool.tool.description.as_deref().unwrap_or_default();
    let first: String = description
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(SHORT)
        .collect();
    format!("{}: {first}", found.tool.name)
}

/// Rewrites a call of `call_tool` into the call that it forwards.
fn forward(call: &mut ToolCall, arguments: &Map<String, Value>) -> Result<(), Failure> {
    let name = text(arguments, "name")?;
    call.text = None;
    match arguments.get("arguments") {
        None | Some(Value::Null) => call.arguments = Arguments::default(),
        Some(Value::Object(arguments)) => call.arguments = arguments.clone().into(),
        // Some models write the object as a string.
        Some(Value::String(text)) => {
            call.arguments = Arguments::default();
            call.text = Some(text.clone());
        }
        Some(_) => return Err(Failure::new(Kind::InvalidArguments, "`arguments` must be an object")),
    }
    // The reply carries the name that the model wrote.
    let called = std::mem::replace(&mut call.name, name.to_owned());
    call.asked.get_or_insert(called);
    Ok(())
}

fn text<'a>(arguments: &'a Map<String, Value>, key: &str) -> Result<&'a str, Failure> {
    match arguments.get(key).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(Failure::new(
            Kind::InvalidArguments,
            format!("`{key}` is missing: it must be a text"),
        )),
    }
}
