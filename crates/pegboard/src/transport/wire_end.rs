//! How and why a wire ended.

use std::time::Duration;

use crate::mask::ServerMasker;

/// How a wire ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireEnd {
    pub(crate) reason: EndReason,
    /// The end of the process's stderr.
    pub(crate) stderr: Option<String>,
}

impl WireEnd {
    pub(crate) fn new(reason: EndReason) -> Self {
        Self { reason, stderr: None }
    }

    /// Masks secrets in the server's text.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        masker.hide_in(&mut self.stderr);
        match &mut self.reason {
            EndReason::Exited(text)
            | EndReason::Broken(text)
            | EndReason::Protocol(text)
            | EndReason::Replaced(text) => masker.hide(text),
            EndReason::Closed | EndReason::Eof | EndReason::Stalled(_) | EndReason::TooLarge(_) => {}
        }
    }
}

/// Why a wire ended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum EndReason {
    #[error("it was closed")]
    Closed,
    #[error("the server closed its output")]
    Eof,
    #[error("the server's process ended: {0}")]
    Exited(String),
    #[error("the connection failed: {0}")]
    Broken(String),
    #[error("the server did not read its input for {} s", .0.as_secs())]
    Stalled(Duration),
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// A message exceeded the limit so far that it could not be skipped.
    #[cfg_attr(
        all(feature = "http", not(feature = "websocket")),
        expect(dead_code, reason = "only a WebSocket cannot skip a message")
    )]
    #[error("the server sent a message larger than {0} bytes, the limit that `max_message` sets")]
    TooLarge(usize),
    /// The session has to be replaced by a new one, although the connection is still open.
    #[error("{0}")]
    Replaced(String),
}

impl EndReason {
    /// Whether a server that ended like this during the handshake may accept the other protocol era. It cannot if its program was not found
    /// (shells and wrappers exit with 126 or 127) or prints text instead of messages.
    pub(crate) fn may_speak_other_era(&self) -> bool {
        match self {
            Self::Exited(how) => how != "exit code 126" && how != "exit code 127",
            Self::Protocol(_) => false,
            _ => true,
        }
    }
}
