//! Handles the notifications of one session other than progress, cancellations and list changes.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use pegboard_protocol::{meta, method::notification};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::sync::watch;

use super::{
    desired_state::DesiredState,
    events::{Audience, ListKind, LogMessage, ServerEvent},
    log_level::LogLevel,
    task_updates::{TaskUpdateReceiver, TaskUpdates},
};
use pegboard_base::name::ServerName;
use pegboard_base::sync::Mutex;
use pegboard_mask::{Carried, Counts, ServerMasker};

/// The longest log message that is published, in bytes of JSON.
const MAX_LOG: usize = 64 << 10;
/// The longest text that goes into our own log.
const MAX_TRACED: usize = 1 << 10;
/// How many completed URL elicitations are remembered.
const MAX_COMPLETED: usize = 64;
/// The longest method of an unknown notification that is published, in bytes.
const MAX_METHOD: usize = 256;
/// The longest elicitation id or URI that is accepted.
const MAX_ID: usize = 8 << 10;

/// Where a notification comes from.
#[derive(Debug)]
pub(super) struct NotificationSource {
    /// The id of the call on whose response stream it came.
    pub(super) call: Option<String>,
    /// Who may read what it says.
    pub(super) audience: Audience,
}

impl NotificationSource {
    /// A notification that belongs to no known call, on a connection of several principals.
    pub(super) const UNKNOWN: Self = Self {
        call: None,
        audience: Audience::Unknown,
    };
}

/// The notifications of one session.
#[derive(Debug)]
pub(super) struct Notifications {
    /// For logs.
    server: ServerName,
    desired_state: Arc<DesiredState>,
    masker: ServerMasker,
    /// What the last log message left open: a private key may be sent line by line.
    open_log: Mutex<Carried>,
    /// The id of our `subscriptions/listen` request.
    listen_id: AtomicU64,
    /// The URIs whose updates the server has agreed to send, once it has acknowledged the request.
    acknowledged: watch::Sender<Option<Vec<String>>>,
    /// The ids of completed URL elicitations, the newest last.
    completed: watch::Sender<VecDeque<String>>,
    tasks: Arc<TaskUpdates>,
}

impl Notifications {
    pub(super) fn new(server: ServerName, desired_state: Arc<DesiredState>, masker: ServerMasker) -> Arc<Self> {
        Arc::new(Self {
            server,
            desired_state,
            masker,
            open_log: Mutex::default(),
            listen_id: AtomicU64::new(0),
            acknowledged: watch::Sender::new(None),
            completed: watch::Sender::default(),
            tasks: Arc::default(),
        })
    }

    /// Handles a notification from this source.
    pub(super) fn receive(&self, method: &str, params: Option<&RawValue>, source: NotificationSource) {
        let params = params.map_or("{}", RawValue::get);
        match method {
            notification::RESOURCES_UPDATED => {
                if let Ok(Updated { uri }) = serde_json::from_str(params)
                    && uri.len() <= MAX_ID
                {
                    self.desired_state.publish_resource_updated(&uri, &self.masker);
                }
            }
            notification::MESSAGE => self.log(params, source),
            notification::ELICITATION_COMPLETE => {
                if let Ok(Complete { id }) = serde_json::from_str(params)
                    && id.len() <= MAX_ID
                {
                    self.complete(id);
                }
            }
            notification::SUBSCRIPTIONS_ACKNOWLEDGED => {
                if let Ok(Acknowledged { notifications, meta }) = serde_json::from_str(params)
                    && self.is_current(&meta)
                {
                    self.acknowledged.send_replace(Some(notifications.uris));
                }
            }
            // The second is the name in the newest era.
            notification::TASKS_STATUS | notification::TASKS => {
                self.tasks.receive(params, &self.masker);
                self.task_status(params);
            }
            _ => self.publish_other(method, params, source.audience),
        }
    }

    /// Publishes that a list has changed.
    pub(super) fn list_changed(&self, list: ListKind) {
        self.desired_state.publish(ServerEvent::ListChanged { list });
    }

    fn task_status(&self, params: &str) {
        if let Some(params) = self.parse_published(params)
            && let Some(id) = params.get("taskId").and_then(Value::as_str)
        {
            let id = id.to_owned();
            self.desired_state.publish(ServerEvent::TaskStatus { id, params });
        }
    }

    fn publish_other(&self, method: &str, params: &str, audience: Audience) {
        let shown = self.masker.text(method);
        tracing::debug!(server = %self.server, method = %shown.escape_debug(), "notification");
        if method.len() <= MAX_METHOD
            && let Some(params) = self.parse_published(params)
        {
            let method = shown.into_owned();
            self.desired_state
                .publish_to(audience, ServerEvent::Other { method, params });
        }
    }

    /// Parses the params of a notification that is published, and masks them. Returns `None` without subscribers, and for params that are too long or
    /// no object.
    fn parse_published(&self, params: &str) -> Option<Value> {
        if params.len() > MAX_LOG || !self.desired_state.has_subscribers() {
            return None;
        }
        let mut params: Value = serde_json::from_str(params).ok().filter(Value::is_object)?;
        let id = params.get_mut("taskId").map(Value::take);
        self.masker.current().value(&mut params);
        if let Some(id) = id {
            params["taskId"] = id;
        }
        Some(params)
    }

