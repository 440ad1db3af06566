//! The part that the handles of all fake servers in the test's process share.

use std::sync::Arc;

use pegboard_protocol::method::notification;
use serde_json::Value;

use crate::{log::Received, script::Script, server::Server};

/// Observes and controls a fake server in the test's own process.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) server: Arc<Server>,
}

impl Control {
    /// All messages received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.server.log.all()
    }

    /// The number of messages received with this method.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.server.log.count(method)
    }

    /// Returns once this many messages with this method were received. It has no timeout of its own.
    pub async fn wait_for(&self, method: &str, count: usize) {
        self.server.log.wait_for(method, count).await;
    }

    /// The number of connections (in memory) or starts (network).
    #[must_use]
    pub fn starts(&self) -> u32 {
        self.server.starts()
    }

    /// The number of streams open for notifications.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.server.listener_count()
    }

    /// Opens a gate for good: tools that wait at it continue, and later calls do not wait.
    pub fn open_gate(&self, gate: &str) {
        self.server.open_gate(gate);
    }

    /// Changes the script and resets the counters of the faults' triggers.
    pub fn change(&self, change: impl FnOnce(&mut Script)) {
        let mut script = Script::clone(&self.server.script());
        change(&mut script);
        self.server.set_script(script);
    }

    /// Sends a notification to every client subscribed to it.
    pub async fn notify(&self, method: &str, params: Value) {
        self.server.notify(method, &params).await;
    }

    /// Sends `notifications/tools/list_changed`.
    pub async fn tools_changed(&self) {
        self.notify(notification::TOOLS_LIST_CHANGED, Value::Null).await;
    }
}
