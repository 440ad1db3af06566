//! [`StubTools`]: a test double with scripted replies for tests of agent loops, without servers or processes.

use pegboard_base::BoxFuture;
use std::{collections::VecDeque, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    executor::ToolExecutor,
    listing::{InvalidTool, ListedTool, Listing, Unavailable},
};
use crate::{
    call::{self, ToolCall},
    server::Outage,
};
use pegboard_base::{diagnosis::Code, name::ServerName, sync::Mutex};
use pegboard_client::session::Progress;
use pegboard_tools::{
    catalog::ListWarning,
    outcome::{Advice, Answer, Failure, Kind, Outcome, Reply},
    provider::Provider,
};

/// The most calls that are recorded.
const MAX_RECORDED: usize = 10_000;
/// The server of a tool whose name has none.
const NO_SERVER: &str = "stub";

/// A stand-in for a [`Toolset`](super::Toolset) in tests: it gives scripted replies and records the calls. Clones share their state, so a
/// test can keep one and hand the other to its agent.
///
/// It treats calls as a toolset does: a tool is found by every spelling of its name (`time.now`, `time__now`, `mcp__time__now`, `now`, …),
/// arguments are parsed and validated against the schema given to [`StubTools::describes`], and the refusals have the same words. Several
/// replies for one tool are used in the given order, and the last one repeats.
///
/// ```
/// use std::time::Duration;
///
/// use pegboard::{Kind, Outcome, Provider, ServerName, ToolCall, ToolExecutor, testing::{StubReply, StubTools}};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stub = StubTools::new()
///     .provider(Provider::OpenAi)
///     .describes("time.now", "Tells the time.", json!({
///         "type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]
///     }))
///     .answers("time.now", "noon")
///     .plays("mail.send", StubReply::from("sent").after(Duration::from_secs(30)))
///     .absent(ServerName::parse("github")?, "connection refused");
///
/// // The agent under test sees any `ToolExecutor`.
/// let tools: &dyn ToolExecutor = &stub;
/// let listing = tools.list(Duration::from_secs(1)).await;
/// assert_eq!((listing.definitions().len(), listing.unavailable.len()), (2, 1));
///
/// let call = ToolCall::new("time__now").arguments(json!({"zone": "UTC"}));
/// assert_eq!(tools.call(call).await.text(), "noon");
/// let invalid = tools.call(ToolCall::new("time__now")).await;
/// assert_eq!(invalid.outcome.kind(), Kind::InvalidArguments);
/// let late = tools.call(ToolCall::new("mail.send").timeout(Duration::from_secs(5))).await;
/// assert!(matches!(late.outcome, Outcome::Lost(_)));
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

/// A scripted reply of [`StubTools`]: an outcome, after a delay, with progress on the way.
#[derive(Debug, Clone)]
#[must_use]
pub struct StubReply {
    outcome: Outcome,
    delay: Duration,
    progress: Vec<Progress>,
}

impl StubReply {
    /// Sets how long the call takes, in tokio's time. A call with a shorter [`ToolCall::timeout`] is lost.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Adds a progress report. The reports are spread evenly over the delay.
    pub fn progress(mut self, done: f64, total: Option<f64>, message: impl Into<String>) -> Self {
        self.progress.push(Progress {
            progress: done,
            total,
            message: Some(message.into()),
        });
        self
    }

    /// Plays the delay and the progress.
    async fn play(self, call: &ToolCall) -> Outcome {
        let steps = u32::try_from(self.progress.len()).unwrap_or(u32::MAX);
        let pause = self.delay / steps.saturating_add(1);
        for report in self.progress {
            wait(pause).await;
            if let Some(progress) = &call.progress {
                let _ = progress.try_send(report);
            }
        }
        wait(pause).await;
        self.outcome
    }
}

impl From<Outcome> for StubReply {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            delay: Duration::ZERO,
            progress: Vec::new(),
        }
    }
}

impl From<Answer> for StubReply {
    fn from(answer: Answer) -> Self {
        Outcome::Done(answer).into()
    }
}

impl From<&str> for StubReply {
    fn from(text: &str) -> Self {
        Answer::from_text(text).into()
    }
}

#[derive(Debug, Default)]
struct StubState {
    provider: Provider,
    tools: Vec<StubTool>,
    absent: Vec<(ServerName, Outage)>,
    calls: Vec<StubCall>,
    is_closed: bool,
}

