//! JSON-RPC 2.0: the envelope of a message, and the error of a response.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, value::RawValue};

use crate::code;

/// The value of `jsonrpc` in every message.
pub const JSONRPC: &str = "2.0";

/// A message, parsed as far as its members, which stay JSON text.
///
/// Parsing fails for a message with one of these keys twice, because parsers differ in which of them they take.
#[derive(Debug, Default, Deserialize)]
pub struct Envelope<'a> {
    /// The version of JSON-RPC.
    #[serde(borrow, default)]
    pub jsonrpc: Option<&'a RawValue>,
    /// The id; `Some` also if it is `null`.
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    /// The method of a request or a notification.
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    /// The params; `Some` also if they are `null`.
    #[serde(borrow, default, deserialize_with = "present")]
    pub params: Option<&'a RawValue>,
    /// The result of a response; `Some` also if it is `null`.
    #[serde(borrow, default, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    /// The error of a response.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

impl Envelope<'_> {
    /// Takes members that are `null` for missing ones, as lenient receivers do.
    #[must_use]
    pub fn without_nulls(mut self) -> Self {
        for member in [&mut self.id, &mut self.params, &mut self.result] {
            *member = member.filter(|json| json.get() != "null");
        }
        self
    }

    /// Returns `true` if the message says that it is one of JSON-RPC 2.0.
    pub fn is_version_2(&self) -> bool {
        let named = self.jsonrpc.map(RawValue::get).unwrap_or_default();
        // Almost always written without escapes.
        named == r#""2.0""# || serde_json::from_str::<Cow<'_, str>>(named).is_ok_and(|named| named == JSONRPC)
    }
}

/// Distinguishes `null` from a missing key.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The `error` of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// The code, often one of [`code`].
    pub code: i64,
    /// What failed, on what, and what to do.
    #[serde(default)]
    pub message: String,
    /// Further data for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Whether it is passed on from another server, whose word its data is. Not part of the message.
    #[serde(skip)]
    pub is_passed_on: bool,
}

impl RpcError {
    /// Creates an error.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            is_passed_on: false,
        }
    }

    /// Creates an error about params.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// Creates an error about an unknown method.
    pub fn method_not_found(method: &str) -> Self {
        let message = format!("method `{}` is not known here", method.escape_debug());
        Self::new(code::METHOD_NOT_FOUND, message)
    }

    /// Sets the data.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_envelope_tells_null_from_nothing_and_refuses_a_key_twice() {
        let parse = |text| serde_json::from_str::<Envelope<'_>>(text);
        let message = parse(r#"{"jsonrpc":"2.0","id":null,"result":null,"more":1}"#).unwrap();
        assert_eq!(message.id.map(RawValue::get), Some("null"));
        assert_eq!(message.result.map(RawValue::get), Some("null"));
        assert!(message.params.is_none() && message.error.is_none() && message.is_version_2());
        let message = message.without_nulls();
        assert!(message.id.is_none() && message.result.is_none());
        for key in ["jsonrpc", "id", "method", "params", "result", "error"] {
            let twice = format!(r#"{{"{key}":"1","{key}":"1"}}"#);
            assert!(serde_json::from_str::<Envelope<'_>>(&twice).is_err(), "{key}");
        }
    }

    #[test]
    fn only_the_text_2_0_is_the_version() {
        for (jsonrpc, is_version_2) in [
            (r#""2.0""#, true),
            (r#""\u0032.0""#, true),
            ("2.0", false),
            ("null", false),
            (r#""1.0""#, false),
        ] {
            let text = format!(r#"{{"jsonrpc":{jsonrpc}}}"#);
            let envelope: Envelope<'_> = serde_json::from_str(&text).unwrap();
            assert_eq!(envelope.is_version_2(), is_version_2, "{jsonrpc}");
        }
    }

    #[test]
    fn an_error_has_no_data_unless_there_is_some() {
        let error = RpcError::invalid_params("no");
        assert_eq!(json!(error), json!({"code": -32602, "message": "no"}));
        let error = error.data(json!([1]));
        assert_eq!(json!(error), json!({"code": -32602, "message": "no", "data": [1]}));
        let parsed: RpcError = serde_json::from_value(json!({"code": 1})).unwrap();
        assert_eq!(parsed, RpcError::new(1, ""));
    }
}
