//! [`Fault`]: why a request to a server failed, and whether the server can have carried it out.

use std::{fmt, time::Duration};

use pegboard_protocol::code;
use tokio::time::Instant;

use crate::{
    credential::Remedy,
    transport::{DialError, EndReason, Exit, FailureKind, Sent, ServerError, WireEnd, WireFailure},
};
use pegboard_base::hint::Hint;
use pegboard_mask::ServerMasker;

/// Why a request failed, and whether the server can have carried it out.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Why the request failed.
    pub kind: FaultKind,
    /// Whether the server can have carried it out.
    pub sent: Sent,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultKind {
    /// The server sent an error response.
    Error(ServerError),
    /// The transport lost the request or its response.
    Wire(WireFailure),
    /// The whole connection ended.
    Ended(WireEnd),
    /// No connection could be opened.
    Dial(DialError),
    /// The idle timeout or the deadline passed.
    TimedOut {
        /// How long the request waited.
        waited: Duration,
        /// Whether the idle timeout passed, as opposed to the deadline.
        idle: bool,
        /// The last output of the server, if it wrote any.
        last_words: Option<String>,
    },
    /// The response violates the protocol.
    Unreadable(Unreadable),
    /// The server supports none of our protocol versions.
    NoVersion(String),
}

/// A response that violates the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong with it.
    pub flaw: Flaw,
    /// The same in words, which may be those of the server.
    pub text: String,
}

/// What is wrong with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// It has another form than the protocol says.
    Malformed,
    /// The result of a handshake names no protocol version.
    NoVersion,
    /// A list repeats a cursor, or has one that is too long to be sent back.
    EndlessList,
}

impl From<&str> for Unreadable {
    fn from(text: &str) -> Self {
        Self {
            flaw: Flaw::Malformed,
            text: text.to_owned(),
        }
    }
}

/// Error codes that prove that the server did not run the request.
const REJECTING: &[i64] = &[
    code::PARSE_ERROR,
    code::INVALID_REQUEST,
    code::METHOD_NOT_FOUND,
    code::HEADER_MISMATCH,
    code::MISSING_CAPABILITY,
    code::UNSUPPORTED_VERSION,
];

impl Fault {
    /// A response that violates the protocol.
    pub(super) fn unreadable(text: impl Into<String>) -> Self {
        Self::flawed(Flaw::Malformed, text)
    }

