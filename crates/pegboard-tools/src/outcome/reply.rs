//! The complete record of one call, as the command line and the HTTP API show it.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};
use serde_json::json;

use super::{Outcome, answer::Answer, content::Content};
use pegboard_base::{label::label, name::ServerName};
use pegboard_mask::Counts;

/// The record of one call: what was called, how it ended, and what it cost.
///
/// It is written as JSON and read back, so that a program can keep the replies of an agent's session. Fields may be added to the JSON; a
/// reader ignores those it does not know. Times are exact to the microsecond.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Reply {
    /// The caller's id for the call.
    pub id: String,
    /// Whether the caller set the id. Otherwise `ToolCall::new` generated it.
    pub id_given: bool,
    /// `server.tool`, or the name as written if it is unknown.
    pub name: String,
    /// The name as the caller wrote it. For a call through `call_tool` that is `call_tool`, not the tool it forwards to.
    pub asked: String,
    /// A note that the name was misspelled and how it was understood.
    pub repaired: Option<String>,
    /// The server that was called.
    pub server: Option<ServerName>,
    /// The tool, by its server's name for it.
    pub tool: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// How often the call was sent to a server.
    pub attempts: u32,
    /// The time from the call to the reply.
    pub latency: Duration,
    /// How much of that was spent in the queue.
    pub queued: Duration,
    /// The size of the answer's payload in bytes.
    pub original_bytes: usize,
    /// Whether the text may come from a server that the config does not trust. It is data, never instructions.
    pub untrusted: bool,
    /// Whether the answer came from the cache.
    pub cached: bool,
    /// How many secrets were masked.
    pub masked: usize,
    /// How many secrets were masked, by the pattern that matched.
    pub masked_by: Counts,
    /// Whether the reply does not contain the whole answer.
    pub truncated: bool,
    /// The handle of the spilled answer, if it was spilled.
    pub handle: Option<String>,
    /// Changes to the arguments, problems of the answer, and failures to shorten it.
    pub warnings: Vec<String>,
}

/// A processed outcome, and what was done to it.
#[derive(Debug)]
pub struct Presented {
    /// The outcome, masked and within its limits.
    pub outcome: Outcome,
    /// The size of the payload in bytes before it was shortened.
    pub original_bytes: usize,
    /// How many secrets were masked, by the pattern that matched.
    pub masked: Counts,
    /// How the outcome was shortened.
    pub notes: Notes,
}

/// What was done to an outcome to keep it within its limits.
#[derive(Debug, Default)]
pub struct Notes {
    /// Whether the outcome does not contain the whole answer.
    pub truncated: bool,
    /// The handle of the spilled answer, if it was spilled.
    pub handle: Option<String>,
    /// What could not be spilled or summarised, and why.
    pub warnings: Vec<String>,
}

impl Reply {
    /// Creates the reply to a call that ended without an answer of a server, or was never sent.
    pub fn unanswered(id: impl Into<String>, name: impl Into<String>, outcome: Outcome, latency: Duration) -> Self {
        let name = name.into();
        Self {
            id: id.into(),
            id_given: true,
            asked: name.clone(),
            name,
            repaired: None,
            server: None,
            tool: None,
            outcome,
            attempts: 0,
            latency,
            queued: Duration::ZERO,
            original_bytes: 0,
            untrusted: false,
            cached: false,
            masked: 0,
            masked_by: Counts::default(),
            truncated: false,
            handle: None,
            warnings: Vec::new(),
        }
    }

    /// The text for a model that reads text.
    pub fn text(&self) -> String {
        self.outcome.text()
    }

    /// Returns whether the model should see this as an error.
    pub fn is_error(&self) -> bool {
        self.outcome.is_error()
    }

    /// The type of the answer, by its first block; by its structured content if it has no blocks. A text that is a JSON object or array
    /// counts as JSON. Calls that were refused or lost have text.
    pub fn content_type(&self) -> ContentType {
        let (Outcome::Done(answer) | Outcome::ToolFailed(answer)) = &self.outcome else {
            return ContentType::Text;
        };
        match answer.content.first() {
            None if answer.structured.is_some() => ContentType::Json,
            None => ContentType::Text,
            Some(block) if block.is_binary() => ContentType::Binary,
            Some(Content::Text { text, .. }) if is_json(text) => ContentType::Json,
            Some(_) => ContentType::Text,
        }
    }
}

