//! Calls and requests that are passed on for a client of the program: how, and what the server answered.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, value::RawValue};

use super::{context::CallContext, error::CallError, present, tool_call::ToolCall};
use crate::{
    config::{OutputCheck, Policy},
    deadline::Deadline,
    mask::{Counts, Masker},
    outcome::{Answer, Failure, ForwardedResult, Outcome, Reply, sanitize_error},
    server::Server,
    session::{Fault, PassOn},
    transport::{RpcError, URL_ELICITATION_REQUIRED},
};

/// What a server answered to a request that was passed on. Secrets in it are masked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Forwarded {
    /// The `result` of the response.
    Result(ForwardedResult),
    /// The `error` of the response.
    Error {
        /// The code.
        code: i64,
        /// The message.
        message: String,
        /// Further data about the error.
        data: Option<Value>,
    },
    /// Pegboard refused the request, or its outcome is unknown.
    Failed(Failure),
}

impl Forwarded {
    /// Returns the result, if there is one.
    pub fn result(&self) -> Option<&ForwardedResult> {
        match self {
            Self::Result(result) => Some(result),
            Self::Error { .. } | Self::Failed(_) => None,
        }
    }
}

/// How a request is passed on.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Forwarding {
    /// Further params of a tool call, a JSON object: `inputResponses`, `requestState`, `task`, and fields of extensions. Its fields `name`,
    /// `arguments` and `_meta` are ignored.
    pub params: Option<Arc<RawValue>>,
    /// The client capabilities that are declared with this request to a server of the newest era, a JSON object. Without them, those of the
    /// view's host are declared.
    pub capabilities: Option<Arc<RawValue>>,
    /// Whether a result that asks for input is returned, instead of being answered by the view's host.
    pub returns_input_requests: bool,
    /// Whether a task is returned as soon as the server has created it, instead of being polled until it ends.
    pub returns_tasks: bool,
}

impl Forwarding {
    /// Passes requests on with the capabilities of the view's host, which answers requests for input, and waits for tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets further params of a tool call.
    #[must_use]
    pub fn params(mut self, params: impl Into<Arc<RawValue>>) -> Self {
        self.params = Some(params.into());
        self
    }

    /// Sets the client capabilities.
    #[must_use]
    pub fn capabilities(mut self, capabilities: impl Into<Arc<RawValue>>) -> Self {
        self.capabilities = Some(capabilities.into());
        self
    }

    /// Returns results that ask for input.
    #[must_use]
    pub fn returns_input_requests(mut self) -> Self {
        self.returns_input_requests = true;
        self
    }

    /// Returns tasks as soon as they are created.
    #[must_use]
    pub fn returns_tasks(mut self) -> Self {
        self.returns_tasks = true;
        self
    }
}

/// One call while it is passed on.
#[derive(Debug)]
pub(crate) struct ForwardedCall<'a> {
    forwarding: &'a Forwarding,
    /// The error response of the server, set when the call ends with one.
    error: OnceLock<Box<RpcError>>,
}

impl<'a> ForwardedCall<'a> {
    pub(crate) fn new(forwarding: &'a Forwarding) -> Self {
        Self {
            forwarding,
            error: OnceLock::new(),
        }
    }

    pub(super) fn pass_on(&self, keeps_raw: bool) -> PassOn<'a> {
        self.forwarding.pass_on(keeps_raw)
    }

    /// Takes note of the error with which the call ends.
    pub(super) fn note(&self, context: &CallContext<'_>, error: &CallError) {
        if let CallError::Fault(fault) = error
            && let Some(error) = forwarded_error(fault, context.server())
        {
            // A call ends once.
            let _ = self.error.set(Box::new(error));
        }
    }

    /// Returns what the server answered, by the record of the call.
    pub(crate) fn finish(self, reply: Reply) -> Forwarded {
        if let Some(error) = self.error.into_inner() {
            return Forwarded::of_error(*error);
        }
        match reply.outcome {
            Outcome::Done(answer) => Forwarded::Result(of_answer(answer, false)),
            Outcome::ToolFailed(answer) => Forwarded::Result(of_answer(answer, true)),
            Outcome::Refused(failure) | Outcome::Lost(failure) => Forwarded::Failed(failure),
        }
    }
}

