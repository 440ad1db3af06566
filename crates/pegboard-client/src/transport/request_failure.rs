//! [`WireFailure`]: why a request got no usable response.

use std::{fmt, time::Duration};

use super::{delivery::Sent, server_error::ServerError};
use crate::credential::Remedy;
pub use pegboard_base::diagnosis::{ConnectFault, TlsFault};
use pegboard_base::hint::Hint;
use pegboard_mask::ServerMasker;

/// Why a request got no usable response, and whether it can have run.
#[derive(Debug, Clone, PartialEq)]
pub struct WireFailure {
    /// What went wrong. Retries and hints depend on it.
    pub kind: FailureKind,
    pub(crate) sent: Sent,
    pub(crate) message: String,
}

impl WireFailure {
    /// Creates a failure with a message that describes it.
    pub fn new(kind: FailureKind, sent: Sent, message: impl Into<String>) -> Self {
        Self {
            kind,
            sent,
            message: message.into(),
        }
    }

    /// A response that breaks the protocol. The request may have run.
    pub(super) fn protocol(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Protocol, Sent::Maybe, message)
    }

    /// Masks secrets in the server's text.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        masker.hide(&mut self.message);
        if let FailureKind::Rpc(error) = &mut self.kind {
            error.hide(masker);
        }
    }
}

impl fmt::Display for WireFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WireFailure {}

/// The kind of a [`WireFailure`].
#[derive(Debug, Clone, PartialEq)]
pub enum FailureKind {
    /// No connection could be opened.
    Connect(ConnectFault),
    /// The connection ended before the response came.
    ConnectionLost,
    /// The response exceeds the message limit.
    TooLarge,
    /// The response got no permit of the byte budget.
    NoRoom,
    /// The response breaks the protocol.
    Protocol,
    /// The server requires authentication.
    NeedsAuth,
    /// The server knows who asks, and does not allow it.
    Forbidden,
    /// There is no credential for the request.
    NoCredential(Remedy),
    /// The server no longer knows our session.
    SessionGone,
    /// The server responded with a JSON-RPC error in the body of an HTTP error.
    Rpc(Box<ServerError>),
    /// Another HTTP status.
    Status {
        /// The HTTP status code.
        code: u16,
        /// The server's `Retry-After`, if it sent one.
        retry_after: Option<Duration>,
    },
    /// The queue of outgoing messages is full.
    Busy,
}

impl FailureKind {
    /// Whether a person or the program must act before a request can succeed: the credentials are missing or refused.
    pub fn needs_auth(&self) -> bool {
        match self {
            Self::NeedsAuth | Self::Forbidden => true,
            Self::NoCredential(remedy) => remedy.retry_after().is_none(),
            _ => false,
        }
    }
}

impl Hint for WireFailure {
    fn hint(&self) -> Option<String> {
        let hint = match &self.kind {
            FailureKind::Connect(ConnectFault::Refused) => {
                "nothing listens at that address; start the server or correct `url`"
            }
            FailureKind::Connect(ConnectFault::Dns) => "the host name is not known; check `url` and the network",
            FailureKind::Connect(ConnectFault::Timeout) => {
                "the host does not answer; check `url`, the network and any proxy"
            }
            FailureKind::Connect(ConnectFault::Tls(_)) => {
                "the secure connection failed for the reason above; certificates are set in `tls.ca`, `tls.cert` and `tls.key`"
            }
            FailureKind::Connect(ConnectFault::Redirect) => {
                "the server points elsewhere, and credentials are not sent on; put the final address into `url`"
            }
            FailureKind::NeedsAuth => "give the server's credentials in `auth` or `headers`",
            FailureKind::Forbidden => {
                "the credentials are not allowed to do this; use others, or ask the operator of the server"
            }
            FailureKind::NoCredential(remedy) => return remedy.hint(),
            FailureKind::Status { code: 404 | 405, .. } => {
                "check the path of `url`; many servers listen at `/mcp` or `/sse`"
            }
            FailureKind::Status {
                code: 429,
                retry_after: Some(wait),
            } => {
                return Some(format!(
                    "the server wants fewer requests; ask again in {} s",
                    wait.as_secs()
                ));
            }
            FailureKind::Status { code: 429, .. } => "the server wants fewer requests; ask again later",
            FailureKind::Status { code: 500.., .. } => {
                "the server, or a proxy in front of it, is in trouble; its log says more"
            }
            FailureKind::TooLarge => "raise `max_message` of the server, or ask for less",
            FailureKind::NoRoom => "ask for less, or for less at once, or raise `max_buffered` of the board",
            FailureKind::Protocol => "the address answers, but not as an MCP server; check `url`",
            FailureKind::Connect(ConnectFault::TlsClosed | ConnectFault::Other)
            | FailureKind::ConnectionLost
            | FailureKind::SessionGone
            | FailureKind::Rpc(_)
            | FailureKind::Status { .. }
            | FailureKind::Busy => return None,
        };
        Some(hint.to_owned())
    }
}
