//! Passes any request on to the server, and returns its result unparsed.

use std::borrow::Cow;

use pegboard_protocol::meta;
use serde_json::value::RawValue;

use super::{
    call_result::CallResult,
    fault::Fault,
    host::OnBehalf,
    input_rounds::{FinalResponse, RoundsRequest},
    json_rpc::Params,
    mcp_session::Session,
    pass_on::{self, PassOn},
    patience::Patience,
    progress::{ProgressSink, ProgressSubscription},
};
use pegboard_base::json_scan::Scan;
use pegboard_tools::outcome::ForwardedResult;

/// A request that is passed on.
#[derive(Debug)]
pub struct ForwardRequest<'a> {
    /// The JSON-RPC method.
    pub method: &'a str,
    /// The params are those of the client, with its `_meta`.
    pub pass_on: PassOn<'a>,
    /// The idle timeout and deadline for the response.
    pub patience: Patience,
    /// The caller, and the host that answers what the server asks meanwhile.
    pub on_behalf: OnBehalf<'a>,
    /// Receives progress notifications, if the caller wants them.
    pub progress: Option<ProgressSink>,
    /// Fields of `_meta` that stand for those of the client.
    pub meta: &'a [(&'static str, String)],
}

impl Session {
    /// Passes a request on and returns its result unparsed and unmasked. Faults are masked. Dropping the future cancels the request.
    pub async fn forward(&self, request: ForwardRequest<'_>) -> Result<ForwardedResult, Fault> {
        let about = request.pass_on.params.and_then(about);
        let progress = |sink| ProgressSubscription::new(self.connection.dispatcher().progress(), sink);
        let mut request = RoundsRequest {
            method: Cow::Owned(request.method.to_owned()),
            about: about.as_deref(),
            mirrored: Vec::new(),
            patience: request.patience,
            on_behalf: request.on_behalf,
            in_flight: self.register(request.on_behalf),
            progress: request.progress.map(progress),
            meta: meta(request.pass_on.params, request.meta),
            as_task: false,
            pass_on: PassOn {
                keeps_raw: true,
                // Only calls of tools can be polled here.
                returns_tasks: true,
                ..request.pass_on
            },
        };
        let response = self.send_in_rounds::<CallResult>(&mut request, Params::default).await;
        request.complete_if(&response);
        match response.map_err(|fault| fault.into_masked(self.masker()))? {
            FinalResponse::Result(CallResult { raw: Some(raw), .. }) => Ok(*raw),
            FinalResponse::Result(_) | FinalResponse::Task(_) => Err(Fault::unreadable("the result is no object")),
        }
    }
}

/// The name or URI of the item that a request is about.
fn about(params: &RawValue) -> Option<String> {
    let mut found = None;
    pass_on::each_field(params, |key, value| {
        if matches!(key, "name" | "uri" | "taskId") && found.is_none() {
            found = Scan::new(value.as_bytes()).text().map(Cow::into_owned);
        }
    });
    found
}

/// The client's fields of `_meta` with `own` ones in place of those of the same name, as JSON without braces. Fields that are reserved for the
/// protocol are left out.
fn meta(params: Option<&RawValue>, own: &[(&'static str, String)]) -> String {
    let mut out = Params::default();
    // The state is part of the parent.
    let is_own = |key: &str| {
        let key = if key == "tracestate" { meta::TRACEPARENT } else { key };
        own.iter().any(|(name, _)| *name == key)
    };
    let mut copy = |key: &str, value: &str| {
        if key == "_meta"
            && let Ok(meta) = serde_json::from_str::<&RawValue>(value)
        {
            pass_on::each_field(meta, |key, value| {
                if !meta::is_reserved(key) && !is_own(key) {
                    out.push_raw(key, value);
                }
            });
        }
    };
    if let Some(params) = params {
        pass_on::each_field(params, &mut copy);
    }
    own.iter()
        .fold(out, |out, (name, text)| out.with(name, text))
        .into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_meta_is_passed_on_without_what_the_protocol_reserves() {
        let params = r#"{"uri":"a:\"b","_meta":{"progressToken":7,"traceparent":"00-x","io.modelcontextprotocol/logLevel":"info","x":{"y":[1]}}}"#;
        let params = RawValue::from_string(params.to_owned()).unwrap();
        assert_eq!(meta(Some(&params), &[]), r#""traceparent":"00-x","x":{"y":[1]}"#);
        let own = [("traceparent", "00-y".to_owned())];
        assert_eq!(meta(Some(&params), &own), r#""x":{"y":[1]},"traceparent":"00-y""#);
        assert_eq!(meta(None, &own), r#""traceparent":"00-y""#);
        assert_eq!(about(&params).as_deref(), Some("a:\"b"));
    }
}
