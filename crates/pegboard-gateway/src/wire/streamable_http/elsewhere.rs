//! Requests that belong to another replica: those of a session that it has, and those that continue a call which waits there.

use bytes::Bytes;
use http::{Method, StatusCode};
use pegboard_protocol::{RequestId, RpcError, code};
use pegboard_store::StoreError;
use serde_json::json;

use super::{
    HttpWire, Visit,
    answer::refuse,
    headers::{self, SESSION_ID},
};
use crate::{
    protocol::{Incoming, Message, Request, only_reads},
    replicas::{Known, NotForwarded, Replica, Replicas, SessionOwner},
    wire::{
        response::{self, HttpResponse},
        response_body::{AnswersCall, ResponseBody},
        session_id::SessionId,
    },
};

/// How often a request is sent to the next owner because the last one has ended.
const MAX_OWNERS: usize = 3;

/// Where a request is handled.
enum Place {
    Here,
    At(std::sync::Arc<Replica>),
}

impl HttpWire {
    /// The response of another replica to a posted message, if it belongs to one.
    pub(super) async fn forward_message(
        &self,
        replicas: &Replicas,
        visit: Visit<'_>,
        message: &Incoming,
        body: &Bytes,
    ) -> Option<HttpResponse> {
        let request = match message {
            Incoming::One(Message::Request(request)) => Some(request),
            _ => None,
        };
        let modern = request.filter(|request| headers::is_modern(visit.headers, request));
        let asked = request.map(|request| Asked {
            id: &request.id,
            is_modern: modern.is_some(),
            only_reads: only_reads(&request.method),
        });
        for _ in 0..MAX_OWNERS {
            let place = match modern {
                Some(request) => place_of_call(replicas, visit, request).await,
                None => self.place_of_session(replicas, visit).await,
            };
            let owner = match place {
                Ok(Place::Here) => return None,
                Ok(Place::At(owner)) => owner,
                Err(error) => return Some(refuse_without_store(asked, &error)),
            };
            match replicas.forward(&owner, visit.head, body).await {
                Ok(response) => return Some(answer_of(response)),
                Err(NotForwarded::Gone) => {}
                Err(NotForwarded::Unreachable(why)) => return Some(refuse_unreachable(asked, &why)),
                Err(NotForwarded::Lost(why)) => return Some(tell_lost(asked, &why)),
            }
        }
        None
    }

    /// The response of another replica to a request without a body, if it belongs to a session of one.
    pub(super) async fn answer_elsewhere(&self, visit: Visit<'_>) -> Option<HttpResponse> {
        let replicas = self.replicas.as_ref().filter(|_| !visit.info.stays_here)?;
        for _ in 0..MAX_OWNERS {
            let owner = match self.place_of_session(replicas, visit).await {
                Ok(Place::Here) => return None,
                Ok(Place::At(owner)) => owner,
                Err(error) => return Some(refuse_without_store(None, &error)),
            };
            match replicas.forward(&owner, visit.head, &[]).await {
                Ok(response) => return Some(response.map(ResponseBody::other)),
                Err(NotForwarded::Gone) => {}
                Err(NotForwarded::Unreachable(why)) => return Some(refuse_unreachable(None, &why)),
                // A stream can be opened again. A session may have been ended.
                Err(NotForwarded::Lost(why)) if *visit.head.method == Method::GET => {
                    return Some(refuse_unreachable(None, &why));
                }
                Err(NotForwarded::Lost(why)) => return Some(tell_lost(None, &why)),
            }
        }
        None
    }

