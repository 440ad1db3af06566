//! [`Confirmations`]: whether the servers have accepted a legacy client's subscriptions.
//!
//! The stream of a resource's updates is opened before the request to subscribe is answered. It subscribes, and the answer waits for that.

use std::collections::HashMap;

use pegboard_base::sync::Mutex;
use pegboard_protocol::code;
use tokio::sync::oneshot;

use crate::protocol::RpcError;

/// The most subscriptions that wait for their servers.
const MAX_WAITING: usize = 256;

/// Whether a server has accepted a subscription.
pub(super) type Confirmed = Result<(), RpcError>;

/// The subscriptions of one client that wait for their servers, by URI.
#[derive(Debug, Default)]
pub(super) struct Confirmations(Mutex<HashMap<String, oneshot::Receiver<Confirmed>>>);

impl Confirmations {
    /// Expects a confirmation for a resource. It is sent with the returned value.
    pub(super) fn expect(&self, uri: &str) -> Option<oneshot::Sender<Confirmed>> {
        let mut waiting = self.0.lock();
        if waiting.len() >= MAX_WAITING {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        waiting.insert(uri.to_owned(), receiver);
        Some(sender)
    }

    /// Waits for the confirmation of a resource.
    pub(super) async fn wait_for_confirmation(&self, uri: &str) -> Confirmed {
        let receiver = self.0.lock().remove(uri);
        let failed = || RpcError::new(code::BUSY, "too many subscriptions wait for their servers; try again");
        match receiver {
            Some(receiver) => receiver.await.unwrap_or_else(|_| Err(failed())),
            None => Err(failed()),
        }
    }
}
