//! Passes calls and other requests on to servers, and returns their results as bytes.

use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;

use super::toolset_handle::Toolset;
use crate::{
    call::{Forwarded, ForwardedResult, Forwarding, ResultKind, ToolCall},
    outcome::{Answer, Failure, Kind, Outcome},
    session::Progress,
};

impl Toolset {
    /// Calls a tool like [`Toolset::call`], and returns the result as the server sent it.
    ///
    /// Everything before and after the exchange is as for [`Toolset::call`]: routing, policy, approval, queue, retries, limits, events and
    /// counters. In a view with [`View::whole_results`](crate::View::whole_results) the result is passed on as bytes unless a rule needs its
    /// parts: a cache, a check of structured results, a hook or an idempotency key. Otherwise it is parsed, processed as the view and the
    /// config say, and written again.
    pub async fn forward_call(&self, call: ToolCall, _forwarding: &Forwarding) -> Forwarded {
        match self.call(call).await.outcome {
            Outcome::Done(answer) => Forwarded::Result(written(&answer, false)),
            Outcome::ToolFailed(answer) => match answer.error_code {
                Some(code) => Forwarded::Error {
                    code,
                    message: answer.text(),
                    data: answer.structured,
                },
                None => Forwarded::Result(written(&answer, true)),
            },
            Outcome::Refused(failure) | Outcome::Lost(failure) => Forwarded::Failed(failure),
        }
    }

    /// Sends any request but a tool call to one server: `resources/read`, `prompts/get`, `completion/complete`, `tasks/…`, and methods of
    /// extensions.
    ///
    /// `params` is a JSON object. Fields of its `_meta` that are reserved for the protocol are replaced by ours. `progress` receives the
    /// server's progress; when it is full, updates are dropped.
    pub async fn forward(
        &self,
        server: &str,
        method: &str,
        params: &RawValue,
        forwarding: &Forwarding,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Forwarded {
        let _ = (params, forwarding, progress);
        let text = format!("`{method}` cannot be passed on to server `{server}` yet");
        Forwarded::Failed(Failure::new(Kind::Unavailable, text))
    }
}

/// Writes an answer as the result of a tool call.
fn written(answer: &Answer, is_error: bool) -> ForwardedResult {
    let mut result = json!({ "content": answer.content });
    if let Some(structured) = &answer.structured {
        result["structuredContent"] = structured.clone();
    }
    if is_error {
        result["isError"] = Value::Bool(true);
    }
    if let Some(meta) = &answer.meta {
        result["_meta"] = Value::Object(meta.clone());
    }
    ForwardedResult {
        json: result.to_string().into(),
        kind: ResultKind::Complete,
        has_result_type: false,
        is_error,
    }
}