/// One tool and the replies to its calls.
#[derive(Debug)]
struct StubTool {
    server: String,
    tool: String,
    /// The name that the test gave it first.
    name: String,
    description: Option<String>,
    schema: Value,
    replies: VecDeque<StubReply>,
}

impl StubTools {
    /// A stub without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the provider that the tools are listed for.
    pub fn provider(self, provider: Provider) -> Self {
        self.0.lock().provider = provider;
        self
    }

    /// Describes a tool, named as `server.tool`, `server__tool` or `tool`. An undescribed tool takes any arguments.
    pub fn describes(self, name: &str, description: &str, schema: Value) -> Self {
        self.change(name, |tool| {
            (tool.description, tool.schema) = (Some(description.to_owned()), schema);
        })
    }

    /// The next call of the tool succeeds with this answer.
    pub fn answers(self, name: &str, answer: impl Into<Answer>) -> Self {
        self.ends(name, Outcome::Done(answer.into()))
    }

    /// The next call of the tool fails with this answer.
    pub fn fails(self, name: &str, answer: impl Into<Answer>) -> Self {
        self.ends(name, Outcome::ToolFailed(answer.into()))
    }

    /// The next call of the tool has this outcome.
    pub fn ends(self, name: &str, outcome: Outcome) -> Self {
        self.plays(name, outcome)
    }

    /// The next call of the tool gets this reply, with its delay and progress.
    pub fn plays(self, name: &str, reply: impl Into<StubReply>) -> Self {
        let reply = reply.into();
        self.change(name, |tool| tool.replies.push_back(reply))
    }

    /// Makes a server unavailable: the listing says why, and calls of its tools are refused.
    pub fn absent(self, server: ServerName, why: &str) -> Self {
        self.0.lock().absent.push((server, Outage::scripted(why)));
        self
    }

    /// The calls so far, in order. Calls that are refused because of their arguments are not among them.
    pub fn calls(&self) -> Vec<StubCall> {
        self.0.lock().calls.clone()
    }

    fn change(self, name: &str, change: impl FnOnce(&mut StubTool)) -> Self {
        change(self.0.lock().tool(name));
        self
    }
}

impl ToolExecutor for StubTools {
    fn list(&self, _patience: Duration) -> BoxFuture<'_, Listing> {
        let listing = self.0.lock().listing();
        Box::pin(std::future::ready(listing))
    }

    fn call(&self, mut call: ToolCall) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let started = Instant::now();
            let admitted = self.0.lock().admit(&mut call);
            let (reply, server, tool) = match admitted {
                Ok(admitted) => admitted,
                Err(failure) => return call.unanswered(Outcome::Refused(failure), started.elapsed()),
            };
            let outcome = match call.timeout {
                None => reply.play(&call).await,
                Some(timeout) => {
                    let played = tokio::time::timeout(timeout, reply.play(&call)).await;
                    played.unwrap_or_else(|_| timed_out(&call, timeout))
                }
            };
            let mut reply = call.unanswered(outcome, started.elapsed());
            reply.attempts = u32::from(!matches!(reply.outcome, Outcome::Refused(_)));
            reply.original_bytes = reply.text().len();
            (reply.server, reply.tool) = (ServerName::parse(&server).ok(), Some(tool));
            reply.warnings = call.notes;
            reply
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.0.lock().is_closed = true })
    }

    fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }
}

impl StubState {
    fn tool(&mut self, name: &str) -> &mut StubTool {
        let divided = name.split_once('.').or_else(|| name.split_once("__"));
        let (server, tool) = divided.unwrap_or((NO_SERVER, name));
        let at = self
            .tools
            .iter()
            .position(|known| known.server == server && known.tool == tool);
        let at = at.unwrap_or_else(|| {
            self.tools.push(StubTool {
                server: server.to_owned(),
                tool: tool.to_owned(),
                name: name.to_owned(),
                description: None,
                schema: json!({"type": "object"}),
                replies: VecDeque::new(),
            });
            self.tools.len() - 1
        });
        &mut self.tools[at]
    }

    fn listing(&self) -> Listing {
        let mut listing = Listing::from_tools([]);
        if self.is_closed {
            return listing.for_provider(self.provider);
        }
        for tool in &self.tools {
            match tool.listed(self.provider) {
                Ok(_) if self.outage(&tool.server).is_some() => {}
                Ok(listed) => listing.tools.push(listed),
                Err(problem) => listing.warn(ListWarning::new(Code::ToolLeftOut, problem.to_string())),
            }
        }
        let absent = self.absent.iter();
        listing.unavailable = absent
            .map(|(server, outage)| Unavailable::new(server.clone(), outage.describe()))
            .collect();
        listing.for_provider(self.provider)
    }

