//! Passes messages between the board's byte stream and a client transport of rmcp: each message is a line of JSON.

use std::{fmt::Display, io, time::Duration};

use ::rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use bytes::{Buf, BufMut, BytesMut};
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The largest message that is read from the board, which enforces its own limit.
const MAX_MESSAGE: usize = 64 << 20;
/// The most messages that are being sent. A transport over HTTP sends until the response has begun, so this many calls are in flight. Beyond
/// that no more are read, and the board's limit on writing applies.
const MAX_SENDS: usize = 1024;
/// How long a transport may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Passes messages in both directions until one side ends or `stop` is cancelled, then closes the transport.
pub(super) async fn run<T: Transport<RoleClient>>(mut transport: T, stream: DuplexStream, stop: CancellationToken) {
    pass_messages(&mut transport, stream, &stop).await;
    // The stream is closed now, so the board does not wait for a transport that is slow to close.
    match timeout(CLOSE_TIMEOUT, transport.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a transport failed to close"),
        Err(_) => tracing::debug!("a transport did not close in time"),
    }
}

async fn pass_messages<T: Transport<RoleClient>>(transport: &mut T, stream: DuplexStream, stop: &CancellationToken) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = OutputLines::new(read);
    // What is to be written to the board. The next message is received once this one is written.
    let mut pending = BytesMut::new();
    let mut sends = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            Some(failure) = sends.next(), if !sends.is_empty() => {
                if let Some(response) = failure {
                    put_line(&mut pending, &response);
                }
            }
            written = write.write(&pending), if !pending.is_empty() => match written {
                Ok(count @ 1..) => pending.advance(count),
                Ok(0) | Err(_) => return,
            },
            received = transport.receive(), if pending.is_empty() => match received {
                Some(message) => put_line(&mut pending, &message),
                None => return,
            },
            line = lines.next(), if sends.len() < MAX_SENDS => match line {
                Ok(Some(line)) => match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
                    Ok(message) => {
                        let id = request_id(&message);
                        // `send` is called in the order of the messages. Its future runs beside those of others.
                        let sending = transport.send(message);
                        sends.push(async move { respond_to_failed_send(id, sending.await) });
                    }
                    Err(error) => {
                        if let Some(response) = respond_to_undecodable(line, &error) {
                            put_line(&mut pending, &response);
                        }
                    }
                },
                Ok(None) | Err(_) => return,
            },
        }
    }
}

/// The lines that the board writes.
struct OutputLines {
    read: BufReader<ReadHalf<DuplexStream>>,
    line: Vec<u8>,
    is_complete: bool,
}

impl OutputLines {
    fn new(read: ReadHalf<DuplexStream>) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            is_complete: false,
        }
    }

    /// The next line, or `None` at the end. Cancel-safe: what was read of an incomplete line is kept.
    async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if std::mem::take(&mut self.is_complete) {
            self.line.clear();
        }
        self.read.read_until(b'\n', &mut self.line).await?;
        if self.line.len() > MAX_MESSAGE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.is_complete = self.line.ends_with(b"\n");
        Ok(self.is_complete.then_some(&*self.line))
    }
}

fn put_line(pending: &mut BytesMut, message: &ServerJsonRpcMessage) {
    let before = pending.len();
    match serde_json::to_writer(pending.writer(), message) {
        Ok(()) => pending.put_u8(b'\n'),
        Err(error) => {
            pending.truncate(before);
            tracing::debug!(%error, "a message of a transport cannot be written as JSON");
        }
    }
}

fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// The response to a request that could not be sent. The request may have arrived nevertheless, so it is not retried here.
fn respond_to_failed_send<E: Display>(id: Option<RequestId>, sent: Result<(), E>) -> Option<ServerJsonRpcMessage> {
    let error = sent.err()?;
    match id {
        Some(id) => {
            let message = format!("the transport failed to send the request: {error}");
            Some(error_response(id, ErrorCode::INTERNAL_ERROR, message))
        }
        None => {
            tracing::debug!(%error, "a transport failed to send a message");
            None
        }
    }
}

/// The response to a message that rmcp's types cannot hold.
fn respond_to_undecodable(line: &[u8], error: &serde_json::Error) -> Option<ServerJsonRpcMessage> {
    tracing::debug!(%error, "a message of the board has no type in rmcp");
    let message: Value = serde_json::from_slice(line).ok()?;
    message.get("method")?;
    let id = serde_json::from_value(message.get("id")?.clone()).ok()?;
    let text = format!("rmcp has no type for this request: {error}");
    Some(error_response(id, ErrorCode::INVALID_REQUEST, text))
}

fn error_response(id: RequestId, code: ErrorCode, message: String) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(ErrorData::new(code, message, None), Some(id))
}
