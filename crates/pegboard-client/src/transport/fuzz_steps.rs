//! The readers of lines and of server-sent events over given chunks of bytes, exposed to the fuzz targets.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

use super::{
    ndjson::{self, StdoutNoise},
    request_failure::WireFailure,
    sse_parser::Parser,
    wire::Inbox,
    wire_end::WireEnd,
};
use pegboard_base::sync::Mutex;

/// What was read from a stream of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinesRead {
    /// The messages.
    pub messages: Vec<Vec<u8>>,
    /// The first and last bytes of each skipped message.
    pub skipped: Vec<(Vec<u8>, Vec<u8>)>,
    /// Why reading ended.
    pub end: String,
}

/// Reads newline-delimited messages from chunks, each of which is one read.
pub async fn read_lines(chunks: &[&[u8]], limit: usize) -> LinesRead {
    let recorder = Arc::new(Recorder::default());
    let stream = Chunks(chunks.iter().filter(|chunk| !chunk.is_empty()).copied().collect());
    let end = ndjson::read_lines(stream, recorder.clone(), limit, StdoutNoise::default()).await;
    let mut lines = recorder.0.lock();
    lines.end = end.to_string();
    std::mem::take(&mut *lines)
}

#[derive(Default)]
struct Recorder(Mutex<LinesRead>);

impl Inbox for Recorder {
    fn message(&self, message: Bytes) -> Option<u64> {
        let mut lines = self.0.lock();
        lines.messages.push(message.to_vec());
        None
    }

    fn too_long(&self, head: &[u8], tail: &[u8], _limit: usize) {
        let mut lines = self.0.lock();
        lines.skipped.push((head.to_vec(), tail.to_vec()));
    }

    fn waits_for(&self, _id: u64) -> bool {
        false
    }

    fn report_failure(&self, _id: u64, _failure: WireFailure) {}

    fn report_end(&self, _end: WireEnd) {}
}

/// A stream that is always ready and returns at most one chunk per read.
struct Chunks<'a>(VecDeque<&'a [u8]>);

impl AsyncRead for Chunks<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(chunk) = self.0.front_mut() {
            let (now, later) = chunk.split_at(chunk.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *chunk = later;
            if later.is_empty() {
                self.0.pop_front();
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// What was parsed from a stream of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    /// The events.
    pub events: Vec<SseEvent>,
    /// Whether parsing failed because an event was too large.
    pub too_large: bool,
    /// The id to resume after.
    pub last_id: Option<String>,
    /// The reconnection delay in milliseconds.
    pub retry_ms: Option<u64>,
    /// The most bytes of an incomplete event that were in memory after a chunk.
    pub most_held: usize,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name.
    pub name: String,
    /// Its data, or the first bytes of it if it was skipped.
    pub data: Vec<u8>,
    /// Whether it was skipped because it was too large.
    pub is_skipped: bool,
}

/// Parses server-sent events from chunks. A lenient parser skips events that are too large.
pub fn parse_events(chunks: &[&[u8]], limit: usize, lenient: bool) -> Events {
    let mut parser = if lenient {
        Parser::lenient(limit)
    } else {
        Parser::new(limit)
    };
    let mut parsed = Events::default();
    for chunk in chunks {
        let fed = parser.feed(chunk, |event| {
            parsed.events.push(SseEvent {
                name: event.name,
                data: event.data,
                is_skipped: event.end.is_some(),
            });
        });
        parsed.most_held = parsed.most_held.max(parser.held_bytes());
        if fed.is_err() {
            parsed.too_large = true;
            break;
        }
    }
    parsed.last_id = parser.last_id().map(str::to_owned);
    parsed.retry_ms = parser.retry_ms();
    parsed
}
