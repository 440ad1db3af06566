//! The tasks of one connection that send notifications to its client. They end when the handler is dropped, or when the client is gone.

use std::{collections::HashMap, fmt, time::Duration};

use ::rmcp::{ErrorData, Peer, RoleServer, model::ResourceUpdatedNotificationParam, service::ServiceError};
use tokio_util::task::AbortOnDropHandle;

use crate::toolset::Toolset;
use pegboard_base::sync::Mutex;
use pegboard_client::session::Subscription;

/// The most resources that a client may subscribe to at once.
pub(super) const MAX_SUBSCRIPTIONS: usize = 256;
/// How often a task checks whether its client is gone.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The tasks of one connection. A clone is for another connection, so it has none.
#[derive(Default)]
pub(super) struct ConnectionTasks(Mutex<Tasks>);

#[derive(Default)]
struct Tasks {
    list_changes: Option<AbortOnDropHandle<()>>,
    /// By URI.
    updates: HashMap<String, AbortOnDropHandle<()>>,
}

impl ConnectionTasks {
    /// Starts to notify the client of changed lists.
    pub(super) fn forward_list_changes(&self, toolset: &Toolset, peer: Peer<RoleServer>) {
        let mut changes = toolset.list_changes();
        let forwarding = until_gone(peer.clone(), async move {
            while let Some(changed) = changes.next().await {
                let mut sent: Result<(), ServiceError> = Ok(());
                if changed.tools {
                    sent = sent.and(peer.notify_tool_list_changed().await);
                }
                if changed.resources {
                    sent = sent.and(peer.notify_resource_list_changed().await);
                }
                if changed.prompts {
                    sent = sent.and(peer.notify_prompt_list_changed().await);
                }
                if sent.is_err() {
                    return;
                }
            }
        });
        self.0.lock().list_changes = Some(AbortOnDropHandle::new(tokio::spawn(forwarding)));
    }

    /// Starts to notify the client of updates of a resource.
    pub(super) fn forward_updates(
        &self,
        uri: String,
        mut subscription: Subscription,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut tasks = self.0.lock();
        tasks.updates.retain(|_, task| !task.is_finished());
        if tasks.updates.len() >= MAX_SUBSCRIPTIONS && !tasks.updates.contains_key(&uri) {
            let message = format!("a client may subscribe to {MAX_SUBSCRIPTIONS} resources");
            return Err(ErrorData::invalid_request(message, None));
        }
        let shown = uri.clone();
        let forwarding = until_gone(peer.clone(), async move {
            while subscription.changed().await {
                let param = ResourceUpdatedNotificationParam::new(shown.clone());
                if peer.notify_resource_updated(param).await.is_err() {
                    return;
                }
            }
        });
        tasks
            .updates
            .insert(uri, AbortOnDropHandle::new(tokio::spawn(forwarding)));
        Ok(())
    }

    pub(super) fn stop_updates(&self, uri: &str) {
        self.0.lock().updates.remove(uri);
    }
}

impl Clone for ConnectionTasks {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for ConnectionTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionTasks").finish_non_exhaustive()
    }
}

/// Runs `work` until the connection to the client is closed. The program may keep the handler longer.
async fn until_gone(peer: Peer<RoleServer>, work: impl Future<Output = ()>) {
    let gone = async {
        while !peer.is_transport_closed() {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    };
    tokio::select! {
        () = gone => {}
        () = work => {}
    }
}
