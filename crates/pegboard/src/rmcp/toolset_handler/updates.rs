//! Updates of several resources, for one subscription of the protocol without sessions.

use ::rmcp::ErrorData;
use tokio::{sync::mpsc, task::JoinSet};

use super::errors::error_of;
use crate::toolset::Toolset;
use pegboard_base::name::ServerName;

/// The capacity of the channel of updates. While it is full, the subscriptions wait, and further updates of a resource become one.
const UPDATES: usize = 64;

/// The updates of all resources that were added. The subscriptions end when this is dropped.
pub(super) struct ResourceUpdates {
    forwarders: JoinSet<()>,
    sender: mpsc::Sender<String>,
    updates: mpsc::Receiver<String>,
}

impl Default for ResourceUpdates {
    fn default() -> Self {
        let (sender, updates) = mpsc::channel(UPDATES);
        Self {
            forwarders: JoinSet::new(),
            sender,
            updates,
        }
    }
}

impl ResourceUpdates {
    /// Subscribes to a resource of a server.
    pub(super) async fn add(&mut self, toolset: &Toolset, server: ServerName, uri: String) -> Result<(), ErrorData> {
        let mut subscription = toolset.subscribe(&server, &uri).await.map_err(error_of)?;
        let sender = self.sender.clone();
        self.forwarders
            .spawn(async move { while subscription.changed().await && sender.send(uri.clone()).await.is_ok() {} });
        Ok(())
    }

    /// Waits for the next update and returns the URI that was added. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.updates.recv().await
    }
}
