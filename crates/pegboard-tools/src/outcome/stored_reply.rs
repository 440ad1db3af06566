//! Reads a reply from the JSON that [`Reply`] is written as.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{
    Outcome,
    advice::{self, Advice},
    answer::{Answer, Rendering},
    cause::Cause,
    content::Content,
    failure::{Failure, Kind},
    reply::{Reply, is_generated_id},
    stored_millis,
};
use pegboard_base::{
    diagnosis::{self, Diagnosis},
    name::ServerName,
};
use pegboard_mask::Counts;

/// The JSON of a reply. Fields that `pegboard call -o json` has always written are required, others have defaults.
#[derive(Deserialize)]
struct StoredReply {
    id: String,
    id_given: Option<bool>,
    name: String,
    asked: Option<String>,
    repaired: Option<String>,
    server: Option<ServerName>,
    tool: Option<String>,
    status: Status,
    #[serde(default)]
    text: String,
    #[serde(default)]
    content: Vec<Content>,
    structured: Option<Value>,
    meta: Option<Map<String, Value>>,
    outcome: StoredOutcome,
    hint: Option<String>,
    #[serde(default)]
    untrusted: bool,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Done,
    ToolFailed,
    Refused,
    Lost,
}

#[derive(Deserialize)]
struct StoredOutcome {
    kind: Kind,
    may_have_executed: bool,
    #[serde(default)]
    attempts: u32,
    #[serde(default)]
    latency_ms: f64,
    #[serde(default)]
    queued_ms: f64,
    #[serde(default)]
    masked: usize,
    #[serde(default)]
    masked_by: Counts,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    original_bytes: usize,
    handle: Option<String>,
    #[serde(default)]
    cached: bool,
    error_code: Option<i64>,
    retry_after_ms: Option<f64>,
    message: Option<String>,
    #[serde(default, deserialize_with = "advice::deserialize_known")]
    advice: Option<Advice>,
    for_models: Option<Box<str>>,
    causes: Option<Cause>,
    #[serde(default, deserialize_with = "diagnosis::known")]
    diagnosis: Option<Box<Diagnosis>>,
    #[serde(default)]
    rendering: Rendering,
}

impl<'de> Deserialize<'de> for Reply {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredReply::deserialize(deserializer)?;
        let of_call = stored.outcome;
        let answer = Answer {
            content: stored.content,
            structured: stored.structured,
            meta: stored.meta,
            error_code: of_call.error_code,
            executed: of_call.may_have_executed,
            rendering: of_call.rendering,
            raw: None,
        };
        let failure = Failure {
            hint: stored.hint,
            may_have_executed: of_call.may_have_executed,
            code: of_call.error_code,
            retry_after: of_call.retry_after_ms.map(stored_millis::duration).transpose()?,
            cause: of_call.causes.map(Box::new),
            diagnosis: of_call.diagnosis,
            advice: of_call.advice,
            for_models: of_call.for_models,
            ..Failure::new(of_call.kind, of_call.message.unwrap_or(stored.text))
        };
        Ok(Self {
            id_given: stored.id_given.unwrap_or_else(|| !is_generated_id(&stored.id)),
            id: stored.id,
            asked: stored.asked.unwrap_or_else(|| stored.name.clone()),
            name: stored.name,
            repaired: stored.repaired,
            server: stored.server,
            tool: stored.tool,
            outcome: match stored.status {
                Status::Done => Outcome::Done(answer),
                Status::ToolFailed => Outcome::ToolFailed(answer),
                Status::Refused => Outcome::Refused(failure),
                Status::Lost => Outcome::Lost(failure),
            },
            attempts: of_call.attempts,
            latency: stored_millis::duration(of_call.latency_ms)?,
            queued: stored_millis::duration(of_call.queued_ms)?,
            original_bytes: of_call.original_bytes,
            untrusted: stored.untrusted,
            cached: of_call.cached,
            masked: of_call.masked,
            masked_by: of_call.masked_by,
            truncated: of_call.truncated,
            handle: of_call.handle,
            warnings: stored.warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use pegboard_config::{Join, Structured};

    fn write_and_read(reply: &Reply) -> Reply {
        let written = serde_json::to_string(reply).unwrap();
        let read: Reply = serde_json::from_str(&written).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), written);
        assert_eq!(read.text(), reply.text());
        read
    }

