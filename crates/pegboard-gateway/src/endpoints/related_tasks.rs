//! The task that a message is about, as `_meta` names it: by the server's id towards the server, by the client's id towards the client.

use std::collections::VecDeque;

use pegboard_base::sync::Mutex;
use pegboard_protocol::meta;
use serde_json::Value;

/// The most tasks whose ids are remembered. The one that was started or asked after longest ago is forgotten first.
const MAX_TASKS: usize = 256;

/// The ids of the tasks that the clients of a toolset have started or asked after.
#[derive(Debug, Default)]
pub(super) struct RelatedTasks(Mutex<VecDeque<KnownTask>>);

#[derive(Debug)]
struct KnownTask {
    server: String,
    /// The server's id.
    theirs: String,
    /// The id that the client knows.
    ours: String,
}

impl RelatedTasks {
    /// Remembers the id by which a client knows a server's task.
    pub(super) fn note(&self, server: &str, theirs: &str, ours: &str) {
        let mut known = self.0.lock();
        known.retain(|task| (task.server.as_str(), task.theirs.as_str()) != (server, theirs));
        if known.len() >= MAX_TASKS {
            known.pop_front();
        }
        known.push_back(KnownTask {
            server: server.to_owned(),
            theirs: theirs.to_owned(),
            ours: ours.to_owned(),
        });
    }

    /// The id by which a client knows a server's task; `None` if it has no such task.
    pub(super) fn id_of(&self, server: &str, theirs: &str) -> Option<String> {
        let known = self.0.lock();
        let task = known
            .iter()
            .find(|task| task.server == server && task.theirs == theirs)?;
        Some(task.ours.clone())
    }
}

/// Replaces the id of the task that a message names in `_meta`, or removes it if there is no other id. Returns the id that was replaced.
pub(super) fn replace_related(message: &mut Value, id_of: impl FnOnce(&str) -> Option<String>) -> Option<String> {
    let meta = message.get_mut("_meta")?.as_object_mut()?;
    let named = meta.get(meta::RELATED_TASK)?.get("taskId").and_then(Value::as_str);
    let named = named.map(str::to_owned);
    if let Some(other) = named.as_deref().and_then(id_of) {
        meta[meta::RELATED_TASK]["taskId"] = other.into();
        return named;
    }
    meta.remove(meta::RELATED_TASK);
    if meta.is_empty()
        && let Some(message) = message.as_object_mut()
    {
        message.remove("_meta");
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_names_a_task_as_its_reader_knows_it_or_not_at_all() {
        let tasks = RelatedTasks::default();
        tasks.note("s", "task-1", "sealed");
        let shown = |server: &str, mut message: Value| {
            let replaced = replace_related(&mut message, |theirs| tasks.id_of(server, theirs));
            (message, replaced)
        };
        let about = |id: &str| json!({"message": "?", "_meta": {meta::RELATED_TASK: {"taskId": id}}});
        assert_eq!(shown("s", about("task-1")), (about("sealed"), Some("task-1".into())));
        for (server, id) in [("s", "task-2"), ("other", "task-1")] {
            assert_eq!(shown(server, about(id)), (json!({"message": "?"}), None));
        }
        let odd = json!({"_meta": {meta::RELATED_TASK: {"taskId": 7}, "a/b": 1}});
        assert_eq!(shown("s", odd).0, json!({"_meta": {"a/b": 1}}));
        for plain in [
            json!({"_meta": 1}),
            json!({"message": "?"}),
            json!({"_meta": {"a/b": 1}}),
        ] {
            assert_eq!(shown("s", plain.clone()), (plain, None));
        }
    }

    #[test]
    fn the_number_of_remembered_tasks_is_bounded() {
        let tasks = RelatedTasks::default();
        for id in 0..=MAX_TASKS {
            tasks.note("s", &id.to_string(), "sealed");
            tasks.note("s", "1", "again");
        }
        assert_eq!(tasks.0.lock().len(), MAX_TASKS);
        assert_eq!(tasks.id_of("s", "0"), None);
        assert_eq!(tasks.id_of("s", "1").as_deref(), Some("again"));
    }
}
