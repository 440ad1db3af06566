//! Requests of the server that are answered as tasks: the server gets a handle at once, and polls for the result.

use std::collections::BTreeMap;

use pegboard_base::sync::Mutex;
use pegboard_base::timestamp::Timestamp;
use pegboard_protocol::{code, meta, method};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::callback::{ANSWER_TIMEOUT, ErrorResponse, with_timeout};

/// The most tasks of one session that are kept, ended or not.
const MAX_TASKS: usize = 32;
/// The poll interval that servers are given.
const POLL_MS: u64 = 500;

/// The tasks of one session.
#[derive(Debug, Default)]
pub(super) struct HostTasks(Mutex<TaskTable>);

#[derive(Debug, Default)]
struct TaskTable {
    /// The tasks by number, the oldest first.
    tasks: BTreeMap<u64, HostTask>,
    last_number: u64,
}

#[derive(Debug)]
struct HostTask {
    created: Timestamp,
    response: watch::Receiver<Option<Result<Value, ErrorResponse>>>,
    /// Dropped when the task is cancelled.
    work: Option<AbortOnDropHandle<()>>,
}

impl HostTask {
    fn status(&self) -> &'static str {
        match (&*self.response.borrow(), &self.work) {
            (Some(Ok(_)), _) => "completed",
            (Some(Err(_)), _) => "failed",
            (None, Some(_)) => "working",
            (None, None) => "cancelled",
        }
    }

    fn to_json(&self, number: u64) -> Value {
        json!({
            "taskId": id(number), "status": self.status(), "createdAt": self.created.to_string(),
            "lastUpdatedAt": Timestamp::now().to_string(), "ttl": ANSWER_TIMEOUT.as_millis() as u64, "pollInterval": POLL_MS,
        })
    }
}

impl HostTasks {
    /// Spawns `answering` as a task and returns its handle. Fails if too many tasks are running.
    pub(super) fn start(
        &self,
        answering: impl Future<Output = Result<Value, ErrorResponse>> + Send + 'static,
    ) -> Result<Value, ErrorResponse> {
        let (sender, response) = watch::channel(None);
        let mut table = self.0.lock();
        table.evict_oldest()?;
        let work = tokio::spawn(async move {
            let answer = with_timeout(answering).await;
            sender.send_replace(Some(answer));
        });
        let task = HostTask {
            created: Timestamp::now(),
            response,
            work: Some(AbortOnDropHandle::new(work)),
        };
        table.last_number += 1;
        let number = table.last_number;
        let handle = task.to_json(number);
        table.tasks.insert(number, task);
        Ok(json!({ "task": handle }))
    }

    /// Responds to a `tasks/…` request of the server.
    pub(super) async fn respond(&self, method: &str, params: &Value) -> Result<Value, ErrorResponse> {
        if method == method::TASKS_LIST {
            let table = self.0.lock();
            let tasks: Vec<_> = table.tasks.iter().map(|(number, task)| task.to_json(*number)).collect();
            return Ok(json!({ "tasks": tasks }));
        }
        let unknown = || (code::INVALID_PARAMS, "there is no such task".to_owned());
        let number = params
            .get("taskId")
            .and_then(Value::as_str)
            .and_then(number_of)
            .ok_or_else(unknown)?;
        let mut response = {
            let mut table = self.0.lock();
            let task = table.tasks.get_mut(&number).ok_or_else(unknown)?;
            match method {
                method::TASKS_GET => return Ok(task.to_json(number)),
                method::TASKS_CANCEL if task.status() != "working" => {
                    return Err((code::INVALID_PARAMS, "the task has ended already".to_owned()));
                }
                method::TASKS_CANCEL => {
                    task.work = None;
                    return Ok(task.to_json(number));
                }
                method::TASKS_RESULT => task.response.clone(),
                _ => return Err((code::METHOD_NOT_FOUND, "this client does not offer that".to_owned())),
            }
        };
        // The channel closes without a value when the task is cancelled.
        let received = response
            .wait_for(Option::is_some)
            .await
            .map(|response| response.clone());
        let mut result = match received {
            Ok(Some(response)) => response?,
            _ => return Err((code::REQUEST_CANCELLED, "the task was cancelled".to_owned())),
        };
        if let Value::Object(result) = &mut result {
            let meta = result.entry("_meta").or_insert(Value::Null);
            if !meta.is_object() {
                *meta = json!({});
            }
            meta[meta::RELATED_TASK] = json!({ "taskId": id(number) });
        }
        Ok(result)
    }
}

impl TaskTable {
    /// Evicts the oldest ended task if the table is full. Fails if all tasks are running.
    fn evict_oldest(&mut self) -> Result<(), ErrorResponse> {
        if self.tasks.len() < MAX_TASKS {
            return Ok(());
        }
        let ended = self.tasks.iter().find(|(_, task)| task.status() != "working");
        match ended.map(|(number, _)| *number) {
            Some(number) => {
                self.tasks.remove(&number);
                Ok(())
            }
            None => Err((
                code::INTERNAL_ERROR,
                "too many questions are being answered already".to_owned(),
            )),
        }
    }
}

fn id(number: u64) -> String {
    format!("task-{number}")
}

fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix("task-")?.parse().ok()
}
