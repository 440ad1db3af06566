//! Why a call ended without a result, and what a model should do next.

use std::{sync::Arc, time::Duration};

use crate::server::{BreakerOpen, Outage, Refused, Server};
use pegboard_base::{
    diagnosis::{Cause, Code, Diagnosis, Place, Step},
    hint::Hint,
};
use pegboard_client::{
    session::{Fault, FaultKind},
    transport::{FailureKind, Sent},
};
use pegboard_mask::Counts;
use pegboard_tools::outcome::{Advice, Answer, Failure, Kind, Outcome};

/// Why a call ended without a result.
pub(super) enum CallError {
    /// The call was not executed, for this reason.
    Refused(Failure),
    Queue(Refused),
    BreakerOpen(BreakerOpen),
    Outage(Arc<Outage>),
    Fault(Fault),
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl From<Refused> for CallError {
    fn from(refused: Refused) -> Self {
        Self::Queue(refused)
    }
}

impl From<BreakerOpen> for CallError {
    fn from(open: BreakerOpen) -> Self {
        Self::BreakerOpen(open)
    }
}

impl From<Arc<Outage>> for CallError {
    fn from(outage: Arc<Outage>) -> Self {
        Self::Outage(outage)
    }
}

impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl CallError {
    /// Adds the masked secrets of the server's error response to `counts`.
    pub(super) fn count_masked(&self, counts: &mut Counts) {
        if let Self::Fault(fault) = self
            && let FaultKind::Error(error) = &fault.kind
            && let Some(masked) = &error.masked
        {
            counts.add_all(masked);
        }
    }

    /// The outcome of a call of `tool`, which is named as its caller knows it.
    pub(super) fn into_outcome(self, server: &Server, tool: &str) -> Outcome {
        let name = server.name();
        match self {
            Self::Refused(failure) => Outcome::Refused(failure),
            Self::Queue(refused) => Outcome::Refused(queue_failure(&refused)),
            Self::BreakerOpen(open) => {
                let message =
                    format!("server `{name}` has answered none of the last calls and is left alone for a while");
                let failure = Failure::new(Kind::Unavailable, message).caused_by(&open);
                let failure = failure.advice(Advice::Wait);
                let overloaded = Diagnosis::new(Code::Overloaded, Step::Call, Cause::Limit);
                let failure = failure.diagnosed(overloaded.at(Place::server(name.as_str())));
                Outcome::Refused(failure.retry_after(open.retry_after))
            }
            Self::Outage(outage) => Outcome::Refused(outage_failure(name.as_str(), &outage)),
            Self::Fault(fault) => {
                let connections = server.connections();
                let outcome = set_hint(explain_fault(&fault, tool), connections.credentials_hint(&fault));
                set_diagnosis(outcome, connections.diagnose(name, &fault))
            }
        }
    }
}

/// Corrects the outcome of the last attempt if an earlier attempt may have been executed.
pub(super) fn after_a_lost_attempt(outcome: Outcome, tool: &str) -> Outcome {
    match outcome {
        Outcome::Refused(failure) => Outcome::Lost(Failure {
            message: format!(
                "the call to {tool} was delivered but no answer came back, and it could not be made again ({}). It may have been \
                 carried out. Check the state before repeating it.",
                failure.message
            ),
            advice: None,
            ..failure.after_sending()
        }),
        Outcome::ToolFailed(answer) => Outcome::ToolFailed(Answer {
            executed: true,
            ..answer
        }),
        done_or_lost => done_or_lost,
    }
}

/// When to call again after a call was refused because the server reads too slowly or could not be reached. How long that lasts cannot be known.
const A_WHILE: Duration = Duration::from_secs(1);

/// What a model should do about an outage. What the operator can do is in the hint.
fn advice(outage: &Outage) -> Advice {
    match outage.kind() {
        Kind::NeedsAuth => Advice::LeaveToPerson,
        Kind::RestartInProgress => Advice::Soon,
        _ if outage.needs_person() || (outage.is_final() && outage.next_start_in().is_none()) => Advice::Useless,
        _ => Advice::Later,
    }
}

/// The failure of a call after the end of the view or the board.
pub(crate) fn closed(message: &str) -> Failure {
    Failure::new(Kind::Unavailable, message)
        .advice(Advice::LeaveTools)
        .diagnosed(Diagnosis::new(Code::Closed, Step::Call, Cause::State))
}

/// The failure of a call that got no place in a queue.
pub(crate) fn queue_failure(refused: &Refused) -> Failure {
    let kind = match refused {
        Refused::Full { .. } => Kind::LimitExceeded,
        Refused::Late { .. } => Kind::Timeout,
    };
    Failure::new(kind, refused.to_string())
        .advice(Advice::Later)
        .caused_by(refused)
        .hint("raise `max_in_flight` of the server or the size of its queue")
        .retry_after(refused.retry_after())
        .diagnosed(Diagnosis::new(Code::Overloaded, Step::Call, Cause::Limit))
}

/// The failure of a call whose server cannot be reached.
pub(crate) fn outage_failure(server: &str, outage: &Outage) -> Failure {
    if let Some(failure) = outage.told_failure() {
        return failure;
    }
    let state = match outage.kind() {
        Kind::NeedsAuth => "has no valid credentials",
        _ => "is down",
    };
    let message = format!("server `{server}` {state}: {}", outage.describe());
    Failure {
        hint: outage.hint.clone(),
        code: outage.code,
        // A person takes longer than the wait before the next start.
        retry_after: outage.next_start_in().filter(|_| outage.kind() != Kind::NeedsAuth),
        ..Failure::new(outage.kind(), message)
            .advice(advice(outage))
            .caused_by(outage)
            .diagnosed(outage.diagnosis(server))
    }
}

/// The outcome with another hint, if there is one: what the config says about the server's credentials.
fn set_hint(mut outcome: Outcome, hint: Option<String>) -> Outcome {
    if let (Outcome::Refused(failure) | Outcome::Lost(failure), Some(hint)) = (&mut outcome, hint) {
        failure.hint = Some(hint);
    }
    outcome
}

/// The outcome with what is wrong with the server, unless the tool itself reported an error.
fn set_diagnosis(mut outcome: Outcome, diagnosis: Diagnosis) -> Outcome {
    if let Outcome::Refused(failure) | Outcome::Lost(failure) = &mut outcome {
        failure.diagnosis = Some(Box::new(diagnosis));
    }
    outcome
}

/// The outcome of a failed exchange.
fn explain_fault(fault: &Fault, tool: &str) -> Outcome {
    if let FaultKind::Error(error) = &fault.kind {
        let mut answer = Answer::from_text(format!(
            "the server answered with error {}: {}",
            error.code, error.message
        ));
        answer.structured.clone_from(&error.data);
        answer.error_code = Some(error.code);
        answer.executed = fault.sent == Sent::Maybe;
        return Outcome::ToolFailed(answer);
    }
    match fault.sent {
        Sent::Maybe if is_too_large(fault) => Outcome::Lost(Failure {
            message: format!(
                "the call to {tool} was answered, but the answer was discarded for its size: {fault}, the limit that `max_message` of \
                 the server sets. It may have been carried out. Check the state before repeating it, and ask for less."
            ),
            ..failure_of(fault, tool)
        }),
        Sent::Maybe if is_unusable(fault) => Outcome::Lost(Failure {
            message: format!(
                "the call to {tool} was answered, but {fault}. It may have been carried out. Check the state before repeating it."
            ),
            ..failure_of(fault, tool)
        }),
        Sent::Maybe if has_no_room(fault) => Outcome::Lost(Failure {
            message: format!(
                "the call to {tool} was answered, but the answer was discarded because {fault}. It may have been carried out. Check the \
                 state before repeating it, and ask for less."
            ),
            ..failure_of(fault, tool)
        }),
        Sent::Maybe => Outcome::Lost(Failure {
            message: format!(
                "the call to {tool} was delivered but no answer came back ({fault}). It may have been carried out. Check the \
                 state before repeating it."
            ),
            ..failure_of(fault, tool)
        }),
        Sent::No | Sent::Rejected => Outcome::Refused(unexecuted_failure(fault, tool)),
    }
}

/// Returns whether a response arrived and exceeded the size limit.
fn is_too_large(fault: &Fault) -> bool {
    matches!(&fault.kind, FaultKind::Wire(failure) if failure.kind == FailureKind::TooLarge)
}

/// Returns whether a response arrived that violates the protocol.
fn is_unusable(fault: &Fault) -> bool {
    match &fault.kind {
        FaultKind::Unreadable(_) => true,
        FaultKind::Wire(failure) => failure.kind == FailureKind::Protocol,
        _ => false,
    }
}

/// Returns whether a response arrived and the byte budget shared with other servers had no room for it.
fn has_no_room(fault: &Fault) -> bool {
    matches!(&fault.kind, FaultKind::Wire(failure) if failure.kind == FailureKind::NoRoom)
}

/// When to call again after a failure that lasts for an unknown time: messages for the server are written more slowly than calls arrive, or no
/// connection to it could be made.
fn unknown_wait(fault: &Fault) -> Option<Duration> {
    let FaultKind::Wire(failure) = &fault.kind else {
        return None;
    };
    let may_end_soon = match failure.kind {
        FailureKind::Busy => true,
        FailureKind::Connect(_) => fault.sent != Sent::Maybe,
        _ => false,
    };
    may_end_soon.then_some(A_WHILE)
}

/// The failure of a call that was certainly not executed, with advice for transient faults and for missing sign-ins.
fn unexecuted_failure(fault: &Fault, tool: &str) -> Failure {
    let failure = failure_of(fault, tool);
    Failure {
        message: format!("the call to {tool} was not carried out: {fault}"),
        advice: match failure.kind {
            Kind::NeedsAuth => Some(Advice::LeaveToPerson),
            Kind::Transport | Kind::Unavailable | Kind::Timeout => Some(Advice::Later),
            _ => None,
        },
        ..failure
    }
}

/// A failed request to a server as a failure for the caller, masked; `what` names the request, which may contain a secret.
pub(crate) fn request_failure(server: &Server, fault: &Fault, what: &str) -> Failure {
    let mut failure = failure_of(fault, what);
    failure.hint = server.connections().credentials_hint(fault).or(failure.hint);
    failure.diagnosis = Some(Box::new(server.connections().diagnose(server.name(), fault)));
    failure.into_masked(&server.masker().current())
}

/// A failed request as a failure for the caller; `what` names the request.
fn failure_of(fault: &Fault, what: &str) -> Failure {
    let kind = fault_kind(fault);
    let hint = match &fault.kind {
        // The server has spoken MCP before.
        FaultKind::Wire(failure) if failure.kind == FailureKind::Protocol => {
            Some("the server, or a proxy in front of it, breaks the protocol; its log may say more".to_owned())
        }
        _ => fault.hint(),
    };
    Failure {
        hint,
        may_have_executed: fault.sent == Sent::Maybe,
        code: fault.rpc_code(),
        retry_after: fault.retry_after().or_else(|| unknown_wait(fault)),
        ..Failure::new(kind, format!("{what} failed: {fault}")).caused_by(fault)
    }
}

/// What kind of failure a fault is.
pub(super) fn fault_kind(fault: &Fault) -> Kind {
    match &fault.kind {
        FaultKind::TimedOut { .. } => Kind::Timeout,
        FaultKind::Unreadable(_) => Kind::Internal,
        FaultKind::NoVersion(_) => Kind::Unavailable,
        FaultKind::Error(_) => Kind::ToolError,
        FaultKind::Wire(failure) => match &failure.kind {
            kind if kind.needs_auth() => Kind::NeedsAuth,
            FailureKind::NeedsAuth | FailureKind::Forbidden => Kind::NeedsAuth,
            // It could not be renewed at the moment.
            FailureKind::NoCredential(_) => Kind::Unavailable,
            FailureKind::TooLarge | FailureKind::NoRoom | FailureKind::Busy => Kind::LimitExceeded,
            // A server that redirects a call was reached.
            FailureKind::Connect(_) if fault.sent == Sent::Maybe => Kind::Transport,
            FailureKind::Connect(_) => Kind::Unavailable,
            FailureKind::Protocol => Kind::Internal,
            FailureKind::ConnectionLost
            | FailureKind::SessionGone
            | FailureKind::Rpc(_)
            | FailureKind::Status { .. } => Kind::Transport,
        },
        FaultKind::Ended(_) | FaultKind::Dial(_) => Kind::Transport,
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use pegboard_client::transport::{ConnectFault, ServerError, WireFailure};

    fn rpc_error(code: i64) -> ServerError {
        serde_json::from_value(serde_json::json!({"code": code, "message": "no such note"})).unwrap()
    }

    #[test]
    fn a_failed_request_has_the_code_of_the_error_response_and_the_error_as_its_source() {
        let in_body = WireFailure::new(
            FailureKind::Rpc(Box::new(rpc_error(-32002))),
            Sent::Rejected,
            "HTTP 404: no such note",
        );
        for fault in [Fault::from(rpc_error(-32002)), Fault::from(in_body)] {
            let failure = failure_of(&fault, "reading note://a");
            assert_eq!(failure.code, Some(-32002), "{fault}");
            assert_eq!(failure.source().unwrap().to_string(), fault.to_string());
            assert!(failure.message.starts_with("reading note://a failed: "), "{failure}");
        }
    }

    /// A program that reads only the time, such as a client of the HTTP API, tries again.
    #[test]
    fn a_server_that_could_not_be_reached_may_be_called_again_soon() {
        let kind = FailureKind::Connect(ConnectFault::Refused);
        let failed = |sent| failure_of(&Fault::from(WireFailure::new(kind.clone(), sent, "refused")), "fx.echo");
        assert_eq!(failed(Sent::No).retry_after, Some(A_WHILE));
        assert_eq!(failed(Sent::Maybe).retry_after, None);
    }

    #[test]
    fn a_rate_limit_says_when_to_call_again() {
        let kind = FailureKind::Status {
            code: 429,
            retry_after: Some(Duration::from_secs(7)),
        };
        let fault = Fault::from(WireFailure::new(kind, Sent::Rejected, "HTTP 429"));
        let outcome = explain_fault(&fault, "fx.echo");
        assert_eq!(outcome.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(outcome.error_code(), None);
        assert_eq!(outcome.source().unwrap().to_string(), "HTTP 429");
    }
}
