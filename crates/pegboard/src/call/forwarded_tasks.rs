//! The tasks that a view's clients have started and poll by themselves.

use std::collections::{HashSet, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;

use pegboard_base::name::ServerName;
use pegboard_base::sync::Mutex;
use pegboard_tools::outcome::{ForwardedResult, ResultKind};

/// The most tasks that are remembered. The oldest are forgotten, and can no longer be polled.
const MAX_TASKS: usize = 1024;
/// The longest id of a task, in bytes.
const MAX_ID: usize = 1 << 10;

/// The tasks that were created for a view and returned to it. Only these can be polled: other views may share the session, and the server may not
/// tell them apart.
#[derive(Debug, Default)]
pub(crate) struct ForwardedTasks(Mutex<Tasks>);

#[derive(Debug, Default)]
struct Tasks {
    known: HashSet<(ServerName, String)>,
    /// From the oldest to the newest.
    order: VecDeque<(ServerName, String)>,
}

/// The id in the params of a request. All else is for the server: some clients repeat the `task` that they have started the task with.
#[derive(Deserialize)]
struct ParamsId {
    #[serde(rename = "taskId")]
    id: String,
}

/// The ids in a result.
#[derive(Deserialize)]
struct Ids {
    #[serde(default, rename = "taskId")]
    id: Option<String>,
    /// The older era wraps the task.
    #[serde(default)]
    task: Option<TaskOf>,
}

#[derive(Deserialize)]
struct TaskOf {
    #[serde(rename = "taskId")]
    id: String,
}

impl ForwardedTasks {
    /// Remembers the task in a result, if it is one.
    pub(crate) fn note(&self, server: &ServerName, result: &ForwardedResult) {
        if result.kind != ResultKind::Task {
            return;
        }
        let Ok(ids) = serde_json::from_slice::<Ids>(&result.json) else {
            return;
        };
        if let Some(id) = ids.id.or(ids.task.map(|task| task.id)) {
            self.add(server, &id);
        }
    }

    /// Remembers a task. Ids that are too long are ignored.
    pub(crate) fn add(&self, server: &ServerName, id: &str) {
        if id.len() <= MAX_ID {
            self.insert((server.clone(), id.to_owned()));
        }
    }

    fn insert(&self, task: (ServerName, String)) {
        let mut tasks = self.0.lock();
        if !tasks.known.insert(task.clone()) {
            return;
        }
        tasks.order.push_back(task);
        if tasks.order.len() > MAX_TASKS
            && let Some(oldest) = tasks.order.pop_front()
        {
            tasks.known.remove(&oldest);
        }
    }

    /// Whether the params of a request name a task of this view.
    pub(crate) fn has(&self, server: &ServerName, params: &RawValue) -> bool {
        let named = serde_json::from_str::<ParamsId>(params.get());
        named.is_ok_and(|named| self.has_id(server, &named.id))
    }

    /// Whether this is the id of a task of this view.
    pub(crate) fn has_id(&self, server: &ServerName, id: &str) -> bool {
        self.0.lock().known.contains(&(server.clone(), id.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(json: &str, kind: ResultKind) -> ForwardedResult {
        ForwardedResult {
            kind,
            ..ForwardedResult::from_json(json.to_owned(), false)
        }
    }

    fn params(id: &str) -> Box<RawValue> {
        RawValue::from_string(format!(r#"{{"taskId":"{id}"}}"#)).unwrap()
    }

    #[test]
    fn only_tasks_that_were_returned_are_known_and_the_oldest_are_forgotten() {
        let (tasks, server) = (ForwardedTasks::default(), ServerName::parse("jobs").unwrap());
        let other = ServerName::parse("other").unwrap();
        tasks.note(&server, &result(r#"{"taskId":"a"}"#, ResultKind::Task));
        tasks.note(&server, &result(r#"{"task":{"taskId":"b"}}"#, ResultKind::Task));
        tasks.note(&server, &result(r#"{"taskId":"c"}"#, ResultKind::Complete));
        assert!(tasks.has(&server, &params("a")) && tasks.has(&server, &params("b")));
        assert!(!tasks.has(&server, &params("c")) && !tasks.has(&other, &params("a")));
        assert!(!tasks.has(&server, &RawValue::from_string("{}".to_owned()).unwrap()));
        let repeated = r#"{"taskId":"a","task":{"ttl":60000},"more":[1]}"#;
        assert!(tasks.has(&server, &RawValue::from_string(repeated.to_owned()).unwrap()));
        tasks.add(&server, "d");
        assert!(tasks.has_id(&server, "d") && !tasks.has_id(&other, "d"));
        for number in 0..MAX_TASKS {
            tasks.note(
                &server,
                &result(&format!(r#"{{"taskId":"{number}"}}"#), ResultKind::Task),
            );
        }
        assert!(!tasks.has(&server, &params("a")) && tasks.has(&server, &params("0")));
        assert_eq!(tasks.0.lock().known.len(), MAX_TASKS);
    }
}
