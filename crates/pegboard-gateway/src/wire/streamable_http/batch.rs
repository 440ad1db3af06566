//! Batches, which only 2025-03-26 has. Their requests run together.

use std::task::{Context, Poll};

use http::StatusCode;
use pegboard_protocol::code;

use super::answer::{receive, refuse, respond_resumable};
use crate::{
    protocol::{Broken, Message, Outgoing, RpcError, RunStep, Running, Wire},
    wire::{
        accepts::Accepts,
        response::{self, HttpResponse},
        session::InUse,
    },
};

/// Answers a batch: with one JSON array, or with an event stream if a notification or a question comes before the last response.
pub(super) async fn answer(
    session: InUse,
    batch: Vec<Result<Message, Broken>>,
    accepts: Accepts,
    wire: Wire<'_>,
) -> HttpResponse {
    if !session.0.peer.allows_batches() {
        let error = RpcError::new(code::INVALID_REQUEST, "this protocol version has no batches");
        return refuse(None, (StatusCode::BAD_REQUEST, error));
    }
    let (mut calls, mut answers) = (Vec::new(), Vec::new());
    for item in batch {
        match item {
            Ok(Message::Request(request)) => {
                let id = request.id.clone();
                match session.0.endpoint.start(&session.0.peer, request, wire) {
                    Ok(running) => {
                        if !accepts.events {
                            running.mute();
                        }
                        calls.push(running);
                    }
                    Err(error) => answers.push(Outgoing::error(Some(&id), &error)),
                }
            }
            Ok(message) => receive(&session.0, message),
            Err(Broken { id, error }) => answers.push(Outgoing::error(id.as_deref(), &error)),
        }
    }
    let message = std::future::poll_fn(|cx| collect(&mut calls, &mut answers, accepts, cx)).await;
    if message.is_some() || !accepts.json {
        let stream = session.0.add_stream(calls);
        answers
            .into_iter()
            .chain(message)
            .for_each(|message| stream.push(message));
        return respond_resumable(&stream, session);
    }
    if answers.is_empty() {
        return response::empty(StatusCode::ACCEPTED);
    }
    response::json_bytes(Outgoing::batch(answers).into_bytes())
}

/// Collects responses until all calls have ended, or until a message comes that a JSON array cannot carry.
fn collect(
    calls: &mut Vec<Running>,
    answers: &mut Vec<Outgoing>,
    accepts: Accepts,
    cx: &mut Context<'_>,
) -> Poll<Option<Outgoing>> {
    let mut index = 0;
    while let Some(call) = calls.get_mut(index) {
        match call.poll_next(cx) {
            Poll::Pending => index += 1,
            Poll::Ready(RunStep::Message(message)) if accepts.events => return Poll::Ready(Some(message)),
            // The client cannot get it.
            Poll::Ready(RunStep::Message(_)) => {}
            Poll::Ready(RunStep::Done(answer)) => {
                answers.extend(answer);
                drop(calls.swap_remove(index));
            }
        }
    }
    if calls.is_empty() {
        Poll::Ready(None)
    } else {
        Poll::Pending
    }
}
