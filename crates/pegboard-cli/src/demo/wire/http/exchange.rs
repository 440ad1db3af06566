//! One request and its response over HTTP: a JSON body, or an event stream if a notification precedes the response.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use tokio::sync::mpsc;

use super::headers::Accepts;
use super::session::Session;
use crate::demo::message::{self, Fault, Id, Request};
use crate::demo::notifications::Notifications;
use crate::demo::protocol::Demo;
use crate::demo::version::Version;
use crate::demo::wire::listen::KEEP_ALIVE;

/// The capacity of the queue of notifications. When it is full, the request waits.
const QUEUE: usize = 16;

/// An accepted request.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) demo: Arc<Demo>,
    pub(super) version: Version,
    pub(super) request: Request,
    pub(super) session: Arc<Session>,
}

/// The HTTP status and the JSON-RPC error of a refused request.
pub(super) type Refusal = (StatusCode, Fault);

/// The result of a request; `None` if the client cancelled it.
type Outcome = Option<Result<Value, Fault>>;

/// A request in flight. Dropping it cancels the work, because the response could not be fetched later.
pub(super) struct Exchange {
    id: Id,
    version: Version,
    work: BoxFuture<'static, Outcome>,
    notifications: mpsc::Receiver<String>,
}

enum Step {
    Notification(String),
    Done(Outcome),
}

impl Exchange {
    pub(super) fn start(accepted: Accepted) -> Result<Self, Fault> {
        let Accepted {
            demo,
            version,
            request,
            session,
        } = accepted;
        let id = request.id.clone();
        let running = session.in_flight.begin(id.clone())?;
        let (out, notifications) = mpsc::channel(QUEUE);
        let work = async move {
            let cancelled = running.cancelled();
            let notifications = Notifications {
                out: Some(out),
                ..Notifications::default()
            };
            tokio::select! {
                biased;
                () = cancelled.cancelled() => None,
                outcome = demo.answer(version, request, &session.peer, notifications, cancelled) => Some(outcome),
            }
        };
        Ok(Self {
            id,
            version,
            work: Box::pin(work),
            notifications,
        })
    }

    /// The outcome alone, for a client that does not accept event streams.
    pub(super) async fn outcome(mut self) -> Outcome {
        // Notifications are dropped, so that the request does not wait for their queue.
        self.notifications.close();
        self.work.await
    }

    pub(super) async fn respond(mut self, accepts: Accepts) -> Result<Response, Refusal> {
        if !accepts.events {
            let (id, version) = (self.id.clone(), self.version);
            return json(self.outcome().await, &id, version);
        }
        match self.step().await {
            Step::Done(outcome) if accepts.json => json(outcome, &self.id, self.version),
            first => {
                let events = self.events(first);
                Ok(Sse::new(events)
                    .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
                    .into_response())
            }
        }
    }

    /// The next notification, or the outcome once all notifications were taken.
    async fn step(&mut self) -> Step {
        tokio::select! {
            biased;
            Some(notification) = self.notifications.recv() => Step::Notification(notification),
            outcome = &mut self.work => Step::Done(outcome),
        }
    }

    fn events(self, first: Step) -> impl Stream<Item = Result<Event, Infallible>> {
        let rest = stream::unfold(Some((self, Some(first))), |state| async {
            let (mut exchange, first) = state?;
            let step = match first {
                Some(step) => step,
                None => exchange.step().await,
            };
            match step {
                Step::Notification(notification) => Some((vec![notification], Some((exchange, None)))),
                Step::Done(outcome) => {
                    // Notifications may still be queued when the work ends.
                    let mut last: Vec<_> = std::iter::from_fn(|| exchange.notifications.try_recv().ok()).collect();
                    last.extend(outcome.map(|outcome| message::answer(Some(&exchange.id), &outcome).to_string()));
                    Some((last, None))
                }
            }
        });
        rest.flat_map(stream::iter)
            .map(|message| Ok(Event::default().event("message").data(message)))
    }
}

fn json(outcome: Outcome, id: &Id, version: Version) -> Result<Response, Refusal> {
    match outcome {
        Some(Err(fault)) if version.is_modern() && fault.code == Fault::METHOD_NOT_FOUND => {
            Err((StatusCode::NOT_FOUND, fault))
        }
        Some(outcome) => Ok(Json(message::answer(Some(id), &outcome)).into_response()),
        // A cancelled request has no JSON-RPC response, but HTTP needs one.
        None => Ok(StatusCode::ACCEPTED.into_response()),
    }
}