    /// A response with this flaw.
    pub(super) fn flawed(flaw: Flaw, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            kind: FaultKind::Unreadable(Unreadable { flaw, text }),
            sent: Sent::Maybe,
        }
    }

    /// The deadline of an operation that began at `started` passed, after a request for it had been sent.
    pub(super) fn timed_out(started: Instant) -> Self {
        Self {
            kind: FaultKind::TimedOut {
                waited: started.elapsed(),
                idle: false,
                last_words: None,
            },
            sent: Sent::Maybe,
        }
    }

    /// Counts the time that was waited from the start of the whole operation, of which the request was the last step.
    pub(super) fn waiting_since(mut self, started: Instant) -> Self {
        if let FaultKind::TimedOut { waited, .. } = &mut self.kind {
            *waited = started.elapsed();
        }
        self
    }

    /// The connection ended while the request was pending.
    pub(super) fn ended(end: WireEnd, sent: Sent) -> Self {
        Self {
            kind: FaultKind::Ended(end),
            sent,
        }
    }

    /// Masks the secrets in the text that came from the server.
    pub(super) fn into_masked(mut self, masker: &ServerMasker) -> Self {
        match &mut self.kind {
            FaultKind::Error(error) => error.hide(masker),
            FaultKind::Wire(failure) => failure.hide(masker),
            FaultKind::Ended(end) => end.hide(masker),
            FaultKind::Dial(error) => error.hide(masker),
            FaultKind::TimedOut { last_words, .. } => masker.hide_in(last_words),
            FaultKind::Unreadable(Unreadable { text, .. }) | FaultKind::NoVersion(text) => masker.hide(text),
        }
        self
    }

    /// Returns the code of the server's error response, if it sent one.
    pub fn code(&self) -> Option<i64> {
        match &self.kind {
            FaultKind::Error(error) => Some(error.code),
            _ => None,
        }
    }

    /// Returns the code of the server's error response, also of one in the body of an HTTP error.
    pub fn rpc_code(&self) -> Option<i64> {
        match self.wire_kind() {
            Some(FailureKind::Rpc(error)) => Some(error.code),
            _ => self.code(),
        }
    }

    /// Returns the server's error response, also one in the body of an HTTP error.
    pub fn rpc_error(&self) -> Option<&ServerError> {
        match (&self.kind, self.wire_kind()) {
            (FaultKind::Error(error), _) => Some(error),
            (_, Some(FailureKind::Rpc(error))) => Some(error),
            _ => None,
        }
    }

    /// Returns the server's `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.wire_kind() {
            Some(FailureKind::Status { retry_after, .. }) => *retry_after,
            Some(FailureKind::NoCredential(remedy)) => remedy.retry_after(),
            _ => None,
        }
    }

    /// Returns how the transport failed, if it did.
    fn wire_kind(&self) -> Option<&FailureKind> {
        match &self.kind {
            FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure)) => Some(&failure.kind),
            _ => None,
        }
    }

    pub(crate) fn is_unknown_method(&self) -> bool {
        self.code() == Some(code::METHOD_NOT_FOUND)
    }

    /// Returns `true` if the transport failed, as opposed to the server. A timeout, an HTTP 5xx status and a web page in place of a response
    /// count as transport failures. The end of the whole session does not: the supervisor handles that.
    pub fn is_transport(&self) -> bool {
        match &self.kind {
            FaultKind::Wire(failure) => match failure.kind {
                FailureKind::Connect(_) | FailureKind::ConnectionLost | FailureKind::Protocol => true,
                FailureKind::Status { code, .. } => code >= 500,
                _ => false,
            },
            FaultKind::TimedOut { .. } => true,
            FaultKind::Ended(_)
            | FaultKind::Dial(_)
            | FaultKind::Error(_)
            | FaultKind::Unreadable(_)
            | FaultKind::NoVersion(_) => false,
        }
    }

    /// Returns `true` if the request provably did not reach the server, because no connection could be made or a proxy refused it.
    pub fn is_unreachable(&self) -> bool {
        self.sent != Sent::Maybe && matches!(self.kind, FaultKind::Wire(_)) && self.is_transport()
    }

    /// Returns `true` if credentials are missing or refused, so that a person or the program must act first.
    pub fn needs_auth(&self) -> bool {
        matches!(&self.kind, FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure)) if failure.kind.needs_auth())
    }

    /// Returns `true` if the credential of the session may open nothing any more. A program that has none for one request may have one for the next.
    pub fn refuses_credential(&self) -> bool {
        let FaultKind::Wire(failure) = &self.kind else {
            return false;
        };
        matches!(
            failure.kind,
            FailureKind::NeedsAuth | FailureKind::NoCredential(Remedy::Person { .. })
        )
    }

    /// Returns `true` if the session is unusable, so that a read is retried in a new one.
    pub fn loses_session(&self) -> bool {
        match &self.kind {
            FaultKind::Ended(end) => end.reason != EndReason::Closed,
            FaultKind::Wire(failure) => failure.kind == FailureKind::SessionGone,
            FaultKind::TimedOut { .. }
            | FaultKind::Dial(_)
            | FaultKind::Error(_)
            | FaultKind::Unreadable(_)
            | FaultKind::NoVersion(_) => false,
        }
    }

    /// Returns `true` if the server responded, but not with a valid result.
    pub fn is_response(&self) -> bool {
        match &self.kind {
            FaultKind::Error(_) | FaultKind::Unreadable(_) | FaultKind::NoVersion(_) => true,
            FaultKind::Wire(failure) => matches!(failure.kind, FailureKind::Rpc(_)),
            FaultKind::Ended(_) | FaultKind::Dial(_) | FaultKind::TimedOut { .. } => false,
        }
    }

    /// Returns `true` if the server is up and limits the rate of requests.
    pub fn is_busy(&self) -> bool {
        matches!(&self.kind, FaultKind::Wire(failure) if matches!(failure.kind, FailureKind::Status { code: 429, .. }))
    }

    /// Returns `true` if only this request failed, so that others in the session may succeed.
    pub(super) fn spares_session(&self) -> bool {
        match &self.kind {
            FaultKind::Error(_) | FaultKind::Unreadable(_) | FaultKind::NoVersion(_) | FaultKind::TimedOut { .. } => {
                true
            }
            FaultKind::Wire(failure) => matches!(
                failure.kind,
                FailureKind::Rpc(_)
                    | FailureKind::Status { .. }
                    | FailureKind::TooLarge
                    | FailureKind::NoRoom
                    | FailureKind::Protocol
            ),
            FaultKind::Ended(_) | FaultKind::Dial(_) => false,
        }
    }
}

