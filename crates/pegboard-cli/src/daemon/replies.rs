//! Replies of a daemon as if the call had been made by the command itself.

use pegboard::{Failure, Kind, Outcome, Reply};

/// The fields by which a gateway marks a call that it refused or lost. To a model they are results of the tool.
const KIND: &str = "pegboard/kind";
const MAY_HAVE_EXECUTED: &str = "pegboard/may_have_executed";

/// Turns the result of a call that the daemon refused or lost into that outcome, so that the exit code and the JSON are those of a call
/// without a daemon.
pub(crate) fn as_made_here(mut reply: Reply) -> Reply {
    let Outcome::ToolFailed(answer) = &reply.outcome else {
        return reply;
    };
    let field = |name: &str| answer.meta.as_ref()?.get(name).cloned();
    let kind = field(KIND).and_then(|kind| serde_json::from_value::<Kind>(kind).ok());
    let Some(kind) = kind.filter(|kind| !matches!(kind, Kind::Ok | Kind::ToolError)) else {
        return reply;
    };
    let failure = Failure::new(kind, reply.text());
    // A field that is missing or no boolean must not make a call look as if it had not run.
    reply.outcome = match field(MAY_HAVE_EXECUTED) == Some(false.into()) {
        true => Outcome::Refused(failure),
        false => Outcome::Lost(failure.after_sending()),
    };
    reply
}
