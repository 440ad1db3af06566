//! Event streams: the answer to one request, taken up again when it breaks, and the stream for everything else.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use reqwest::Response;
use tokio_util::sync::CancellationToken;

use super::{Shared, headers};
use crate::transport::{
    Envelope, FailureKind, Sent, WireFailure,
    byte_budget::Growing,
    http_client::{self, InSession, Media},
    remote,
    sse_parser::{Event, Parser},
};

/// How long to wait before a stream is taken up again, unless the server says otherwise.
const RESUME: Duration = Duration::from_secs(1);
/// The longest wait before a stream is opened again.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The shortest wait before a stream is opened again, whatever the server's `retry` says. It doubles with each stream that brings no message,
/// up to [`MAX_FLOOR`].
const FLOOR: Duration = Duration::from_millis(100);
const MAX_FLOOR: Duration = Duration::from_secs(2);
/// How often in a row a stream is taken up again without a single new event.
const MAX_RESUMES: u32 = 5;

/// A stream that ended before the answer came.
#[derive(Debug)]
pub(super) struct Cut {
    failure: WireFailure,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Whether anything came at all.
    heard: bool,
    /// Whether a message came.
    useful: bool,
}

/// The shortest wait before the next stream.
#[derive(Debug)]
struct Floor(Duration);

impl Floor {
    /// How long to wait before the next stream, if the server or the schedule says `wanted` and the last stream was as `useful` as this.
    fn pause(&mut self, wanted: Duration, useful: bool) -> Duration {
        if useful {
            self.0 = FLOOR;
        }
        let pause = wanted.clamp(self.0, MAX_PAUSE);
        self.0 = (self.0 * 2).min(MAX_FLOOR);
        pause
    }
}

impl Default for Floor {
    fn default() -> Self {
        Self(FLOOR)
    }
}

impl Cut {
    pub(super) fn failure(self) -> WireFailure {
        self.failure
    }
}

impl Shared {
    /// Reads the stream that answers one request, and takes it up again where it broke off as long as the server allows that.
    pub(super) async fn read_resumable(&self, response: Response, id: u64) -> Result<(), WireFailure> {
        let mut cut = match self.read_answer(response, id).await {
            Ok(()) => return Ok(()),
            Err(cut) => cut,
        };
        let mut last_id = None;
        let mut fruitless = 0;
        let mut floor = Floor::default();
        loop {
            last_id = cut.last_id.take().or(last_id);
            let Some(from) = &last_id else {
                return Err(cut.failure);
            };
            fruitless = if cut.heard { 0 } else { fruitless + 1 };
            if fruitless > MAX_RESUMES {
                return Err(cut.failure);
            }
            tokio::time::sleep(floor.pause(cut.retry.unwrap_or(RESUME), cut.useful)).await;
            if !self.inbox.waits_for(id) {
                return Ok(());
            }
            cut = match self.open_stream(Some(from)).await {
                Ok(response) => match self.read_answer(response, id).await {
                    Ok(()) => return Ok(()),
                    Err(cut) => cut,
                },
                Err(failure) if is_final(&failure) => {
                    let text = format!("{}, and it cannot be taken up again: {failure}", cut.failure);
                    return Err(WireFailure::new(cut.failure.kind, Sent::Maybe, text));
                }
                // That the stream cannot be taken up does not say that the request did not run.
                Err(failure) => Cut {
                    failure: WireFailure {
                        sent: Sent::Maybe,
                        ..failure
                    },
                    last_id: None,
                    retry: cut.retry,
                    heard: false,
                    useful: false,
                },
            };
        }
    }

    /// Reads a stream until the answer to `id` has come.
    pub(super) async fn read_answer(&self, response: Response, id: u64) -> Result<(), Cut> {
        match self.read_events(response, Some(id)).await {
            Ended::Enough => Ok(()),
            Ended::Cut(cut) => Err(cut),
        }
    }

