//! The two sides of a connection: [`Wire`], which a transport implements, and [`Inbox`], which receives what it reads.

use pegboard_base::BoxFuture;
use std::time::Duration;

use bytes::Bytes;

use super::{
    byte_budget::{ByteBudget, NoRoom},
    outgoing::{Envelope, Outgoing},
    request_failure::WireFailure,
    wire_end::WireEnd,
};
use crate::shim::SandboxStatus;

/// A boxed future, for object-safe traits.
/// How long queued messages may still be sent when a wire is closed. One of them may be the cancellation of a request.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// One open connection to a server.
pub(crate) trait Wire: Send + Sync {
    /// Queues a message in program order and returns at once. Its [`Delivery`](super::Delivery) and the inbox report its progress and result.
    fn send(&self, message: Outgoing);

    /// Stops waiting for the response to a request. Returns `true` if the wire itself cancels the request, by closing its stream; otherwise
    /// the session has to send a cancellation.
    fn abandon(&self, _id: u64) -> bool {
        false
    }

    /// Called once the handshake is done. A wire that needs a separate stream for messages from the server opens it now; the future
    /// completes when that stream is open or has failed to open.
    fn on_established(&self, _envelope: &Envelope) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Whether the server knows which messages belong to one session, so that an answer to its question finds the call that asked it. Asked
    /// after the handshake.
    fn has_session(&self) -> bool {
        true
    }

    /// Closes the wire, and ends its tasks and the server's process. The limits of the server bound how long that takes.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// The id of the server's process, if the wire started one.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// The sandbox of the server's process, if its config requests one.
    fn sandbox(&self) -> Option<SandboxStatus> {
        None
    }

    /// The recent output of a server that sends no messages: its stderr, or an unfinished line on stdout.
    fn recent_output(&self) -> Option<String> {
        None
    }
}

/// Receives everything that a wire reads. Calls come in order and without a queue in between.
pub(crate) trait Inbox: Send + Sync + 'static {
    /// Receives one whole message. Returns the id of our request that it answers.
    fn message(&self, message: Bytes) -> Option<u64>;

    /// Receives one whole message from the HTTP response to our request `id`, which may answer no other request. Returns whether it
    /// answers `id`.
    fn message_for(&self, id: u64, message: Bytes) -> bool {
        self.message(message) == Some(id)
    }

    /// Reports a message that exceeded `limit` and was skipped. `head` and `tail` are its first and last bytes.
    fn too_long(&self, head: &[u8], tail: &[u8], limit: usize);

    /// Reports a message that was skipped because it got no permit of the byte budget. `head` and `tail` are its first and last bytes.
    fn no_room(&self, head: &[u8], tail: &[u8], no_room: NoRoom) {
        self.too_long(head, tail, no_room.limit);
    }

    /// The byte budget for the messages of all connections.
    fn budget(&self) -> ByteBudget {
        ByteBudget::default()
    }

    /// Whether the request `id` still waits for its response.
    fn waits_for(&self, id: u64) -> bool;

    /// Reports that the request `id` will get no response.
    fn report_failure(&self, id: u64, failure: WireFailure);

    /// Reports that the wire has ended. Requests that still wait for a response will get none.
    fn report_end(&self, end: WireEnd);

    /// Masks server output that is not a message, so that it can be logged and shown.
    fn mask_output(&self, text: &str) -> String {
        text.to_owned()
    }

    /// The name of the server, for logs.
    fn server(&self) -> &str {
        ""
    }
}