    /// Where the session is that a request names. One that its client has ended, and one that is none, are refused here.
    async fn place_of_session(&self, replicas: &Replicas, visit: Visit<'_>) -> Result<Place, StoreError> {
        let mut ids = visit.headers.get_all(SESSION_ID).iter();
        let id = ids.next().and_then(|id| SessionId::parse(id.as_bytes()));
        let Some(SessionId { secret, sealed }) = id.filter(|_| ids.next().is_none()) else {
            return Ok(Place::Here);
        };
        let (text, lapses) = (secret.text(), replicas.lapses());
        let here = self.sessions.enter(secret, visit.caller, visit.endpoint);
        let kept = match (&here, sealed) {
            (Some(session), _) if session.0.is_own_since(lapses) => return Ok(Place::Here),
            (None, _) if self.sessions.is_over(secret) => return Ok(Place::Here),
            (None, None) => replicas.kept_handshake(&text).await?,
            _ => None,
        };
        let opener = match (&here, kept.as_deref().or(sealed)) {
            (Some(_), _) => Some(None),
            (None, Some(sealed)) => visit.endpoint.opener_of(visit.caller, &text, sealed),
            (None, None) => None,
        };
        let Some(opener) = opener else {
            return Ok(Place::Here);
        };
        let owner = match replicas.find_session(&text, opener).await {
            // It goes on with what it has.
            Err(_) if here.is_some() => return Ok(Place::Here),
            owner => owner?,
        };
        match owner {
            SessionOwner::This => {
                match (here, kept) {
                    (Some(session), _) => session.0.note_own(lapses),
                    (None, Some(kept)) => drop(self.reopen(secret, &kept, None, visit)),
                    (None, None) => {}
                }
                Ok(Place::Here)
            }
            SessionOwner::Other(replica) => {
                self.sessions.hand_over(secret);
                Ok(Place::At(replica))
            }
            SessionOwner::Ended => {
                self.sessions.hand_over(secret);
                self.sessions.note_over(secret);
                Ok(Place::Here)
            }
        }
    }
}

/// Where the call waits that a modern request continues. One of a replica that has ended is refused here.
async fn place_of_call(replicas: &Replicas, visit: Visit<'_>, request: &Request) -> Result<Place, StoreError> {
    let Some(replica) = visit.endpoint.replica_of(visit.caller, request) else {
        return Ok(Place::Here);
    };
    match replicas.find(replica).await? {
        Known::This | Known::Gone => Ok(Place::Here),
        Known::Other(replica) => Ok(Place::At(replica)),
    }
}

/// The response of an owner. It says itself how a call ended whose token is revoked meanwhile.
fn answer_of(response: http::Response<axum::body::Body>) -> HttpResponse {
    let mut response = response.map(ResponseBody::other);
    response.extensions_mut().insert(AnswersCall);
    response
}

/// A request that is refused.
#[derive(Clone, Copy)]
struct Asked<'a> {
    id: &'a RequestId,
    is_modern: bool,
    only_reads: bool,
}

/// Refuses a request whose owner cannot be looked up. Nothing of it has run.
fn refuse_without_store(asked: Option<Asked<'_>>, error: &StoreError) -> HttpResponse {
    refuse_later(
        asked,
        &format!("this replica does not know where the request belongs, and cannot ask: {error}"),
    )
}

fn refuse_unreachable(asked: Option<Asked<'_>>, why: &str) -> HttpResponse {
    refuse_later(
        asked,
        &format!("the replica that the request belongs to cannot be reached: {why}"),
    )
}

fn refuse_later(asked: Option<Asked<'_>>, why: &str) -> HttpResponse {
    let message = format!("{why}; nothing was done, so send it again later");
    match asked {
        Some(Asked { id, is_modern, .. }) => {
            let status = response::status_of(code::STOPPING, is_modern);
            let data = json!({"may_have_executed": false, "retry_after": 1});
            refuse(Some(id), (status, RpcError::new(code::STOPPING, message).data(data)))
        }
        None => response::problem(StatusCode::SERVICE_UNAVAILABLE, &message),
    }
}

/// Answers a request that was on its way to a replica that ended.
fn tell_lost(asked: Option<Asked<'_>>, why: &str) -> HttpResponse {
    if asked.is_some_and(|asked| asked.only_reads) {
        return refuse_later(
            asked,
            &format!("the replica that the request belongs to did not answer: {why}"),
        );
    }
    let message = format!(
        "the replica that the request belongs to did not answer ({why}); it may have taken effect, so check that before you send it again"
    );
    match asked {
        Some(Asked { id, .. }) => {
            let error = RpcError::new(code::INTERNAL_ERROR, message).data(json!({"may_have_executed": true}));
            refuse(Some(id), (StatusCode::OK, error))
        }
        None => response::lost_problem(StatusCode::BAD_GATEWAY, &message),
    }
}
