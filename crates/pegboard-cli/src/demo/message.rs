//! The JSON-RPC envelope: parses messages and builds responses.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The limit on the length of a message, on every transport.
pub(super) const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// The limit on the messages of a batch. Only 2025-03-26 has batches, and no client is known to send more than a few.
const MAX_BATCH: usize = 64;

/// The content of one line, body or frame.
#[derive(Debug)]
pub(super) enum Incoming {
    One(Message),
    Batch(Vec<Result<Message, Broken>>),
}

#[derive(Debug)]
pub(super) enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The demo server sends no requests, so responses are ignored.
    Response,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Id {
    Number(i64),
    Text(String),
}

/// An invalid message, with its id if that could be parsed.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) id: Option<Id>,
    pub(super) fault: Fault,
}

/// The `error` of a response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Fault {
    pub(super) code: i64,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
}

impl Fault {
    pub(super) const PARSE: i64 = -32700;
    pub(super) const INVALID_REQUEST: i64 = -32600;
    pub(super) const METHOD_NOT_FOUND: i64 = -32601;
    pub(super) const INVALID_PARAMS: i64 = -32602;
    pub(super) const INTERNAL: i64 = -32603;
    pub(super) const BUSY: i64 = -32000;
    pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;
    pub(super) const HEADER_MISMATCH: i64 = -32020;
    pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(super) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// The response to a request.
pub(super) fn answer(id: Option<&Id>, outcome: &Result<Value, Fault>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(fault) => json!({"jsonrpc": "2.0", "id": id, "error": fault}),
    }
}

/// Parses one line, body or frame.
pub(super) fn parse(bytes: &[u8]) -> Result<Incoming, Broken> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
        return parse_one(bytes).map(Incoming::One);
    }
    let items: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|error| broken(&error))?;
    if items.is_empty() || items.len() > MAX_BATCH {
        let message = format!(
            "a batch holds 1 to {MAX_BATCH} messages, this one holds {}",
            items.len()
        );
        return Err(Broken {
            id: None,
            fault: Fault::new(Fault::INVALID_REQUEST, message),
        });
    }
    Ok(Incoming::Batch(
        items.into_iter().map(|item| parse_one(item.get().as_bytes())).collect(),
    ))
}

/// The derived parser knows exact keys only and refuses duplicate keys, so that a proxy cannot have read the message
/// differently.
#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<String>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    #[serde(default, deserialize_with = "present")]
    params: Option<Value>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Distinguishes `null` from a missing key.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn parse_one(bytes: &[u8]) -> Result<Message, Broken> {
    let envelope: Envelope = serde_json::from_slice(bytes).map_err(|error| broken(&error))?;
    let id = match envelope.id {
        None => None,
        Some(id) => Some(Id::deserialize(id).map_err(|_| {
            let fault = Fault::new(Fault::INVALID_REQUEST, "`id` must be a string or an integer");
            Broken { id: None, fault }
        })?),
    };
    let refuse = |code, message: &str| Broken {
        id: id.clone(),
        fault: Fault::new(code, message),
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return Err(refuse(Fault::INVALID_REQUEST, "`jsonrpc` must be \"2.0\""));
    }
    let params = match envelope.params {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(refuse(Fault::INVALID_PARAMS, "`params` must be an object")),
    };
    match (envelope.method, id) {
        (Some(method), Some(id)) => Ok(Message::Request(Request { id, method, params })),
        (Some(method), None) => Ok(Message::Notification { method, params }),
        (None, _) if envelope.result.is_some() || envelope.error.is_some() => Ok(Message::Response),
        (None, id) => Err(Broken {
            id,
            fault: Fault::new(Fault::INVALID_REQUEST, "the message has no `method`"),
        }),
    }
}

fn broken(error: &serde_json::Error) -> Broken {
    let (code, what) = match error.classify() {
        serde_json::error::Category::Data => (Fault::INVALID_REQUEST, "not a JSON-RPC message"),
        _ => (Fault::PARSE, "not valid JSON"),
    };
    Broken {
        id: None,
        fault: Fault::new(code, format!("{what}: {error}")),
    }
}

/// A JSON object with these fields.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_are_read() {
        for (text, read) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request"),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}"#, "request"),
            (
                r#" {"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                "notification",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
                "response",
            ),
        ] {
            let kind = match parse(text.as_bytes()) {
                Ok(Incoming::One(Message::Request(_))) => "request",
                Ok(Incoming::One(Message::Notification { .. })) => "notification",
                Ok(Incoming::One(Message::Response)) => "response",
                other => panic!("{text}: {other:?}"),
            };
            assert_eq!(kind, read, "{text}");
        }
    }

    #[test]
    fn a_broken_message_is_refused_with_the_right_code() {
        for (text, code, id) in [
            ("{", Fault::PARSE, None),
            ("", Fault::PARSE, None),
            ("nonsense", Fault::PARSE, None),
            ("[", Fault::PARSE, None),
            ("[]", Fault::INVALID_REQUEST, None),
            ("3", Fault::INVALID_REQUEST, None),
            (
                r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
                Fault::INVALID_REQUEST,
                Some(Id::Number(7)),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7}"#,
                Fault::INVALID_REQUEST,
                Some(Id::Number(7)),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                Fault::INVALID_REQUEST,
                None,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                Fault::INVALID_REQUEST,
                None,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#,
                Fault::INVALID_REQUEST,
                None,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
                Fault::INVALID_PARAMS,
                Some(Id::Number(7)),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"Method":"ping"}"#,
                Fault::INVALID_REQUEST,
                Some(Id::Number(7)),
            ),
        ] {
            let broken = parse(text.as_bytes())
                .map(|read| panic!("{text}: {read:?}"))
                .unwrap_err();
            assert_eq!((broken.fault.code, broken.id), (code, id), "{text}");
        }
    }

    #[test]
    fn one_broken_message_costs_its_batch_nothing() {
        let batch = parse(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":2}]"#).unwrap();
        let Incoming::Batch(items) = batch else {
            panic!("{batch:?}")
        };
        assert!(items[0].is_ok());
        assert_eq!(items[1].as_ref().unwrap_err().id, Some(Id::Number(2)));
    }
}
