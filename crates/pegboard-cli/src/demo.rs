//! The built-in demo MCP server: small tools over every transport and protocol version, to list and call on a fresh
//! machine, and to test clients against.
//!
//! A request takes the path `wire` → [`connection`] or [`wire::http`] → [`protocol`] → [`tools`] or [`offers`], and its
//! response the same way back. Above the wires only the folder search does I/O.

mod connection;
mod in_flight;
mod message;
mod notifications;
mod offers;
mod protocol;
mod tools;
mod version;
mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use protocol::Demo;

/// The options of the demo server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DemoOptions {
    /// The wire to speak on
    #[arg(long, value_enum, default_value_t = DemoTransport::Stdio)]
    pub(crate) transport: DemoTransport,
    /// Where http, sse and ws listen; port 0 takes any free port
    #[arg(long, value_name = "ADDR", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    pub(crate) listen: SocketAddr,
    /// The only folder that `search_text` may read
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
}

/// The transports of the demo server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DemoTransport {
    /// Newline-delimited JSON on stdin and stdout
    Stdio,
    /// Streamable HTTP at /mcp
    Http,
    /// HTTP+SSE of 2024-11-05, at /sse and /messages
    Sse,
    /// WebSocket at /, subprotocol `mcp`
    Ws,
}

/// Serves until the client disconnects (stdio) or a signal stops the process.
pub(crate) async fn run(options: DemoOptions) -> anyhow::Result<()> {
    let folder = options.folder.canonicalize().with_context(|| {
        format!(
            "cannot open the folder `{}`; name one with --folder",
            options.folder.display()
        )
    })?;
    anyhow::ensure!(
        folder.is_dir(),
        "`{}` is not a folder; name one with --folder",
        folder.display()
    );
    let demo = Arc::new(Demo::new(folder));
    let stop = stop_on_signal()?;
    match options.transport {
        DemoTransport::Stdio => wire::stdio::serve(demo, stop).await,
        DemoTransport::Http => wire::http::serve(demo, options.listen, stop).await,
        DemoTransport::Sse => wire::sse::serve(demo, options.listen, stop).await,
        DemoTransport::Ws => wire::ws::serve(demo, options.listen, stop).await,
    }
}

/// A token that is cancelled by Ctrl-C and, on Unix, by SIGTERM.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    #[cfg(unix)]
    let mut terminate = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?
    };
    let stopped = stop.clone();
    // This task lives as long as the process.
    tokio::spawn(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
        stopped.cancel();
    });
    Ok(stop)
}
