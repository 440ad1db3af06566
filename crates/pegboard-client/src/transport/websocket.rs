//! The WebSocket transport: one message per text frame, and pings that detect a dead peer.

mod oversized_filter;

use pegboard_base::BoxFuture;
use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode,
    header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL},
};
use rustls_pki_types::ServerName;
use tokio::{
    net::TcpStream,
    time::{Instant, MissedTickBehavior},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        self, Message, Utf8Bytes,
        client::IntoClientRequest,
        error::ProtocolError,
        handshake::client::Request as Handshake,
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tokio_util::{either::Either, sync::CancellationToken, task::TaskTracker};
use url::Url;

use super::{
    byte_budget::{Quota, ReadPermit},
    connect_error::{connect_fault, error_chain, host_and_port, tls_advice, with_causes},
    connection_credentials::ConnectionCredentials,
    delivery::Sent,
    dial_error::DialError,
    outbox::Outbox,
    outgoing::Outgoing,
    request_failure::{ConnectFault, FailureKind, WireFailure},
    request_headers, tls, trim_text,
    wire::{FLUSH_TIMEOUT, Inbox, Wire},
    wire_end::{EndReason, WireEnd},
};
use crate::credential::{Issued, PROOF_HEADER};
use oversized_filter::{EndlessMessage, OversizedFilter};
use pegboard_config::{Endpoint, Limits};

/// The interval between pings.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long the peer may send nothing, not even a pong, before the connection counts as broken.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(90);

/// A wire over a WebSocket.
pub(super) struct WebSocket {
    outbox: Arc<Outbox>,
    inbox: Arc<dyn Inbox>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl WebSocket {
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        limits: &Limits,
        credentials: Option<ConnectionCredentials>,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, DialError> {
        tls::prepare(endpoint.url.expose()).await;
        let tls = tls::client_config(&endpoint.tls, endpoint.url.expose())?;
        let request = handshake_request(endpoint)?;
        let connector = Connector {
            url: endpoint.url.expose(),
            limit: limits.max_message,
            tls: tls.map(|config| TlsConnector::from(Arc::new(config))),
            inbox: &inbox,
        };
        let connecting = Box::pin(connector.connect(request, credentials.as_ref()));
        let socket = match tokio::time::timeout(limits.connect_timeout, connecting).await {
            Ok(Ok(socket)) => socket,
            Ok(Err(error)) => return Err(error.into_failure().into()),
            Err(_) => {
                let text = "the connection took too long";
                return Err(WireFailure::new(FailureKind::Connect(ConnectFault::Timeout), Sent::No, text).into());
            }
        };
        let (out, incoming) = socket.split();
        let quota = inbox.budget().quota(limits.max_message);
        let outbox = Arc::new(Outbox::new(quota.clone()));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let wire = Self {
            outbox: outbox.clone(),
            inbox: inbox.clone(),
            stop: stop.clone(),
            tasks: tasks.clone(),
        };
        let (write_limit, message_limit) = (limits.write_timeout, limits.max_message);
        tasks.spawn(async move {
            let writing = write(out, &outbox, write_limit);
            tokio::pin!(writing);
            let reason = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    // Sends the queued messages and a close frame.
                    outbox.close();
                    let _ = tokio::time::timeout(FLUSH_TIMEOUT, writing).await;
                    EndReason::Closed
                }
                reason = read(incoming, &*inbox, message_limit, quota) => reason,
                Some(reason) = &mut writing => reason,
            };
            outbox.close();
            inbox.report_end(WireEnd::new(reason));
        });
        tasks.close();
        Ok(wire)
    }
}

