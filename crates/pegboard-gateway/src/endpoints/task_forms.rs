//! Tasks as the clients of each era read them.

use pegboard::{Outcome, Reply, Timestamp};
use pegboard_protocol::meta;
use serde_json::{Value, json};

use super::{failures::request_error, pass_on::server_error};
use crate::protocol::{Answer, RawResult};

/// A modern server's task as legacy clients read it.
pub(super) fn legacy_task(task: &Value) -> Value {
    translate(task, ("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs"))
}

/// A legacy server's task as modern clients read it, without what its status brings: a result, an error or questions.
pub(super) fn modern_task(task: &Value) -> Value {
    translate(task, ("ttlMs", "ttl"), ("pollIntervalMs", "pollInterval"))
}

/// Translates the fields whose names differ, each given as ours and theirs. The times are required, so a missing one is now.
fn translate(task: &Value, ttl: (&str, &str), poll_interval: (&str, &str)) -> Value {
    let field = |key: &str| task.get(key).cloned().unwrap_or(Value::Null);
    let time = |key: &str| {
        if task.get(key).is_some_and(Value::is_string) {
            field(key)
        } else {
            Timestamp::now().to_string().into()
        }
    };
    let mut ours = json!({
        "taskId": field("taskId"), "status": field("status"), ttl.0: field(ttl.1),
        "createdAt": time("createdAt"), "lastUpdatedAt": time("lastUpdatedAt"),
    });
    for (key, theirs) in [("statusMessage", "statusMessage"), poll_interval, ("_meta", "_meta")] {
        if let Some(value) = task.get(theirs).filter(|value| !value.is_null()) {
            ours[key] = value.clone();
        }
    }
    ours
}

/// The task of a call that was answered at once, for a legacy client.
pub(super) fn finished_task(id: &str, at: &str, is_error: bool) -> Value {
    let status = if is_error { "failed" } else { "completed" };
    json!({"taskId": id, "status": status, "ttl": null, "createdAt": at, "lastUpdatedAt": at})
}

/// The result of a legacy server's task, within the task.
pub(super) fn inline_result(mut result: Value) -> Value {
    if let Some(Value::Object(meta)) = result.get_mut("_meta") {
        // It is within its task.
        meta.remove(meta::RELATED_TASK);
        if meta.is_empty()
            && let Some(result) = result.as_object_mut()
        {
            result.remove("_meta");
        }
    }
    if result.get("resultType").is_none() {
        result["resultType"] = "complete".into();
    }
    result
}

/// Writes the result of an awaited task.
pub(super) fn write_result(reply: &Reply, id: &str) -> Answer {
    let (answer, is_error) = match &reply.outcome {
        Outcome::Done(answer) => (answer, false),
        Outcome::ToolFailed(answer) => match answer.error_code {
            Some(code) => return Err(server_error(code, answer.text(), answer.structured.clone())),
            None => (answer, true),
        },
        Outcome::Refused(failure) | Outcome::Lost(failure) => return Err(request_error(failure)),
    };
    let mut meta = answer.meta.clone().unwrap_or_default();
    meta.insert(meta::RELATED_TASK.into(), json!({ "taskId": id }));
    let mut result = json!({ "content": answer.content, "_meta": meta });
    if let Some(structured) = &answer.structured {
        result["structuredContent"] = structured.clone();
    }
    if is_error {
        result["isError"] = true.into();
    }
    RawResult::new(&result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_translated_in_both_directions() {
        let modern = json!({"taskId": "x", "status": "working", "statusMessage": "half", "ttlMs": 60000, "pollIntervalMs": 500,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z"});
        let legacy = json!({"taskId": "x", "status": "working", "statusMessage": "half", "ttl": 60000, "pollInterval": 500,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z"});
        assert_eq!((legacy_task(&modern), modern_task(&legacy)), (legacy, modern));
        let result = json!({"taskId": "x", "status": "completed", "resultType": "complete", "result": {}});
        assert!(legacy_task(&result).get("result").is_none());
        let bare = legacy_task(&json!({"taskId": "x", "status": "completed"}));
        assert!(bare["ttl"].is_null() && bare["createdAt"].is_string() && bare["lastUpdatedAt"].is_string());
    }

    #[test]
    fn a_result_within_its_task_does_not_name_it() {
        let meta = json!({meta::RELATED_TASK: {"taskId": "x"}});
        assert_eq!(
            inline_result(json!({"content": [], "_meta": meta})),
            json!({"content": [], "resultType": "complete"})
        );
        let more = json!({meta::RELATED_TASK: {"taskId": "x"}, "a/b": 1});
        assert_eq!(inline_result(json!({"_meta": more}))["_meta"], json!({"a/b": 1}));
    }
}
