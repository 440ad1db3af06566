//! [`ToolFinder`]: tool discovery, for views with more tools than their model should be shown: built-in tools find, describe and call the others.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    builtin_definitions::{CALL, DESCRIBE, FIND, MAX_FOUND},
    builtin_tools,
    listing::ListedTool,
    open_view::OpenView,
    resolver::Resolver,
    search::{FoundTool, ToolSearch},
};
use crate::call::{CallGuard, Routed, ToolCall};
use pegboard_config::Reading;
use pegboard_tools::{
    args::Arguments,
    outcome::{Answer, Failure, Kind, Outcome, Reply},
};

/// How many tools `find_tools` returns by default.
const DEFAULT_FOUND: usize = 5;
/// The most characters of a description in search results.
const SHORT: usize = 160;

/// What became of a call that may be of a discovery tool.
pub(super) enum Discovered<'a> {
    /// The reply of a discovery tool.
    Reply(Box<Reply>),
    /// `call_tool`: the call to make. Its reply is the reply.
    Forward(Box<Rewritten<'a>>),
    /// The call is of another tool.
    Other(Box<(ToolCall, CallGuard<'a>)>),
}

/// A call of `call_tool` that was rewritten into the call of another tool.
pub(super) struct Rewritten<'a> {
    pub(super) call: ToolCall,
    pub(super) guard: CallGuard<'a>,
    /// The name under which `call_tool` was called.
    pub(super) called: String,
    /// `call_tool` as it is listed.
    pub(super) listed: ListedTool,
}

/// Answers calls of the discovery tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolFinder<'a> {
    open: &'a OpenView,
}

impl<'a> ToolFinder<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// Answers a call of a discovery tool, or returns the call if it is of another tool.
    pub(super) async fn answer(self, mut call: ToolCall, started: Instant, mut guard: CallGuard<'a>) -> Discovered<'a> {
        let names_one = || {
            [FIND, DESCRIBE, CALL]
                .iter()
                .any(|name| builtin_tools::may_match(&call.name, name))
        };
        if self.open.view.tool_budget.is_none() || !names_one() {
            return Discovered::Other(Box::new((call, guard)));
        }
        let (discovery, routes) = self
            .open
            .read_snapshot(|snapshot| (snapshot.discovery.clone(), snapshot.table.clone()));
        let meant = discovery
            .all()
            .into_iter()
            .find(|tool| builtin_tools::matches(&call.name, tool, &routes, self.open.view.audience));
        let Some(listed) = meant else {
            return Discovered::Other(Box::new((call, guard)));
        };
        let called = call.name.clone();
        // A forwarded call counts as one call, of the tool that it is forwarded to.
        if listed.tool.name != CALL {
            guard.mark_built_in(&listed.tool);
        }
        let outcome = match self.run(listed, &mut call).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => {
                let listed = listed.clone();
                return Discovered::Forward(Box::new(Rewritten {
                    call,
                    guard,
                    called,
                    listed,
                }));
            }
            Err(failure) => Outcome::Refused(failure),
        };
        guard.mark_built_in(&listed.tool);
        let mut reply = builtin_tools::reply(&call, &listed.tool, outcome, started.elapsed());
        builtin_tools::note_repair(&mut reply, &called, listed);
        guard.complete(&reply);
        Discovered::Reply(Box::new(reply))
    }

    /// The outcome of a discovery tool; `None` if `call` was rewritten into a call of another tool.
    async fn run(self, listed: &ListedTool, call: &mut ToolCall) -> Result<Option<Outcome>, Failure> {
        let name = listed.tool.name.as_str();
        // Lenient parsing is harmless for reads. A forwarded call is parsed as strictly as any other.
        let default_reading = if name == CALL { Reading::Json } else { Reading::Guided };
        let arguments = builtin_tools::read(call, listed, default_reading, self.open.view.audience)?;
        match name {
            FIND => self.find(&arguments).await.map(Some),
            DESCRIBE => self.describe(&arguments).map(Some),
            _ => forward(call, &arguments).map(|()| None),
        }
    }

    async fn find(self, arguments: &Map<String, Value>) -> Result<Outcome, Failure> {
        let query = text(arguments, "query")?;
        let limit = arguments
            .get("limit")
            .and_then(Value::as_u64)
            .and_then(|limit| usize::try_from(limit).ok());
        let found = ToolSearch::new(self.open)
            .search(query, limit.unwrap_or(DEFAULT_FOUND).clamp(1, MAX_FOUND))
            .await;
        let lines: Vec<String> = found.iter().map(line).collect();
        let text = match lines.as_slice() {
            [] => "No tool fits these words. Try others, or fewer.".to_owned(),
            lines => lines.join("\n"),
        };
        Ok(Outcome::Done(Answer::from_text(text)))
    }

    fn describe(self, arguments: &Map<String, Value>) -> Result<Outcome, Failure> {
        let name = text(arguments, "name")?;
        let resolver = Resolver::new(self.open);
        let route = match self.open.table().find_forgiving(name, self.open.view.audience) {
            Routed::To(route) | Routed::Repaired(route) => route,
            Routed::Hidden(tool) => return Err(resolver.explain_unknown(&tool).into()),
            Routed::Ambiguous(candidates) => return Err(resolver.explain_ambiguous(name, &candidates)),
            Routed::Nowhere => return Err(resolver.explain_unknown(name).into()),
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
