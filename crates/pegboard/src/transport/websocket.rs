//! WebSocket: one message per text frame, with pings so that a dead peer is noticed.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use http::{HeaderValue, Request};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::{
    Connector, connect_async_tls_with_config,
    tungstenite::{
        self, Message, Utf8Bytes,
        client::IntoClientRequest,
        handshake::client::Request as Handshake,
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Boxed, ConnectFault, DialError, EndReason, FailureKind, Inbox, Outgoing, Sent, Wire, WireEnd, WireFailure,
    pipe::Outbox, tls, web,
};
use crate::config::{Endpoint, Limits};

/// How often a quiet peer is asked whether it is there.
const PING: Duration = Duration::from_secs(30);
/// How long it may be silent before it counts as gone.
const SILENCE: Duration = Duration::from_secs(90);

/// An open WebSocket.
pub(super) struct WebSocket {
    outbox: Arc<Outbox>,
    inbox: Arc<dyn Inbox>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl WebSocket {
    pub(super) async fn connect(
        endpoint: &Endpoint,
        limits: &Limits,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, DialError> {
        let request = handshake(endpoint)?;
        let tls = Connector::Rustls(Arc::new(tls::client_config(&endpoint.tls)?));
        let settings = WebSocketConfig::default()
            .max_message_size(Some(limits.message_bytes))
            .max_frame_size(Some(limits.message_bytes));
        let connecting = connect_async_tls_with_config(request, Some(settings), true, Some(tls));
        let socket = match tokio::time::timeout(limits.connect, connecting).await {
            Ok(Ok((socket, _))) => socket,
            Ok(Err(error)) => return Err(connect_failure(&error).into()),
            Err(_) => {
                let text = "the connection took too long";
                return Err(WireFailure::new(FailureKind::Connect(ConnectFault::Timeout), Sent::No, text).into());
            }
        };
        let (out, incoming) = socket.split();
        let outbox = Arc::new(Outbox::default());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let wire = Self {
            outbox: outbox.clone(),
            inbox: inbox.clone(),
            stop: stop.clone(),
            tasks: tasks.clone(),
        };
        let (write_limit, message_limit) = (limits.write, limits.message_bytes);
        tasks.spawn(async move {
            let writing = write(out, &outbox, write_limit);
            tokio::pin!(writing);
            let reason = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    // What waits is still sent, and a goodbye after it.
                    outbox.close();
                    let _ = tokio::time::timeout(web::FAREWELL, writing).await;
                    EndReason::Closed
                }
                reason = read(incoming, &*inbox, message_limit) => reason,
                Some(reason) = &mut writing => reason,
            };
            outbox.close();
            inbox.ended(WireEnd::new(reason));
        });
        tasks.close();
        Ok(wire)
    }
}

impl Wire for WebSocket {
    fn send(&self, message: Outgoing) {
        self.outbox.push(message, &*self.inbox);
    }

    fn close(&self) -> Boxed<'_, ()> {
        self.stop.cancel();
        Box::pin(self.tasks.wait())
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn handshake(endpoint: &Endpoint) -> Result<Handshake, DialError> {
    let mut request: Request<()> = endpoint
        .url
        .expose()
        .as_str()
        .into_client_request()
        .map_err(|error| DialError::Setting(error.to_string()))?;
    let headers = request.headers_mut();
    headers.extend(web::headers(endpoint)?);
    headers.insert("sec-websocket-protocol", HeaderValue::from_static("mcp"));
    Ok(request)
}

fn connect_failure(error: &tungstenite::Error) -> WireFailure {
    if let tungstenite::Error::Http(response) = error {
        let code = response.status().as_u16();
        let kind = match code {
            401 | 403 => FailureKind::NeedsAuth,
            code => FailureKind::Status {
                code,
                retry_after: None,
            },
        };
        return WireFailure::new(
            kind,
            Sent::Rejected,
            format!("the server answered HTTP {code} instead of opening a WebSocket"),
        );
    }
    WireFailure::new(
        FailureKind::Connect(web::connect_fault(error)),
        Sent::No,
        web::causes(error),
    )
}

async fn read<S>(mut frames: S, inbox: &dyn Inbox, limit: usize) -> EndReason
where
    S: Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
{
    loop {
        let frame = match tokio::time::timeout(SILENCE, frames.next()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => return EndReason::Eof,
            Err(_) => return EndReason::Broken(format!("no sign of life for {} s", SILENCE.as_secs())),
        };
        match frame {
            Ok(Message::Text(text)) => {
                inbox.message(text.into());
            }
            Ok(Message::Binary(bytes)) => {
                inbox.message(bytes);
            }
            Ok(Message::Close(frame)) => return EndReason::Broken(closing(frame.as_ref())),
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Err(tungstenite::Error::Capacity(_)) => {
                return EndReason::Protocol(format!("a message is larger than {limit} bytes"));
            }
            Err(error) => return EndReason::Broken(web::causes(&error)),
        }
    }
}

fn closing(frame: Option<&CloseFrame>) -> String {
    match frame {
        None => "the server closed the connection".to_owned(),
        Some(frame) if frame.reason.is_empty() => format!("the server closed the connection ({})", frame.code),
        Some(frame) => format!(
            "the server closed the connection ({}: {})",
            frame.code,
            web::preview(&frame.reason)
        ),
    }
}

/// Writes messages as frames, and pings between them, until the outbox is closed.
async fn write<S>(mut frames: S, outbox: &Outbox, limit: Duration) -> Option<EndReason>
where
    S: Sink<Message, Error = tungstenite::Error> + Unpin,
{
    let mut ping = tokio::time::interval_at(Instant::now() + PING, PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let batch = tokio::select! {
            batch = outbox.next_batch() => match batch {
                Some(batch) => batch,
                None => break,
            },
            _ = ping.tick() => {
                if let Err(end) = send(&mut frames, Message::Ping(Bytes::new()), limit).await {
                    return Some(end);
                }
                continue;
            }
        };
        for message in batch {
            if !message.delivery.begin() {
                continue;
            }
            let result = match Utf8Bytes::try_from(Bytes::from(message.body)) {
                Ok(text) => send(&mut frames, Message::Text(text), limit).await,
                Err(error) => Err(EndReason::Broken(error.to_string())),
            };
            message.delivery.done();
            if let Some(taken) = message.taken {
                let _ = taken.send(Ok(()));
            }
            if let Err(end) = result {
                return Some(end);
            }
        }
    }
    let goodbye = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    let _ = send(&mut frames, Message::Close(Some(goodbye)), limit).await;
    None
}

async fn send<S>(frames: &mut S, message: Message, limit: Duration) -> Result<(), EndReason>
where
    S: Sink<Message, Error = tungstenite::Error> + Unpin,
{
    match tokio::time::timeout(limit, frames.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(EndReason::Broken(web::causes(&error))),
        Err(_) => Err(EndReason::Stalled(limit)),
    }
}