    fn outcomes() -> impl Strategy<Value = Outcome> {
        let answer = (
            prop::collection::vec(".{0,12}", 0..3),
            prop::option::of(Just(json!({"a": [1, "x"]}))),
            prop::option::of(Just(json!({"trace": "t"}))),
            prop::option::of(any::<i64>()),
            any::<bool>(),
            prop::sample::select(vec![Join::Newline, Join::EmptyLine, Join::First]),
            prop::sample::select(vec![Structured::ContentFirst, Structured::BothDedup]),
            prop::option::of("[a-z.]{1,8}"),
        );
        let answer = answer.prop_map(|(texts, structured, meta, code, executed, join, form, fence)| Answer {
            structured,
            meta: meta.and_then(|meta| meta.as_object().cloned()),
            error_code: code,
            executed,
            rendering: Rendering {
                join,
                structured: form,
                fence: fence.map(Into::into),
            },
            ..Answer::from_content(texts.into_iter().map(Content::text))
        });
        let kind = prop::sample::select(Kind::ALL.to_vec());
        let failure = (
            kind,
            ".{0,20}",
            prop::option::of(".{0,9}"),
            any::<bool>(),
            prop::option::of(any::<i64>()),
            prop::option::of(any::<u32>()),
            prop::option::of(prop::sample::select(vec![Advice::Leave, Advice::Wait])),
            prop::option::of("[a-z]{1,8}"),
        );
        let failure = failure.prop_map(|(kind, message, hint, sent, code, retry, advice, for_models)| Failure {
            hint,
            advice,
            for_models: for_models.map(String::into_boxed_str),
            may_have_executed: sent,
            code,
            retry_after: retry.map(|millis| Duration::from_millis(millis.into())),
            ..Failure::new(kind, message).caused_by(&std::io::Error::other("gone"))
        });
        (answer, failure, 0..4).prop_map(|(answer, failure, which)| match which {
            // A call that is done has run, and its answer is no error. A refused call has not run.
            0 => Outcome::Done(Answer {
                executed: true,
                error_code: None,
                ..answer
            }),
            1 => Outcome::ToolFailed(answer),
            2 => Outcome::Refused(Failure {
                may_have_executed: false,
                ..failure
            }),
            _ => Outcome::Lost(failure),
        })
    }

    proptest! {
        #[test]
        fn a_reply_is_read_as_it_was_written(
            outcome in outcomes(),
            id in prop::sample::select(vec!["call-12", "call-x", "toolu_1"]),
            id_given: bool,
            asked in prop::sample::select(vec!["fx.echo", "fx__echo"]),
            latency in 0u64..1_000_000_000_000,
            (attempts, masked, truncated, untrusted, cached) in any::<(u32, u16, bool, bool, bool)>(),
        ) {
            let mut reply = Reply::unanswered(id, "fx.echo", outcome, Duration::from_micros(latency));
            reply.id_given = id_given;
            reply.asked = asked.to_owned();
            reply.server = Some("fx".parse().unwrap());
            reply.tool = Some("echo".to_owned());
            reply.attempts = attempts;
            reply.masked = masked.into();
            (reply.truncated, reply.untrusted, reply.cached) = (truncated, untrusted, cached);
            reply.handle = truncated.then(|| "out_1".to_owned());
            reply.repaired = cached.then(|| "echo".to_owned());
            reply.warnings = vec!["careful".to_owned()];
            prop_assert_eq!(write_and_read(&reply), reply);
        }

        #[test]
        fn an_outcome_is_read_as_it_was_written(outcome in outcomes()) {
            let written = serde_json::to_string(&outcome).unwrap();
            prop_assert_eq!(serde_json::from_str::<Outcome>(&written).unwrap(), outcome);
        }
    }

    /// The example of the contract, which has fewer fields than are written now.
    #[test]
    fn a_reply_of_an_earlier_version_is_read_and_unknown_fields_are_ignored() {
        let reply: Reply = serde_json::from_value(json!({
            "id": "7", "name": "time.now", "server": "time", "tool": "now", "status": "done", "is_error": false,
            "text": "hi", "content": [{"type": "text", "text": "hi"}], "structured": null, "colour": "blue",
            "outcome": {"kind": "ok", "may_have_executed": true, "attempts": 1, "latency_ms": 1.9, "queued_ms": 0.0,
                        "masked": 0, "truncated": false, "original_bytes": 42, "handle": null, "weight": 3},
            "hint": null
        }))
        .unwrap();
        assert_eq!(reply.outcome, Outcome::Done(Answer::from_text("hi")));
        assert_eq!(reply.latency, Duration::from_micros(1900));
        assert!(reply.id_given && reply.asked == "time.now");
    }

    #[test]
    fn a_reply_that_makes_no_sense_is_refused() {
        let refused = |change: fn(&mut Value)| {
            let outcome = Outcome::Done(Answer::from_text("hi"));
            let reply = Reply::unanswered("1", "fx.echo", outcome, Duration::ZERO);
            let mut json = serde_json::to_value(reply).unwrap();
            change(&mut json);
            serde_json::from_value::<Reply>(json).unwrap_err().to_string()
        };
        assert!(refused(|json| json["status"] = "sold".into()).contains("`sold`"));
        assert!(refused(|json| json["server"] = "a b".into()).contains("server name"));
        assert!(refused(|json| json["outcome"]["latency_ms"] = (-1).into()).contains("milliseconds"));
        assert!(refused(|json| json["outcome"]["kind"] = "odd".into()).contains("`odd`"));
    }
}
