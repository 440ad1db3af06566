//! [`Problem`]: an error as `application/problem+json`.

use std::{borrow::Cow, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use pegboard::{
    Failure, Kind,
    diagnosis::{Code, Diagnosis},
};
use schemars::JsonSchema;
use serde::Serialize;

/// After how many seconds a client should try again if nothing says when.
const RETRY_LATER: u64 = 1;

/// An error of the API. Boxed, so that results that may be one stay small.
#[derive(Debug)]
pub(crate) struct Problem(Box<ProblemDocument>);

/// An error as RFC 9457 describes it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemDocument {
    /// Always `about:blank`: the status and `kind` say what it is.
    #[serde(rename = "type")]
    about: &'static str,
    /// The name of the status.
    title: Cow<'static, str>,
    /// The status of the response.
    status: u16,
    /// What is wrong with this request.
    detail: String,
    /// The kind of failure, as in the replies of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The stable word for what is wrong, such as `connection-refused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
    /// What is wrong, as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnosis: Option<Box<Diagnosis>>,
    /// The server that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// What is wrong with single settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<SettingError>,
    #[serde(skip)]
    retry_after: Option<Duration>,
}

/// What is wrong with one setting.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettingError {
    /// The setting, such as `servers.github.url`.
    pub(crate) field: String,
    /// What is wrong.
    pub(crate) message: String,
    /// How to fix it.
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Box::new(ProblemDocument {
            about: "about:blank",
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.into(),
            kind: None,
            hint: None,
            code: None,
            diagnosis: None,
            server: None,
            errors: Vec::new(),
            retry_after: None,
        }))
    }

    /// A server that does not exist, or that the caller does not see.
    pub(crate) fn no_server(name: &str) -> Self {
        let detail = format!("there is no server `{}`", name.escape_debug());
        Self::new(StatusCode::NOT_FOUND, detail).server(name)
    }

    /// The caller lacks a right.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail).kind(Kind::NotPermitted)
    }

    /// A server that is unavailable until somebody changes something. Such a response has no `Retry-After`.
    pub(crate) fn needs_change(failure: Failure) -> Self {
        Self::from_failure(StatusCode::CONFLICT, failure)
    }

    /// A change that is not made because the audit log, which is required, cannot be written.
    pub(crate) fn unrecorded(failure: Failure) -> Self {
        Self::from_failure(StatusCode::SERVICE_UNAVAILABLE, failure)
    }

    /// A failure of the library, with this status.
    fn from_failure(status: StatusCode, failure: Failure) -> Self {
        let mut problem = Self::new(status, failure.message).kind(failure.kind);
        problem.0.hint = failure.hint;
        problem.0.code = failure.diagnosis.as_ref().map(|diagnosis| diagnosis.code);
        problem.0.diagnosis = failure.diagnosis;
        problem
    }

    #[must_use]
    pub(crate) fn kind(mut self, kind: Kind) -> Self {
        self.0.kind = Some(kind);
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn server(mut self, server: impl Into<String>) -> Self {
        self.0.server = Some(server.into());
        self
    }

    #[must_use]
    pub(crate) fn errors(mut self, errors: Vec<SettingError>) -> Self {
        self.0.errors = errors;
        self
    }

    /// What is wrong with the request.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }
}

/// The status of a call that ended in this way.
pub(crate) fn status_of(kind: Kind) -> StatusCode {
    match kind {
        Kind::Ok | Kind::ToolError => StatusCode::OK,
        Kind::UnknownTool => StatusCode::NOT_FOUND,
        Kind::InvalidArguments => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::NotPermitted => StatusCode::FORBIDDEN,
        Kind::LimitExceeded => StatusCode::TOO_MANY_REQUESTS,
        Kind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Kind::NeedsAuth | Kind::Transport | Kind::Internal => StatusCode::BAD_GATEWAY,
        // The others are states of a server that may pass.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The header that says when to try again, in whole seconds.
pub(crate) fn retry_after(status: StatusCode, wait: Option<Duration>) -> Option<HeaderValue> {
    let is_refusal = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let seconds = wait.map(|wait| wait.as_millis().div_ceil(1000).max(1));
    let seconds = seconds.map(|seconds| u64::try_from(seconds).unwrap_or(u64::MAX));
    seconds.or(is_refusal.then_some(RETRY_LATER)).map(HeaderValue::from)
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let status = match status_of(failure.kind) {
            StatusCode::OK => StatusCode::BAD_GATEWAY,
            status => status,
        };
        let retry_after = failure.retry_after;
        let mut problem = Self::from_failure(status, failure);
        problem.0.retry_after = retry_after;
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = retry_after(status, self.0.retry_after) {
            headers.insert(RETRY_AFTER, wait);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_status_and_none_is_500() {
        for (kind, status) in [
            ("ok", 200),
            ("tool_error", 200),
            ("unknown_tool", 404),
            ("invalid_arguments", 422),
            ("not_permitted", 403),
            ("limit_exceeded", 429),
            ("unavailable", 503),
            ("restart_in_progress", 503),
            ("restart_failed", 503),
            ("needs_auth", 502),
            ("transport", 502),
            ("timeout", 504),
            ("cancelled", 503),
            ("internal", 502),
        ] {
            assert_eq!(status_of(kind.parse().unwrap()).as_u16(), status, "{kind}");
        }
    }

    #[test]
    fn a_wait_is_rounded_up_and_a_refusal_always_has_one() {
        let after = |status, wait| retry_after(status, wait).map(|value| value.to_str().unwrap().to_owned());
        let wait = Some(Duration::from_millis(1001));
        assert_eq!(after(StatusCode::TOO_MANY_REQUESTS, wait).as_deref(), Some("2"));
        assert_eq!(
            after(StatusCode::TOO_MANY_REQUESTS, Some(Duration::ZERO)).as_deref(),
            Some("1")
        );
        assert_eq!(after(StatusCode::SERVICE_UNAVAILABLE, None).as_deref(), Some("1"));
        assert_eq!(after(StatusCode::NOT_FOUND, None), None);
    }
}
