//! The messages of clients. They are parsed as an envelope with raw params, so that a payload is never parsed into a tree.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{params::Params, rpc_error::RpcError};

/// The limit on the length of a message, unless the wire has its own.
pub(crate) const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// The limit on the messages of a batch. Only 2025-03-26 has batches, and no client is known to send more than a few.
const MAX_BATCH: usize = 64;

/// The limit on the length of an id, which every response repeats.
const MAX_ID: usize = 1024;

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
        id: Box<str>,
        outcome: Result<Bytes, RpcError>,
    },
}

/// A request of a client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request {
    /// The id as the client wrote it: JSON text of a string or an integer.
    pub id: Box<str>,
    /// The method.
    pub method: Box<str>,
    /// The params.
    pub params: Params,
    /// The headers that repeat arguments of a tool, decoded, by their names in lower case after `Mcp-Param-`. `None` where requests have no such
    /// headers.
    pub(crate) mirrored: Option<Arc<Vec<(String, String)>>>,
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
    pub(crate) id: Option<Box<str>>,
    pub(crate) error: RpcError,
}

/// Parses one line, body or frame. Params and results are slices of it.
pub(crate) fn parse(bytes: &Bytes) -> Result<Incoming, Broken> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
        return parse_one(bytes, bytes).map(Incoming::One);
    }
    let items: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|error| broken(&error))?;
    if items.is_empty() || items.len() > MAX_BATCH {
        let count = items.len();
        let message = format!("a batch has 1 to {MAX_BATCH} messages, this one has {count}");
        return Err(Broken::new(None, RpcError::INVALID_REQUEST, message));
    }
    let items = items.into_iter().map(|item| parse_one(bytes, item.get().as_bytes()));
    Ok(Incoming::Batch(items.collect()))
}

/// The derived parser knows exact keys only and refuses duplicate keys, so that a proxy cannot have read the message differently.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Distinguishes `null` from a missing key.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Parses one message, which is part of `whole`.
fn parse_one(whole: &Bytes, text: &[u8]) -> Result<Message, Broken> {
    let envelope: Envelope<'_> = serde_json::from_slice(text).map_err(|error| broken(&error))?;
    let (method, params) = (envelope.method, envelope.params);
    let id = match envelope.id {
        None => None,
        Some(id) if method.is_none() && id.get() == "null" => Some(id.get().into()),
        Some(id) => Some(parse_id(id.get())?),
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return Err(Broken::new(id, RpcError::INVALID_REQUEST, "`jsonrpc` must be \"2.0\""));
    }
    let Some(method) = method else {
        let outcome = match (envelope.result, envelope.error) {
            (_, Some(error)) => Err(parse_error(error)),
            (Some(result), None) => Ok(whole.slice_ref(result.get().as_bytes())),
            (None, None) => {
                return Err(Broken::new(
                    id,
                    RpcError::INVALID_REQUEST,
                    "the message has no `method`",
                ));
            }
        };
        let id = id.unwrap_or_else(|| "null".into());
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

/// Returns an id as it is compared: a string without needless escapes, or an integer.
pub(super) fn parse_id(text: &str) -> Result<Box<str>, Broken> {
    let refuse = |message: String| Err(Broken::new(None, RpcError::INVALID_REQUEST, message));
    if text.len() > MAX_ID {
        return refuse(format!("`id` is longer than {MAX_ID} bytes"));
    }
    if text.starts_with('"') && text.contains('\\') {
        let unescaped: Result<String, _> = serde_json::from_str(text);
        let id = unescaped.and_then(|id| serde_json::to_string(&id));
        return id
            .map(Into::into)
            .or_else(|error| refuse(format!("`id` is no valid string: {error}")));
    }
    let is_integer = || {
        text.strip_prefix('-')
            .unwrap_or(text)
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    };
    if text.starts_with('"') || is_integer() {
        return Ok(text.into());
    }
    refuse("`id` must be a string or an integer".into())
}

/// The error of a response. What a client sends there is only shown, so anything is taken.
fn parse_error(error: &RawValue) -> RpcError {
    #[derive(Deserialize)]
    struct Fields {
        #[serde(default)]
        code: i64,
        #[serde(default)]
        message: String,
        data: Option<serde_json::Value>,
    }
    match serde_json::from_str::<Fields>(error.get()) {
        Ok(Fields { code, message, data }) => {
            let error = RpcError::new(code, message);
            match data {
                Some(data) => error.data(data),
                None => error,
            }
        }
        Err(_) => RpcError::new(
            RpcError::INTERNAL,
            "the client answered with an error that is no JSON-RPC error",
        ),
    }
}

impl Broken {
    fn new(id: Option<Box<str>>, code: i64, message: impl Into<String>) -> Self {
        let error = RpcError::new(code, message);
        Self { id, error }
    }
}

fn broken(error: &serde_json::Error) -> Broken {
    let (code, what) = match error.classify() {
        serde_json::error::Category::Data => (RpcError::INVALID_REQUEST, "not a JSON-RPC message"),
        _ => (RpcError::PARSE, "not valid JSON"),
    };
    Broken::new(None, code, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests;
