//! [`ResponderTask`]: responds to the server's requests concurrently, within bounds.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    callback::with_timeout,
    request_params::RequestParams,
    responder::{Responder, until_ended},
};
use crate::{
    session::{json_rpc, server_requests::ServerRequest, trace},
    transport::{Delivery, Envelope, Outgoing, Wire},
};

/// How many slow requests of one server are answered at once, and how many more may be queued.
const SLOW_AT_ONCE: usize = 16;
const SLOW_QUEUE: usize = 64;
/// How many responses to quick requests of one server may be in flight. No further requests are read until the server accepts them; requests
/// that overflow the queue meanwhile are dropped and counted as unexpected.
const QUICK_AT_ONCE: usize = 16;
/// How long a response that the server does not accept counts as in flight.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Responds to a server's requests for as long as its session lives.
pub(in crate::session) struct ResponderTask {
    pub(in crate::session) requests: mpsc::Receiver<ServerRequest>,
    pub(in crate::session) responder: Arc<Responder>,
}

impl ResponderTask {
    pub(in crate::session) async fn run(mut self, wire: Arc<dyn Wire>) {
        // Dropping the sets aborts the responses that are in flight when the session ends.
        let mut slow = JoinSet::new();
        let mut quick = JoinSet::new();
        let mut queue = VecDeque::new();
        loop {
            while slow.len() < SLOW_AT_ONCE
                && let Some(request) = queue.pop_front()
            {
                slow.spawn(respond(self.responder.clone(), request, wire.clone()));
            }
            let request = tokio::select! {
                biased;
                Some(_) = slow.join_next() => continue,
                Some(_) = quick.join_next() => continue,
                request = self.requests.recv(), if queue.len() < SLOW_QUEUE && quick.len() < QUICK_AT_ONCE => request,
            };
            let Some(request) = request else { return };
            let method = self.responder.masker.text(&request.method);
            tracing::debug!(server = %self.responder.server, method = %method.escape_debug(), "the server asks");
            drop(method);
            if self.responder.is_slow(&request.method) {
                queue.push_back(request);
            } else {
                quick.spawn(respond(self.responder.clone(), request, wire.clone()));
            }
        }
    }
}

/// Responds to one request. If the server cancels it, the callback is dropped and no response is sent.
async fn respond(responder: Arc<Responder>, request: ServerRequest, wire: Arc<dyn Wire>) {
    let params = RequestParams::parse(request.params.as_deref());
    let responding = responder.respond(&request.method, params, &request.attribution);
    let result = tokio::select! {
        biased;
        () = request.guard.cancelled() => return,
        result = until_ended(&request.attribution, with_timeout(responding)) => result,
    };
    let result = result.as_ref().map_err(|(code, message)| (*code, message.as_str()));
    let body = json_rpc::response(&request.id, result);
    if trace::is_enabled() {
        if responder.is_slow(&request.method) {
            trace::sent_user_input(&responder.server, &request.method, body.len());
        } else {
            trace::sent(&responder.server, &responder.masker, &body);
        }
    }
    let (taken, accepted) = oneshot::channel();
    wire.send(Outgoing {
        body,
        id: None,
        delivery: Arc::new(Delivery::default()),
        envelope: Envelope::default(),
        taken: Some(taken),
    });
    drop(wire);
    let _ = tokio::time::timeout(ACCEPT_TIMEOUT, accepted).await;
}
