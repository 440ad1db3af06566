//! Tells servers that the session of a view has ended, where their config names a URL for that.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::{runtime::Handle, task::JoinHandle};

use super::{registry::Registry, server_handle::Server};

impl Registry {
    /// Splits the servers of a view that ends into those that a task closes and then tells, and the others. A shutdown waits for the task.
    pub(super) fn end_sessions(&self, servers: Vec<Server>) -> (Option<JoinHandle<()>>, Vec<Server>) {
        let (told, others): (Vec<Server>, Vec<Server>) = servers.into_iter().partition(end_session);
        if told.is_empty() {
            return (None, others);
        }
        let Ok(runtime) = Handle::try_current() else {
            tracing::warn!("a session is not cleaned up, because its view was dropped outside of a runtime");
            return (None, others);
        };
        let telling = async move {
            join_all(told.iter().map(close_and_tell)).await;
        };
        (Some(self.spawn_on(telling, &runtime)), others)
    }
}

/// Whether the server has to be told that the session has ended: it was used, and was not told yet.
fn end_session(server: &Server) -> bool {
    let has_url = session_endpoint(server).is_some();
    let was_used = || server.is_ready() || server.owner().calls().is_some_and(|calls| calls.total > 0);
    has_url && was_used() && server.owner().end_session()
}

/// The endpoint with the view's values, if its config names a URL for cleanup.
fn session_endpoint(server: &Server) -> Option<&pegboard_config::Endpoint> {
    let pegboard_client::transport::Target::Configured(transport) = &server.spec().target else {
        return None;
    };
    let endpoint = transport.endpoint()?;
    let is_private = server.spec().is_private();
    (is_private && endpoint.session_cleanup_url.is_some()).then_some(endpoint)
}

/// Closes the server, and sends the request. A failure of that is logged.
async fn close_and_tell(server: &Server) {
    server.close().await;
    let Some(endpoint) = session_endpoint(server) else {
        return;
    };
    let spec = server.spec();
    #[cfg(feature = "http")]
    {
        let credentials = spec.credentials.as_ref();
        let credentials = credentials.map(|source| {
            pegboard_client::transport::ConnectionCredentials::new(Arc::clone(source), spec.masker.clone())
        });
        let limits = server.config_snapshot().limits;
        let sent = pegboard_client::transport::clean_up_session(endpoint, &limits, credentials, &spec.masker).await;
        match sent {
            Ok(()) => tracing::debug!(server = %server.name(), "the session of a view was cleaned up"),
            Err(problem) => {
                tracing::warn!(server = %server.name(), "the session of a view was not cleaned up at `session_cleanup_url`: {problem}");
            }
        }
    }
    #[cfg(not(feature = "http"))]
    {
        let _ = (endpoint, spec, Arc::new(()));
        tracing::warn!(server = %server.name(), "the session of a view is not cleaned up: this program was built without `http`");
    }
}
