//! [`Handshake`]: how a server was started, and what was settled with it.

use pegboard::status::ServerStatus;

/// How a server was started, and what was settled with it.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) took_ms: Option<f64>,
    /// Where its process is, if it is not one of this command.
    pub(super) place: Option<String>,
    pub(super) version: Option<String>,
    pub(super) era: Option<String>,
}

impl From<&ServerStatus> for Handshake {
    fn from(status: &ServerStatus) -> Self {
        Self {
            took_ms: status.ready_after_ms,
            place: None,
            version: status.protocol_version.clone(),
            era: status.era.map(|era| era.as_str().to_owned()),
        }
    }
}
