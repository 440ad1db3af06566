//! The built-in demo MCP server: small tools over every transport and protocol version, to list and call on a fresh
//! machine, and to test clients against.
//!
//! The gateway handles the transports and the protocol; a request takes the path [`service`] → [`tools`] or [`offers`]. Of these only
//! the folder search does I/O.

mod fields;
mod offers;
mod service;
mod tools;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use pegboard_gateway::{Gateway, serve_stdio};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use service::Demo;

/// The options of the demo server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DemoOptions {
    /// The wire to speak on
    #[arg(long, value_enum, default_value_t = DemoTransport::Stdio, hide_possible_values = true, value_name = "stdio|http|sse|ws")]
    pub(crate) transport: DemoTransport,
    /// Loopback address of http, sse and ws; port 0 takes any free port
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
    let (scheme, path) = match options.transport {
        DemoTransport::Stdio => {
            let served = serve_stdio(demo, stop.cancelled_owned()).await;
            return served.context("cannot serve on stdin and stdout");
        }
        DemoTransport::Http => ("http", "/mcp"),
        DemoTransport::Sse => ("http", "/sse"),
        DemoTransport::Ws => ("ws", "/"),
    };
    let listen = options.listen;
    anyhow::ensure!(
        listen.ip().to_canonical().is_loopback(),
        "the demo server serves only this machine, and {listen} can be reached from others; choose a loopback address with --listen"
    );
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}; choose another address with --listen"))?;
    let address = listener
        .local_addr()
        .context("cannot tell the address that was bound")?;
    let gateway = Gateway::for_service(demo)
        .context("no random numbers for sessions")?
        .build();
    announce(&format!("listening on {scheme}://{address}{path}")).context("cannot write to stdout")?;
    gateway.serve(vec![listener], stop.cancelled_owned()).await?;
    Ok(())
}

/// Prints and flushes the line with the address. Scripts read it, so it goes to stdout.
fn announce(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
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
