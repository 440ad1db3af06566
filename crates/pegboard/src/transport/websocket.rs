//! WebSocket: one message per text frame, with pings so that a dead peer is noticed.

mod oversized_filter;

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use http::{
    HeaderValue, Request,
    header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL},
};
use rustls_pki_types::ServerName;
use tokio::{
    net::TcpStream,
    time::{Instant, MissedTickBehavior},
};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, client_async_with_config,
    tungstenite::{
        self, Message, Utf8Bytes,
        client::IntoClientRequest,
        error::ProtocolError,
        handshake::client::Request as Handshake,
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use super::{
    Boxed, ConnectFault, DialError, EndReason, FailureKind, Inbox, Outgoing, Sent, Wire, WireEnd, WireFailure,
    byte_budget::{Account, Growing},
    pipe::Outbox,
    remote::{self, fault},
    tls,
};
use crate::config::{Endpoint, Limits};
use oversized_filter::{EndlessMessage, OversizedFilter};

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
        tls::prepare(endpoint.url.expose()).await;
        let tls = TlsConnector::from(Arc::new(tls::client_config(&endpoint.tls)?));
        let request = handshake(endpoint)?;
        let opening = Opening {
            url: endpoint.url.expose(),
            limit: limits.message_bytes,
            tls,
            inbox: &inbox,
        };
        let connecting = async {
            match opening.open(request.clone()).await {
                // A server need not know the subprotocol; then it must not be offered.
                Err(Unopened::NoSubprotocol) => {
                    let mut request = request;
                    request.headers_mut().remove(SEC_WEBSOCKET_PROTOCOL);
                    opening.open(request).await
                }
                opened => opened,
            }
        };
        let socket = match tokio::time::timeout(limits.connect, connecting).await {
            Ok(Ok(socket)) => socket,
            Ok(Err(unopened)) => return Err(unopened.into_failure().into()),
            Err(_) => {
                let text = "the connection took too long";
                return Err(WireFailure::new(FailureKind::Connect(ConnectFault::Timeout), Sent::No, text).into());
            }
        };
        let (out, incoming) = socket.split();
        let account = inbox.budget().account(limits.message_bytes);
        let outbox = Arc::new(Outbox::new(account.clone()));
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
                    let _ = tokio::time::timeout(remote::FAREWELL, writing).await;
                    EndReason::Closed
                }
                reason = read(incoming, &*inbox, message_limit, account) => reason,
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
    headers.extend(remote::headers(endpoint)?);
    if let Some(basic) = remote::userinfo(&mut endpoint.url.expose().clone()) {
        headers.entry(AUTHORIZATION).or_insert(basic);
    }
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
    Ok(request)
}

/// Why there is no WebSocket.
enum Unopened {
    NoSubprotocol,
    Failed(WireFailure),
}

impl Unopened {
    fn into_failure(self) -> WireFailure {
        match self {
            Self::Failed(failure) => failure,
            Self::NoSubprotocol => {
                let text = "the server did not agree to the subprotocol";
                WireFailure::new(FailureKind::Protocol, Sent::No, text)
            }
        }
    }
}

/// A connection without the messages that are too large.
type Connection = WebSocketStream<OversizedFilter<MaybeTlsStream<TcpStream>>>;

/// What is needed to open a WebSocket.
struct Opening<'a> {
    url: &'a Url,
    limit: usize,
    tls: TlsConnector,
    inbox: &'a Arc<dyn Inbox>,
}

impl Opening<'_> {
    async fn open(&self, request: Handshake) -> Result<Connection, Unopened> {
        // The sieve takes out what is larger; the parser needs a bound all the same.
        let settings = WebSocketConfig::default()
            .max_message_size(Some(self.limit))
            .max_frame_size(Some(self.limit));
        let stream = connect_to(self.url).await.map_err(Unopened::Failed)?;
        let stream = self.secured(stream).await.map_err(Unopened::Failed)?;
        let stream = OversizedFilter::new(stream, self.limit, self.inbox.clone());
        match client_async_with_config(request, stream, Some(settings)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(_))) => {
                Err(Unopened::NoSubprotocol)
            }
            Err(error) => Err(Unopened::Failed(connect_failure(&error))),
        }
    }

    /// The connection with TLS, where the URL asks for it.
    async fn secured(&self, stream: TcpStream) -> Result<MaybeTlsStream<TcpStream>, WireFailure> {
        if self.url.scheme() != "wss" {
            return Ok(MaybeTlsStream::Plain(stream));
        }
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|error| not_opened(&error))?;
        let secured = self.tls.connect(name, stream).await;
        secured.map(MaybeTlsStream::Rustls).map_err(|error| not_opened(&error))
    }
}

