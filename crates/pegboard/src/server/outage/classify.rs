//! Decides from the types of a failed start or a lost session which kind of outage follows.

use pegboard_protocol::code;

use super::cause::Cause;
use pegboard_base::diagnosis::{self, Code, Diagnosis, Step};
use pegboard_client::{
    credential::Remedy,
    session::{ConnectError, FaultKind},
    transport::{ConnectFault, DialError, EndReason, FailureKind, WireEnd},
};
use pegboard_tools::outcome::Kind;

/// The diagnosis of an outage that no failed request caused.
pub(super) fn diagnosis_without_fault(cause: Cause) -> Diagnosis {
    let (code, step) = match cause {
        Cause::StillStarting => (Code::StillStarting, Step::Connect),
        Cause::Misconfigured => (Code::ConfigError, Step::Config),
        Cause::PendingTrust => (Code::ProjectUntrusted, Step::Trust),
        Cause::NotRequested => (Code::NotConnected, Step::Connect),
        Cause::Disabled => (Code::Disabled, Step::Config),
        Cause::Closed => (Code::Closed, Step::Call),
        Cause::NeedsAuth => (Code::SignInNeeded, Step::SignIn),
        Cause::Failed | Cause::RestartFailed | Cause::CrashLooping | Cause::Broken => {
            (Code::ConnectionFailed, Step::Connect)
        }
    };
    let cause = match cause {
        Cause::Misconfigured | Cause::PendingTrust => diagnosis::Cause::Setting,
        _ => diagnosis::Cause::State,
    };
    Diagnosis::new(code, step, cause)
}

/// JSON-RPC error codes for an invalid request, method, parameters or protocol version.
const INVALID: [i64; 4] = [
    code::INVALID_REQUEST,
    code::METHOD_NOT_FOUND,
    code::INVALID_PARAMS,
    code::UNSUPPORTED_VERSION,
];

/// Whether the fault shows that the peer is no MCP server, or violates the protocol in the handshake.
pub(super) fn is_no_mcp(fault: &FaultKind) -> bool {
    match fault {
        FaultKind::Error(error) => INVALID.contains(&error.code),
        FaultKind::Unreadable(_) => true,
        FaultKind::Ended(end) => matches!(end.reason, EndReason::Protocol(_) | EndReason::Flood { .. }),
        FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure)) => failure.kind == FailureKind::Protocol,
        FaultKind::Dial(_) | FaultKind::TimedOut { .. } | FaultKind::NoVersion(_) => false,
    }
}

/// Classifies a failed start. Retries help against [`Cause::Failed`] only; otherwise the config or the credentials must change.
pub(super) fn cause_of(error: &ConnectError) -> Cause {
    let of_failure = |kind: &FailureKind| match kind {
        kind if kind.needs_auth() => Cause::NeedsAuth,
        FailureKind::Connect(ConnectFault::Tls(_) | ConnectFault::Redirect) => Cause::Broken,
        _ => Cause::Failed,
    };
    if let Some(failure) = &error.behind {
        return match (failure.kind, failure.retry_after) {
            (Kind::NeedsAuth, _) => Cause::NeedsAuth,
            (_, None) => Cause::Broken,
            (_, Some(_)) => Cause::Failed,
        };
    }
    match &error.fault.kind {
        FaultKind::NoVersion(_) => Cause::Broken,
        FaultKind::Dial(DialError::Spawn(error)) if error.is_lasting() => Cause::Broken,
        FaultKind::Dial(
            DialError::Tls(_) | DialError::NoCryptography | DialError::Setting(_) | DialError::NotBuilt(_),
        ) => Cause::Broken,
        FaultKind::Dial(DialError::Failed(failure)) | FaultKind::Wire(failure) => of_failure(&failure.kind),
        _ => Cause::Failed,
    }
}

/// Whether a start failed for a reason on this side, which no update of the server removes.
pub(super) fn is_of_config(error: &ConnectError) -> bool {
    let fault = &error.fault.kind;
    error.behind.is_some()
        || matches!(
            fault,
            FaultKind::Dial(
                DialError::Tls(_) | DialError::NoCryptography | DialError::Setting(_) | DialError::NotBuilt(_)
            )
        )
}

/// Whether a start failed because a person has to sign in. A server that only refuses, with a 403 or without a challenge for a token, may want
/// something that no sign-in gives.
pub(super) fn asks_for_sign_in(error: &ConnectError) -> bool {
    match &error.fault.kind {
        _ if error.behind.is_some() => true,
        FaultKind::Dial(DialError::Failed(failure)) | FaultKind::Wire(failure) => {
            matches!(failure.kind, FailureKind::NoCredential(Remedy::Person { .. }))
        }
        _ => false,
    }
}

/// Whether the end of a session counts as a crash of the server. A session that the server forgot, or that was replaced because the server hung,
/// does not.
pub(crate) fn is_crash(end: &WireEnd) -> bool {
    matches!(end.reason, EndReason::Exited(_) | EndReason::Eof | EndReason::Broken(_))
}
