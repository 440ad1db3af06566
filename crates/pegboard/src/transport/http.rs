//! Streamable HTTP: every message is a POST, its answer a JSON body or a stream of events; a GET stream brings the rest.

pub(super) mod headers;
mod stream;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use tokio::{sync::Notify, task::AbortHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Boxed, Delivery, DialError, EndReason, Envelope, FailureKind, Inbox, Outgoing, Sent, Wire, WireEnd, WireFailure,
    byte_budget::{Account, FLOOR},
    http_client::{self, HttpClient, InSession, Media},
    remote,
};
use crate::config::{Endpoint, Limits};

/// How long the server may take to answer the DELETE that ends a session. Only the first [`remote::FAREWELL`] of it is waited for.
const LEAVE: Duration = Duration::from_secs(5);
/// How long requests under way may still take to learn their fate once the server has forgotten the session.
const LAST_ANSWERS: Duration = Duration::from_secs(3);
/// Without its session no request can end well; otherwise those under way decide themselves.
const FORGOTTEN: &str = "the server does not know our session any more";
/// The answer may be that of another server, which knows nothing of our session.
const CHANGED: &str = "the server changed the session's id";
/// How long the opening of the GET stream is waited for; some servers send nothing before the first event.
const LISTEN_OPEN: Duration = Duration::from_secs(1);

/// A server at a URL.
pub(super) struct Http {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Messages that no answer is waited for. They are let go last.
    notices: TaskTracker,
}

/// What all requests to one server share.
struct Shared {
    web: HttpClient,
    inbox: Arc<dyn Inbox>,
    /// What answers, and what requests may take of the board's budget.
    account: Account,
    outgoing: Account,
    session: Mutex<Session>,
    /// The requests under way.
    open: Mutex<HashMap<u64, Open>>,
    /// One of them has ended.
    answered: Notify,
}

#[derive(Default)]
struct Session {
    id: Option<HeaderValue>,
    /// Why the wire must end, once the server has shown that it must.
    over: Option<&'static str>,
    /// The version that was agreed on, for requests that carry no message of their own.
    version: Option<Arc<str>>,
}

struct Open {
    task: AbortHandle,
    is_modern: bool,
}

impl Http {
    pub(super) async fn new(endpoint: &Endpoint, limits: &Limits, inbox: Arc<dyn Inbox>) -> Result<Self, DialError> {
        Ok(Self {
            shared: Arc::new(Shared {
                web: HttpClient::new(endpoint, limits).await?,
                account: inbox.budget().account(limits.message_bytes),
                outgoing: inbox.budget().account(limits.message_bytes),
                inbox,
                session: Mutex::default(),
                open: Mutex::default(),
                answered: Notify::new(),
            }),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            notices: TaskTracker::new(),
        })
    }
}

