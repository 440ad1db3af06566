//! The state that all requests of one HTTP session share.

use std::{collections::HashMap, sync::Arc};

use http::{HeaderMap, HeaderValue};
use pegboard_protocol::header;
use tokio::{sync::Notify, task::AbortHandle};

use crate::transport::{byte_budget::Quota, http_client::HttpClient, request_failure::WireFailure, wire::Inbox};
use pegboard_base::sync::Mutex;
use pegboard_config::Limits;

/// Why the session ends if the server answers with another session id: a different server may have answered, which does not know our session.
const ID_CHANGED: &str = "the server changed the session's id";

/// The state that all requests of one session share.
pub(super) struct HttpSession {
    pub(super) client: HttpClient,
    pub(super) inbox: Arc<dyn Inbox>,
    /// Bounds the bytes of responses.
    pub(super) incoming: Quota,
    /// Bounds the bytes of requests.
    pub(super) outgoing: Quota,
    pub(super) state: Mutex<SessionState>,
    /// The requests in flight, by their ids.
    pub(super) open_requests: Mutex<HashMap<u64, OpenRequest>>,
    /// Notified whenever an open request ends.
    pub(super) request_ended: Notify,
}

/// The id and version of the session, and whether it is over.
#[derive(Default)]
pub(super) struct SessionState {
    pub(super) id: Option<HeaderValue>,
    /// Why the session must be replaced, once a response has shown that.
    pub(super) over: Option<&'static str>,
    /// The negotiated protocol version, for requests whose envelope has none.
    pub(super) version: Option<Arc<str>>,
}

/// A request in flight.
pub(super) struct OpenRequest {
    pub(super) task: AbortHandle,
    pub(super) is_modern: bool,
}

impl HttpSession {
    pub(super) fn new(client: HttpClient, limits: &Limits, inbox: Arc<dyn Inbox>) -> Self {
        let budget = inbox.budget();
        Self {
            client,
            incoming: budget.quota(limits.max_message),
            outgoing: budget.quota(limits.max_message),
            inbox,
            state: Mutex::default(),
            open_requests: Mutex::default(),
            request_ended: Notify::new(),
        }
    }

    /// Stores the session id of the first response that has one. Fails if a later response has another id.
    pub(super) fn store_session_id(&self, headers: &HeaderMap) -> Result<(), WireFailure> {
        let Some(id) = headers.get(header::SESSION_ID) else {
            return Ok(());
        };
        if id.is_empty() || !id.as_bytes().iter().all(|byte| (0x21..=0x7e).contains(byte)) {
            return Err(WireFailure::protocol(
                "the server gave a session id with characters that are not allowed",
            ));
        }
        let mut state = self.state.lock();
        match &state.id {
            None => {
                let mut id = id.clone();
                id.set_sensitive(true);
                state.id = Some(id);
                Ok(())
            }
            Some(known) if known == id => Ok(()),
            Some(_) => {
                state.over = state.over.or(Some(ID_CHANGED));
                Err(WireFailure::protocol(ID_CHANGED))
            }
        }
    }
}
