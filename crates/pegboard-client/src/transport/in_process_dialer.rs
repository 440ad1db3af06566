//! [`Dialer`]: connects to a server that runs in this process, or over a transport of the program's own.

use pegboard_base::BoxFuture;
use std::{error::Error, fmt, future::Future, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    delivery::Sent,
    request_failure::{ConnectFault, FailureKind, WireFailure},
};
use pegboard_base::{name::ServerName, sync::catch};
use pegboard_config::{Limits, ServerConfig};
use pegboard_tools::{
    catalog::ToolKind,
    outcome::{Failure, error_text},
};

/// Opens connections to a server that runs in this process, or that is reached over a transport of the program's own. Each connection is a pair
/// of byte streams that carry one JSON message per line.
///
/// A function `Fn() -> (ByteSource, ByteSink)` is a dialer. [`dialer`] makes one of an async function that may fail.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no server in this process",
    note = "pass a `NativeTool`, `NativeTools::new([..])`, a function `Fn() -> (ByteSource, ByteSink)` or a `dialer(..)`"
)]
pub trait Dialer: Send + Sync + 'static {
    /// Opens a new connection. Returns the server's output and its input.
    ///
    /// The board waits for the future within the server's `connect_timeout` and drops it then. An error, or a panic, is a failed start of the
    /// server: its text is in the status of the server and in the replies to calls, with secrets masked, and the start is retried.
    fn dial(&self, context: DialContext) -> BoxFuture<'_, Result<(ByteSource, ByteSink), DialerError>>;

    /// The kind of the server's tools. By default they count as tools of an MCP server.
    fn tool_kind(&self) -> ToolKind {
        ToolKind::Mcp
    }

    /// The failure of the server behind the peer, read from the `data` of the error with which the peer refused the session. The board then
    /// reports this failure as the server's own, with its hint. By default the peer is the server, so there is none.
    fn failure_behind(&self, data: &serde_json::Value) -> Option<Failure> {
        let _ = data;
        None
    }

    /// Whether the other side supervises the server, as a daemon or a gateway does. A lost connection is then no crash of the server: however
    /// often it is lost, it is opened again after the waits that `restart_backoff` sets. By default five losses in a minute are a crash loop,
    /// in which the server is started once a minute.
    fn supervises(&self) -> bool {
        false
    }
}

/// The output of a server in this process.
pub type ByteSource = Box<dyn AsyncRead + Send + Unpin>;
/// The input of a server in this process.
pub type ByteSink = Box<dyn AsyncWrite + Send + Unpin>;

/// What a connection is opened for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DialContext {
    server: Arc<str>,
}

impl DialContext {
    /// Creates the context for a server. Programs need this only to test their own dialers.
    pub fn new(server: impl Into<Arc<str>>) -> Self {
        Self { server: server.into() }
    }

    /// The name of the server on the board.
    pub fn server(&self) -> &str {
        &self.server
    }
}

/// Why a [`Dialer`] opened no connection. Every error type and every text converts into it, so that `?` works in a dialer.
///
/// It does not implement [`Error`] itself, as that would rule out this conversion.
pub struct DialerError(Box<dyn Error + Send + Sync>);

impl DialerError {
    /// Creates an error from a text or another error.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }

    /// The error that it was created from.
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for DialerError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Debug for DialerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DialerError").field(&self.0).finish()
    }
}

/// The text of the error and of its causes.
impl fmt::Display for DialerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_text(&*self.0))
    }
}

impl<F> Dialer for F
where
    F: Fn() -> (ByteSource, ByteSink) + Send + Sync + 'static,
{
    fn dial(&self, _context: DialContext) -> BoxFuture<'_, Result<(ByteSource, ByteSink), DialerError>> {
        Box::pin(async { Ok(self()) })
    }
}

impl<T: Dialer + ?Sized> Dialer for Arc<T> {
    fn dial(&self, context: DialContext) -> BoxFuture<'_, Result<(ByteSource, ByteSink), DialerError>> {
        (**self).dial(context)
    }

    fn tool_kind(&self) -> ToolKind {
        (**self).tool_kind()
    }

    fn failure_behind(&self, data: &serde_json::Value) -> Option<Failure> {
        (**self).failure_behind(data)
    }

    fn supervises(&self) -> bool {
        (**self).supervises()
    }
}

/// Makes a [`Dialer`] of an async function that opens a connection, or fails with any error.
///
/// ```
/// # mod pegboard { pub use pegboard_client::transport as in_process; }
/// use std::io;
///
/// use pegboard::in_process::dialer;
/// use tokio::net::TcpStream;
///
/// // For `Builder::in_process`.
/// let tunnel = dialer(|_context| async {
///     let stream = TcpStream::connect("127.0.0.1:7000").await?;
///     io::Result::Ok(stream.into_split())
/// });
/// ```
pub fn dialer<F, O, R, W, E>(open: F) -> impl Dialer + use<F, O, R, W, E>
where
    F: Fn(DialContext) -> O + Send + Sync + 'static,
    O: Future<Output = Result<(R, W), E>> + Send + 'static,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
    E: Into<DialerError> + 'static,
{
    AsyncDialer(
        move |context| -> BoxFuture<'static, Result<(ByteSource, ByteSink), DialerError>> {
            let opening = open(context);
            Box::pin(async {
                let (read, write) = opening.await.map_err(Into::into)?;
                Ok((Box::new(read) as ByteSource, Box::new(write) as ByteSink))
            })
        },
    )
}

/// A dialer that is an async function.
struct AsyncDialer<F>(F);

impl<F> Dialer for AsyncDialer<F>
where
    F: Fn(DialContext) -> BoxFuture<'static, Result<(ByteSource, ByteSink), DialerError>> + Send + Sync + 'static,
{
    fn dial(&self, context: DialContext) -> BoxFuture<'_, Result<(ByteSource, ByteSink), DialerError>> {
        self.0(context)
    }
}

/// Opens a connection within `limits.connect_timeout`. Turns an error, a panic and the timeout into a failed connection.
pub(super) async fn open(
    dialer: &dyn Dialer,
    server: &str,
    limits: &Limits,
) -> Result<(ByteSource, ByteSink), WireFailure> {
    // The dialer is called within the guarded future, because it may panic before it returns a future.
    let opening = catch(async { dialer.dial(DialContext::new(server)).await });
    let message = match tokio::time::timeout(limits.connect_timeout, opening).await {
        Ok(Ok(Ok(streams))) => return Ok(streams),
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(_)) => "its dialer panicked".to_owned(),
        Err(_) => "its dialer opened no connection within `connect_timeout`".to_owned(),
    };
    let kind = FailureKind::Connect(ConnectFault::Other);
    Err(WireFailure::new(kind, Sent::No, message))
}

/// Chooses an in-process stand-in for each configured server.
pub type StandIns = dyn Fn(&ServerName, &ServerConfig) -> Arc<dyn Dialer> + Send + Sync;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_becomes_a_dialer_error_with_its_causes() {
        fn fails(text: &str) -> Result<(), DialerError> {
            let _: u16 = text.parse()?;
            Err("no port".into())
        }
        assert_eq!(fails("x").unwrap_err().to_string(), "invalid digit found in string");
        assert_eq!(fails("7").unwrap_err().to_string(), "no port");
        let chained = anyhow::anyhow!("connection refused").context("the tunnel is down");
        let error = DialerError::from(chained);
        assert_eq!(error.to_string(), "the tunnel is down: connection refused");
        assert_eq!(error.source().to_string(), "the tunnel is down");
    }
}
