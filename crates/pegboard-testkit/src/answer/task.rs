//! Tools that run as tasks. The task id contains the tool's name: a task is `working` when created and `completed` when polled.
//!
//! In the legacy era, a task with questions needs input until they are answered. It asks them while its result is requested.

use pegboard_protocol::{code, meta, method};
use serde_json::{Value, json};

use super::{act::Act, request::Request, result::final_answer, tool::legacy_questions};
use crate::script::{Effect, Question, Script, Tool};

/// Returns `true` if any tool of the server runs as a task.
pub(super) fn are_offered(script: &Script) -> bool {
    script.tools.iter().any(|tool| tool.task)
}

/// Returns `true` if this call creates a task: in the legacy era the client requests it, in the modern era the server decides.
pub(super) fn is_wanted(tool: &Tool, request: &Request<'_>) -> bool {
    tool.task && (request.modern || request.params["task"].is_object())
}

/// The response to a call that became a task.
pub(super) fn created_task(script: &Script, tool: &Tool, request: &Request<'_>) -> Value {
    let mut task = tool.task_state("working");
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
        return vec![Act::Answer(request.error(
            code::INVALID_PARAMS,
            "there is no such task",
            None,
        ))];
    };
    let answer = match request.method {
        method::TASKS_RESULT if !tool.questions.is_empty() => {
            let mut acts = legacy_questions(&related_questions(tool, id), request);
            acts.push(Act::Apply(Effect::FinishTask(name.to_owned())));
            acts.push(Act::Answer(final_answer(script, tool, request)));
            return acts;
        }
        method::TASKS_RESULT => final_answer(script, tool, request),
        method::TASKS_CANCEL => request.result(script, tool.task_state("cancelled")),
        method::TASKS_GET => {
            let needs_input = !request.modern && !tool.questions.is_empty();
            let mut task = tool.task_state(if needs_input { "input_required" } else { "completed" });
            if request.modern {
                task["result"] = final_answer(script, tool, request)["result"].take();
            }
            request.result(script, task)
        }
        _ => request.unknown_method(),
    };
    vec![Act::Answer(answer)]
}

/// The questions of a tool, which name the task that they are about.
fn related_questions(tool: &Tool, id: &str) -> Vec<Vec<Question>> {
    let related = |question: &Question| {
        let mut question = question.clone();
        question.params["_meta"] = json!({meta::RELATED_TASK: {"taskId": id}});
        question
    };
    let rounds = tool.questions.iter();
    rounds.map(|round| round.iter().map(related).collect()).collect()
}
