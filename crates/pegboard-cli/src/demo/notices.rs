//! What a running request tells its client before the answer: progress and log messages.

use serde_json::{Value, json};
use tokio::sync::mpsc;

/// How loud a log message is, quietest first.
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

/// The way to the client for one request. What the client did not ask for is dropped here.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices {
    /// Bounded, so a client that does not read slows its own request down.
    pub(super) out: Option<mpsc::Sender<String>>,
    pub(super) progress_token: Option<Value>,
    /// The quietest level the client wants; none means silence.
    pub(super) level: Option<LogLevel>,
}

impl Notices {
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
            let notice = json!({"jsonrpc": "2.0", "method": method, "params": params});
            // A closed queue means that the client has gone; the request is about to be cancelled.
            let _ = out.send(notice.to_string()).await;
        }
    }
}
