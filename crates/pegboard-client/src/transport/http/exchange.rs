//! One exchange: a POST and its response. Also ends the session, on the server or because a response shows that it is over.

use std::{sync::Arc, time::Duration};

use pegboard_protocol::code;

use super::session::HttpSession;
use crate::transport::{
    byte_budget::FREE_BYTES,
    delivery::{Delivery, Sent},
    http_client::{self, InSession, MediaType, mcp_headers},
    outgoing::{Envelope, Outgoing},
    request_failure::{FailureKind, WireFailure},
    trim_text,
    wire_end::{EndReason, WireEnd},
};

/// How long the server may take to respond to the DELETE that ends a session. `close` does not wait that long.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long requests in flight may still wait for their responses once the server has forgotten the session.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);
/// Why the session ends if the server no longer knows it. Requests in flight then get [`FINISH_TIMEOUT`] only, because none can succeed any more;
/// after other reasons they may still get their responses.
const FORGOTTEN: &str = "the server does not know our session any more";

impl HttpSession {
    /// Posts a message, reads its response and reports the result.
    pub(super) async fn exchange(&self, message: Outgoing) {
        let Outgoing {
            body,
            id,
            delivery,
            envelope,
            taken,
        } = message;
        let is_modern = envelope.modern.is_some();
        let permit = self
            .outgoing
            .try_acquire(if body.len() > FREE_BYTES { body.len() } else { 0 });
        let mut result = match (self.over_before(id), permit) {
            (Some(reason), _) => Err(WireFailure::new(FailureKind::SessionGone, Sent::No, reason.to_owned())),
            (None, Ok(_permit)) => self.post(body, id, &delivery, envelope).await,
            (None, Err(no_room)) => Err(WireFailure::new(FailureKind::Busy, Sent::No, no_room.to_string())),
        };
        if let Err(failure) = &mut result {
            let mut state = self.state.lock();
            let reason = why_over(failure, is_modern, state.version.is_some());
            state.over = state.over.or(reason);
            if let Some(reason) = reason
                && reason != FORGOTTEN
                && is_refused_for_its_era(failure, is_modern)
            {
                // The call can be retried in the next session, which uses the server's era.
                let text = format!("{reason}: {failure}");
                *failure = WireFailure::new(FailureKind::SessionGone, Sent::Rejected, text);
            }
        }
        let is_last = {
            let mut open = self.open_requests.lock();
            id.map(|id| open.remove(&id));
            open.is_empty()
        };
        if let (Some(id), Err(failure)) = (id, &result) {
            self.inbox.report_failure(id, failure.clone());
        }
        self.request_ended.notify_one();
        if let Some(taken) = taken {
            let _ = taken.send(result);
        }
        let over = self.state.lock().over;
        let Some(reason) = over else { return };
        // Requests in flight finish first: the server rejects each of them, which proves that they did not run.
        if !is_last {
            if reason != FORGOTTEN {
                return;
            }
            tokio::time::sleep(FINISH_TIMEOUT).await;
        }
        self.inbox
            .report_end(WireEnd::new(EndReason::Replaced(reason.to_owned())));
    }

