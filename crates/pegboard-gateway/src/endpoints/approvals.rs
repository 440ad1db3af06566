//! [`ClientApprover`]: asks the user of the client that made a call whether the call may be made.

use std::{pin::Pin, sync::Arc};

use pegboard::{
    Approver,
    approval::{Decision, Question},
};
use pegboard_protocol::{code, method};
use serde_json::{Value, json};

use super::open_exchanges::OpenExchanges;

/// What the model and the user read if the client cannot be asked.
const UNABLE: &str = "a person must agree to it, and this client cannot ask one, because it does not declare the capability `elicitation` with \
                      forms; use a client that does, or have the operator change `approval` of the view or of the server";

/// Asks the client of a call with a form. A modern client's answer belongs to the request that was asked about: it is sealed for the
/// principal, and good only with the same tool and arguments.
#[derive(Debug)]
pub(super) struct ClientApprover {
    exchanges: Arc<OpenExchanges>,
}

impl ClientApprover {
    pub(super) fn new(exchanges: Arc<OpenExchanges>) -> Self {
        Self { exchanges }
    }

    async fn ask(&self, question: Question<'_>) -> Decision {
        let Some(exchange) = self.exchanges.find(question.caller.call) else {
            return Decision::Refused(UNABLE.to_owned());
        };
        match exchange.ask(method::ELICITATION_CREATE, form(&question)).await {
            Ok(answer) => decision(&answer),
            Err(error) if error.code == code::MISSING_CAPABILITY => Decision::Refused(UNABLE.to_owned()),
            Err(error) => Decision::Refused(error.message),
        }
    }
}

impl Approver for ClientApprover {
    fn decide<'a>(&'a self, question: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        Box::pin(self.ask(question))
    }

    /// Several clients of a principal share a view, and one that leaves its question open must not hold up the others.
    fn asks_one_at_a_time(&self) -> bool {
        false
    }
}

/// Approves every call: the client is a program of the same user that applies the same config, and has asked where a person must agree.
#[derive(Debug)]
pub(super) struct ApprovedBefore;

impl Approver for ApprovedBefore {
    fn decide<'a>(&'a self, _: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        Box::pin(std::future::ready(Decision::Once))
    }

    fn asks_one_at_a_time(&self) -> bool {
        false
    }
}

/// The params of the question.
fn form(question: &Question<'_>) -> Value {
    let mut message = format!(
        "Allow the call of `{}`?\n\nArguments: {}\nRisk: {}",
        question.name,
        question.shown,
        question.risk.as_str()
    );
    if question.has_changed {
        message.push_str("\nIts definition has changed since it was approved.");
    }
    if question.is_tainted {
        message
            .push_str("\nThe agent has read output of servers that are not trusted, which may have led to this call.");
    }
    let remember = "Allow further calls of this tool in this session without a question";
    json!({"message": message, "requestedSchema": {
        "type": "object",
        "properties": {
            "allow": {"type": "boolean", "title": "Allow this call"},
            "remember": {"type": "boolean", "title": remember, "default": false},
        },
        "required": ["allow"],
    }})
}

fn decision(answer: &Value) -> Decision {
    let refused = |why: &str| Decision::Refused(why.to_owned());
    let content = &answer["content"];
    match answer["action"].as_str() {
        Some("accept") if content["allow"] == true && content["remember"] == true => Decision::ForView,
        Some("accept") if content["allow"] == true => Decision::Once,
        Some("accept") => refused("the user did not allow it"),
        Some("decline") => refused("the user declined"),
        _ => refused("the user dismissed the question"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_allows_a_call() {
        for (answer, expected) in [
            (json!({"action": "accept", "content": {"allow": true}}), "once"),
            (
                json!({"action": "accept", "content": {"allow": true, "remember": true}}),
                "for_view",
            ),
            (
                json!({"action": "accept", "content": {"allow": false, "remember": true}}),
                "refused",
            ),
            (json!({"action": "accept", "content": {"allow": "true"}}), "refused"),
            (json!({"action": "accept"}), "refused"),
            (json!({"action": "decline", "content": {"allow": true}}), "refused"),
            (json!({"action": "cancel"}), "refused"),
            (json!({}), "refused"),
        ] {
            assert_eq!(decision(&answer).kind(), expected, "{answer}");
        }
    }
}
