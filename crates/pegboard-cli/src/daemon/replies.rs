//! Replies of a daemon as if the call had been made by the command itself.

use pegboard::{Failure, Kind, Outcome, Reply};
use pegboard_protocol::{
    code,
    meta::pegboard::{FAILURE, KIND, MAY_HAVE_EXECUTED},
};

/// Turns the result of a call that the daemon refused or lost into that outcome, so that the exit code and the JSON are those of a call
/// without a daemon. The daemon removes these fields from the results of servers.
pub(crate) fn as_made_here(mut reply: Reply) -> Reply {
    // The only connections of this process are those to the daemon.
    if let Outcome::Lost(failure) = &mut reply.outcome
        && failure.kind == Kind::Transport
    {
        failure.message = format!(
            "the daemon ended or closed the connection before the call to {} was answered. It may have been carried out. Check the state \
             before repeating it.",
            reply.name
        );
        let hint = "the log of the daemon may say why; `pegboard status` lists the calls of a daemon that was killed";
        failure.hint = Some(hint.to_owned());
    }
    let Outcome::ToolFailed(answer) = &reply.outcome else {
        return reply;
    };
    if answer.error_code == Some(code::STOPPING) {
        // Also sent for a call that was not started any more, but a server could send it as well, so it may have run.
        let message = format!(
            "the daemon stopped, so the call to {} was cancelled. It may have been carried out. Check the state before repeating it.",
            reply.name
        );
        let failure = Failure::new(Kind::Cancelled, message).code(code::STOPPING);
        reply.outcome = Outcome::Lost(failure.after_sending());
        return reply;
    }
    let field = |name: &str| answer.meta.as_ref()?.get(name).cloned();
    let kind = field(KIND).and_then(|kind| serde_json::from_value::<Kind>(kind).ok());
    let Some(kind) = kind.filter(|kind| !matches!(kind, Kind::Ok | Kind::ToolError)) else {
        return reply;
    };
    let told = field(FAILURE).and_then(|failure| serde_json::from_value::<Failure>(failure).ok());
    let mut failure = told.unwrap_or_else(|| Failure::new(kind, reply.text()));
    // The daemon knows the tool by its own name.
    if let Some(tool) = &reply.tool {
        let (short, whole) = (format!("call to {tool} "), format!("call to {} ", reply.name));
        failure.message = failure.message.replacen(&short, &whole, 1);
    }
    if kind == Kind::Cancelled {
        // The daemon cancelled it. The user who interrupts a command has no reply of the daemon.
        failure = failure.code(code::STOPPING);
    }
    // A field that is missing or no boolean must not make a call look as if it had not run.
    reply.outcome = match field(MAY_HAVE_EXECUTED) == Some(false.into()) {
        true => Outcome::Refused(failure),
        false => Outcome::Lost(failure.after_sending()),
    };
    // The text was no result of the tool.
    reply.original_bytes = 0;
    reply
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pegboard::Answer;
    use serde_json::json;

    use super::*;
    use crate::exit::Exit;

    fn reply(outcome: Outcome) -> Reply {
        as_made_here(Reply::unanswered("call-1", "fx.write", outcome, Duration::ZERO))
    }

    #[test]
    fn a_call_that_a_stopping_daemon_cancelled_may_have_run() {
        let mut answer = Answer::from_text("the server answered with error -32010");
        answer.error_code = Some(code::STOPPING);
        let reply = reply(Outcome::ToolFailed(answer));
        let Outcome::Lost(failure) = &reply.outcome else {
            panic!("{reply:?}")
        };
        assert_eq!((failure.kind, failure.may_have_executed), (Kind::Cancelled, true));
        assert_eq!(Exit::from_outcome(&reply.outcome), Exit::Unavailable);
    }

    #[test]
    fn what_the_daemon_cancels_was_not_interrupted_by_the_user() {
        for (may_have_executed, status) in [(false, "refused"), (true, "lost")] {
            let mut answer = Answer::from_text("the board is closed");
            let fields = json!({KIND: "cancelled", MAY_HAVE_EXECUTED: may_have_executed});
            answer.meta = serde_json::from_value(fields).unwrap();
            let reply = reply(Outcome::ToolFailed(answer));
            assert_eq!(json!(reply)["status"], status);
            assert_eq!(reply.outcome.kind(), Kind::Cancelled);
            assert_eq!(Exit::from_outcome(&reply.outcome), Exit::Unavailable);
        }
    }

    #[test]
    fn other_errors_of_servers_stay_errors_of_tools() {
        let mut answer = Answer::from_text("no");
        answer.error_code = Some(-32603);
        assert_eq!(reply(Outcome::ToolFailed(answer)).outcome.kind(), Kind::ToolError);
    }

    #[test]
    fn a_call_whose_connection_broke_was_lost_by_the_daemon() {
        let lost = Failure::new(Kind::Transport, "the server closed its output").after_sending();
        let reply = reply(Outcome::Lost(lost));
        assert!(reply.text().starts_with("the daemon ended"), "{reply:?}");
        assert!(reply.outcome.may_have_executed());
    }
}
