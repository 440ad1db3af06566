//! [`RequestInfo`]: what the log and the access log know of a request.

use std::sync::{Arc, OnceLock};

use pegboard::telemetry::{RequestTag, SpanId, TraceId};
use pegboard_protocol::{RpcError, method};

use super::message::Request;

/// The longest method or name that is noted, in bytes. A client may write any.
const MAX_TEXT: usize = 128;

/// What the log and the access log know of a request. Clones share the notes.
#[derive(Clone, Debug)]
pub(crate) struct RequestInfo {
    pub(crate) tag: RequestTag,
    /// Whether it is not sent on to another replica: it came from one, or by the socket of this machine.
    pub(crate) stays_here: bool,
    /// `None` unless there is an access log.
    pub(crate) notes: Option<Arc<RequestNotes>>,
}

/// What is found out about a request of HTTP while it is handled. Of several messages in one request, those of the first one are kept.
#[derive(Debug, Default)]
pub(crate) struct RequestNotes {
    pub(crate) message: OnceLock<MessageNotes>,
    /// The kind of failure, or the code of an error.
    pub(crate) failure: OnceLock<Box<str>>,
}

/// What the message of a request says.
#[derive(Debug)]
pub(crate) struct MessageNotes {
    pub(crate) method: Box<str>,
    /// The tool of a call.
    pub(crate) tool: Option<Box<str>>,
    pub(crate) span: Option<(TraceId, SpanId)>,
}

impl RequestInfo {
    /// Notes what a message says, if something wants to know it. `span` is the one that was opened for it.
    pub(super) fn note_message(&self, request: &Request, span: Option<(TraceId, SpanId)>) {
        if let Some(notes) = &self.notes {
            let is_call = &*request.method == method::TOOLS_CALL;
            let tool = is_call.then(|| request.params.text("name")).flatten();
            // The first message of a batch decides.
            let _ = notes.message.set(MessageNotes {
                method: shorten(&request.method).into(),
                tool: tool.map(|tool| shorten(&tool).into()),
                span: span.or(self.tag.span()),
            });
        }
    }

    /// Notes that a result tells of a failure.
    pub(super) fn note_failure(&self, kind: &str) {
        if let Some(notes) = &self.notes {
            let _ = notes.failure.set(kind.into());
        }
    }

    /// Notes that the response is an error.
    pub(super) fn note_error(&self, error: &RpcError) {
        if self.notes.is_some() {
            self.note_failure(&error.code.to_string());
        }
    }
}

impl Default for RequestInfo {
    fn default() -> Self {
        Self {
            tag: RequestTag::new(None),
            stays_here: true,
            notes: None,
        }
    }
}

fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}
