//! What a server says about itself.

use pegboard_base::label::label;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A protocol era: without a handshake (2026-07-28 and later), or with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Era {
    /// Without a handshake.
    Modern,
    /// With a handshake.
    Legacy,
}

impl Era {
    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

label!(Era, "protocol era", [Modern, Legacy]);

/// The self-description of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ServerInfo {
    /// Its program's name.
    pub name: String,
    /// Its program's version.
    pub version: String,
}

/// What a server declared about itself when its session began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerDeclaration {
    /// The protocol era that it speaks.
    pub era: Era,
    /// The negotiated protocol version.
    pub protocol_version: String,
    /// The fields of its `serverInfo`.
    pub server_info: Map<String, Value>,
    /// The capabilities that it declares.
    pub capabilities: Map<String, Value>,
    /// The usage instructions that it declares.
    pub instructions: Option<String>,
}
