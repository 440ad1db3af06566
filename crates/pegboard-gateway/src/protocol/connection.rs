//! [`Connection`]: a bidirectional wire (stdio, WebSocket, HTTP+SSE). Requests run concurrently, and all messages leave through one
//! bounded queue in the order in which they are ready.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use pegboard_protocol::{RpcError, code, method};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::{
    early_end::EarlyEnd,
    endpoint::Endpoint,
    message::{self, Broken, Incoming, MAX_MESSAGE, Message, Request},
    observed::Wire,
    outgoing::Outgoing,
    peer::{InFlight, Peer},
    running::{RunStep, Running},
    unread_room::UnreadRoom,
};
use crate::door::{Caller, Revocation};

/// How long requests in flight may take to finish when the connection is closed.
const FINISH_TIME: Duration = Duration::from_millis(250);

/// The server's end of one connection. Dropping it cancels everything that is in flight.
#[derive(Debug)]
pub(crate) struct Connection {
    endpoint: Arc<Endpoint>,
    peer: Arc<Peer>,
    tasks: TaskTracker,
    unread: UnreadRoom,
    wire: Wire<'static>,
    /// Why new requests are refused; empty while they are taken.
    draining: OnceLock<EarlyEnd>,
}

impl Connection {
    /// Opens a connection. Returns it with the queue of messages for the wire, which ends when the connection is closed.
    pub(crate) fn open(
        endpoint: &Arc<Endpoint>,
        caller: &Caller,
        wire: Wire<'static>,
    ) -> (Self, mpsc::Receiver<Outgoing>) {
        let (peer, outbox) = endpoint.open(caller);
        let connection = Self {
            endpoint: endpoint.clone(),
            peer,
            tasks: TaskTracker::new(),
            unread: UnreadRoom::new(endpoint.limits().unread),
            wire,
            draining: OnceLock::new(),
        };
        (connection, outbox)
    }

    /// Handles one message. Each request runs in a task of its own; this waits only while the queue is full.
    pub(crate) async fn receive(&self, bytes: &Bytes) {
        // Held before it is asked whether requests are still taken, so that a drain waits for a request that is being started.
        let _receiving = self.tasks.token();
        match message::parse(bytes) {
            Ok(Incoming::One(Message::Request(request))) => match self.start(request) {
                // Not in a task, because the number of these is not limited otherwise.
                Ok(running) if running.is_answered() => {
                    respond(self.peer.outbox(), finish(running, self.peer.outbox()).await).await
                }
                Ok(running) => {
                    let (outbox, unread) = (self.peer.outbox().clone(), self.unread.clone());
                    self.tasks.spawn(answer(running, outbox, unread));
                }
                Err(refusal) => self.send(refusal).await,
            },
            Ok(Incoming::One(message)) => self.handle_message(message),
            Ok(Incoming::Batch(batch)) => self.handle_batch(batch).await,
            Err(broken) => self.send(refusal(&broken)).await,
        }
    }

    /// Sends the error for a message over the length limit.
    pub(crate) async fn refuse_too_long(&self) {
        let message = format!("the message is longer than {MAX_MESSAGE} bytes");
        let error = RpcError::new(code::INVALID_REQUEST, message);
        self.send(Outgoing::error(None, &error)).await;
    }

    /// Sends the error for a message for which there is no room now.
    pub(crate) async fn refuse_busy(&self, bytes: &Bytes, message: &str) {
        let error = RpcError::new(code::BUSY, message).data(json!({"retry_after": 1}));
        let id = match message::parse(bytes) {
            Ok(Incoming::One(Message::Request(request))) => Some(request.id),
            Err(broken) => broken.id,
            Ok(_) => None,
        };
        self.send(Outgoing::error(id.as_deref(), &error)).await;
    }

    /// Waits until the requests in flight are answered, at most for `limit`. Returns whether they are. No message may be received afterwards.
    pub(crate) async fn finish(&self, limit: Duration) -> bool {
        self.tasks.close();
        tokio::time::timeout(limit, self.tasks.wait()).await.is_ok()
    }

