//! The forms of an HTTP response, healthy and faulty.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use tokio::{sync::mpsc, time::sleep};

use super::session::Session;
use crate::{
    answer::Act,
    fault::Fault,
    log::Received,
    script::Script,
    server::{Frame, Server},
};

/// A streamed body.
type Pieces = BoxStream<'static, io::Result<Bytes>>;

/// The form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// One JSON body.
    Json,
    /// An event stream.
    Events,
    /// A resumable event stream with event ids.
    Resumable { retry_ms: Option<u64> },
}

impl Style {
    pub(super) fn choose(script: &Script, faults: &[Fault], acts: &[Act]) -> Self {
        let talks = acts.iter().any(|act| {
            matches!(
                act,
                Act::Send(_)
                    | Act::Say(_)
                    | Act::Progress { .. }
                    | Act::Ask(_)
                    | Act::Questions(_)
                    | Act::Log(_)
                    | Act::Listen { .. }
            )
        });
        let resumable = script.http.event_ids || faults.contains(&Fault::StreamEndsEarly { resumable: true });
        let streams = script.http.streams
            || faults.iter().any(|fault| {
                matches!(
                    fault,
                    Fault::ResetInStream | Fault::StreamEndsEarly { .. } | Fault::OnlyKeepAlive { .. }
                )
            });
        match (resumable, talks || streams) {
            (true, _) => Self::Resumable {
                retry_ms: script.http.retry_ms,
            },
            (false, true) => Self::Events,
            (false, false) => Self::Json,
        }
    }
}

/// The response of a fault that ignores the message.
pub(super) fn instead(faults: &[Fault]) -> Option<Response> {
    faults.iter().find_map(|fault| match fault {
        Fault::Status { status, headers, body } => Some(with_headers(*status, headers, body.clone())),
        Fault::HtmlPage => {
            let kind = [("content-type".to_owned(), "text/html; charset=utf-8".to_owned())];
            Some(with_headers(
                200,
                &kind,
                "<!doctype html><title>Sign in</title><p>Welcome to the hotel.".into(),
            ))
        }
        Fault::Redirect { status, to } => Some(with_headers(
            *status,
            &[("location".to_owned(), to.clone())],
            String::new(),
        )),
        Fault::EndlessBody => {
            let piece = Bytes::from(vec![b' '; 64 * 1024]);
            let body = Body::from_stream(stream::repeat_with(move || io::Result::Ok(piece.clone())));
            Some(([(header::CONTENT_TYPE, "application/json")], body).into_response())
        }
        _ => None,
    })
}

fn with_headers(status: u16, headers: &[(String, String)], body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Body::from(body)).into_response();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// The response to a request, from the frames of its acts.
pub(super) async fn respond(
    server: &Arc<Server>,
    session: &Session,
    style: Style,
    faults: &[Fault],
    mut outgoing: mpsc::Receiver<Frame>,
) -> Response {
    let mut response = match style {
        Style::Json => {
            // Like real servers, send no headers before the response is known.
            let Some(first) = outgoing.recv().await else {
                return StatusCode::ACCEPTED.into_response();
            };
            let body = chunks(
                outgoing,
                Some(first),
                Framing {
                    events: false,
                    watch: None,
                },
            );
            (
                [(header::CONTENT_TYPE, "application/json")],
                Body::from_stream(dripping(body, faults)),
            )
                .into_response()
        }
        Style::Events => {
            let watch = Some(Departure {
                server: Arc::clone(server),
                answered: false,
            });
            let events = chunks(outgoing, None, Framing { events: true, watch });
            event_stream(Body::from_stream(dripping(cut(events, faults), faults)))
        }
        Style::Resumable { retry_ms } => {
            let events = session.record(retry_ms, outgoing);
            event_stream(Body::from_stream(dripping(cut(events, faults), faults)))
        }
    };
    for fault in faults {
        if let Fault::WrongContentType { content_type } = fault
            && let Ok(value) = content_type.parse()
        {
            response.headers_mut().insert(header::CONTENT_TYPE, value);
        }
    }
    response
}

