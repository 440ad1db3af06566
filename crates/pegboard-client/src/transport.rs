//! Connections to servers: a `Wire` sends and receives whole messages over stdio, HTTP, SSE, WebSocket or in-process streams, and reports
//! how far each message has come.
//!
//! A wire does not parse messages. It hands each one that it reads to an `Inbox`, in order and without a queue in between.

mod wire;

mod byte_budget;
mod configured_credentials;
#[cfg(any(feature = "http", feature = "websocket"))]
mod connect_error;
mod connection_credentials;
mod delivery;
mod dial_error;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz_steps;
mod headers_helper;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_client;
mod in_process;
mod in_process_dialer;
mod ndjson;
mod outbox;
mod outgoing;
mod oversized;
#[cfg(feature = "http")]
mod plain_http_client;
mod request_failure;
#[cfg(any(feature = "http", feature = "websocket"))]
mod request_headers;
mod server_error;
#[cfg(feature = "http")]
mod session_cleanup;
#[cfg(feature = "sse")]
mod sse;
#[cfg(any(feature = "http", feature = "fuzz"))]
#[doc(hidden)]
pub mod sse_parser;
mod stdio;
mod target;
#[cfg(any(feature = "http", feature = "websocket"))]
mod tls;
mod token_file;
#[cfg(any(feature = "http", feature = "websocket"))]
mod trim_text;
#[cfg(feature = "websocket")]
mod websocket;
mod wire_end;

pub use byte_budget::{ByteBudget, NoRoom};
pub use configured_credentials::configured_credentials;
pub use connection_credentials::ConnectionCredentials;
pub use delivery::{Delivery, Sent};
pub use dial_error::DialError;
pub use in_process_dialer::StandIns;
pub use in_process_dialer::{ByteSink, ByteSource, DialContext, Dialer, DialerError, dialer};
pub(crate) use outgoing::{Envelope, ModernEnvelope, Outgoing};
#[cfg(feature = "oauth")]
pub use plain_http_client::failure_text;
#[cfg(feature = "http")]
pub use plain_http_client::{plain_client, prepare};
pub use request_failure::{ConnectFault, FailureKind, TlsFault, WireFailure};
pub use server_error::ServerError;
#[cfg(feature = "http")]
pub use session_cleanup::clean_up_session;
pub use stdio::SpawnError;
#[doc(hidden)]
pub use stdio::{Pipes, RawProcess, StdinPipe};
pub use target::Target;
pub(crate) use wire::{Inbox, Wire};
pub use wire_end::{EndReason, Exit, WireEnd};

use std::sync::Arc;

use tokio_util::task::TaskTracker;

#[cfg(any(feature = "http", feature = "websocket"))]
use pegboard_config::RemoteKind;
use pegboard_config::{Limits, Transport};

/// Opens a wire. Returns as soon as messages can be sent: a stdio server has been spawned, a socket is connected. Over HTTP no request has
/// been sent yet.
///
/// `credentials` are those that the program supplies, in addition to those of the config. In-process servers take none. `abandoned` waits for the
/// end of a process that is spawned when this future has been dropped.
pub(crate) async fn dial(
    target: &Target,
    limits: &Limits,
    credentials: Option<ConnectionCredentials>,
    inbox: Arc<dyn Inbox>,
    abandoned: &TaskTracker,
) -> Result<Box<dyn Wire>, DialError> {
    let transport = match target {
        Target::Configured(transport) => &**transport,
        Target::InProcess(dialer) | Target::StandIn(dialer) => {
            let (read, write) = in_process_dialer::open(&**dialer, inbox.server(), limits).await?;
            return Ok(Box::new(in_process::InProcess::new(read, write, limits, inbox)));
        }
    };
    Ok(match transport {
        Transport::Stdio(command) => {
            Box::new(stdio::Stdio::spawn(command, limits, credentials, inbox, abandoned).await?)
        }
        #[cfg(feature = "http")]
        Transport::Remote {
            kind: RemoteKind::Http | RemoteKind::Auto,
            endpoint,
        } => Box::new(http::Http::new(endpoint, limits, credentials, inbox).await?),
        #[cfg(feature = "sse")]
        Transport::Remote {
            kind: RemoteKind::Sse,
            endpoint,
        } => Box::new(sse::Sse::connect(endpoint, limits, credentials, inbox).await?),
        #[cfg(feature = "websocket")]
        Transport::Remote {
            kind: RemoteKind::WebSocket,
            endpoint,
        } => {
            // Boxed: otherwise the future of every start would reserve space for the handshakes of a WebSocket.
            Box::new(Box::pin(websocket::WebSocket::connect(endpoint, limits, credentials, inbox)).await?)
        }
        #[cfg_attr(
            all(feature = "sse", feature = "websocket"),
            expect(unreachable_patterns, reason = "every transport is built in")
        )]
        Transport::Remote { kind, .. } => return Err(DialError::NotBuilt(kind.as_str())),
    })
}
