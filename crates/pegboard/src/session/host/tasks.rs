//! Questions of servers that want them answered as tasks: they get a handle at once, and ask for the answer later.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::{ANSWER, Refusal, RequestParams, Responder};

/// The most errands of one session that are kept, done or not.
const MAX_ERRANDS: usize = 32;
/// How often a server is told to ask.
const POLL_MS: u64 = 500;

/// The errands of one session.
#[derive(Debug, Default)]
pub(super) struct HostTasks(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// By number, so the oldest is the first.
    tasks: BTreeMap<u64, HostTask>,
    next: u64,
}

#[derive(Debug)]
struct HostTask {
    began: Timestamp,
    end: watch::Receiver<Option<Result<Value, Refusal>>>,
    /// Dropped when it is given up.
    work: Option<AbortOnDropHandle<()>>,
}

impl HostTask {
    fn status(&self) -> &'static str {
        match (&*self.end.borrow(), &self.work) {
            (Some(Ok(_)), _) => "completed",
            (Some(Err(_)), _) => "failed",
            (None, Some(_)) => "working",
            (None, None) => "cancelled",
        }
    }

    fn to_json(&self, number: u64) -> Value {
        json!({
            "taskId": id(number), "status": self.status(), "createdAt": self.began.to_string(),
            "lastUpdatedAt": Timestamp::now().to_string(), "ttl": ANSWER.as_millis() as u64, "pollInterval": POLL_MS,
        })
    }
}

impl Responder {
    /// Begins to answer a question in the background.
    pub(super) fn begin(&self, method: &str, question: RequestParams) -> Result<Value, Refusal> {
        let (tell, end) = watch::channel(None);
        let (worker, method) = (self.without_tasks(), method.to_owned());
        let mut table = self.tasks.lock();
        table.forget_the_oldest()?;
        let work = tokio::spawn(async move {
            let answering = Box::pin(worker.answer(&method, question));
            let answer = match tokio::time::timeout(ANSWER, answering).await {
                Ok(answer) => answer,
                Err(_) => Err((-32603, "nobody answered in time".to_owned())),
            };
            tell.send_replace(Some(answer));
        });
        let task = HostTask {
            began: Timestamp::now(),
            end,
            work: Some(AbortOnDropHandle::new(work)),
        };
        table.next += 1;
        let number = table.next;
        let shown = task.to_json(number);
        table.tasks.insert(number, task);
        Ok(json!({ "task": shown }))
    }

    /// Answers a question about an errand.
    pub(super) async fn answer_task_method(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        if method == "tasks/list" {
            let table = self.tasks.lock();
            let tasks: Vec<_> = table.tasks.iter().map(|(number, task)| task.to_json(*number)).collect();
            return Ok(json!({ "tasks": tasks }));
        }
        let unknown = || (-32602, "there is no such task".to_owned());
        let wanted = params
            .get("taskId")
            .and_then(Value::as_str)
            .and_then(number_of)
            .ok_or_else(unknown)?;
        let mut end = {
            let mut table = self.tasks.lock();
            let task = table.tasks.get_mut(&wanted).ok_or_else(unknown)?;
            match method {
                "tasks/get" => return Ok(task.to_json(wanted)),
                "tasks/cancel" if task.status() != "working" => {
                    return Err((-32602, "the task has ended already".to_owned()));
                }
                "tasks/cancel" => {
                    task.work = None;
                    return Ok(task.to_json(wanted));
                }
                "tasks/result" => task.end.clone(),
                _ => return Err((-32601, "this client does not offer that".to_owned())),
            }
        };
        // It ends without an answer when it is cancelled.
        let ended = end.wait_for(Option::is_some).await.map(|answer| answer.clone());
        let mut answer = match ended {
            Ok(Some(answer)) => answer?,
            _ => return Err((-32800, "the task was cancelled".to_owned())),
        };
        if let Value::Object(answer) = &mut answer {
            let meta = answer.entry("_meta").or_insert(Value::Null);
            if !meta.is_object() {
                *meta = json!({});
            }
            meta["io.modelcontextprotocol/related-task"] = json!({ "taskId": id(wanted) });
        }
        Ok(answer)
    }

    /// Whether servers may have questions answered as tasks.
    pub(super) fn runs_tasks(&self) -> bool {
        self.host.offers_elicitation() || self.host.offers_sampling()
    }

    fn without_tasks(&self) -> Self {
        Self {
            server: self.server.clone(),
            host: self.host.clone(),
            desired_state: self.desired_state.clone(),
            masker: self.masker.clone(),
            tasks: HostTasks::default(),
            questions: self.questions.clone(),
        }
    }
}

impl HostTasks {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Makes room for one more, if one of the others has ended.
    fn forget_the_oldest(&mut self) -> Result<(), Refusal> {
        if self.tasks.len() < MAX_ERRANDS {
            return Ok(());
        }
        let ended = self.tasks.iter().find(|(_, task)| task.status() != "working");
        match ended.map(|(number, _)| *number) {
            Some(number) => {
                self.tasks.remove(&number);
                Ok(())
            }
            None => Err((-32603, "too many questions are being answered already".to_owned())),
        }
    }
}

fn id(number: u64) -> String {
    format!("task-{number}")
}

fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix("task-")?.parse().ok()
}
