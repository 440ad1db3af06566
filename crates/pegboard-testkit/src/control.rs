//! The part that the handles of all running fake servers share.

use std::sync::Arc;

use serde_json::Value;

use crate::{log::Received, script::Script, server::Server};

/// What a test can see and do while a fake server of its own process runs.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) server: Arc<Server>,
}

impl Control {
    /// Everything received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.server.log.all()
    }

    /// How many messages with this method came.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.server.log.count(method)
    }

    /// Returns once this many messages with this method came. Put a timeout around it.
    pub async fn wait_for(&self, method: &str, count: usize) {
        self.server.log.wait_for(method, count).await;
    }

    /// How often it was connected to (memory) or started (network).
    #[must_use]
    pub fn starts(&self) -> u32 {
        self.server.starts()
    }

    /// How many streams wait for notices.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.server.listener_count()
    }

    /// Opens a gate: tools that wait at it go on, now and later.
    pub fn open_gate(&self, gate: &str) {
        self.server.open_gate(gate);
    }

    /// Changes the script from now on; the triggers of faults count from the beginning.
    pub fn change(&self, change: impl FnOnce(&mut Script)) {
        let mut script = Script::clone(&self.server.script());
        change(&mut script);
        self.server.set_script(script);
    }

    /// Sends a notification to every client that listens for it.
    pub async fn notify(&self, method: &str, params: Value) {
        self.server.notify(method, &params).await;
    }

    /// Says that the list of tools changed.
    pub async fn tools_changed(&self) {
        self.notify("notifications/tools/list_changed", Value::Null).await;
    }
}