/// The [text](Reply::text) for a model.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The type of an answer: see [`Reply::content_type`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentType {
    /// Plain text.
    Text,
    /// A JSON object or array.
    Json,
    /// Binary: an image, audio, or a binary resource.
    Binary,
}

impl ContentType {
    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Binary => "binary",
        }
    }
}

label!(ContentType, "type of content", [Text, Json, Binary]);

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether an id looks like those that `ToolCall::new` generates.
pub(super) fn is_generated_id(id: &str) -> bool {
    let digits = id.strip_prefix("call-");
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.outcome.text();
        let (content, structured) = match &self.outcome {
            Outcome::Done(answer) | Outcome::ToolFailed(answer) => (answer.content.clone(), answer.structured.as_ref()),
            Outcome::Refused(_) | Outcome::Lost(_) => (vec![Content::text(text.clone())], None),
        };
        let mut outcome = json!({
            "kind": self.outcome.kind(),
            "may_have_executed": self.outcome.may_have_executed(),
            "attempts": self.attempts,
            "latency_ms": millis(self.latency),
            "queued_ms": millis(self.queued),
            "masked": self.masked,
            "truncated": self.truncated,
            "original_bytes": self.original_bytes,
            "handle": self.handle,
            "cached": self.cached,
        });
        if let Some(code) = self.outcome.error_code() {
            outcome["error_code"] = code.into();
        }
        match &self.outcome {
            Outcome::Done(answer) | Outcome::ToolFailed(answer) if !answer.rendering.is_default() => {
                outcome["rendering"] = json!(answer.rendering);
            }
            Outcome::Refused(failure) | Outcome::Lost(failure) => {
                if let Some(wait) = failure.retry_after {
                    outcome["retry_after_ms"] = millis(wait).into();
                }
                if failure.advice.is_some() || failure.for_models.is_some() {
                    // The text is for models.
                    outcome["message"] = failure.message.as_str().into();
                }
                if let Some(advice) = failure.advice {
                    outcome["advice"] = json!(advice);
                }
                if let Some(more) = &failure.for_models {
                    outcome["for_models"] = json!(more);
                }
                if let Some(cause) = &failure.cause {
                    outcome["causes"] = json!(cause);
                }
                if let Some(diagnosis) = &failure.diagnosis {
                    outcome["code"] = json!(diagnosis.code);
                    outcome["diagnosis"] = json!(diagnosis);
                }
            }
            Outcome::Done(_) | Outcome::ToolFailed(_) => {}
        }
        if !self.masked_by.is_empty() {
            outcome["masked_by"] = json!(self.masked_by);
        }
        let mut reply = serializer.serialize_struct("Reply", 17)?;
        reply.serialize_field("id", &self.id)?;
        reply.serialize_field("name", &self.name)?;
        reply.serialize_field("server", &self.server)?;
        reply.serialize_field("tool", &self.tool)?;
        reply.serialize_field("status", self.outcome.status())?;
        reply.serialize_field("is_error", &self.outcome.is_error())?;
        reply.serialize_field("text", &text)?;
        reply.serialize_field("content", &content)?;
        reply.serialize_field("structured", &structured)?;
        reply.serialize_field("outcome", &outcome)?;
        reply.serialize_field("hint", &self.outcome.hint())?;
        reply.serialize_field("untrusted", &self.untrusted)?;
        reply.serialize_field("warnings", &self.warnings)?;
        match &self.repaired {
            Some(repaired) => reply.serialize_field("repaired", repaired)?,
            None => reply.skip_field("repaired")?,
        }
        // What a reader cannot infer from the fields above.
        match &self.outcome {
            Outcome::Done(Answer { meta: Some(meta), .. }) | Outcome::ToolFailed(Answer { meta: Some(meta), .. }) => {
                reply.serialize_field("meta", meta)?;
            }
            _ => reply.skip_field("meta")?,
        }
        match self.asked == self.name {
            true => reply.skip_field("asked")?,
            false => reply.serialize_field("asked", &self.asked)?,
        }
        match self.id_given == is_generated_id(&self.id) {
            true => reply.serialize_field("id_given", &self.id_given)?,
            false => reply.skip_field("id_given")?,
        }
        reply.end()
    }
}