impl Wire for WebSocket {
    fn send(&self, message: Outgoing) {
        self.outbox.push(message, &*self.inbox);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.stop.cancel();
        Box::pin(self.tasks.wait())
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn handshake_request(endpoint: &Endpoint) -> Result<Handshake, DialError> {
    let mut request: Request<()> = endpoint
        .url
        .expose()
        .as_str()
        .into_client_request()
        .map_err(|error| DialError::Setting(error.to_string()))?;
    let headers = request.headers_mut();
    headers.extend(request_headers::build_configured(endpoint)?);
    if let Some(basic) = request_headers::take_userinfo(&mut endpoint.url.expose().clone()) {
        headers.entry(AUTHORIZATION).or_insert(basic);
    }
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
    Ok(request)
}

/// Why a WebSocket could not be opened.
enum OpenError {
    NoSubprotocol,
    /// The server refused the credential with this status and these headers.
    Refused(StatusCode, Box<HeaderMap>),
    Failed(WireFailure),
}

impl OpenError {
    fn into_failure(self) -> WireFailure {
        match self {
            Self::Failed(failure) => failure,
            Self::NoSubprotocol => {
                let text = "the server did not agree to the subprotocol";
                WireFailure::new(FailureKind::Protocol, Sent::No, text)
            }
            Self::Refused(status, _) => status_failure(status),
        }
    }
}

/// A WebSocket over a stream that filters out messages over the size limit.
type Connection = WebSocketStream<OversizedFilter<MaybeTls>>;

/// A stream to a server, with TLS if its URL requires it.
type MaybeTls = Either<TcpStream, TlsStream<TcpStream>>;

/// Opens WebSockets to one server.
struct Connector<'a> {
    url: &'a Url,
    limit: usize,
    /// `None` only if the URL needs no TLS.
    tls: Option<TlsConnector>,
    inbox: &'a Arc<dyn Inbox>,
}

impl Connector<'_> {
    /// Opens a WebSocket with the program's credential, and once more with another one if the server refuses that. No message has been sent
    /// by then.
    async fn connect(
        &self,
        request: Handshake,
        credentials: Option<&ConnectionCredentials>,
    ) -> Result<Connection, OpenError> {
        let Some(credentials) = credentials else {
            return self.open(request).await;
        };
        let issued = credentials.get_or_renew().await.map_err(OpenError::Failed)?;
        match self.open_with(request.clone(), credentials, &issued).await {
            Err(OpenError::Refused(status, response)) if credentials.is_refusal(status, &response) => {
                let issued = credentials.after_refusal(&issued, &response).await;
                match issued.map_err(OpenError::Failed)? {
                    Some(issued) => self.open_with(request, credentials, &issued).await,
                    None => Err(OpenError::Refused(status, response)),
                }
            }
            opened => opened,
        }
    }

    /// Opens a WebSocket with this credential, and once more with another proof if the server refuses only the proof.
    async fn open_with(
        &self,
        mut request: Handshake,
        credentials: &ConnectionCredentials,
        issued: &Issued,
    ) -> Result<Connection, OpenError> {
        for (name, value) in issued.headers() {
            request.headers_mut().insert(name, value.clone());
        }
        let Some(proof) = issued.proof() else {
            return self.open(request).await;
        };
        let proven = |mut request: Handshake| {
            let header = proof.header(&Method::GET, self.url);
            let header = header.map_err(|why| OpenError::Failed(credentials.unusable_failure(why)))?;
            request.headers_mut().insert(PROOF_HEADER, header);
            Ok(request)
        };
        match self.open(proven(request.clone())?).await {
            Err(OpenError::Refused(status, response)) if proof.learn(self.url, status, &response) => {
                self.open(proven(request)?).await
            }
            opened => opened,
        }
    }

    /// Opens a WebSocket with the subprotocol, or without it if the server does not support it.
    async fn open(&self, mut request: Handshake) -> Result<Connection, OpenError> {
        match self.open_once(request.clone()).await {
            Err(OpenError::NoSubprotocol) => {
                request.headers_mut().remove(SEC_WEBSOCKET_PROTOCOL);
                self.open_once(request).await
            }
            opened => opened,
        }
    }

    async fn open_once(&self, request: Handshake) -> Result<Connection, OpenError> {
        // The filter removes larger messages; this bound is a second line of defence.
        let settings = WebSocketConfig::default()
            .max_message_size(Some(self.limit))
            .max_frame_size(Some(self.limit));
        let stream = connect_to(self.url).await.map_err(OpenError::Failed)?;
        let stream = self.with_tls(stream).await.map_err(OpenError::Failed)?;
        let stream = OversizedFilter::new(stream, self.limit, self.inbox.clone());
        match client_async_with_config(request, stream, Some(settings)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(_))) => {
                Err(OpenError::NoSubprotocol)
            }
            Err(tungstenite::Error::Http(response)) => match response.status() {
                status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                    Err(OpenError::Refused(status, Box::new(response.headers().clone())))
                }
                status => Err(OpenError::Failed(status_failure(status))),
            },
            Err(error) => Err(OpenError::Failed(connect_failure(&error))),
        }
    }

    /// Performs the TLS handshake if the URL requires one.
    async fn with_tls(&self, stream: TcpStream) -> Result<MaybeTls, WireFailure> {
        let Some(tls) = self.tls.as_ref().filter(|_| self.url.scheme() == "wss") else {
            return Ok(Either::Left(stream));
        };
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|error| connect_failure(&error))?;
        let connected = tls.connect(name, stream).await;
        connected.map(Either::Right).map_err(|error| {
            let mut failure = connect_failure(&error);
            if error.kind() == io::ErrorKind::UnexpectedEof {
                failure.kind = FailureKind::Connect(ConnectFault::TlsClosed);
            }
            failure
        })
    }
}