    /// Refuses new requests from now on, and waits until those in flight are answered. Their answers are in the queue then. Notifications and
    /// answers to questions are still taken meanwhile, because requests in flight may need them.
    pub(crate) async fn drain(&self, why: EarlyEnd) {
        // The first reason is given to all.
        let _ = self.draining.set(why);
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Waits until the token of the client is good no longer, and then until the requests in flight are answered: with their results if the
    /// token has expired, and with errors if it is withdrawn.
    pub(crate) async fn drain_after(&self, revoked: &Revocation) {
        revoked.wait_ended().await;
        self.peer.end_listening();
        if revoked.has_expired() {
            tokio::select! {
                () = self.drain(EarlyEnd::TokenExpired) => return,
                () = revoked.wait_revoked() => {}
            }
        }
        // Each request notices by itself that the token is withdrawn.
        self.peer.wake();
        self.drain(EarlyEnd::TokenWithdrawn).await;
    }

    /// Lets the requests in flight notice that their endpoint was halted: they are answered with an error.
    pub(crate) fn halt(&self) {
        self.peer.wake();
    }

    /// Gives requests in flight a moment to finish, cancels the rest and ends the queue.
    pub(crate) async fn close(self) {
        if !self.finish(FINISH_TIME).await {
            self.peer.close(EarlyEnd::SessionEnded);
            // What is left waits for a wire that no longer writes, and ends when the queue is dropped.
            self.finish(FINISH_TIME).await;
        }
    }

    /// Handles a batch, which only 2025-03-26 has. Its responses are sent together.
    async fn handle_batch(&self, batch: Vec<Result<Message, Broken>>) {
        if !self.peer.allows_batches() {
            let error = RpcError::new(code::INVALID_REQUEST, "this protocol version has no batches");
            return self.send(Outgoing::error(None, &error)).await;
        }
        let (mut started, mut responses) = (Vec::new(), Vec::new());
        for item in batch {
            match item {
                Ok(Message::Request(request)) => match self.start(request) {
                    Ok(running) => started.push(running),
                    Err(refusal) => responses.push(refusal),
                },
                Ok(message) => self.handle_message(message),
                Err(broken) => responses.push(refusal(&broken)),
            }
        }
        let outbox = self.peer.outbox().clone();
        self.tasks.spawn(async move {
            let finished = join_all(started.into_iter().map(|running| finish(running, &outbox))).await;
            let (finished, entries): (Vec<_>, Vec<_>) = finished.into_iter().unzip();
            responses.extend(finished.into_iter().flatten());
            if !responses.is_empty() {
                respond(&outbox, (Some(Outgoing::batch(responses)), entries)).await;
            }
        });
    }

    fn start(&self, request: Request) -> Result<Running, Outgoing> {
        let id = request.id.clone();
        if let Some(why) = self.draining.get()
            && &*request.method != method::PING
        {
            return Err(Outgoing::error(Some(&id), &why.error(false)));
        }
        self.endpoint
            .start(&self.peer, request, self.wire)
            .map_err(|error| Outgoing::error(Some(&id), &error))
    }

    /// Takes a notification or a response.
    fn handle_message(&self, message: Message) {
        match message {
            Message::Notification(notification) => self.peer.handle_notification(notification),
            Message::Response { id, outcome } => self.peer.handle_response(&id, outcome),
            Message::Request(_) => {}
        }
    }

    async fn send(&self, message: Outgoing) {
        send(self.peer.outbox(), message).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.peer.close(EarlyEnd::SessionEnded);
    }
}

/// Sends the messages of a request and its response, for which the client must have read enough of those before it.
async fn answer(running: Running, outbox: mpsc::Sender<Outgoing>, unread: UnreadRoom) {
    let id = running.id().to_owned();
    let (response, entry) = finish(running, &outbox).await;
    let Some(response) = response else { return };
    tokio::select! {
        response = unread.acquire_room(response, &id) => respond(&outbox, (Some(response), entry)).await,
        () = outbox.closed() => {}
    }
}

/// Sends the messages of a request. Returns its response, or `None` if the client cancelled it, and its place among those in flight.
async fn finish(mut running: Running, outbox: &mpsc::Sender<Outgoing>) -> (Option<Outgoing>, Option<InFlight>) {
    let entry = running.take_entry();
    loop {
        match running.next().await {
            RunStep::Message(message) => send(outbox, message).await,
            RunStep::Done(response) => return (response, entry),
        }
    }
}

/// Sends a response. Its id is free before the client sees it, but not before there is room, so that responses that wait are bounded
/// like requests in flight.
async fn respond<T>(outbox: &mpsc::Sender<Outgoing>, (response, entries): (Option<Outgoing>, T)) {
    if let Some(response) = response
        && let Ok(place) = outbox.reserve().await
    {
        drop(entries);
        place.send(response);
    }
}

async fn send(outbox: &mpsc::Sender<Outgoing>, message: Outgoing) {
    // A closed queue means that the connection is gone.
    let _ = outbox.send(message).await;
}

fn refusal(broken: &Broken) -> Outgoing {
    Outgoing::error(broken.id.as_deref(), &broken.error)
}
