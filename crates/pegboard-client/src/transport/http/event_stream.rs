//! Reads event streams: the response to one request, resumed when it breaks, and the GET stream of messages that the server sends on its own.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use pegboard_http::Response;
use pegboard_protocol::header;

use tokio_util::sync::CancellationToken;

use super::session::HttpSession;
use crate::transport::{
    byte_budget::ReadPermit,
    delivery::Sent,
    http_client::{self, InSession, MediaType, mcp_headers},
    outgoing::Envelope,
    request_failure::{FailureKind, WireFailure},
    sse_parser::{Event, Parser},
    trim_text,
};

/// The delay before a stream is reopened, unless the server sets one with `retry`.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);
/// The longest delay before a stream is reopened.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The shortest delay before a stream is reopened, even if `retry` is shorter. It doubles with each stream that carries no message, up to
/// [`MAX_MIN_DELAY`].
const MIN_DELAY: Duration = Duration::from_millis(100);
const MAX_MIN_DELAY: Duration = Duration::from_secs(2);
/// How often in a row a stream is resumed without a single byte from the server.
const MAX_RESUMES: u32 = 5;

/// A stream that ended before the response came.
#[derive(Debug)]
struct BrokenStream {
    failure: WireFailure,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Whether any bytes were received.
    has_data: bool,
    /// Whether a message was received.
    has_message: bool,
}

/// Computes the delay before the next stream.
#[derive(Debug)]
struct ReopenDelay {
    min: Duration,
}

impl ReopenDelay {
    /// The delay before the next stream: `wanted`, within the current minimum and [`MAX_DELAY`]. A message in the last stream resets the minimum.
    fn next(&mut self, wanted: Duration, has_message: bool) -> Duration {
        if has_message {
            self.min = MIN_DELAY;
        }
        let delay = wanted.clamp(self.min, MAX_DELAY);
        self.min = (self.min * 2).min(MAX_MIN_DELAY);
        delay
    }
}

impl Default for ReopenDelay {
    fn default() -> Self {
        Self { min: MIN_DELAY }
    }
}

impl HttpSession {
    /// Reads the stream that carries the response to `id`, and resumes it after its last event for as long as the server allows that.
    pub(super) async fn read_resumable_response(&self, response: Response, id: u64) -> Result<(), WireFailure> {
        let mut broken = match self.read_events(response, Some(id)).await {
            Ok(()) => return Ok(()),
            Err(broken) => broken,
        };
        let mut last_id = None;
        let mut empty_streams = 0;
        let mut delay = ReopenDelay::default();
        loop {
            last_id = broken.last_id.take().or(last_id);
            let Some(from) = &last_id else {
                return Err(broken.failure);
            };
            empty_streams = if broken.has_data { 0 } else { empty_streams + 1 };
            if empty_streams > MAX_RESUMES {
                return Err(broken.failure);
            }
            tokio::time::sleep(delay.next(broken.retry.unwrap_or(DEFAULT_DELAY), broken.has_message)).await;
            if !self.inbox.waits_for(id) {
                return Ok(());
            }
            broken = match self.open_stream(Some(from)).await {
                Ok(response) => match self.read_events(response, Some(id)).await {
                    Ok(()) => return Ok(()),
                    Err(broken) => broken,
                },
                Err(failure) if is_final(&failure) => {
                    let text = format!("{}, and it cannot be taken up again: {failure}", broken.failure);
                    return Err(WireFailure::new(broken.failure.kind, Sent::Maybe, text));
                }
                // A failure to resume does not prove that the request did not run.
                Err(failure) => BrokenStream {
                    failure: WireFailure {
                        sent: Sent::Maybe,
                        ..failure
                    },
                    last_id: None,
                    retry: broken.retry,
                    has_data: false,
                    has_message: false,
                },
            };
        }
    }

    /// Reads the stream that carries the response to `id`, without resuming it.
    pub(super) async fn read_response(&self, response: Response, id: u64) -> Result<(), WireFailure> {
        let read = self.read_events(response, Some(id)).await;
        read.map_err(|broken| broken.failure)
    }