impl Forwarding {
    pub(crate) fn pass_on(&self, keeps_raw: bool) -> PassOn<'_> {
        PassOn {
            params: self.params.as_deref(),
            capabilities: self.capabilities.as_deref(),
            returns_input_requests: self.returns_input_requests,
            returns_tasks: self.returns_tasks,
            keeps_raw,
        }
    }
}

impl Forwarded {
    pub(crate) fn of_error(error: RpcError) -> Self {
        Self::Error {
            code: error.code,
            message: error.message,
            data: error.data,
        }
    }
}

/// Returns whether the result of a call stays unparsed: if it is passed on, and no rule needs its parts.
pub(super) fn keeps_raw(context: &CallContext<'_>, call: &ToolCall) -> bool {
    let (view, policy) = (context.view, &context.config.policy);
    let is_checked = policy.output_check != OutputCheck::Off && context.tool().output_schema.is_some();
    context.forwarded.is_some()
        && view.result_options.are_whole()
        && !view.hooks.see_replies()
        && call.key.is_none()
        && !is_checked
}

/// Whether invisible characters are removed from the texts of a server.
fn sanitizes(policy: &Policy) -> bool {
    policy.result.clean && !policy.trust
}

/// Returns the error response in a fault, masked.
pub(crate) fn forwarded_error(fault: &Fault, server: &Server) -> Option<RpcError> {
    let mut error = fault.rpc_error()?.clone();
    let masker = server.masker().current();
    if error.code == URL_ELICITATION_REQUIRED
        && let Some(data) = &mut error.data
    {
        mask_pages(data, &masker);
    }
    if sanitizes(&server.config_snapshot().policy) {
        sanitize_error(&mut error.message, error.data.as_mut());
    }
    Some(error)
}

/// Masks the data of an error that sends the user to pages. In their URLs only known secrets are masked, because a pattern match would break
/// them.
fn mask_pages(data: &mut Value, masker: &Masker) {
    let take = |page: &mut Value| (page["url"].take(), page["elicitationId"].take());
    let mut pages: Vec<(Value, Value)> = match data.get_mut("elicitations") {
        Some(Value::Array(pages)) if pages.iter().all(Value::is_object) => pages.iter_mut().map(take).collect(),
        _ => Vec::new(),
    };
    masker.mask_value(data, &mut Counts::default());
    if let Some(Value::Array(masked)) = data.get_mut("elicitations") {
        for (page, (url, id)) in masked.iter_mut().zip(&mut pages) {
            masker.known_only().mask_value(url, &mut Counts::default());
            (page["url"], page["elicitationId"]) = (url.take(), id.take());
        }
    }
}

/// Masks the result of a request that was passed on, on a blocking thread if it is long.
pub(crate) async fn mask_forwarded(
    result: ForwardedResult,
    server: &Server,
    deadline: Deadline,
) -> Result<ForwardedResult, Failure> {
    let answer = Answer {
        raw: Some(Box::new(result)),
        ..Answer::from_content([])
    };
    let policy = &server.config_snapshot().policy;
    let masked = present::mask(Outcome::Done(answer), sanitizes(policy), server, deadline);
    match masked.await {
        (Outcome::Done(Answer { raw: Some(raw), .. }), _) => Ok(*raw),
        (Outcome::Done(answer) | Outcome::ToolFailed(answer), _) => Ok(of_answer(answer, false)),
        (Outcome::Refused(failure) | Outcome::Lost(failure), _) => Err(failure),
    }
}

/// The result in an answer: unparsed, or written from its parts.
fn of_answer(answer: Answer, is_error: bool) -> ForwardedResult {
    if let Some(raw) = answer.raw {
        return *raw;
    }
    let mut result = Map::new();
    result.insert(
        "content".to_owned(),
        serde_json::to_value(&answer.content).unwrap_or_default(),
    );
    if let Some(structured) = answer.structured {
        result.insert("structuredContent".to_owned(), structured);
    }
    if is_error {
        result.insert("isError".to_owned(), true.into());
    }
    if let Some(meta) = answer.meta {
        result.insert("_meta".to_owned(), meta.into());
    }
    ForwardedResult::written(Value::Object(result).to_string(), is_error)
}