/// The stream of notifications that GET opens.
pub(super) fn notices(
    script: &Script,
    session: &Session,
    faults: &[Fault],
    outgoing: mpsc::Receiver<Frame>,
) -> Response {
    let events = if script.http.event_ids {
        session.record(script.http.retry_ms, outgoing).boxed()
    } else {
        chunks(
            outgoing,
            None,
            Framing {
                events: true,
                watch: None,
            },
        )
        .boxed()
    };
    let limit = faults.iter().find_map(|fault| match fault {
        Fault::NoticeStreamEnds { after_ms, .. } => Some(Duration::from_millis(*after_ms)),
        _ => None,
    });
    event_stream(match limit {
        Some(limit) => Body::from_stream(events.take_until(sleep(limit))),
        None => Body::from_stream(cut(events, faults)),
    })
}

pub(super) fn event_stream(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, body).into_response()
}

struct Framing {
    events: bool,
    watch: Option<Departure>,
}

/// Logs when a client closes a stream before its response, which is how the modern era cancels.
struct Departure {
    server: Arc<Server>,
    answered: bool,
}

impl Drop for Departure {
    fn drop(&mut self) {
        if !self.answered {
            self.server.receive(Received {
                method: "$closed".into(),
                ..Received::default()
            });
        }
    }
}

/// The body of an event stream, up to the response.
fn chunks(
    outgoing: mpsc::Receiver<Frame>,
    first: Option<Frame>,
    framing: Framing,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let state = Some((outgoing, first, framing));
    stream::unfold(state, |state| async move {
        let (mut outgoing, mut first, mut framing) = state?;
        loop {
            let frame = match first.take() {
                Some(frame) => Some(frame),
                None => outgoing.recv().await,
            };
            let ends_here = !matches!(
                frame,
                Some(Frame::Message { last: false, .. } | Frame::Raw(_) | Frame::Mark(_))
            );
            if ends_here && let Some(watch) = &mut framing.watch {
                watch.answered = true;
            }
            let piece = match frame {
                Some(Frame::Message { text, last }) => {
                    let piece = if framing.events { event(&text) } else { text };
                    if last {
                        return Some((Ok(piece), None));
                    }
                    piece
                }
                Some(Frame::Raw(bytes)) => bytes,
                Some(Frame::Mark(_)) => continue,
                Some(Frame::Reset) => return Some((Err(io::ErrorKind::ConnectionReset.into()), None)),
                Some(Frame::Close) | None => return None,
            };
            return Some((Ok(piece), Some((outgoing, None, framing))));
        }
    })
}

fn event(text: &[u8]) -> Bytes {
    [b"event: message\ndata: ", text, b"\n\n"].concat().into()
}

/// The faults that suppress the events.
fn cut(events: impl Stream<Item = io::Result<Bytes>> + Send + 'static, faults: &[Fault]) -> Pieces {
    for fault in faults {
        match fault {
            Fault::StreamEndsEarly { resumable } => return events.take(usize::from(*resumable)).boxed(),
            Fault::OnlyKeepAlive { every_ms } => {
                let every = Duration::from_millis(*every_ms);
                let comments = stream::unfold((), move |()| async move {
                    sleep(every).await;
                    Some((Ok(Bytes::from_static(b": still here\n\n")), ()))
                });
                return comments.boxed();
            }
            _ => {}
        }
    }
    events.boxed()
}

/// Splits the body into single bytes if the fault is set.
fn dripping(body: impl Stream<Item = io::Result<Bytes>> + Send + 'static, faults: &[Fault]) -> Pieces {
    let every = faults.iter().find_map(|fault| match fault {
        Fault::BodyDrip { every_ms } => Some(Duration::from_millis(*every_ms)),
        _ => None,
    });
    let Some(every) = every else { return body.boxed() };
    let bytes = body.flat_map(|piece| {
        let pieces: Vec<io::Result<Bytes>> = match piece {
            Ok(piece) => (0..piece.len()).map(|at| Ok(piece.slice(at..=at))).collect(),
            Err(error) => vec![Err(error)],
        };
        stream::iter(pieces)
    });
    bytes
        .then(move |piece| async move {
            sleep(every).await;
            piece
        })
        .boxed()
}
