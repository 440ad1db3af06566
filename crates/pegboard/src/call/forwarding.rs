//! How a request is passed on for a client of the program, and what the server answered.

use std::sync::{Arc, OnceLock};

use pegboard_protocol::RpcError;
use serde_json::{Value, value::RawValue};

use pegboard_base::telemetry::Parent;
use pegboard_client::{session::PassOn, transport::ServerError};
use pegboard_tools::outcome::{Failure, ForwardedResult};

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
    /// Whether the client answers requests that the server sends during the request. A server that speaks both eras over HTTP is then spoken to
    /// in the older one, the only one in which it can send them, unless its config names an era. The session for that is opened when it is first needed.
    pub answers_requests: bool,
    /// The id that a host sees as [`Caller::call`](crate::Caller::call) when the server asks during a request that is no tool call. Without it, one is
    /// generated; a tool call has its own.
    pub id: Option<String>,
    /// What the program has decided about the trace of a request that is no tool call.
    pub parent: Parent,
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

    /// Sets the id of a request that is no tool call.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns results that ask for input.
    #[must_use]
    pub fn returns_input_requests(mut self) -> Self {
        self.returns_input_requests = true;
        self
    }

    /// Speaks to servers in the era in which they can send requests to the client.
    #[must_use]
    pub fn answers_requests(mut self) -> Self {
        self.answers_requests = true;
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
    error: OnceLock<Box<ServerError>>,
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

    /// Whether the client answers requests that the server sends.
    pub(super) fn answers_requests(&self) -> bool {
        self.forwarding.answers_requests
    }

    /// Sets the error response with which the call ends.
    pub(super) fn set_error(&self, error: ServerError) {
        // A call ends once.
        let _ = self.error.set(Box::new(error));
    }

    /// The error response with which the call has ended.
    pub(super) fn into_error(self) -> Option<ServerError> {
        self.error.into_inner().map(|error| *error)
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
    pub(crate) fn from_error(error: ServerError) -> Self {
        let RpcError {
            code, message, data, ..
        } = error.error;
        Self::Error { code, message, data }
    }
}
