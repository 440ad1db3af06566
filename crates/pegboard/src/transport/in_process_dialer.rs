//! [`Dialer`]: connects to a server that runs in this process, over a pair of byte streams.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{catalog::ToolKind, config::ServerConfig, name::ServerName};

/// Connects to a server that runs in this process. Each connection is a pair of byte streams that carry one JSON message per line.
pub trait Dialer: Send + Sync + 'static {
    /// Opens a new connection. Returns the server's output and its input.
    fn dial(&self) -> (ByteSource, ByteSink);

    /// The kind of the server's tools. By default they count as tools of an MCP server.
    fn tool_kind(&self) -> ToolKind {
        ToolKind::Mcp
    }
}

/// The output of a server in this process.
pub type ByteSource = Box<dyn AsyncRead + Send + Unpin>;
/// The input of a server in this process.
pub type ByteSink = Box<dyn AsyncWrite + Send + Unpin>;

impl<F> Dialer for F
where
    F: Fn() -> (ByteSource, ByteSink) + Send + Sync + 'static,
{
    fn dial(&self) -> (ByteSource, ByteSink) {
        self()
    }
}

/// Chooses an in-process stand-in for each configured server.
pub(crate) type StandIns = dyn Fn(&ServerName, &ServerConfig) -> Arc<dyn Dialer> + Send + Sync;
