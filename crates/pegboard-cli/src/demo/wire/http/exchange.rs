//! One request and its answer over HTTP: plain JSON when the answer comes first, a stream of events when a notice
//! does.

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
use crate::demo::notices::Notices;
use crate::demo::protocol::Demo;
use crate::demo::version::Version;
use crate::demo::wire::listen::KEEP_ALIVE;

/// Notices that wait for the client. When there are more, the request waits.
const QUEUE: usize = 16;

/// A request that has been let in.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) demo: Arc<Demo>,
    pub(super) version: Version,
    pub(super) request: Request,
    pub(super) session: Arc<Session>,
}

/// The HTTP status and the JSON-RPC error of a refused request.
pub(super) type Refusal = (StatusCode, Fault);

/// How a request ended; none if the client cancelled it.
type Outcome = Option<Result<Value, Fault>>;

/// A request at work. Dropping it abandons the work: no answer can be collected later, so none is worth finishing.
pub(super) struct Exchange {
    id: Id,
    version: Version,
    work: BoxFuture<'static, Outcome>,
    notices: mpsc::Receiver<String>,
}

enum Step {
    Notice(String),
    Done(Outcome),
}

impl Exchange {
    pub(super) fn start(asked: Asked) -> Result<Self, Fault> {
        let Asked {
            demo,
            version,
            request,
            session,
        } = asked;
        let id = request.id.clone();
        let running = session.in_flight.begin(id.clone())?;
        let (out, notices) = mpsc::channel(QUEUE);
        let work = async move {
            let cancelled = running.cancelled();
            let notices = Notices {
                out: Some(out),
                ..Notices::default()
            };
            tokio::select! {
                biased;
                () = cancelled.cancelled() => None,
                outcome = demo.answer(version, request, &session.peer, notices, cancelled) => Some(outcome),
            }
        };
        Ok(Self {
            id,
            version,
            work: Box::pin(work),
            notices,
        })
    }

    /// The outcome alone, for a client that takes no notices.
    pub(super) async fn outcome(mut self) -> Outcome {
        // Without a reader notices are dropped at once.
        self.notices.close();
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

    /// The next notice, or the outcome once all notices are out.
    async fn step(&mut self) -> Step {
        tokio::select! {
            biased;
            Some(notice) = self.notices.recv() => Step::Notice(notice),
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
                Step::Notice(notice) => Some((vec![notice], Some((exchange, None)))),
                Step::Done(outcome) => {
                    // The work may have ended in the same breath as its last notices.
                    let mut last: Vec<_> = std::iter::from_fn(|| exchange.notices.try_recv().ok()).collect();
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
        // A cancelled request gets no answer, and HTTP wants one.
        None => Ok(StatusCode::ACCEPTED.into_response()),
    }
}
