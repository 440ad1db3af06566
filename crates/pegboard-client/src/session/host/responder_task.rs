//! [`ResponderTask`]: responds to the server's requests concurrently, within bounds.

use std::{collections::HashMap, sync::Arc, time::Duration};

use pegboard_protocol::code;
use tokio::{
    sync::{mpsc, oneshot},
    task::{Id, JoinSet},
};

use super::{
    callback::{ErrorResponse, with_timeout},
    lanes::Lanes,
    request_params::RequestParams,
    responder::{Responder, until_ended},
};
use crate::{
    session::{calls_in_flight::Attribution, json_rpc, server_requests::ServerRequest, trace},
    transport::{Delivery, Envelope, Outgoing, Wire},
};

/// How many responses to quick requests of one server may be in flight. No further requests are read until the server accepts them; requests
/// that overflow the queue meanwhile are dropped and counted as unexpected.
const QUICK_AT_ONCE: usize = 16;
/// How long a response that the server does not accept counts as in flight.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);

const TOO_MANY: &str = "too many questions to this client are open; ask again when some of them are answered";

/// Responds to a server's requests for as long as its session lives.
pub(in crate::session) struct ResponderTask {
    pub(in crate::session) requests: mpsc::Receiver<ServerRequest>,
    pub(in crate::session) responder: Arc<Responder>,
}

impl ResponderTask {
    pub(in crate::session) async fn run(mut self, wire: Arc<dyn Wire>) {
        // Dropping the sets aborts the responses that are in flight when the session ends.
        let (mut asked, mut quick) = (JoinSet::new(), JoinSet::new());
        let (mut lanes, mut lane_of) = (Lanes::default(), HashMap::<Id, u64>::new());
        loop {
            while let Some((lane, request)) = lanes.next() {
                let task = asked.spawn(respond(self.responder.clone(), request, wire.clone()));
                lane_of.insert(task.id(), lane);
            }
            let request = tokio::select! {
                biased;
                Some(ended) = asked.join_next_with_id() => {
                    let task = ended.map_or_else(|error| error.id(), |(id, ())| id);
                    lane_of.remove(&task).into_iter().for_each(|lane| lanes.note_answer(lane));
                    continue;
                }
                Some(_) = quick.join_next() => continue,
                request = self.requests.recv(), if quick.len() < QUICK_AT_ONCE => request,
            };
            let Some(request) = request else { return };
            let method = self.responder.masker.text(&request.method);
            tracing::debug!(server = %self.responder.server, method = %method.escape_debug(), "the server asks");
            drop(method);
            // A question that reaches no host is refused at once.
            let is_rejected = matches!(request.attribution, Attribution::Rejected(_));
            if is_rejected || !self.responder.is_slow(&request.method) {
                quick.spawn(respond(self.responder.clone(), request, wire.clone()));
            } else if let Some(request) = lanes.add(request) {
                quick.spawn(refuse(self.responder.clone(), request, wire.clone()));
            }
        }
    }
}

/// Responds to one request. If the server cancels it, the callback is dropped and no response is sent.
async fn respond(responder: Arc<Responder>, request: ServerRequest, wire: Arc<dyn Wire>) {
    // An id that is a string may be meant as a name; a number is none.
    let name = serde_json::from_str(&request.id).ok();
    let params = RequestParams::parse(request.params.as_deref()).with_name(name);
    let responding = responder.respond(&request.method, params, &request.attribution);
    let result = tokio::select! {
        biased;
        () = request.guard.cancelled() => return,
        result = until_ended(&request.attribution, with_timeout(responding)) => result,
    };
    send(&responder, &request, result, wire).await;
}

async fn refuse(responder: Arc<Responder>, request: ServerRequest, wire: Arc<dyn Wire>) {
    send(
        &responder,
        &request,
        Err((code::INTERNAL_ERROR, TOO_MANY.to_owned())),
        wire,
    )
    .await;
}

/// Sends a response, and waits until the server has accepted it.
async fn send(
    responder: &Responder,
    request: &ServerRequest,
    result: Result<serde_json::Value, ErrorResponse>,
    wire: Arc<dyn Wire>,
) {
    let result = result.as_ref().map_err(|(code, message)| (*code, message.as_str()));
    let body = json_rpc::response(&request.id, result);
    if trace::is_enabled() {
        if responder.is_slow(&request.method) {
            trace::log_sent_user_input(&responder.server, &request.method, body.len());
        } else {
            trace::log_sent(&responder.server, &responder.masker, &body);
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
