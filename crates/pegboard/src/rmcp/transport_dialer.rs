//! Client transports of rmcp as connections of a board.

use std::error::Error;

use ::rmcp::{RoleClient, transport::IntoTransport};

use super::{bridge, streams::serve_in_task};
use pegboard_client::transport::{Dialer, DialerError, dialer};

/// Makes a server of a client transport of rmcp. `connect` opens one for each connection of the board; its error is the reason why the server is
/// unavailable.
///
/// Everything `IntoTransport` converts is a transport: rmcp's own, a pair of byte streams, or a `Sink` and `Stream` of messages. Messages pass
/// through rmcp's types. Fields that these do not have are lost, and a message that rmcp cannot decode is dropped, so its request times out.
/// A request that the transport fails to send gets an error response with the transport's error.
///
/// ```no_run
/// use pegboard::{Config, Pegboard};
/// use tokio::net::TcpStream;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let far = pegboard::rmcp::transport(|| TcpStream::connect("10.0.0.7:9000"));
/// let board = Pegboard::builder(Config::default()).in_process("far", far).open();
/// # Ok(())
/// # }
/// ```
pub fn transport<F, C, T, E, TE, A>(connect: F) -> impl Dialer
where
    F: Fn() -> C + Send + Sync + 'static,
    C: Future<Output = Result<T, E>> + Send + 'static,
    T: IntoTransport<RoleClient, TE, A>,
    E: Into<DialerError> + 'static,
    TE: Error + Send + Sync + 'static,
    A: 'static,
{
    dialer(move |_context| {
        let connecting = connect();
        async move {
            let transport = connecting.await.map_err(Into::into)?.into_transport();
            Ok::<_, DialerError>(serve_in_task(|stream, stop| bridge::run(transport, stream, stop)))
        }
    })
}
