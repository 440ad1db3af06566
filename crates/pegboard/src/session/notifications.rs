//! The notifications of one session that are neither progress nor changes of its listings: read, bounded, and passed on.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::sync::watch;

use super::{
    desired_state::{DesiredState, LogLevel},
    events::{LogMessage, ServerEvent},
    task_updates::{TaskUpdateReceiver, TaskUpdates},
};
use crate::{mask::ServerMasker, name::ServerName};

/// The longest message of a log that is kept, in bytes of JSON.
const MAX_LOG: usize = 64 << 10;
/// The longest text that goes into our own log.
const MAX_TRACED: usize = 1 << 10;
/// How many finished visits of pages are remembered.
const MAX_COMPLETED: usize = 64;
/// The longest id or address that is taken.
const MAX_WORD: usize = 8 << 10;

/// What one session has told so far.
#[derive(Debug)]
pub(super) struct Notifications {
    /// Whose news they are, for logs.
    server: ServerName,
    desired_state: Arc<DesiredState>,
    masker: ServerMasker,
    /// The request under which we listen to news of addresses.
    listening: AtomicU64,
    /// The addresses that the server has agreed to send news of, once it has said so.
    acknowledged: watch::Sender<Option<Vec<String>>>,
    /// The visits of pages that are done, the newest last.
    completed: watch::Sender<VecDeque<String>>,
    tasks: Arc<TaskUpdates>,
}

impl Notifications {
    pub(super) fn new(server: ServerName, desired_state: Arc<DesiredState>, masker: ServerMasker) -> Arc<Self> {
        Arc::new(Self {
            server,
            desired_state,
            masker,
            listening: AtomicU64::new(0),
            acknowledged: watch::Sender::new(None),
            completed: watch::Sender::default(),
            tasks: Arc::default(),
        })
    }

    /// Takes a notification.
    pub(super) fn hear(&self, method: &str, params: Option<&RawValue>) {
        let params = params.map_or("{}", RawValue::get);
        match method {
            "notifications/resources/updated" => {
                if let Ok(Updated { uri }) = serde_json::from_str(params)
                    && uri.len() <= MAX_WORD
                {
                    self.desired_state.tell_updated(&uri, &self.masker);
                }
            }
            "notifications/message" => self.log(params),
            "notifications/elicitation/complete" => {
                if let Ok(Complete { id }) = serde_json::from_str(params)
                    && id.len() <= MAX_WORD
                {
                    self.complete(id);
                }
            }
            "notifications/subscriptions/acknowledged" => {
                if let Ok(Acknowledged { notifications, meta }) = serde_json::from_str(params)
                    && self.is_ours(&meta)
                {
                    self.acknowledged.send_replace(Some(notifications.uris));
                }
            }
            // The second is the word of the newest era.
            "notifications/tasks/status" | "notifications/tasks" => self.tasks.hear(params, &self.masker),
            _ => {
                tracing::debug!(server = %self.server, method = %self.masker.text(method).escape_debug(), "notification")
            }
        }
    }

    fn log(&self, params: &str) {
        if params.len() > MAX_LOG {
            tracing::debug!(server = %self.server, bytes = params.len(), "a log message of the server was too long");
            return;
        }
        let Ok(mut log) = serde_json::from_str::<Log>(params) else {
            return;
        };
        self.masker.hide_in(&mut log.logger);
        self.masker.current().value(&mut log.data);
        let Log { level, logger, data } = log;
        let text = match &data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = &text[..text.floor_char_boundary(MAX_TRACED)];
        let logger_name = logger.as_deref().unwrap_or_default().escape_debug();
        tracing::debug!(target: "pegboard::server_log", server = %self.server, level = level.as_str(), logger = %logger_name, text = %text.escape_debug(), "server log");
        self.desired_state
            .tell(ServerEvent::Log(LogMessage { level, logger, data }));
    }

    fn complete(&self, id: String) {
        self.completed.send_modify(|completed| {
            completed.push_back(id.clone());
            let surplus = completed.len().saturating_sub(MAX_COMPLETED);
            completed.drain(..surplus);
        });
        self.desired_state.tell(ServerEvent::ElicitationComplete { id });
    }

    /// Waits until the user has done what this visit was for.
    pub(super) async fn until_completed(&self, id: &str) {
        let mut completed = self.completed.subscribe();
        // The sender lives as long as we do.
        let _ = completed.wait_for(|done| done.iter().any(|other| other == id)).await;
    }

