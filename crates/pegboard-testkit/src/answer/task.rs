//! Tools that run as tasks. A task is known by its tool alone: it works when it is made, and is done when it is asked after.

use serde_json::{Value, json};

use super::{act::Act, request::Request, result::final_answer};
use crate::script::{Script, Tool};

/// How often a client is told to ask.
const POLL_MS: u64 = 50;

/// Whether any tool of the server runs as a task.
pub(super) fn are_offered(script: &Script) -> bool {
    script.tools.iter().any(|tool| tool.task)
}

/// Whether this call makes a task: in the older era the client wants it, in the newest the server decides.
pub(super) fn is_wanted(tool: &Tool, request: &Request<'_>) -> bool {
    tool.task && (request.modern || request.params["task"].is_object())
}

/// The answer to a call that became a task.
pub(super) fn made(script: &Script, tool: &Tool, request: &Request<'_>) -> Value {
    let mut task = state(tool, "working");
    if request.modern {
        task["resultType"] = "task".into();
        return request.result(script, task);
    }
    request.result(script, json!({ "task": task }))
}

/// The answer to a question about a task.
pub(super) fn about(script: &Script, request: &Request<'_>) -> Vec<Act> {
    let id = request.params["taskId"].as_str().unwrap_or_default();
    let name = id.strip_prefix("task-").unwrap_or_default();
    let Some(tool) = script.tools.iter().find(|tool| tool.task && tool.name() == name) else {
        return vec![Act::Answer(request.error(-32602, "there is no such task", None))];
    };
    let answer = match request.method {
        "tasks/result" => final_answer(script, tool, request),
        "tasks/cancel" => request.result(script, state(tool, "cancelled")),
        "tasks/get" => {
            let mut task = state(tool, "completed");
            if request.modern {
                task["result"] = final_answer(script, tool, request)["result"].take();
            }
            request.result(script, task)
        }
        _ => request.unknown_method(),
    };
    vec![Act::Answer(answer)]
}

fn state(tool: &Tool, status: &str) -> Value {
    let at = "2026-07-28T10:00:00Z";
    json!({
        "taskId": format!("task-{}", tool.name()), "status": status, "createdAt": at, "lastUpdatedAt": at,
        "ttl": null, "ttlMs": null, "pollInterval": POLL_MS, "pollIntervalMs": POLL_MS,
    })
}
