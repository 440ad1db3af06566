//! Tells servers that the session of a view has ended, where their config names a URL for that.

use std::sync::{Arc, atomic::Ordering};

use futures_util::future::join_all;
use tokio::{runtime::Handle, task::JoinHandle};

use super::{registry::Registry, server_handle::Server};

impl Registry {
    /// Splits the servers of a view that ends into those that a task closes and then tells, and the others. A shutdown waits for the task.
    pub(super) fn end_sessions(&self, servers: Vec<Server>) -> (Option<JoinHandle<()>>, Vec<Server>) {
        let (told, others): (Vec<Server>, Vec<Server>) = servers.into_iter().partition(Server::end_session);
        if told.is_empty() {
            return (None, others);
        }
        let Ok(runtime) = Handle::try_current() else {
            tracing::warn!("a session is not cleaned up, because its view was dropped outside of a runtime");
            return (None, others);
        };
        let telling = async move {
            join_all(told.iter().map(Server::close_and_tell)).await;
        };
        (Some(self.spawn_on(telling, &runtime)), others)
    }
}

impl Server {
    /// Whether the server has to be told that the session has ended: it was used, and was not told yet.
    fn end_session(&self) -> bool {
        let has_url = self.session_endpoint().is_some();
        let was_used = || self.is_ready() || self.0.calls.status().total > 0;
        has_url && was_used() && !self.0.is_session_ended.swap(true, Ordering::AcqRel)
    }

    /// The endpoint with the view's values, if its config names a URL for cleanup.
    fn session_endpoint(&self) -> Option<&pegboard_config::Endpoint> {
        let pegboard_client::transport::Target::Configured(transport) = &self.0.spec.target else {
            return None;
        };
        let endpoint = transport.endpoint()?;
        let is_of_view = self.0.spec.owner.is_some();
        (is_of_view && endpoint.session_cleanup_url.is_some()).then_some(endpoint)
    }

    /// Closes the server, and sends the request. A failure of that is logged.
    async fn close_and_tell(&self) {
        self.close().await;
        let Some(endpoint) = self.session_endpoint() else {
            return;
        };
        let spec = &self.0.spec;
        #[cfg(feature = "http")]
        {
            let credentials = spec.credentials.as_ref();
            let credentials = credentials.map(|source| {
                pegboard_client::transport::ConnectionCredentials::new(Arc::clone(source), spec.masker.clone())
            });
            let limits = self.config_snapshot().limits;
            let sent = pegboard_client::transport::clean_up_session(endpoint, &limits, credentials, &spec.masker).await;
            match sent {
                Ok(()) => tracing::debug!(server = %self.name(), "the session of a view was cleaned up"),
                Err(problem) => {
                    tracing::warn!(server = %self.name(), "the session of a view was not cleaned up at `session_cleanup_url`: {problem}");
                }
            }
        }
        #[cfg(not(feature = "http"))]
        {
            let _ = (endpoint, spec, Arc::new(()));
            tracing::warn!(server = %self.name(), "the session of a view is not cleaned up: this program was built without `http`");
        }
    }
}
