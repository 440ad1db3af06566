//! Tools that run as tasks. The task id contains the tool's name: a task is `working` when created and `completed` when polled.

use serde_json::{Value, json};

use super::{act::Act, request::Request, result::final_answer};
use crate::script::{Script, Tool};

/// The poll interval suggested to clients.
const POLL_MS: u64 = 50;

/// Returns `true` if any tool of the server runs as a task.
pub(super) fn are_offered(script: &Script) -> bool {
    script.tools.iter().any(|tool| tool.task)
}

/// Returns `true` if this call creates a task: in the legacy era the client requests it, in the modern era the server decides.
pub(super) fn is_wanted(tool: &Tool, request: &Request<'_>) -> bool {
    tool.task && (request.modern || request.params["task"].is_object())
}

/// The response to a call that became a task.
pub(super) fn made(script: &Script, tool: &Tool, request: &Request<'_>) -> Value {
    let mut task = state(tool, "working");
    if request.modern {
        task["resultType"] = "task".into();
        return request.result(script, task);
    }
    request.result(script, json!({ "task": task }))
}

/// The acts for a `tasks/…` request.
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