    /// Keeps the GET stream open. Returns if the server offers none. Cancels `opened` when the first attempt to open it is done.
    pub(super) async fn listen(&self, opened: &CancellationToken) {
        let mut last_id: Option<String> = None;
        let mut backoff = DEFAULT_DELAY;
        let mut delay = ReopenDelay::default();
        loop {
            let response = self.open_stream(last_id.as_deref()).await;
            opened.cancel();
            let (retry, has_message) = match response {
                Ok(response) => match self.read_events(response, None).await {
                    Ok(()) => return,
                    Err(broken) => {
                        last_id = broken.last_id.or(last_id);
                        backoff = if broken.has_data {
                            DEFAULT_DELAY
                        } else {
                            (backoff * 2).min(MAX_DELAY)
                        };
                        (broken.retry, broken.has_message)
                    }
                },
                Err(failure) if is_final(&failure) => {
                    tracing::debug!(%failure, "the server has no stream of its own");
                    return;
                }
                Err(_) => {
                    backoff = (backoff * 2).min(MAX_DELAY);
                    (None, false)
                }
            };
            tokio::time::sleep(delay.next(retry.unwrap_or(backoff), has_message)).await;
        }
    }

    async fn open_stream(&self, last_id: Option<&str>) -> Result<Response, WireFailure> {
        let (session_id, version) = {
            let state = self.state.lock();
            (state.id.clone(), state.version.clone())
        };
        let envelope = Envelope { version, modern: None };
        let mut headers = mcp_headers(&envelope, session_id.as_ref());
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(header::LAST_EVENT_ID, id);
        }
        let response = self.client.get_stream(self.client.endpoint(), headers).await?;
        if !response.status().is_success() {
            return Err(http_client::status_failure(response, InSession::No).await);
        }
        match MediaType::from_response(&response) {
            MediaType::Events => Ok(response),
            MediaType::Json | MediaType::None | MediaType::Other(_) => {
                Err(WireFailure::protocol("the server gave no event stream"))
            }
        }
    }

    /// Hands the messages of a stream to the inbox. Returns when the response to `request` has come, and fails when the stream ends before.
    async fn read_events(&self, mut response: Response, request: Option<u64>) -> Result<(), BrokenStream> {
        let limit = self.client.limit();
        let mut parser = Parser::new(limit);
        let mut permit = ReadPermit::new(self.incoming.clone());
        let (mut has_data, mut has_message) = (false, false);
        let failure = loop {
            let chunk = match http_client::next_chunk(&mut response, &permit, parser.held_bytes()).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => {
                    break WireFailure::new(
                        FailureKind::ConnectionLost,
                        Sent::Maybe,
                        "the event stream ended before the answer",
                    );
                }
                Err(failure) => break failure,
            };
            has_data = true;
            let mut done = false;
            let fed = parser.feed(&chunk, |event| {
                let Some(message) = message_of(event) else { return };
                let message = permit.complete(message);
                has_message = true;
                match request {
                    Some(id) => done |= self.inbox.message_for(id, message),
                    None => {
                        self.inbox.message(message);
                    }
                }
            });
            if done {
                response.finish();
                return Ok(());
            }
            if fed.is_err() {
                let text = format!("an event is larger than {limit} bytes");
                break WireFailure::new(FailureKind::TooLarge, Sent::Maybe, text);
            }
            if let Err(no_room) = permit.reserve(parser.held_bytes(), limit).await {
                break http_client::no_room(no_room);
            }
        };
        Err(BrokenStream {
            last_id: match failure.kind {
                FailureKind::TooLarge | FailureKind::NoRoom => None,
                _ => parser.last_id().map(str::to_owned),
            },
            retry: parser.retry_ms().map(Duration::from_millis),
            failure,
            has_data,
            has_message,
        })
    }
}

/// The message in an event. An event without data only sets the id to resume after.
fn message_of(event: Event) -> Option<Bytes> {
    let is_message = event.name.is_empty() || event.name == "message";
    let data = trim_text::trim_start(event.data.into());
    (is_message && !data.is_empty()).then_some(data)
}

/// Whether a further request for the stream would fail too.
fn is_final(failure: &WireFailure) -> bool {
    match failure.kind {
        FailureKind::Status { code, .. } => code < 500 && code != 429,
        FailureKind::Rpc(_) | FailureKind::NeedsAuth | FailureKind::Forbidden | FailureKind::SessionGone | FailureKind::Protocol => true,
        FailureKind::Connect(_)
        | FailureKind::ConnectionLost
        // The provider may have a credential later.
        | FailureKind::NoCredential(_)
        | FailureKind::TooLarge
        | FailureKind::NoRoom
        | FailureKind::Busy => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_until_a_message_comes_even_if_the_server_wants_none() {
        let mut delay = ReopenDelay::default();
        let delays: Vec<u128> = (0..7).map(|_| delay.next(Duration::ZERO, false).as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(delay.next(Duration::ZERO, true), MIN_DELAY);
        assert_eq!(delay.next(Duration::from_secs(5), false), Duration::from_secs(5));
        assert_eq!(delay.next(Duration::MAX, false), MAX_DELAY);
    }
}
