//! Asks the approver whether a call may be made, and takes the answer of a person who watches the board if that comes first.

use super::{
    approval::{Approver, Decision, Question},
    context::CallContext,
};
use crate::recent::{ApprovalAnswer, WaitingApproval};

/// The first decision.
pub(super) async fn decide(context: &CallContext<'_>, approver: &dyn Approver, question: Question<'_>) -> Decision {
    let view = context.view;
    let waiting = WaitingApproval {
        has_changed: question.has_changed,
        is_tainted: question.is_tainted,
        view: view.name.as_deref().map(str::to_owned),
        principal: view.principal.clone(),
        ..WaitingApproval::new(
            question.caller.call,
            question.server,
            question.name,
            question.shown,
            question.risk,
        )
    };
    let Some(open) = view.tallies.waiting_approvals.ask(waiting) else {
        return approver.decide(question).await;
    };
    tokio::select! {
        biased;
        decision = approver.decide(question) => decision,
        answer = open.answered() => match answer {
            ApprovalAnswer::Once => Decision::Once,
            ApprovalAnswer::ForView => Decision::ForView,
            ApprovalAnswer::Refused => Decision::Refused("the operator has refused it on the dashboard".to_owned()),
        },
    }
}