    /// What is told of a task from now on.
    pub(super) fn of_task(&self, id: &str) -> TaskUpdateReceiver {
        self.tasks.of(id)
    }

    #[cfg(test)]
    pub(super) fn followed_tasks(&self) -> usize {
        self.tasks.count()
    }

    /// We listen to news of addresses under the request of this id. What the server agrees to is not known yet.
    pub(super) fn listen_under(&self, id: u64) {
        self.listening.store(id, Ordering::Relaxed);
        self.acknowledged.send_replace(None);
    }

    /// Whether it is about the request under which we listen to news of addresses, as far as the server says: there may be others.
    fn is_ours(&self, meta: &Map<String, Value>) -> bool {
        let listening = self.listening.load(Ordering::Relaxed);
        match meta.get("io.modelcontextprotocol/subscriptionId") {
            Some(Value::String(id)) => *id == listening.to_string(),
            Some(id) => id.as_u64() == Some(listening),
            None => true,
        }
    }

    /// Waits until the server has said which addresses it sends news of.
    pub(super) async fn until_acknowledged(&self) -> Vec<String> {
        let mut acknowledged = self.acknowledged.subscribe();
        match acknowledged.wait_for(Option::is_some).await {
            Ok(uris) => uris.clone().unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }
}

#[derive(Deserialize)]
struct Updated {
    uri: String,
}

#[derive(Deserialize)]
struct Complete {
    #[serde(rename = "elicitationId")]
    id: String,
}

#[derive(Deserialize)]
struct Acknowledged {
    #[serde(default)]
    notifications: Filter,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct Filter {
    #[serde(default, rename = "resourceSubscriptions")]
    uris: Vec<String>,
}

#[derive(Deserialize)]
struct Log {
    level: LogLevel,
    #[serde(default)]
    logger: Option<String>,
    #[serde(default)]
    data: Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn notifications() -> Arc<Notifications> {
        Notifications::new(
            ServerName::parse("one").unwrap(),
            DesiredState::new(&[]),
            ServerMasker::default(),
        )
    }

    fn hear(notifications: &Notifications, method: &str, params: &Value) {
        let params = RawValue::from_string(params.to_string()).unwrap();
        notifications.hear(method, Some(&params));
    }

    #[tokio::test]
    async fn what_a_server_tells_reaches_those_who_listen_and_the_rest_is_dropped() {
        let notifications = notifications();
        let mut events = notifications.desired_state.events();
        hear(
            &notifications,
            "notifications/message",
            &json!({"level": "loud", "data": 1}),
        );
        hear(
            &notifications,
            "notifications/message",
            &json!({"level": "info", "data": "x".repeat(MAX_LOG)}),
        );
        hear(&notifications, "notifications/resources/updated", &json!({"uri": 7}));
        hear(&notifications, "notifications/unheard_of", &json!([]));
        hear(
            &notifications,
            "notifications/message",
            &json!({"level": "warning", "logger": "db", "data": {"a": 1}}),
        );
        let event = events.next().await.unwrap();
        assert_eq!(
            serde_json::to_value(&*event).unwrap(),
            json!({"event": "log", "level": "warning", "logger": "db", "data": {"a": 1}})
        );
        hear(
            &notifications,
            "notifications/resources/updated",
            &json!({"uri": "a:b"}),
        );
        assert_eq!(
            *events.next().await.unwrap(),
            ServerEvent::ResourceUpdated { uri: "a:b".into() }
        );
    }

    #[tokio::test]
    async fn a_finished_visit_is_known_also_when_it_ended_before_anybody_waited() {
        let notifications = notifications();
        for number in 0..100 {
            hear(
                &notifications,
                "notifications/elicitation/complete",
                &json!({"elicitationId": number.to_string()}),
            );
        }
        notifications.until_completed("99").await;
        assert_eq!(notifications.completed.borrow().len(), MAX_COMPLETED);
    }

    #[tokio::test]
    async fn a_late_word_about_another_stream_says_nothing_about_this_one() {
        let notifications = notifications();
        let agree = |id: Value, uri: &str| {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
            let params = json!({ "_meta": meta, "notifications": { "resourceSubscriptions": [uri] } });
            hear(&notifications, "notifications/subscriptions/acknowledged", &params);
        };
        notifications.listen_under(7);
        for id in [json!(6), json!("6"), json!(-7), json!([7])] {
            agree(id, "a:old");
            assert_eq!(*notifications.acknowledged.borrow(), None);
        }
        agree(json!("7"), "a:new");
        assert_eq!(notifications.until_acknowledged().await, ["a:new"]);
    }
}
