//! The notifications of a running request: progress and log messages.

use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The severity of a log message, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const NAMES: [(&'static str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find_map(|(known, level)| (known == name).then_some(level))
    }

    fn name(self) -> &'static str {
        Self::NAMES
            .into_iter()
            .find_map(|(name, level)| (level == self).then_some(name))
            .unwrap_or("info")
    }
}

/// Sends the notifications of one request to the client. Those that the client did not request are dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Notifications {
    /// Bounded: a client that does not read delays its own request.
    pub(super) out: Option<mpsc::Sender<String>>,
    pub(super) progress_token: Option<Value>,
    /// The lowest level that the client requested; `None` sends no log messages.
    pub(super) level: Option<LogLevel>,
}

impl Notifications {
    pub(super) async fn progress(&self, progress: u64, total: u64, message: &str) {
        if let Some(token) = &self.progress_token {
            let params = json!({"progressToken": token, "progress": progress, "total": total, "message": message});
            self.send("notifications/progress", &params).await;
        }
    }

    pub(super) async fn log(&self, level: LogLevel, data: Value) {
        if self.level.is_some_and(|wanted| level >= wanted) {
            let params = json!({"level": level.name(), "logger": "demo", "data": data});
            self.send("notifications/message", &params).await;
        }
    }

    async fn send(&self, method: &str, params: &Value) {
        if let Some(out) = &self.out {
            let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
            // A closed queue means that the client is gone, and the request is about to be cancelled.
            let _ = out.send(notification.to_string()).await;
        }
    }
}
