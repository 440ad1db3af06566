//! The streamable HTTP transport: every message is a POST, its response a JSON body or an event stream. A GET stream carries messages that
//! the server sends on its own.

mod event_stream;
mod exchange;
mod session;

use pegboard_base::BoxFuture;
use std::{sync::Arc, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection_credentials::ConnectionCredentials,
    dial_error::DialError,
    http_client::{self, HttpClient},
    outgoing::{Envelope, Outgoing},
    wire::{FLUSH_TIMEOUT, Inbox, Wire},
    wire_end::{EndReason, WireEnd},
};
use pegboard_config::{Endpoint, Limits};
use session::{HttpSession, OpenRequest};

/// How long [`Wire::on_established`] waits for the GET stream to open. Some servers send no headers before the first event.
const GET_STREAM_TIMEOUT: Duration = Duration::from_secs(1);

/// A wire over streamable HTTP.
pub(super) struct Http {
    session: Arc<HttpSession>,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Tasks that send messages without a response. They are flushed on close.
    notifications: TaskTracker,
}

impl Http {
    pub(super) async fn new(
        endpoint: &Endpoint,
        limits: &Limits,
        credentials: Option<ConnectionCredentials>,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, DialError> {
        Ok(Self {
            session: Arc::new(HttpSession::new(
                HttpClient::new(endpoint, limits, credentials).await?,
                limits,
                inbox,
            )),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            notifications: TaskTracker::new(),
        })
    }
}

impl Wire for Http {
    fn send(&self, message: Outgoing) {
        let (session, stop) = (self.session.clone(), self.stop.clone());
        let (id, is_modern) = (message.id, message.envelope.modern.is_some());
        // Locked during the spawn, so that the task cannot end before it is in the map.
        let mut open = self.session.open_requests.lock();
        let tasks = if id.is_some() { &self.tasks } else { &self.notifications };
        let task = tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = http_client::with_accept_timeout(id, session.exchange(message)) => {}
            }
        });
        if let Some(id) = id {
            let task = task.abort_handle();
            open.insert(id, OpenRequest { task, is_modern });
        }
    }

    /// Closes the request's stream. In the modern era that cancels the request; in the legacy era a cancellation must be sent as well.
    fn abandon(&self, id: u64) -> bool {
        match self.session.open_requests.lock().remove(&id) {
            None => false,
            Some(open) => {
                open.task.abort();
                self.session.request_ended.notify_one();
                open.is_modern
            }
        }
    }

    fn on_established(&self, envelope: &Envelope) -> BoxFuture<'static, ()> {
        self.session.state.lock().version.clone_from(&envelope.version);
        if envelope.modern.is_some() {
            return Box::pin(std::future::ready(()));
        }
        let opened = CancellationToken::new();
        let (session, stop, is_open) = (self.session.clone(), self.stop.clone(), opened.clone());
        self.tasks.spawn(async move {
            // Also releases the wait if the stream never opens.
            let _open_on_drop = is_open.clone().drop_guard();
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = session.listen(&is_open) => {}
            }
        });
        Box::pin(async move {
            let _ = tokio::time::timeout(GET_STREAM_TIMEOUT, opened.cancelled()).await;
        })
    }

    fn has_session(&self) -> bool {
        self.session.state.lock().id.is_some()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            http_client::flush(&self.notifications).await;
            self.session.finish_requests().await;
            self.stop.cancel();
            self.tasks.close();
            self.tasks.wait().await;
            // A server that does not respond to the DELETE must not delay the next session or the end of the program.
            let deleting = tokio::spawn(self.session.clone().delete());
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, deleting).await;
            self.session.inbox.report_end(WireEnd::new(EndReason::Closed));
        })
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests;
