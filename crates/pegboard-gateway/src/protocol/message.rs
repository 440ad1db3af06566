//! The messages of clients. They are parsed as an envelope with raw params, so that a payload is never parsed into a tree.

use std::sync::Arc;

use bytes::Bytes;
use pegboard::telemetry::Parent;
use pegboard_base::json_scan::Scan;
use pegboard_protocol::{RequestId, RpcError, code, rpc::Envelope};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::params::Params;

/// The limit on the length of a message, unless the wire has its own.
pub(crate) const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// The limit on the messages of a batch. Only 2025-03-26 has batches, and no client is known to send more than a few.
const MAX_BATCH: usize = 64;

/// The content of one line, body or frame.
#[derive(Debug)]
pub(crate) enum Incoming {
    One(Message),
    Batch(Vec<Result<Message, Broken>>),
}

#[derive(Debug)]
pub(crate) enum Message {
    Request(Request),
    Notification(Notification),
    /// The response to a question.
    Response {
        /// As in [`Request::id`], or `null`.
        id: RequestId,
        outcome: Result<Bytes, RpcError>,
    },
}

/// A request of a client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request {
    /// The id.
    pub id: RequestId,
    /// The method.
    pub method: Box<str>,
    /// The params.
    pub params: Params,
    /// The headers that repeat arguments of a tool, decoded, by their names in lower case after `Mcp-Param-`. `None` where requests have no such
    /// headers.
    pub(crate) mirrored: Option<Arc<Vec<(String, String)>>>,
    /// What is known of its trace.
    pub(crate) parent: Parent,
}

/// A notification of a client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Notification {
    /// The method.
    pub method: Box<str>,
    /// The params.
    pub params: Params,
}

/// An invalid message, with its id if that could be parsed.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: RpcError,
}

/// Parses one line, body or frame. Params and results are slices of it.
pub(crate) fn parse(bytes: &Bytes) -> Result<Incoming, Broken> {
    if let Some(request) = read_request(bytes) {
        return Ok(Incoming::One(Message::Request(request)));
    }
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
        return parse_one(bytes, bytes).map(Incoming::One);
    }
    let items: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|error| to_broken(&error))?;
    if items.is_empty() || items.len() > MAX_BATCH {
        let count = items.len();
        let message = format!("a batch has 1 to {MAX_BATCH} messages, this one has {count}");
        return Err(Broken::new(None, code::INVALID_REQUEST, message));
    }
    let items = items.into_iter().map(|item| parse_one(bytes, item.get().as_bytes()));
    Ok(Incoming::Batch(items.collect()))
}

/// Reads a request in one pass over its text. `None` for anything else, and for what has to be explained.
fn read_request(bytes: &Bytes) -> Option<Request> {
    std::str::from_utf8(bytes).ok()?;
    let mut scan = Scan::new(bytes);
    let (mut has_version, mut id, mut method, mut params) = (false, None, None, None);
    scan.fields(|scan, key| {
        let is_first = match key {
            "jsonrpc" => scan.text()? == "2.0" && !std::mem::replace(&mut has_version, true),
            "id" => {
                scan.peek();
                let start = scan.at();
                scan.skip_checked(1)?;
                let text = std::str::from_utf8(&bytes[start..scan.at()]).ok()?;
                id.replace(RequestId::parse(text).ok()?).is_none()
            }
            "method" => method.replace(Box::from(&*scan.text()?)).is_none(),
            "params" => params.replace(Params::read(scan, bytes)?).is_none(),
            _ => false,
        };
        is_first.then_some(())
    })?;
    (has_version && scan.is_at_end()).then_some(Request {
        id: id?,
        method: method?,
        params: params.unwrap_or_default(),
        mirrored: None,
        parent: Parent::Unknown,
    })
}

/// Parses one message, which is part of `whole`.
fn parse_one(whole: &Bytes, text: &[u8]) -> Result<Message, Broken> {
    let envelope: Envelope<'_> = serde_json::from_slice(text).map_err(|error| to_broken(&error))?;
    let is_version_2 = envelope.is_version_2();
    let (method, params) = (envelope.method, envelope.params);
    let id = match envelope.id {
        None => None,
        Some(id) if method.is_none() && id.get() == "null" => Some(RequestId::null()),
        Some(id) => Some(
            RequestId::parse(id.get()).map_err(|error| Broken::new(None, code::INVALID_REQUEST, error.to_string()))?,
        ),
    };
    if !is_version_2 {
        return Err(Broken::new(id, code::INVALID_REQUEST, "`jsonrpc` must be \"2.0\""));
    }
    let Some(method) = method else {
        let outcome = match (envelope.result, envelope.error) {
            (_, Some(error)) => Err(parse_error(error)),
            (Some(result), None) => Ok(whole.slice_ref(result.get().as_bytes())),
            (None, None) => {
                return Err(Broken::new(id, code::INVALID_REQUEST, "the message has no `method`"));
            }
        };
        let id = id.unwrap_or_else(RequestId::null);
        return Ok(Message::Response { id, outcome });
    };
    let params = match parse_params(whole, params) {
        Ok(params) => params,
        Err(error) => return Err(Broken { id, error }),
    };
    let method = method.into();
    Ok(match id {
        Some(id) => Message::Request(Request {
            id,
            method,
            params,
            mirrored: None,
            parent: Parent::Unknown,
        }),
        None => Message::Notification(Notification { method, params }),
    })
}

fn parse_params(whole: &Bytes, params: Option<&RawValue>) -> Result<Params, RpcError> {
    match params.map(RawValue::get) {
        None => Ok(Params::default()),
        Some(text) if text.starts_with('{') => Params::from_text(whole.slice_ref(text.as_bytes())),
        Some(_) => Err(RpcError::invalid_params("`params` must be an object")),
    }
}

/// The error of a response. What a client sends there is only shown, so anything is taken.
fn parse_error(error: &RawValue) -> RpcError {
    #[derive(Deserialize)]
    struct MessageFields {
        #[serde(default)]
        code: i64,
        #[serde(default)]
        message: String,
        data: Option<serde_json::Value>,
    }
    match serde_json::from_str::<MessageFields>(error.get()) {
        Ok(MessageFields { code, message, data }) => {
            let error = RpcError::new(code, message);
            match data {
                Some(data) => error.data(data),
                None => error,
            }
        }
        Err(_) => RpcError::new(
            code::INTERNAL_ERROR,
            "the client answered with an error that is no JSON-RPC error",
        ),
    }
}

impl Broken {
    fn new(id: Option<RequestId>, code: i64, message: impl Into<String>) -> Self {
        let error = RpcError::new(code, message);
        Self { id, error }
    }
}

fn to_broken(error: &serde_json::Error) -> Broken {
    let (code, what) = match error.classify() {
        serde_json::error::Category::Data => (code::INVALID_REQUEST, "not a JSON-RPC message"),
        _ => (code::PARSE_ERROR, "not valid JSON"),
    };
    Broken::new(None, code, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests;
