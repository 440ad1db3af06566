//! The response to one request: a JSON body if the result comes first, an event stream if a notification or a question does.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::StatusCode;

use crate::{
    protocol::{Message, Outgoing, RpcError, RunStep, Running, Version},
    wire::{
        accepts::Accepts,
        event_body::{EventBody, EventSource},
        event_frame::{self, EventId},
        replay::ReplayStream,
        response::{self, HttpResponse},
        session::{InUse, Session},
    },
};

/// A request that takes longer than this gets an event stream: its comments tell clients and proxies that it is being handled.
const STREAM_AFTER: Duration = Duration::from_secs(15);

/// What is known when the kind of response must be chosen.
enum First {
    Message(Outgoing),
    Done(Option<Outgoing>),
    Slow,
}

/// Answers a modern request. Closing the stream cancels it.
pub(super) async fn answer_modern(mut running: Running, accepts: Accepts) -> HttpResponse {
    let first = match first(&mut running, accepts).await {
        First::Done(Some(answer)) if accepts.json => return response::message(&answer, true),
        First::Done(answer) => return last(answer, accepts),
        First::Message(message) => Some(message),
        First::Slow => None,
    };
    let running = Some(running);
    response::events(EventBody::new(Box::new(Call { first, running })))
}

/// Answers a legacy request. Once the client has the id of an event it can come back, so that a broken stream does not cancel.
pub(super) async fn answer_legacy(mut running: Running, session: InUse, accepts: Accepts) -> HttpResponse {
    let first = match first(&mut running, accepts).await {
        First::Done(answer) => {
            return match answer {
                Some(answer) if accepts.json => response::message(&answer, false),
                answer => last(answer, accepts),
            };
        }
        First::Message(message) => Some(message),
        First::Slow => None,
    };
    let stream = session.0.add_stream(vec![running]);
    if let Some(first) = first {
        stream.push(first);
    }
    respond_resumable(&stream, session)
}

/// The response with a stream that the client can resume.
pub(super) fn respond_resumable(stream: &Arc<ReplayStream>, session: InUse) -> HttpResponse {
    // Earlier versions know no event without a message.
    let is_primed = session.0.peer.version() >= Some(Version::V2025_11_25);
    let reader = stream.read(Some(0), is_primed);
    let mut events = EventBody::new(Box::new(reader));
    if is_primed {
        let id = EventId {
            stream: stream.number(),
            place: 0,
        };
        events = events.first(event_frame::priming(id));
    }
    let mut response = response::events(events);
    response.body_mut().held_mut().session = Some(session);
    response
}

/// A single message as JSON, or as an event if the client accepts only those.
pub(super) fn single(message: Outgoing, accepts: Accepts) -> HttpResponse {
    if accepts.json {
        response::message(&message, false)
    } else {
        last(Some(message), accepts)
    }
}

/// The status and the JSON-RPC error of a refused message.
pub(super) type Refusal = (StatusCode, RpcError);

/// Hands a notification or a response to the session's peer.
pub(super) fn receive(session: &Session, message: Message) {
    match message {
        Message::Notification(notification) => session.peer.handle_notification(notification),
        Message::Response { id, outcome } => session.peer.handle_response(&id, outcome),
        Message::Request(_) => {}
    }
}

pub(super) fn refuse(id: Option<&str>, (status, error): Refusal) -> HttpResponse {
    response::error_message(status, &Outgoing::error(id, &error))
}

async fn first(running: &mut Running, accepts: Accepts) -> First {
    if !accepts.events {
        // The client cannot get messages. Its general stream still carries questions.
        running.mute();
        loop {
            if let RunStep::Done(answer) = running.next().await {
                return First::Done(answer);
            }
        }
    }
    tokio::select! {
        biased;
        step = running.next() => match step {
            RunStep::Message(message) => First::Message(message),
            RunStep::Done(answer) => First::Done(answer),
        },
        () = tokio::time::sleep(STREAM_AFTER) => First::Slow,
    }
}

/// The response when nothing follows.
fn last(answer: Option<Outgoing>, accepts: Accepts) -> HttpResponse {
    match answer {
        Some(answer) if accepts.events => {
            let call = Call {
                first: Some(answer),
                running: None,
            };
            response::events(EventBody::new(Box::new(call)))
        }
        Some(answer) => response::message(&answer, false),
        // A cancelled request has no JSON-RPC response, but HTTP needs one.
        None => response::empty(StatusCode::ACCEPTED),
    }
}

/// The events of one request that ends with its stream.
struct Call {
    first: Option<Outgoing>,
    running: Option<Running>,
}

impl EventSource for Call {
    /// A call goes on, or is answered with an error.
    fn outlives_token(&mut self) -> bool {
        self.first.is_some() || self.running.as_ref().is_some_and(|running| !running.is_listening())
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Option<EventId>, Outgoing)>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some((None, first)));
        }
        let Some(running) = &mut self.running else {
            return Poll::Ready(None);
        };
        match running.poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(RunStep::Message(message)) => Poll::Ready(Some((None, message))),
            Poll::Ready(RunStep::Done(answer)) => {
                self.running = None;
                Poll::Ready(answer.map(|answer| (None, answer)))
            }
        }
    }
}
