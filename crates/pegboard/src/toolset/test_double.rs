//! [`StubTools`]: a test double with scripted replies for tests of agent loops, without servers or processes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    executor::{Boxed, Closed, ToolExecutor},
    listing::{ListedTool, Listing},
};
use crate::{
    args::Arguments,
    call::ToolCall,
    catalog::{Tool, ToolKind},
    name::ServerName,
    outcome::{Answer, Failure, Kind, Outcome, Reply},
    provider::Provider,
};

/// The most calls that are recorded.
const MAX_RECORDED: usize = 10_000;

/// A stand-in for a [`Toolset`](super::Toolset) in tests: it gives scripted replies and records the calls. Clones share their state, so a
/// test can keep one and hand the other to its agent.
///
/// Several outcomes for one tool are used in the given order, and the last one repeats. Names are exact, and arguments are not validated
/// against a schema.
///
/// ```
/// use pegboard::{Provider, StubTools, ToolCall, ToolExecutor};
/// use serde_json::json;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stub = StubTools::new()
///     .provider(Provider::OpenAi)
///     .answers("time__now", "noon")
///     .fails("mail__send", "the mailbox is full");
///
/// // The agent under test sees any `ToolExecutor`.
/// let tools: &dyn ToolExecutor = &stub;
/// assert_eq!(tools.list_tools().await?.definitions().len(), 2);
/// let call = ToolCall::new("time__now").arguments(json!({"zone": "UTC"}));
/// assert_eq!(tools.execute(call).await?.text(), "noon");
/// assert!(tools.execute(ToolCall::new("mail__send")).await?.is_error());
///
/// let calls = stub.calls();
/// assert_eq!((calls[0].name.as_str(), &calls[0].arguments), ("time__now", &json!({"zone": "UTC"})));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct StubTools(Arc<Mutex<StubState>>);

/// One recorded call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StubCall {
    /// The caller's id for it.
    pub id: String,
    /// The tool, as the caller wrote it.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

#[derive(Debug, Default)]
struct StubState {
    provider: Provider,
    tools: Vec<StubTool>,
    calls: Vec<StubCall>,
    is_closed: bool,
}

/// One tool and the outcomes of its calls.
#[derive(Debug)]
struct StubTool {
    name: String,
    description: Option<String>,
    schema: Value,
    outcomes: VecDeque<Outcome>,
}

impl StubTools {
    /// A stub without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the provider that the tools are listed for.
    pub fn provider(self, provider: Provider) -> Self {
        self.lock().provider = provider;
        self
    }

    /// Describes a tool for listings. An undescribed tool takes any arguments.
    pub fn describes(self, name: &str, description: &str, schema: Value) -> Self {
        self.change(name, |tool| {
            (tool.description, tool.schema) = (Some(description.to_owned()), schema);
        })
    }

    /// The next call of the tool succeeds with this text.
    pub fn answers(self, name: &str, text: impl Into<String>) -> Self {
        self.ends(name, Outcome::Done(Answer::from_text(text)))
    }

    /// The next call of the tool fails with this text.
    pub fn fails(self, name: &str, text: impl Into<String>) -> Self {
        self.ends(name, Outcome::ToolFailed(Answer::from_text(text)))
    }

    /// The next call of the tool has this outcome.
    pub fn ends(self, name: &str, outcome: Outcome) -> Self {
        self.change(name, |tool| tool.outcomes.push_back(outcome))
    }

    /// The calls so far, in order.
    pub fn calls(&self) -> Vec<StubCall> {
        self.lock().calls.clone()
    }

    fn change(self, name: &str, change: impl FnOnce(&mut StubTool)) -> Self {
        change(self.lock().tool(name));
        self
    }

    fn lock(&self) -> MutexGuard<'_, StubState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolExecutor for StubTools {
    fn list_tools(&self) -> Boxed<'_, Result<Listing, Closed>> {
        let state = self.lock();
        let listed = (!state.is_closed).then(|| state.listing()).ok_or(Closed);
        Box::pin(std::future::ready(listed))
    }

    fn execute(&self, call: ToolCall) -> Boxed<'_, Result<Reply, Closed>> {
        Box::pin(async move {
            let mut state = self.lock();
            match state.is_closed {
                true => Err(Closed),
                false => Ok(state.reply(&call)),
            }
        })
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(async { self.lock().is_closed = true })
    }
}

impl StubState {
    fn tool(&mut self, name: &str) -> &mut StubTool {
        let at = self.tools.iter().position(|tool| tool.name == name);
        let at = at.unwrap_or_else(|| {
            self.tools.push(StubTool {
                name: name.to_owned(),
                description: None,
                schema: json!({"type": "object"}),
                outcomes: VecDeque::new(),
            });
            self.tools.len() - 1
        });
        &mut self.tools[at]
    }

    fn listing(&self) -> Listing {
        let mut listing = Listing {
            tools: Vec::new(),
            unavailable: Vec::new(),
            warnings: Vec::new(),
            quarantined: Vec::new(),
            provider: self.provider,
        };
        for tool in &self.tools {
            match tool.listed(self.provider) {
                Ok(listed) => listing.tools.push(listed),
                Err(problem) => listing.warnings.push(problem),
            }
        }
        listing
    }