    /// Why the session was over before the request began, if it was. Such a request is not posted: the response that ended the session may
    /// have found no other request open, so that the end is reported while this one is in flight.
    fn over_before(&self, id: Option<u64>) -> Option<&'static str> {
        // `Wire::send` holds this lock until the request is in the map, so a request that finds the session alive here is seen by the response
        // that ends it.
        let _open = id.map(|_| self.open_requests.lock())?;
        self.state.lock().over
    }

    // What not every response needs is boxed, because the future is moved when its task is spawned.
    async fn post(
        &self,
        body: Vec<u8>,
        id: Option<u64>,
        delivery: &Arc<Delivery>,
        mut envelope: Envelope,
    ) -> Result<(), WireFailure> {
        let session_id = match envelope.modern {
            Some(_) => None,
            None => {
                let state = self.state.lock();
                // Our responses to the server's requests carry no version of their own.
                envelope.version = envelope.version.or_else(|| state.version.clone());
                state.id.clone()
            }
        };
        let headers = mcp_headers(&envelope, session_id.as_ref());
        let response = self
            .client
            .post(self.client.endpoint(), headers, body, delivery)
            .await?;
        if !response.status().is_success() {
            let in_session = if session_id.is_some() {
                self.client.in_session()
            } else {
                InSession::No
            };
            return Err(Box::pin(http_client::status_failure(response, in_session)).await);
        }
        if envelope.modern.is_none() {
            self.store_session_id(response.headers())?;
        }
        http_client::reject_compressed(&response)?;
        let Some(id) = id else {
            response.finish();
            return Ok(());
        };
        match MediaType::from_response(&response) {
            MediaType::Json => {
                let body = http_client::read_body(response, self.client.limit(), self.incoming.clone()).await?;
                if self.inbox.message_for(id, trim_text::trim_start(body)) {
                    Ok(())
                } else {
                    Err(WireFailure::protocol("the answer does not belong to the request"))
                }
            }
            // Streams of the modern era cannot be resumed.
            MediaType::Events if envelope.modern.is_some() => Box::pin(self.read_response(response, id)).await,
            MediaType::Events => Box::pin(self.read_resumable_response(response, id)).await,
            MediaType::None => {
                let text = "the server took the request and gave no answer";
                Err(WireFailure::new(FailureKind::ConnectionLost, Sent::Maybe, text))
            }
            other @ MediaType::Other(_) => {
                Err(Box::pin(http_client::unexpected_type(other, "JSON or an event stream", response)).await)
            }
        }
    }

    /// Waits for the requests in flight if the server has forgotten the session: it rejects each of them, which proves that they did not run.
    pub(super) async fn finish_requests(&self) {
        if self.state.lock().over != Some(FORGOTTEN) {
            return;
        }
        let all = async {
            while !self.open_requests.lock().is_empty() {
                self.request_ended.notified().await;
            }
        };
        // Requests without a response by then are lost.
        let _ = tokio::time::timeout(FINISH_TIMEOUT, all).await;
    }

    /// Ends the session on the server.
    pub(super) async fn delete(self: Arc<Self>) {
        let (id, version) = {
            let state = self.state.lock();
            let known = state.id.clone().filter(|_| state.over.is_none());
            (known, state.version.clone())
        };
        if let Some(id) = id {
            let envelope = Envelope { version, modern: None };
            let deleting = self
                .client
                .delete(self.client.endpoint(), mcp_headers(&envelope, Some(&id)));
            let _ = tokio::time::timeout(DELETE_TIMEOUT, deleting).await;
        }
    }
}

/// Why the session must be replaced, if a failure shows that: the server has forgotten it, or has been replaced by a server of another
/// protocol era.
fn why_over(failure: &WireFailure, is_modern: bool, is_established: bool) -> Option<&'static str> {
    match &failure.kind {
        FailureKind::SessionGone => Some(FORGOTTEN),
        FailureKind::Rpc(error) if is_established => {
            let is_of_other_era = match error.code {
                code if code::refuses_modern_request(code) => !is_modern,
                code::SERVER_ERROR => is_modern,
                // These codes also stand for invalid arguments, so the error text decides.
                code::INVALID_PARAMS | code::INVALID_REQUEST => is_refused_for_its_era(failure, is_modern),
                _ => false,
            };
            is_of_other_era.then_some("the server speaks another protocol version now")
        }
        FailureKind::Status { code: 400, .. } if is_established && is_modern => {
            Some("the server does not understand the protocol version any more")
        }
        _ => None,
    }
}

/// Whether the error text proves that a server of another era rejected the request for its era, and so did not run it.
fn is_refused_for_its_era(failure: &WireFailure, is_modern: bool) -> bool {
    let mentions = |words: &[&str]| {
        let text = match &failure.kind {
            FailureKind::Rpc(error) => &error.message,
            _ => &failure.message,
        };
        let text = text.to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    match &failure.kind {
        FailureKind::Rpc(error) if !is_modern => match error.code {
            code if code::refuses_modern_request(code) => true,
            _ => mentions(&["_meta", "protocolversion", "protocol version"]),
        },
        FailureKind::Rpc(_) | FailureKind::Status { .. } => {
            is_modern && mentions(&["session", "initializ", "protocol version", "protocolversion"])
        }
        _ => false,
    }
}