    fn outage(&self, server: &str) -> Option<&Outage> {
        let mut absent = self.absent.iter();
        absent
            .find(|(absent, _)| absent.as_str() == server)
            .map(|(_, outage)| outage)
    }

    /// Finds the tool, checks the arguments and records the call. Returns the reply to play, the server and the tool.
    fn admit(&mut self, call: &mut ToolCall) -> Result<(StubReply, String, String), Failure> {
        if self.is_closed {
            let message = "these tools are closed and take no more calls";
            return Err(Failure::new(Kind::Unavailable, message).advice(Advice::LeaveTools));
        }
        let written = call.name.clone();
        let at = match self.find(&written) {
            Ok(at) => at,
            Err(failure) => {
                self.record(call, written);
                return Err(failure);
            }
        };
        let listed = self.tools[at].listed(self.provider);
        let listed = listed.map_err(|problem| Failure::new(Kind::Internal, problem.to_string()))?;
        let mut listing = Listing::from_tools([listed]).for_provider(self.provider);
        let (Some(tool), None) = (listing.tools.pop(), listing.warnings.pop()) else {
            let message = format!("the stub cannot offer `{written}` to {}", self.provider);
            return Err(Failure::new(Kind::UnknownTool, message));
        };
        call::check_standalone(&tool.tool, tool.definition.as_deref(), call)?;
        self.record(call, written);
        let stub = &mut self.tools[at];
        if stub.server != NO_SERVER {
            let written = std::mem::replace(&mut call.name, tool.tool.dotted_name());
            call.asked.get_or_insert(written);
        }
        let next = match stub.replies.len() {
            0 | 1 => stub.replies.front().cloned(),
            _ => stub.replies.pop_front(),
        };
        let next = next.ok_or_else(|| {
            let message = format!("the stub has no reply for `{}`; give it one with `answers`", stub.name);
            Failure::new(Kind::Internal, message)
        })?;
        Ok((next, stub.server.clone(), stub.tool.clone()))
    }

    /// Finds a tool by any of its names.
    fn find(&self, name: &str) -> Result<usize, Failure> {
        let absent = self.absent.iter().find(|(server, _)| call::may_belong_to(name, server));
        if let Some((server, outage)) = absent {
            return Err(call::outage_failure(server.as_str(), outage));
        }
        let listed: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let pairs: Vec<_> = self
            .tools
            .iter()
            .map(|tool| (tool.server.as_str(), tool.tool.as_str()))
            .collect();
        let mut servers: Vec<ServerName> = pairs
            .iter()
            .filter_map(|(server, _)| ServerName::parse(server).ok())
            .collect();
        servers.sort();
        servers.dedup();
        let servers: Vec<&ServerName> = servers.iter().collect();
        let (at, _) = call::find_by_any_name(name, &listed, &pairs, &servers)?;
        match self.outage(&self.tools[at].server) {
            Some(outage) => Err(call::outage_failure(&self.tools[at].server, outage)),
            None => Ok(at),
        }
    }

    fn record(&mut self, call: &ToolCall, name: String) {
        if self.calls.len() < MAX_RECORDED {
            self.calls.push(StubCall {
                id: call.id.clone(),
                name,
                arguments: serde_json::from_str(call.arguments.as_str()).unwrap_or_default(),
            });
        }
    }
}

impl StubTool {
    fn listed(&self, provider: Provider) -> Result<ListedTool, InvalidTool> {
        let server = ServerName::parse(&self.server).map_err(|error| InvalidTool::new(error.to_string()))?;
        let (description, schema) = (self.description.clone(), self.schema.clone());
        // Most model APIs accept no dots in names.
        let name = match provider {
            Provider::Mcp => self.name.clone(),
            _ => self.name.replacen('.', "__", 1),
        };
        ListedTool::from_parts(&server, &self.tool, &name, description, schema)
    }
}

/// Sleeps, except for no time at all: an immediate reply needs no timer.
async fn wait(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

fn timed_out(call: &ToolCall, timeout: Duration) -> Outcome {
    let message = format!("`{}` gave no answer within {timeout:?}; it may have run", call.name);
    Outcome::Lost(Failure::new(Kind::Timeout, message).after_sending())
}

#[cfg(test)]
mod tests;