    /// Keeps a stream open for what the server sends on its own. A server that has none says so, and that is the end of it.
    pub(super) async fn listen(&self, opened: &CancellationToken) {
        let mut last_id: Option<String> = None;
        let mut pause = RESUME;
        let mut floor = Floor::default();
        loop {
            let response = self.open_stream(last_id.as_deref()).await;
            opened.cancel();
            let (retry, useful) = match response {
                Ok(response) => match self.read_events(response, None).await {
                    Ended::Enough => return,
                    Ended::Cut(cut) => {
                        last_id = cut.last_id.or(last_id);
                        pause = if cut.heard { RESUME } else { (pause * 2).min(MAX_PAUSE) };
                        (cut.retry, cut.useful)
                    }
                },
                Err(failure) if is_final(&failure) => {
                    tracing::debug!(%failure, "the server has no stream of its own");
                    return;
                }
                Err(_) => {
                    pause = (pause * 2).min(MAX_PAUSE);
                    (None, false)
                }
            };
            tokio::time::sleep(floor.pause(retry.unwrap_or(pause), useful)).await;
        }
    }

    async fn open_stream(&self, last_id: Option<&str>) -> Result<Response, WireFailure> {
        let (session, version) = {
            let session = self.session();
            (session.id.clone(), session.version.clone())
        };
        let envelope = Envelope { version, modern: None };
        let mut headers = headers::of(&envelope, session.as_ref());
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert("last-event-id", id);
        }
        let response = self.web.get_stream(self.web.url(), headers).await?;
        if !response.status().is_success() {
            return Err(http_client::refusal(response, InSession::No).await);
        }
        match Media::of(&response) {
            Media::Events => Ok(response),
            Media::Json | Media::None | Media::Other(_) => {
                Err(super::protocol("the server gave no event stream".to_owned()))
            }
        }
    }

    /// Hands every event of a stream to the inbox until the request that it belongs to is answered or the stream ends.
    async fn read_events(&self, mut response: Response, request: Option<u64>) -> Ended {
        let limit = self.web.limit();
        let mut parser = Parser::new(limit);
        let mut growing = Growing::new(self.account.clone());
        let (mut heard, mut useful) = (false, false);
        let failure = loop {
            let chunk = match http_client::next_chunk(&mut response, &growing, parser.held()).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => {
                    break WireFailure::new(
                        FailureKind::Cut,
                        Sent::Maybe,
                        "the event stream ended before the answer",
                    );
                }
                Err(failure) => break failure,
            };
            heard = true;
            let mut done = false;
            let fed = parser.feed(&chunk, |event| {
                let Some(message) = message_of(event) else { return };
                let message = growing.complete(message);
                useful = true;
                match request {
                    Some(id) => done |= self.inbox.message_for(id, message),
                    None => {
                        self.inbox.message(message);
                    }
                }
            });
            if done {
                return Ended::Enough;
            }
            if fed.is_err() {
                let text = format!("an event is larger than {limit} bytes");
                break WireFailure::new(FailureKind::TooLarge, Sent::Maybe, text);
            }
            if let Err(no_room) = growing.make_room(parser.held(), limit).await {
                break http_client::no_room(no_room);
            }
        };
        Ended::Cut(Cut {
            last_id: match failure.kind {
                FailureKind::TooLarge | FailureKind::NoRoom => None,
                _ => parser.last_id().map(str::to_owned),
            },
            retry: parser.retry_ms().map(Duration::from_millis),
            failure,
            heard,
            useful,
        })
    }
}

enum Ended {
    Enough,
    Cut(Cut),
}

/// The message in an event. An event without data only sets the place to resume from.
fn message_of(event: Event) -> Option<Bytes> {
    let is_message = event.name.is_empty() || event.name == "message";
    let data = remote::trimmed(event.data.into());
    (is_message && !data.is_empty()).then_some(data)
}

/// Whether a server that refused a stream will go on refusing it.
fn is_final(failure: &WireFailure) -> bool {
    match failure.kind {
        FailureKind::Status { code, .. } => code < 500 && code != 429,
        FailureKind::Rpc(_) | FailureKind::NeedsAuth | FailureKind::SessionGone | FailureKind::Protocol => true,
        FailureKind::Connect(_)
        | FailureKind::Cut
        | FailureKind::TooLarge
        | FailureKind::NoRoom
        | FailureKind::Busy => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_wants_no_wait_gets_one_that_grows_until_a_message_comes() {
        let mut floor = Floor::default();
        let pauses: Vec<u128> = (0..7).map(|_| floor.pause(Duration::ZERO, false).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(floor.pause(Duration::ZERO, true), FLOOR);
        assert_eq!(floor.pause(Duration::from_secs(5), false), Duration::from_secs(5));
        assert_eq!(floor.pause(Duration::MAX, false), MAX_PAUSE);
    }
}
