//! [`Params`]: the params of a message as JSON text, whose fields are found without a tree.

use bytes::Bytes;
use serde::Deserialize;

use super::rpc_error::RpcError;

/// The params of a message: a JSON object as text, checked when the message was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params(Bytes);

impl Params {
    /// Wraps the text of a JSON object.
    pub(crate) fn from_text(json: Bytes) -> Self {
        Self(json)
    }

    /// The text of the object; `{}` if the message has no params.
    pub fn json(&self) -> &Bytes {
        &self.0
    }

    /// Parses the fields that `T` has.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RpcError> {
        serde_json::from_slice(&self.0).map_err(|error| RpcError::invalid_params(format!("invalid params: {error}")))
    }
}

impl Default for Params {
    fn default() -> Self {
        Self(Bytes::from_static(b"{}"))
    }
}
