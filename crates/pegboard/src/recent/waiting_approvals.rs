//! [`WaitingApprovals`]: the questions that wait for a person, so that one who watches the board can answer them too.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::oneshot;

use pegboard_base::{caller::Principal, name::ServerName, sync::Mutex, timestamp::Timestamp};
use pegboard_tools::catalog::Risk;

/// The most questions that are shown at once. Those beyond it are asked where they come from only.
const MAX_WAITING: usize = 256;

/// The questions of a board that wait for a person. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct WaitingApprovals(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    questions: BTreeMap<u64, (WaitingApproval, oneshot::Sender<ApprovalAnswer>)>,
    /// How many there were so far.
    asked: u64,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WaitingApproval {
    /// Its number among the questions of the board.
    pub number: u64,
    /// Since when it waits.
    pub since: Timestamp,
    /// The id of the call.
    pub call: String,
    /// The server that would be called.
    pub server: ServerName,
    /// The tool's name for people.
    pub name: String,
    /// The arguments, with known secrets masked, and cut.
    pub arguments: String,
    /// How much harm the tool may do.
    pub risk: Risk,
    /// Whether the tool was approved before with another definition.
    pub has_changed: bool,
    /// Whether the agent has read output of an untrusted server.
    pub is_tainted: bool,
    /// The view that makes the call.
    pub view: Option<String>,
    /// The principal that it is made for.
    pub principal: Option<Principal>,
}

/// What a person says to a call that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalAnswer {
    /// Allows this call.
    Once,
    /// Allows all calls of this tool from this view, until its definition changes.
    ForView,
    /// Refuses it.
    Refused,
}

/// A question that waits. Dropping it withdraws the question.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    approvals: WaitingApprovals,
    number: u64,
    answer: oneshot::Receiver<ApprovalAnswer>,
}

impl WaitingApproval {
    /// A question that has no number yet.
    pub(crate) fn new(call: &str, server: &ServerName, name: &str, arguments: &str, risk: Risk) -> Self {
        Self {
            number: 0,
            since: Timestamp::now(),
            call: call.to_owned(),
            server: server.clone(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            risk,
            has_changed: false,
            is_tainted: false,
            view: None,
            principal: None,
        }
    }
}

impl WaitingApprovals {
    /// The questions that wait now, the oldest first.
    pub fn all(&self) -> Vec<WaitingApproval> {
        self.0
            .lock()
            .questions
            .values()
            .map(|(question, _)| question.clone())
            .collect()
    }

    /// Answers a question. Returns it, or `None` if it waits no longer.
    pub fn answer(&self, number: u64, answer: ApprovalAnswer) -> Option<WaitingApproval> {
        let (question, waiting) = self.0.lock().questions.remove(&number)?;
        waiting.send(answer).ok()?;
        Some(question)
    }

    /// Adds a question. `None` if too many wait.
    pub(crate) fn ask(&self, mut question: WaitingApproval) -> Option<OpenQuestion> {
        let mut waiting = self.0.lock();
        if waiting.questions.len() >= MAX_WAITING {
            return None;
        }
        waiting.asked += 1;
        let number = waiting.asked;
        question.number = number;
        let (sender, answer) = oneshot::channel();
        waiting.questions.insert(number, (question, sender));
        Some(OpenQuestion {
            approvals: self.clone(),
            number,
            answer,
        })
    }
}

impl OpenQuestion {
    /// Waits for an answer.
    pub(crate) async fn answered(mut self) -> ApprovalAnswer {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            // Only an answer removes the question before this.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.approvals.0.lock().questions.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn question(call: &str) -> WaitingApproval {
        let server = ServerName::parse("fx").unwrap();
        WaitingApproval::new(call, &server, "fx.delete", "{}", Risk::High)
    }

    #[tokio::test]
    async fn a_question_is_answered_once_and_withdrawn_when_nothing_waits_for_it() {
        let approvals = WaitingApprovals::default();
        let first = approvals.ask(question("one")).unwrap();
        let second = approvals.ask(question("two")).unwrap();
        let waiting: Vec<(u64, String)> = approvals.all().into_iter().map(|one| (one.number, one.call)).collect();
        assert_eq!(waiting, [(1, "one".to_owned()), (2, "two".to_owned())]);
        assert_eq!(approvals.answer(1, ApprovalAnswer::Once).unwrap().call, "one");
        assert_eq!(first.answered().now_or_never(), Some(ApprovalAnswer::Once));
        assert!(approvals.answer(1, ApprovalAnswer::Refused).is_none());
        drop(second);
        assert!(approvals.all().is_empty() && approvals.answer(2, ApprovalAnswer::Once).is_none());
    }

    #[tokio::test]
    async fn the_questions_are_bounded() {
        let approvals = WaitingApprovals::default();
        let kept: Vec<_> = (0..MAX_WAITING)
            .map(|_| approvals.ask(question("x")).unwrap())
            .collect();
        assert!(approvals.ask(question("x")).is_none());
        drop(kept);
        assert!(approvals.ask(question("x")).is_some());
    }
}