/// Milliseconds with three decimal places.
pub fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Failure, Kind};

    fn reply(outcome: Outcome) -> Reply {
        Reply {
            server: Some(ServerName::parse("time").unwrap()),
            tool: Some("now".into()),
            attempts: 1,
            original_bytes: 2,
            untrusted: true,
            ..Reply::unanswered("1", "time.now", outcome, Duration::from_micros(1900))
        }
    }

    #[test]
    fn a_reply_has_the_promised_json() {
        assert_eq!(
            serde_json::to_value(reply(Outcome::Done(Answer::from_text("hi")))).unwrap(),
            json!({
                "id": "1", "name": "time.now", "server": "time", "tool": "now", "status": "done", "is_error": false,
                "text": "hi", "content": [{"type": "text", "text": "hi"}], "structured": null,
                "outcome": {"kind": "ok", "may_have_executed": true, "attempts": 1, "latency_ms": 1.9, "queued_ms": 0.0,
                            "masked": 0, "truncated": false, "original_bytes": 2, "handle": null, "cached": false},
                "hint": null, "untrusted": true, "warnings": [],
            })
        );
    }

    #[test]
    fn a_reply_tells_what_was_done_to_the_answer() {
        let cut = Reply {
            masked: 3,
            truncated: true,
            handle: Some("out_1".into()),
            warnings: vec!["the summary failed".into()],
            ..reply(Outcome::Done(Answer::from_text("hi")))
        };
        let json = serde_json::to_value(cut).unwrap();
        assert_eq!(
            (&json["outcome"]["masked"], &json["outcome"]["truncated"]),
            (&json!(3), &json!(true))
        );
        assert_eq!(
            (&json["outcome"]["handle"], &json["warnings"]),
            (&json!("out_1"), &json!(["the summary failed"]))
        );
    }

    #[test]
    fn the_first_block_says_what_an_answer_is() {
        let of = |content: serde_json::Value| {
            let blocks: Vec<Content> = serde_json::from_value(content).unwrap();
            reply(Outcome::Done(Answer::from_content(blocks))).content_type()
        };
        let text = |text: &str| json!([{"type": "text", "text": text}, {"type": "text", "text": "{}"}]);
        for (content, expected) in [
            (text("plain"), ContentType::Text),
            (text(" {\"a\": 1}"), ContentType::Json),
            (text("[1, 2]"), ContentType::Json),
            (text("{not json"), ContentType::Text),
            (text("42"), ContentType::Text),
            (json!([]), ContentType::Text),
            (
                json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}]),
                ContentType::Binary,
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}}]),
                ContentType::Binary,
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "a:b", "text": "words"}}]),
                ContentType::Text,
            ),
            (json!([{"type": "resource_link", "uri": "a:b"}]), ContentType::Text),
        ] {
            assert_eq!(of(content.clone()), expected, "{content}");
        }
        let mut structured = Answer::json(json!({"a": 1}));
        structured.content.clear();
        assert_eq!(reply(Outcome::Done(structured)).content_type(), ContentType::Json);
        let refused = Outcome::Refused(Failure::new(Kind::Timeout, "late"));
        assert_eq!(reply(refused).content_type().as_str(), "text");
    }

    /// Minion says `Unknown error` here.
    #[test]
    fn an_error_without_text_gets_ours() {
        for texts in [&[][..], &["", " \n"]] {
            let silent = Answer::from_content(texts.iter().map(|text| Content::text(*text)));
            let failed = reply(Outcome::ToolFailed(silent.clone()));
            assert_eq!(failed.text(), "the tool reported an error without saying why");
            assert_eq!(serde_json::to_value(&failed).unwrap()["text"], failed.text());
            assert_eq!(reply(Outcome::Done(silent)).text().trim(), "");
        }
        let mut coded = Answer::from_text("no");
        coded.error_code = Some(-32602);
        let json = serde_json::to_value(reply(Outcome::ToolFailed(coded))).unwrap();
        assert_eq!(json["outcome"]["error_code"], -32602);
    }

    #[test]
    fn a_lost_call_says_that_it_may_have_run() {
        let failure = Failure::new(Kind::Timeout, "no answer").hint("raise the limit");
        let lost = reply(Outcome::Lost(failure.after_sending()));
        let json = serde_json::to_value(lost).unwrap();
        assert_eq!(json["status"], "lost");
        assert_eq!(json["outcome"]["kind"], "timeout");
        assert_eq!(json["outcome"]["may_have_executed"], true);
        assert_eq!(json["content"][0]["text"], "no answer");
        assert_eq!(json["hint"], "raise the limit");
    }
}
