//! [`RawResult`]: the `result` of a response, as JSON text.

use bytes::Bytes;
use serde::Serialize;

use super::rpc_error::RpcError;

/// The `result` of a response: a JSON object as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResult {
    json: Bytes,
    /// Whether the object has a `resultType`.
    has_type: bool,
}

impl RawResult {
    /// Wraps the text of a JSON object. `has_type` says whether it has a `resultType`, which modern clients require and this adds
    /// otherwise.
    pub fn from_text(json: Bytes, has_type: bool) -> Self {
        Self { json, has_type }
    }

    /// Serialises a value without a `resultType`, which must be an object.
    pub fn new(value: &impl Serialize) -> Result<Self, RpcError> {
        let json = serde_json::to_vec(value)
            .map_err(|error| RpcError::new(RpcError::INTERNAL, format!("the result cannot be written: {error}")))?;
        Ok(Self::from_text(json.into(), false))
    }

    /// The text of the object.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Whether the object has a `resultType`.
    pub fn has_type(&self) -> bool {
        self.has_type
    }
}