impl Wire for Http {
    fn send(&self, message: Outgoing) {
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        let (id, is_modern) = (message.id, message.envelope.modern.is_some());
        // The lock is held over the spawn, so that the task cannot be done before it is in the map.
        let mut open = self.shared.open();
        let tasks = if id.is_some() { &self.tasks } else { &self.notices };
        let task = tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = http_client::in_time(id, shared.exchange(message)) => {}
            }
        });
        if let Some(id) = id {
            let task = task.abort_handle();
            open.insert(id, Open { task, is_modern });
        }
    }

    /// Without handshake, closing the stream is how a request is given up. With one, the server must be told as well.
    fn abandon(&self, id: u64) -> bool {
        match self.shared.open().remove(&id) {
            None => false,
            Some(open) => {
                open.task.abort();
                self.shared.answered.notify_one();
                open.is_modern
            }
        }
    }

    fn established(&self, envelope: &Envelope) -> Boxed<'static, ()> {
        self.shared.session().version.clone_from(&envelope.version);
        if envelope.modern.is_some() {
            return Box::pin(std::future::ready(()));
        }
        let opened = CancellationToken::new();
        let (shared, stop, told) = (self.shared.clone(), self.stop.clone(), opened.clone());
        self.tasks.spawn(async move {
            let _told_at_last = told.clone().drop_guard();
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = shared.listen(&told) => {}
            }
        });
        Box::pin(async move {
            let _ = tokio::time::timeout(LISTEN_OPEN, opened.cancelled()).await;
        })
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(async {
            http_client::farewell(&self.notices).await;
            self.shared.last_answers().await;
            self.stop.cancel();
            self.tasks.close();
            self.tasks.wait().await;
            // A server that does not answer the DELETE must not hold up the next session, nor the end of the program.
            let leaving = tokio::spawn(self.shared.clone().leave());
            let _ = tokio::time::timeout(remote::FAREWELL, leaving).await;
            self.shared.inbox.ended(WireEnd::new(EndReason::Closed));
        })
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Shared {
    /// One message to its end.
    async fn exchange(&self, message: Outgoing) {
        let Outgoing {
            body,
            id,
            delivery,
            envelope,
            taken,
        } = message;
        let is_modern = envelope.modern.is_some();
        let share = self.outgoing.share_now(if body.len() > FLOOR { body.len() } else { 0 });
        let mut result = match share {
            Ok(_share) => self.post(body, id, &delivery, envelope).await,
            Err(no_room) => Err(WireFailure::new(FailureKind::Busy, Sent::No, no_room.to_string())),
        };
        if let Err(failure) = &mut result {
            let mut session = self.session();
            let reason = why_over(failure, is_modern, session.version.is_some());
            session.over = session.over.or(reason);
            if let Some(reason) = reason
                && reason != FORGOTTEN
                && is_refused_for_its_era(failure, is_modern)
            {
                // The next session speaks the server's era, and the call can be made there.
                let text = format!("{reason}: {failure}");
                *failure = WireFailure::new(FailureKind::SessionGone, Sent::Rejected, text);
            }
        }
        let is_last = {
            let mut open = self.open();
            id.map(|id| open.remove(&id));
            open.is_empty()
        };
        if let (Some(id), Err(failure)) = (id, &result) {
            self.inbox.failed(id, failure.clone());
        }
        self.answered.notify_one();
        if let Some(taken) = taken {
            let _ = taken.send(result);
        }
        let over = self.session().over;
        let Some(reason) = over else { return };
        // The requests that are under way come first, because the server tells each of them that it was not carried out.
        if !is_last {
            if reason != FORGOTTEN {
                return;
            }
            tokio::time::sleep(LAST_ANSWERS).await;
        }
        self.inbox.ended(WireEnd::new(EndReason::Replaced(reason.to_owned())));
    }

    async fn post(
        &self,
        body: Vec<u8>,
        id: Option<u64>,
        delivery: &Arc<Delivery>,
        mut envelope: Envelope,
    ) -> Result<(), WireFailure> {
        let session = match envelope.modern {
            Some(_) => None,
            None => {
                let session = self.session();
                // Answers to the server's own requests do not know what was agreed on.
                envelope.version = envelope.version.or_else(|| session.version.clone());
                session.id.clone()
            }
        };
        let headers = headers::of(&envelope, session.as_ref());
        let response = self.web.post(self.web.url(), headers, body, delivery).await?;
        if !response.status().is_success() {
            let session = if session.is_some() {
                self.web.in_session()
            } else {
                InSession::No
            };
            return Err(http_client::refusal(response, session).await);
        }
        if envelope.modern.is_none() {
            self.keep_session(response.headers())?;
        }
        http_client::plain(&response)?;
        let Some(id) = id else {
            return Ok(());
        };
        match Media::of(&response) {
            Media::Json => {
                let body = http_client::body(response, self.web.limit(), self.account.clone()).await?;
                if self.inbox.message_for(id, remote::trimmed(body)) {
                    Ok(())
                } else {
                    Err(protocol("the answer does not belong to the request".to_owned()))
                }
            }
            Media::Events if envelope.modern.is_some() => self
                .read_answer(response, id)
                .await
                .map(|_| ())
                .map_err(stream::Cut::failure),
            Media::Events => self.read_resumable(response, id).await,
            Media::None => {
                let text = "the server took the request and gave no answer";
                Err(WireFailure::new(FailureKind::Cut, Sent::Maybe, text))
            }
            other @ Media::Other(_) => Err(http_client::wrong_kind(other, "JSON or an event stream", response).await),
        }
    }

    /// Keeps the session's id from the first answer that has one. A later, different one would mean that we talk to somebody else.
    fn keep_session(&self, headers: &HeaderMap) -> Result<(), WireFailure> {
        let Some(id) = headers.get("mcp-session-id") else {
            return Ok(());
        };
        if id.is_empty() || !id.as_bytes().iter().all(|byte| (0x21..=0x7e).contains(byte)) {
            return Err(protocol(
                "the server gave a session id with characters that are not allowed".to_owned(),
            ));
        }
        let mut session = self.session();
        match &session.id {
            None => {
                let mut id = id.clone();
                id.set_sensitive(true);
                session.id = Some(id);
                Ok(())
            }
            Some(known) if known == id => Ok(()),
            Some(_) => {
                session.over = session.over.or(Some(CHANGED));
                Err(protocol(CHANGED.to_owned()))
            }
        }
    }

    /// Waits for the requests under way when the server has forgotten the session: it tells each of them that it was not carried out.
    async fn last_answers(&self) {
        if self.session().over != Some(FORGOTTEN) {
            return;
        }
        let all = async {
            while !self.open().is_empty() {
                self.answered.notified().await;
            }
        };
        // Those that take longer are lost.
        let _ = tokio::time::timeout(LAST_ANSWERS, all).await;
    }

    /// Tells the server that the session is over.
    async fn leave(self: Arc<Self>) {
        let (id, version) = {
            let session = self.session();
            let known = session.id.clone().filter(|_| session.over.is_none());
            (known, session.version.clone())
        };
        if let Some(id) = id {
            let envelope = Envelope { version, modern: None };
            let leaving = self.web.delete(self.web.url(), headers::of(&envelope, Some(&id)));
            let _ = tokio::time::timeout(LEAVE, leaving).await;
        }
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a failure shows that nothing more can be done on this wire: the session is forgotten, or another server has taken the
/// place of the one that we agreed with, so that only a new start can help.
fn why_over(failure: &WireFailure, is_modern: bool, is_established: bool) -> Option<&'static str> {
    match &failure.kind {
        FailureKind::SessionGone => Some(FORGOTTEN),
        FailureKind::Rpc(error) if is_established => {
            let is_of_other_era = match error.code {
                -32022..=-32020 => !is_modern,
                -32000 => is_modern,
                // Also the errors of arguments that a tool does not take, so that the words decide.
                -32602 | -32600 => is_refused_for_its_era(failure, is_modern),
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

/// Whether a server of another era proves by its words that it took the request for none of its own, and so did not run it.
fn is_refused_for_its_era(failure: &WireFailure, is_modern: bool) -> bool {
    let says = |words: &[&str]| {
        let text = match &failure.kind {
            FailureKind::Rpc(error) => &error.message,
            _ => &failure.message,
        };
        let text = text.to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    match &failure.kind {
        FailureKind::Rpc(error) if !is_modern => match error.code {
            -32022..=-32020 => true,
            _ => says(&["_meta", "protocolversion", "protocol version"]),
        },
        FailureKind::Rpc(_) | FailureKind::Status { .. } => {
            is_modern && says(&["session", "initializ", "protocol version", "protocolversion"])
        }
        _ => false,
    }
}

fn protocol(text: String) -> WireFailure {
    WireFailure::new(FailureKind::Protocol, Sent::Maybe, text)
}

#[cfg(test)]
mod tests;
