//! Replies in the JSON shapes that other agents expect.

use serde_json::{Value, json};

use super::{
    Outcome,
    answer::Answer,
    content::Content,
    reply::{Reply, millis},
};

impl Reply {
    /// The reply in the shape of ai-agent's tool results: `ok`, `result`, `latencyMs`, `kind`, `namespace`, and under `extras` the blocks
    /// and the structured content unchanged.
    pub fn to_ai_agent(&self) -> Value {
        let extras = match &self.outcome {
            Outcome::Done(answer) | Outcome::ToolFailed(answer) => {
                let mut raw = json!({"content": answer.content, "isError": self.is_error()});
                if let Some(structured) = &answer.structured {
                    raw["structuredContent"] = structured.clone();
                }
                json!({ "raw": raw })
            }
            Outcome::Refused(failure) | Outcome::Lost(failure) => {
                json!({"error": failure.kind, "mayHaveExecuted": failure.may_have_executed})
            }
        };
        json!({
            "ok": !self.is_error(),
            "result": self.text(),
            "latencyMs": millis(self.latency),
            "kind": "mcp",
            "namespace": self.server,
            "extras": extras,
        })
    }
}

impl Answer {
    /// The answer in the shape of minion's tool results: the first block only, its text parsed as JSON if possible.
    pub fn first_value(&self) -> Value {
        match self.content.first() {
            None => Value::Null,
            Some(Content::Text { text, .. }) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
            }
            Some(block) => serde_json::to_value(block).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::outcome::{Failure, Kind};
    use pegboard_base::name::ServerName;

    fn reply(outcome: Outcome) -> Reply {
        Reply {
            server: Some(ServerName::parse("time").unwrap()),
            ..Reply::unanswered("1", "time.now", outcome, Duration::from_micros(1900))
        }
    }

    /// The result shape of ai-agent's `normalizeToolResult`.
    #[test]
    fn a_reply_can_be_had_in_the_shape_of_ai_agent() {
        let mut answer = Answer::from_text("hi");
        answer.structured = Some(json!({"a": 1}));
        assert_eq!(
            reply(Outcome::Done(answer)).to_ai_agent(),
            json!({
                "ok": true, "result": "hi", "latencyMs": 1.9, "kind": "mcp", "namespace": "time",
                "extras": {"raw": {"content": [{"type": "text", "text": "hi"}], "isError": false, "structuredContent": {"a": 1}}},
            })
        );
        let lost = reply(Outcome::Lost(Failure::new(Kind::Timeout, "no answer").after_sending())).to_ai_agent();
        assert_eq!((&lost["ok"], &lost["result"]), (&json!(false), &json!("no answer")));
        assert_eq!(lost["extras"], json!({"error": "timeout", "mayHaveExecuted": true}));
    }

    /// The result shape of minion's `extractResult`.
    #[test]
    fn an_answer_can_be_had_as_the_value_of_its_first_block() {
        let mut answer = Answer::from_text(r#"{"a": 1}"#);
        answer.content.push(Content::text("second"));
        assert_eq!(answer.first_value(), json!({"a": 1}));
        assert_eq!(Answer::from_text("plain").first_value(), json!("plain"));
        answer.content.clear();
        assert_eq!(answer.first_value(), Value::Null);
        let link = json!({"type": "resource_link", "uri": "a://b"});
        answer.content = vec![serde_json::from_value(link.clone()).unwrap()];
        assert_eq!(answer.first_value(), link);
    }
}
