//! The reply of a call as a response, and its shape.

use axum::response::Response;
use http::{StatusCode, header::RETRY_AFTER};
use pegboard::{
    Advice, Failure, Kind, Outcome, Reply, ServerName,
    diagnosis::{Code, Diagnosis},
    serde_json::{Map, Value},
};
use schemars::JsonSchema;

use super::{
    documents::json,
    problem::{retry_after, status_of},
    state::ApiState,
};
use crate::sign_in_waits::route_hint;

/// The reply of a call, with the status of its kind. A tool's own error has status 200.
pub(super) fn response(api: &ApiState, reply: &Reply) -> Response {
    let status = match (&reply.outcome, status_of(reply.outcome.kind())) {
        (Outcome::Refused(failure), _) if needs_change(api, failure, reply.server.as_ref()) => StatusCode::CONFLICT,
        // Programs repeat a request after 503 on their own, and this one may have run.
        (Outcome::Lost(_), StatusCode::SERVICE_UNAVAILABLE) => StatusCode::BAD_GATEWAY,
        (_, status) => status,
    };
    with_status(api, status, reply)
}

/// Whether a server is unavailable until somebody changes something, so that it is no use to repeat the call: it is disabled, its config is wrong,
/// or its command does not exist.
pub(super) fn needs_change(api: &ApiState, failure: &Failure, server: Option<&ServerName>) -> bool {
    failure.kind == Kind::Unavailable
        && (failure.retry_after.is_none() || failure.advice == Some(Advice::Useless))
        // Everything is unavailable while the daemon stops. Another one may be there in a moment.
        && !api.monitor.is_draining()
        && server.is_some_and(|server| api.board.has_server(server.as_str()))
}

/// The reply of a call, with another status.
pub(super) fn with_status(api: &ApiState, status: StatusCode, reply: &Reply) -> Response {
    let is_for_person = status == StatusCode::CONFLICT;
    let mut response = match sign_in_hint(api, reply) {
        None if !is_for_person => json(status, reply),
        hint => {
            let mut document = serde_json::to_value(reply).unwrap_or_default();
            if let Some(hint) = hint {
                document["hint"] = hint.into();
            }
            // The start is tried again, and fails again until a person has acted.
            if let Some(outcome) = document["outcome"].as_object_mut().filter(|_| is_for_person) {
                outcome.remove("retry_after_ms");
            }
            json(status, &document)
        }
    };
    if !is_for_person
        && let Outcome::Refused(failure) = &reply.outcome
        && let Some(wait) = retry_after(status, failure.retry_after)
    {
        response.headers_mut().insert(RETRY_AFTER, wait);
    }
    response
}

/// How the user signs in, if the call failed for lack of that.
pub(super) fn sign_in_hint(api: &ApiState, reply: &Reply) -> Option<String> {
    let Outcome::Refused(failure) = &reply.outcome else {
        return None;
    };
    if failure.kind != Kind::NeedsAuth {
        return None;
    }
    let named = || {
        reply
            .name
            .split_once('.')
            .and_then(|(server, _)| ServerName::parse(server).ok())
    };
    let server = reply.server.clone().or_else(named)?;
    route_hint(api.sign_in_links.as_ref(), &server)
}

/// The record of one call: what was called, how it ended, and what it cost. It is written by [`Reply`].
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Reply")]
#[expect(dead_code, reason = "describes the JSON of another type")]
pub(super) struct ReplyDocument {
    /// The caller's id for the call, or a generated one.
    id: String,
    /// `server.tool`, or the name as written if it is unknown.
    name: String,
    server: Option<ServerName>,
    /// The tool as its server calls it.
    tool: Option<String>,
    status: CallStatus,
    is_error: bool,
    /// The text for a model.
    text: String,
    /// The content blocks of MCP.
    content: Vec<Value>,
    /// The structured result.
    structured: Value,
    outcome: OutcomeDocument,
    /// What an operator can do about a failure.
    hint: Option<String>,
    /// Whether the text may come from a server that the config does not trust.
    untrusted: bool,
    warnings: Vec<String>,
    /// How a misspelt name was understood.
    #[schemars(skip_serializing_if = "Option::is_none")]
    repaired: Option<String>,
    /// The `_meta` of the result.
    #[schemars(skip_serializing_if = "Option::is_none")]
    meta: Option<Map<String, Value>>,
    /// The name as the caller wrote it, if it is another one.
    #[schemars(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
}

/// How a call ended.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes the JSON of another type")]
enum CallStatus {
    /// The tool succeeded.
    Done,
    /// The tool reported an error.
    ToolFailed,
    /// Nothing ran.
    Refused,
    /// It may have run.
    Lost,
}

/// How a call ended, and what it cost.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Outcome")]
#[expect(dead_code, reason = "describes the JSON of another type")]
struct OutcomeDocument {
    kind: Kind,
    may_have_executed: bool,
    attempts: u32,
    latency_ms: f64,
    queued_ms: f64,
    masked: u64,
    truncated: bool,
    original_bytes: u64,
    /// The handle of a result that was too long.
    handle: Option<String>,
    cached: bool,
    /// After how long the call may be repeated.
    #[schemars(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<f64>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    error_code: Option<i64>,
    /// What failed, in words for people. The text of the reply is the same if this is absent.
    #[schemars(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What a model should do next, such as `later`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// The stable word for what is wrong, such as `connection-refused`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
    /// What is wrong, as data.
    #[schemars(skip_serializing_if = "Option::is_none")]
    diagnosis: Option<Diagnosis>,
}
