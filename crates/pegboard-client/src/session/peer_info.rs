//! What a server declared about itself in the handshake.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::session::Era;
use crate::session::ServerInfo;
use pegboard_mask::ServerMasker;

/// What a server declared about itself in the handshake.
#[derive(Debug, Clone)]
pub struct PeerInfo {
    pub era: Era,
    /// The negotiated protocol version.
    pub version: Arc<str>,
    pub info: Option<ServerInfo>,
    /// All fields of `serverInfo`. They are masked where they are shown.
    pub info_fields: Map<String, Value>,
    pub capabilities: Map<String, Value>,
    pub instructions: Option<String>,
}

impl PeerInfo {
    /// Masks the secrets in the server's texts. Capabilities are masked where they are shown.
    pub(super) fn masked(mut self, masker: &ServerMasker) -> Self {
        masker.hide_in(&mut self.instructions);
        if let Some(info) = &mut self.info {
            masker.hide(&mut info.name);
            masker.hide(&mut info.version);
        }
        self
    }
}