/// Opens a TCP connection to the first address of the host that accepts one.
async fn connect_to(url: &Url) -> Result<TcpStream, WireFailure> {
    let failed = |fault, error: &io::Error| {
        WireFailure::new(
            FailureKind::Connect(fault),
            Sent::No,
            format!("no connection to {}: {error}", host_and_port(url)),
        )
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let addresses = tokio::net::lookup_host((host, url.port_or_known_default().unwrap_or(80)))
        .await
        .map_err(|error| failed(ConnectFault::Dns, &error))?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // If it fails, messages are only slower.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(failed(connect_fault(&last), &last))
}

/// The failure of a handshake that the server answered with a status.
fn status_failure(status: StatusCode) -> WireFailure {
    let code = status.as_u16();
    let kind = match code {
        401 => FailureKind::NeedsAuth,
        403 => FailureKind::Forbidden,
        code => FailureKind::Status {
            code,
            retry_after: None,
        },
    };
    WireFailure::new(
        kind,
        Sent::Rejected,
        format!("the server answered HTTP {code} instead of opening a WebSocket"),
    )
}

fn connect_failure(error: &(dyn std::error::Error + 'static)) -> WireFailure {
    WireFailure::new(
        FailureKind::Connect(connect_fault(error)),
        Sent::No,
        match tls_advice(error) {
            Some(advice) => format!("{advice} ({})", with_causes(error)),
            None => with_causes(error),
        },
    )
}

/// Reads messages until the connection ends. A message is complete when it gets here, so it acquires its permit only then; nothing more is
/// read until it has one.
async fn read<S>(mut frames: S, inbox: &dyn Inbox, limit: usize, quota: Quota) -> EndReason
where
    S: Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
{
    let mut permit = ReadPermit::new(quota);
    loop {
        let due = Instant::now() + SILENCE_TIMEOUT;
        let frame = match tokio::time::timeout_at(due, frames.next()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => return EndReason::Eof,
            // This process was suspended and sent no pings that the server could have answered.
            Err(_) if due.elapsed() >= PING_INTERVAL => continue,
            Err(_) => return EndReason::Broken(format!("no sign of life for {} s", SILENCE_TIMEOUT.as_secs())),
        };
        match frame {
            Ok(Message::Text(text)) => receive(text.into(), &mut permit, inbox).await,
            Ok(Message::Binary(bytes)) => receive(bytes, &mut permit, inbox).await,
            Ok(Message::Close(frame)) => return EndReason::Broken(close_reason(frame.as_ref())),
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Err(tungstenite::Error::Capacity(_)) => return EndReason::TooLarge(limit),
            Err(error) if error_chain(&error).any(<dyn std::error::Error>::is::<EndlessMessage>) => {
                return EndReason::TooLarge(limit);
            }
            Err(error) => return EndReason::Broken(with_causes(&error)),
        }
    }
}

async fn receive(message: Bytes, permit: &mut ReadPermit, inbox: &dyn Inbox) {
    match permit.reserve(message.len(), message.len()).await {
        Ok(()) => {
            inbox.message(trim_text::trim_start(permit.complete(message)));
        }
        Err(no_room) => {
            permit.release();
            inbox.no_room(&message, &message, no_room);
        }
    }
}

fn close_reason(frame: Option<&CloseFrame>) -> String {
    match frame {
        None => "the server closed the connection".to_owned(),
        Some(frame) if frame.reason.is_empty() => format!("the server closed the connection ({})", frame.code),
        Some(frame) => format!(
            "the server closed the connection ({}: {})",
            frame.code,
            trim_text::preview(&frame.reason)
        ),
    }
}

/// Writes messages as frames, and pings in between, until the outbox is closed. Returns why it failed, if it did.
async fn write<S>(mut frames: S, outbox: &Outbox, limit: Duration) -> Option<EndReason>
where
    S: Sink<Message, Error = tungstenite::Error> + Unpin,
{
    let mut ping = tokio::time::interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            is_open = outbox.next_batch(&mut batch) => if !is_open {
                break;
            },
            _ = ping.tick() => {
                if let Err(end) = send(&mut frames, Message::Ping(Bytes::new()), limit).await {
                    return Some(end);
                }
                continue;
            }
        }
        for message in batch.drain(..) {
            if !message.delivery.begin() {
                continue;
            }
            let result = match Utf8Bytes::try_from(Bytes::from(message.body)) {
                Ok(text) => send(&mut frames, Message::Text(text), limit).await,
                Err(error) => Err(EndReason::Broken(error.to_string())),
            };
            message.delivery.mark_sent();
            if let Some(taken) = message.taken {
                let _ = taken.send(Ok(()));
            }
            if let Err(end) = result {
                return Some(end);
            }
        }
    }
    let close = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    let _ = send(&mut frames, Message::Close(Some(close)), limit).await;
    None
}

async fn send<S>(frames: &mut S, message: Message, limit: Duration) -> Result<(), EndReason>
where
    S: Sink<Message, Error = tungstenite::Error> + Unpin,
{
    match tokio::time::timeout(limit, frames.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(EndReason::Broken(with_causes(&error))),
        Err(_) => Err(EndReason::Stalled(limit)),
    }
}

#[cfg(test)]
mod tests;