/// Opens the connection, and tells an unknown host from one that does not answer.
async fn connect_to(url: &Url) -> Result<TcpStream, WireFailure> {
    let failed = |fault, error: &io::Error| {
        WireFailure::new(
            FailureKind::Connect(fault),
            Sent::No,
            format!("no connection to {}: {error}", fault::place(url)),
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
                // Without it messages are only slower.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(failed(fault::connect_fault(&last), &last))
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
    not_opened(error)
}

fn not_opened(error: &(dyn std::error::Error + 'static)) -> WireFailure {
    WireFailure::new(
        FailureKind::Connect(fault::connect_fault(error)),
        Sent::No,
        match fault::tls_words(error) {
            Some(words) => format!("{words} ({})", fault::causes(error)),
            None => fault::causes(error),
        },
    )
}

/// A message is complete when it is seen here, so it takes its share then, and nothing more is read until it has one.
async fn read<S>(mut frames: S, inbox: &dyn Inbox, limit: usize, account: Account) -> EndReason
where
    S: Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
{
    let mut growing = Growing::new(account);
    loop {
        let due = Instant::now() + SILENCE;
        let frame = match tokio::time::timeout_at(due, frames.next()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => return EndReason::Eof,
            // This process was stopped, and sent no pings that the server could have answered.
            Err(_) if due.elapsed() >= PING => continue,
            Err(_) => return EndReason::Broken(format!("no sign of life for {} s", SILENCE.as_secs())),
        };
        match frame {
            Ok(Message::Text(text)) => hear(text.into(), &mut growing, inbox).await,
            Ok(Message::Binary(bytes)) => hear(bytes, &mut growing, inbox).await,
            Ok(Message::Close(frame)) => return EndReason::Broken(closing(frame.as_ref())),
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Err(tungstenite::Error::Capacity(_)) => return EndReason::TooLarge(limit),
            Err(error) if fault::all_causes(&error).any(<dyn std::error::Error>::is::<EndlessMessage>) => {
                return EndReason::TooLarge(limit);
            }
            Err(error) => return EndReason::Broken(fault::causes(&error)),
        }
    }
}

async fn hear(message: Bytes, growing: &mut Growing, inbox: &dyn Inbox) {
    match growing.make_room(message.len(), message.len()).await {
        Ok(()) => {
            inbox.message(remote::trimmed(growing.complete(message)));
        }
        Err(no_room) => {
            growing.let_go();
            inbox.no_room(&message, &message, no_room);
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
            remote::preview(&frame.reason)
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
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            is_filled = outbox.next_batch(&mut batch) => if !is_filled {
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
        Ok(Err(error)) => Err(EndReason::Broken(fault::causes(&error))),
        Err(_) => Err(EndReason::Stalled(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Budget;
    use std::sync::Mutex;
    use tokio::io::{DuplexStream, duplex};
    use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

    /// Hears nothing of interest.
    struct Deaf;

    impl Inbox for Deaf {
        fn message(&self, _message: Bytes) -> Option<u64> {
            None
        }
        fn too_long(&self, _head: &[u8], _tail: &[u8], _limit: usize) {}
        fn waits_for(&self, _id: u64) -> bool {
            false
        }
        fn failed(&self, _id: u64, _failure: WireFailure) {}
        fn ended(&self, _end: WireEnd) {}
    }

    async fn socket(stream: DuplexStream, role: Role) -> WebSocketStream<DuplexStream> {
        WebSocketStream::from_raw_socket(stream, role, None).await
    }

    /// How our side ends, and how long that takes.
    async fn end_of_ours(ours: DuplexStream) -> (EndReason, Duration) {
        let started = Instant::now();
        let (out, incoming) = socket(ours, Role::Client).await.split();
        let outbox = Outbox::default();
        let reason = tokio::select! {
            reason = read(incoming, &Deaf, 1000, Budget::default().account(1000)) => reason,
            Some(reason) = write(out, &outbox, Duration::from_secs(10)) => reason,
        };
        (reason, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_server_that_answers_pings_is_kept_and_one_that_does_not_is_given_up() {
        let (ours, theirs) = duplex(1 << 16);
        let pings = Arc::new(Mutex::new(0));
        let counted = pings.clone();
        tokio::spawn(async move {
            let mut theirs = socket(theirs, Role::Server).await;
            // Reading answers a ping. After ten of them the server says nothing more, but keeps the connection.
            while let Some(Ok(message)) = theirs.next().await {
                if message.is_ping() {
                    let mut pings = counted.lock().unwrap();
                    *pings += 1;
                    if *pings == 10 {
                        break;
                    }
                }
            }
            std::future::pending::<()>().await;
        });
        let (reason, took) = end_of_ours(ours).await;
        assert_eq!(*pings.lock().unwrap(), 10);
        assert!(
            matches!(&reason, EndReason::Broken(text) if text.contains("no sign of life")),
            "{reason}"
        );
        // Nine pings were answered, or ten; then it was silent for as long as is allowed.
        let silent_after = took.saturating_sub(SILENCE);
        assert!((9 * PING..=10 * PING).contains(&silent_after), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_is_given_up_after_the_write_limit() {
        let (ours, _theirs) = duplex(1);
        let (reason, took) = end_of_ours(ours).await;
        assert_eq!(reason, EndReason::Stalled(Duration::from_secs(10)));
        assert_eq!(took, PING + Duration::from_secs(10));
    }
}
