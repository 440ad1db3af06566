//! What a client keeps for a server between two requests: the state of a request that needs input, and ids of tasks. Both are sealed, so
//! they are of use only to the same principal, at the same endpoint, for the same server and tool.

use pegboard_protocol::code;
use serde::{Deserialize, Serialize};

use crate::protocol::{Exchange, RpcError};

/// A text of a server that a client keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptText {
    #[serde(rename = "k")]
    pub(super) kind: KeptKind,
    #[serde(rename = "s")]
    pub(super) server: String,
    /// The tool as its server calls it, or the method of another request.
    #[serde(rename = "t")]
    pub(super) tool: String,
    /// The server's text.
    #[serde(rename = "v")]
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum KeptKind {
    /// A `requestState`.
    #[serde(rename = "s")]
    State,
    /// A `taskId`.
    #[serde(rename = "t")]
    Task,
    /// The id of a result that a server gave at once to a client that wanted a task.
    #[serde(rename = "r")]
    Result,
}

impl KeptText {
    pub(super) fn seal(&self, exchange: &Exchange) -> Result<String, RpcError> {
        let text = serde_json::to_vec(self).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))?;
        exchange.seal(&text)
    }

    /// Opens a sealed text.
    pub(super) fn unseal(exchange: &Exchange, sealed: &str) -> Result<Self, RpcError> {
        let text = exchange.unseal(sealed)?;
        serde_json::from_slice(&text)
            .map_err(|_| RpcError::invalid_params("the text is not one that this endpoint gave to you"))
    }
}

/// Opens the `requestState` of a request for this server and tool.
pub(super) fn unseal_state(exchange: &Exchange, sealed: &str, server: &str, tool: &str) -> Result<String, RpcError> {
    let kept = KeptText::unseal(exchange, sealed)?;
    if kept.kind == KeptKind::State && kept.server == server && kept.tool == tool {
        return Ok(kept.text);
    }
    Err(RpcError::invalid_params("`requestState` belongs to another request"))
}
