//! Handlers of rmcp as servers of a board, in this process.

use ::rmcp::{ServerHandler, service::serve_server_with_ct, transport::async_rw::AsyncRwTransport};
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use super::{guarded::Guarded, streams::serve_in_task};
use pegboard_client::transport::Dialer;

/// Makes an in-process server of an rmcp handler. Each connection of the board gets a clone of the handler.
///
/// A request that the board cancels is dropped, and a panic in the handler becomes an error response, so neither affects other calls. A
/// connection ends when the board closes it. rmcp logs messages with their content at level `info`; the filter `rmcp=warn` turns that off.
///
/// ```
/// use std::time::Duration;
/// use pegboard::{Config, Pegboard};
/// use rmcp::{ServerHandler, model::{ServerCapabilities, ServerConfig}};
///
/// #[derive(Clone)]
/// struct Weather;
///
/// impl ServerHandler for Weather {
///     fn get_info(&self) -> ServerConfig {
///         ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
///     }
///     // And `list_tools` and `call_tool`, or the macros of rmcp.
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let board = Pegboard::builder(Config::default())
///     .in_process("weather", pegboard::rmcp::in_process(Weather))
///     .open();
/// let listing = board.toolset().list(Duration::from_secs(5)).await;
/// assert!(listing.unavailable.is_empty());
/// # Ok(())
/// # }
/// ```
pub fn in_process<H: ServerHandler + Clone>(handler: H) -> impl Dialer {
    in_process_with(move || handler.clone())
}

/// Makes an in-process server of the rmcp handlers that `make` creates, one for each connection. See [`in_process`].
pub fn in_process_with<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> impl Dialer {
    move || {
        let handler = make();
        serve_in_task(|stream, stop| serve(handler, stream, stop))
    }
}

async fn serve<H: ServerHandler>(handler: H, stream: DuplexStream, stop: CancellationToken) {
    let (read, write) = tokio::io::split(stream);
    // The board limits the size of what it writes. rmcp would drop longer messages, and their calls would time out.
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(usize::MAX);
    match serve_server_with_ct(Guarded(handler), transport, stop).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::debug!(%error, "the task of an rmcp handler failed");
            }
        }
        Err(error) => tracing::debug!(%error, "the handshake with an rmcp handler failed"),
    }
}