    fn log(&self, params: &str, source: NotificationSource) {
        if params.len() > MAX_LOG {
            tracing::debug!(server = %self.server, bytes = params.len(), "a log message of the server was too long");
            return;
        }
        let Ok(mut log) = serde_json::from_str::<Log>(params) else {
            return;
        };
        self.masker.hide_in(&mut log.logger);
        match &mut log.data {
            Value::String(text) => {
                let mut open = self.open_log.lock();
                self.masker.current().mask_next(text, &mut open, &mut Counts::default());
            }
            data => {
                self.masker.current().value(data);
            }
        }
        let Log { level, logger, data } = log;
        let text = match &data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = &text[..text.floor_char_boundary(MAX_TRACED)];
        let logger_name = logger.as_deref().unwrap_or_default().escape_debug();
        tracing::debug!(target: "pegboard::server_log", server = %self.server, level = level.as_str(), logger = %logger_name, text = %text.escape_debug(), "server log");
        let message = LogMessage {
            level,
            logger,
            data,
            call: source.call,
        };
        self.desired_state
            .publish_to(source.audience, ServerEvent::Log(message));
    }

    fn complete(&self, id: String) {
        self.completed.send_modify(|completed| {
            completed.push_back(id.clone());
            let surplus = completed.len().saturating_sub(MAX_COMPLETED);
            completed.drain(..surplus);
        });
        self.desired_state.publish(ServerEvent::ElicitationComplete { id });
    }

    /// Waits until the URL elicitation with this id is complete.
    pub(super) async fn until_completed(&self, id: &str) {
        let mut completed = self.completed.subscribe();
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = completed.wait_for(|done| done.iter().any(|other| other == id)).await;
    }

    /// Subscribes to the status notifications of a task.
    pub(super) fn subscribe_to_task(&self, id: &str) -> TaskUpdateReceiver {
        self.tasks.subscribe(id)
    }

    #[cfg(test)]
    pub(super) fn subscribed_tasks(&self) -> usize {
        self.tasks.count()
    }

    /// Sets the id of our `subscriptions/listen` request, which the server has not acknowledged yet.
    pub(super) fn set_listen_id(&self, id: u64) {
        self.listen_id.store(id, Ordering::Relaxed);
        self.acknowledged.send_replace(None);
    }

    /// Returns `true` if an acknowledgement belongs to our current `subscriptions/listen` request, or does not say to which.
    fn is_current(&self, meta: &Map<String, Value>) -> bool {
        let listen_id = self.listen_id.load(Ordering::Relaxed);
        match meta.get(meta::SUBSCRIPTION_ID) {
            Some(Value::String(id)) => *id == listen_id.to_string(),
            Some(id) => id.as_u64() == Some(listen_id),
            None => true,
        }
    }

    /// Waits until the server has acknowledged the request, and returns the URIs that it agreed to.
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

    fn receive(notifications: &Notifications, method: &str, params: &Value) {
        let params = RawValue::from_string(params.to_string()).unwrap();
        notifications.receive(method, Some(&params), NotificationSource::UNKNOWN);
    }

    #[tokio::test]
    async fn valid_notifications_reach_subscribers_and_malformed_ones_are_dropped() {
        let notifications = notifications();
        let mut events = notifications.desired_state.events();
        receive(
            &notifications,
            "notifications/message",
            &json!({"level": "loud", "data": 1}),
        );
        receive(
            &notifications,
            "notifications/message",
            &json!({"level": "info", "data": "x".repeat(MAX_LOG)}),
        );
        receive(&notifications, "notifications/resources/updated", &json!({"uri": 7}));
        receive(&notifications, "notifications/unheard_of", &json!([]));
        receive(
            &notifications,
            "notifications/message",
            &json!({"level": "warning", "logger": "db", "data": {"a": 1}}),
        );
        let event = events.next().await.unwrap();
        assert_eq!(
            serde_json::to_value(&*event).unwrap(),
            json!({"event": "log", "level": "warning", "logger": "db", "data": {"a": 1}})
        );
        receive(
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
    async fn a_private_key_that_is_logged_line_by_line_is_masked() {
        let notifications = notifications();
        let mut events = notifications.desired_state.events();
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
        for line in [concat!("-----BEGIN PRIV", "ATE KEY-----"), body, "done"] {
            let params = json!({"level": "info", "data": line});
            receive(&notifications, "notifications/message", &params);
        }
        let mut shown = Vec::new();
        for _ in 0..3 {
            let event = serde_json::to_value(&*events.next().await.unwrap()).unwrap();
            shown.push(event["data"].as_str().unwrap().to_owned());
        }
        assert!(!shown.concat().contains(&body[..16]), "{shown:?}");
        assert_eq!(shown[2], "done");
    }

    #[tokio::test]
    async fn a_url_elicitation_that_completed_before_the_wait_is_remembered() {
        let notifications = notifications();
        for number in 0..100 {
            receive(
                &notifications,
                "notifications/elicitation/complete",
                &json!({"elicitationId": number.to_string()}),
            );
        }
        notifications.until_completed("99").await;
        assert_eq!(notifications.completed.borrow().len(), MAX_COMPLETED);
    }

    #[tokio::test]
    async fn a_late_acknowledgement_of_another_stream_is_ignored() {
        let notifications = notifications();
        let acknowledge = |id: Value, uri: &str| {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
            let params = json!({ "_meta": meta, "notifications": { "resourceSubscriptions": [uri] } });
            receive(&notifications, "notifications/subscriptions/acknowledged", &params);
        };
        notifications.set_listen_id(7);
        for id in [json!(6), json!("6"), json!(-7), json!([7])] {
            acknowledge(id, "a:old");
            assert_eq!(*notifications.acknowledged.borrow(), None);
        }
        acknowledge(json!("7"), "a:new");
        assert_eq!(notifications.until_acknowledged().await, ["a:new"]);
    }
}