    fn reply(&mut self, call: &ToolCall) -> Reply {
        let outcome = match read(call) {
            Err(failure) => Outcome::Refused(failure),
            Ok(arguments) => {
                if self.calls.len() < MAX_RECORDED {
                    self.calls.push(StubCall {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        arguments,
                    });
                }
                self.next_outcome(&call.name)
            }
        };
        call.unanswered(outcome, Duration::ZERO)
    }

    fn next_outcome(&mut self, name: &str) -> Outcome {
        let Some(tool) = self.tools.iter_mut().find(|tool| tool.name == name) else {
            let message = format!("there is no tool `{}`", name.escape_debug());
            return Outcome::Refused(Failure::new(Kind::UnknownTool, message));
        };
        let next = match tool.outcomes.len() {
            0 | 1 => tool.outcomes.front().cloned(),
            _ => tool.outcomes.pop_front(),
        };
        next.unwrap_or_else(|| {
            let message = format!("the stub has no reply for `{name}`; give it one with `answers`");
            Outcome::Refused(Failure::new(Kind::Internal, message))
        })
    }
}

impl StubTool {
    fn listed(&self, provider: Provider) -> Result<ListedTool, String> {
        let server = ServerName::parse("stub").map_err(|error| error.to_string())?;
        let mut definition = json!({"name": self.name, "inputSchema": self.schema});
        if let Some(description) = &self.description {
            definition["description"] = description.as_str().into();
        }
        let tool = Tool::built_in(&server, definition)?;
        let definition = match provider {
            Provider::Mcp => None,
            provider => {
                let defined = provider.define(&tool, None).map_err(|why| why.to_string())?;
                Some(Arc::new(defined))
            }
        };
        Ok(ListedTool {
            kind: ToolKind::Mcp,
            risk: tool.risk(false),
            name: self.name.clone(),
            tool: Arc::new(tool),
            definition,
        })
    }
}

/// Parses the arguments of a call, given as JSON or as text.
fn read(call: &ToolCall) -> Result<Value, Failure> {
    let unreadable = |problem: String| Failure::new(Kind::InvalidArguments, problem);
    if let Some(problem) = &call.invalid_arguments {
        return Err(unreadable(problem.clone()));
    }
    let arguments = match &call.text {
        None => call.arguments.clone(),
        Some(text) => {
            let read = Arguments::read(text, call.reading.unwrap_or_default(), &Value::Null);
            read.map_err(|error| unreadable(error.to_string()))?.arguments
        }
    };
    serde_json::from_str(arguments.as_str()).map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Reading;

    async fn text(stub: &StubTools, call: ToolCall) -> String {
        stub.execute(call).await.unwrap().text()
    }

    #[tokio::test]
    async fn outcomes_come_in_order_and_the_last_one_repeats() {
        let stub = StubTools::new()
            .fails("db__query", "busy")
            .answers("db__query", "one")
            .answers("db__query", "two");
        for expected in ["busy", "one", "two", "two"] {
            assert_eq!(text(&stub, ToolCall::new("db__query")).await, expected);
        }
        assert_eq!(stub.calls().len(), 4);
    }

    #[tokio::test]
    async fn a_name_that_is_no_tools_is_refused_and_recorded() {
        let stub = StubTools::new().answers("a", "one");
        let reply = stub.execute(ToolCall::new("b").id("c1")).await.unwrap();
        assert_eq!(reply.outcome.kind(), Kind::UnknownTool);
        assert_eq!((reply.id.as_str(), stub.calls()[0].name.as_str()), ("c1", "b"));
    }

    #[tokio::test]
    async fn a_models_text_is_recorded_as_the_arguments_it_means() {
        let stub = StubTools::new().answers("a", "one");
        let call = || ToolCall::new("a").text("team: payments");
        text(&stub, call().reading(Reading::Cascade)).await;
        assert_eq!(stub.calls()[0].arguments, json!({"team": "payments"}));
        let refused = stub.execute(call()).await.unwrap();
        assert_eq!(refused.outcome.kind(), Kind::InvalidArguments);
        assert_eq!(stub.calls().len(), 1);
    }

    #[tokio::test]
    async fn tools_are_listed_for_the_provider_with_their_descriptions() {
        let schema = json!({"type": "object", "properties": {"zone": {"type": "string"}}});
        let stub = StubTools::new()
            .describes("now", "Tells the time.", schema)
            .answers("now", "noon");
        let mcp = stub.list_tools().await.unwrap().definitions();
        assert_eq!(mcp[0]["inputSchema"]["properties"]["zone"]["type"], "string");
        let openai = stub.clone().provider(Provider::OpenAi).list_tools().await.unwrap();
        assert_eq!(openai.definitions()[0]["function"]["description"], "Tells the time.");
    }

    #[tokio::test]
    async fn a_closed_stub_takes_no_calls_and_neither_do_its_clones() {
        let stub = StubTools::new().answers("a", "one");
        stub.clone().close().await;
        assert_eq!(stub.execute(ToolCall::new("a")).await, Err(Closed));
        assert!(stub.list_tools().await.is_err());
    }
}