impl From<ServerError> for Fault {
    fn from(error: ServerError) -> Self {
        Self {
            sent: if REJECTING.contains(&error.code) {
                Sent::Rejected
            } else {
                Sent::Maybe
            },
            kind: FaultKind::Error(error),
        }
    }
}

impl From<WireFailure> for Fault {
    fn from(failure: WireFailure) -> Self {
        Self {
            sent: failure.sent,
            kind: FaultKind::Wire(failure),
        }
    }
}

impl From<DialError> for Fault {
    fn from(error: DialError) -> Self {
        Self {
            kind: FaultKind::Dial(error),
            sent: Sent::No,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FaultKind::Error(error) => write!(f, "the server answered with error {}: {}", error.code, error.message),
            FaultKind::Wire(failure) => write!(f, "{failure}"),
            FaultKind::Ended(end) => {
                write!(f, "{}", end.reason)?;
                match &end.stderr {
                    // What it wrote to stderr does not say why.
                    _ if matches!(end.reason, EndReason::Flood { .. }) => Ok(()),
                    Some(stderr) => write!(f, "; its last words were:\n{stderr}"),
                    None => Ok(()),
                }
            }
            FaultKind::Dial(error) => write!(f, "{error}"),
            FaultKind::TimedOut { waited, idle, .. } => {
                let what = if *idle {
                    "no sign of life for"
                } else {
                    "no answer within"
                };
                write!(f, "{what} {}", seconds(*waited))
            }
            FaultKind::Unreadable(Unreadable { text, .. }) => write!(f, "the answer cannot be used: {text}"),
            FaultKind::NoVersion(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

impl Hint for Fault {
    fn hint(&self) -> Option<String> {
        match &self.kind {
            FaultKind::Wire(failure) => failure.hint(),
            FaultKind::Dial(error) => error.hint(),
            FaultKind::Ended(end) => match &end.reason {
                EndReason::Exited(Exit::Signal(_)) => {
                    Some("somebody or the system killed it; it is started again by itself".to_owned())
                }
                EndReason::Exited(_) if end.stderr.is_none() => {
                    Some("the program ended without a word; run its command by hand to see why".to_owned())
                }
                EndReason::Exited(_) => {
                    let hint = end.sandbox_hint();
                    Some(
                        hint.unwrap_or("the server's own words above say why it ended")
                            .to_owned(),
                    )
                }
                EndReason::Protocol(_) | EndReason::Flood { .. } => {
                    Some("check that the command starts an MCP server and prints nothing else".to_owned())
                }
                EndReason::TooLarge(_) => Some("raise `max_message` of the server, or ask for less".to_owned()),
                EndReason::Stalled(_) => {
                    Some("the server hangs; raise `write_timeout` if it may be busy for so long".to_owned())
                }
                EndReason::Eof | EndReason::Broken(_) => {
                    Some("the server left; its own log may say why, and the next call reaches it anew".to_owned())
                }
                EndReason::Closed | EndReason::Replaced(_) => None,
            },
            FaultKind::TimedOut { idle: true, .. } => Some(
                "raise `call_timeout` of the server if it may be silent for so long, or let it report progress"
                    .to_owned(),
            ),
            FaultKind::TimedOut { .. } => {
                Some("allow the call more time, or raise `call_total_timeout` of the server".to_owned())
            }
            FaultKind::Unreadable(_) => {
                Some("the server breaks the protocol; look for a newer version of it".to_owned())
            }
            FaultKind::NoVersion(_) => {
                Some("update the server or pegboard, so that both speak the same protocol version".to_owned())
            }
            FaultKind::Error(_) => None,
        }
    }
}

/// Formats a duration in milliseconds or seconds.
fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", (duration.as_secs_f64() * 10.0).round() / 10.0)
    }
}
