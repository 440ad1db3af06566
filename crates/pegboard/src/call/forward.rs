//! The types of the raw path: how a request is passed on, and what the server answered.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use serde_json::{Value, value::RawValue};

use crate::outcome::Failure;

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

/// The `result` of a response: a JSON object as the server wrote it, except that secrets are masked and, unless the server is trusted,
/// invisible characters are removed.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedResult {
    pub(crate) json: Bytes,
    pub(crate) kind: ResultKind,
    pub(crate) has_result_type: bool,
    pub(crate) is_error: bool,
}

/// What a result is, by its `resultType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ResultKind {
    /// The final result of the request.
    #[default]
    Complete,
    /// A request for input. The same request is sent again with the input in `inputResponses` and the `requestState` of this result.
    InputRequired,
    /// A task that the server runs in the background.
    Task,
}

impl ForwardedResult {
    /// The JSON object. It may have line breaks between its tokens.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the JSON object. A long one is a part of the server's message and holds its share of the board's memory budget until it is
    /// dropped.
    pub fn into_bytes(self) -> Bytes {
        self.json
    }

    /// What the result is.
    pub fn kind(&self) -> ResultKind {
        self.kind
    }

    /// Whether the object has the field `resultType`, as servers of the newest era write it.
    pub fn has_result_type(&self) -> bool {
        self.has_result_type
    }

    /// Whether it is the result of a tool that failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }
}

impl fmt::Debug for ForwardedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardedResult")
            .field("bytes", &self.json.len())
            .field("kind", &self.kind)
            .field("has_result_type", &self.has_result_type)
            .field("is_error", &self.is_error)
            .finish()
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
