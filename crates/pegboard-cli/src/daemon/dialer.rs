//! Connects a server of a command's board to the server of the same name in the daemon.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use pegboard::{
    Failure,
    in_process::{ByteSink, ByteSource, DialContext, Dialer, DialerError, dialer},
};
use pegboard_protocol::meta;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::{net::UnixStream, sync::Semaphore};

use super::{folder::user, http, start::Starter};

/// How often a daemon that starts is looked for. The caller limits the time for all attempts.
const POLL: Duration = Duration::from_millis(20);

/// A dialer of the daemon's servers.
struct DaemonDialer<D>(D);

impl<D: Dialer> Dialer for DaemonDialer<D> {
    fn dial(&self, context: DialContext) -> BoxFuture<'_, Result<(ByteSource, ByteSink), DialerError>> {
        self.0.dial(context)
    }

    fn failure_behind(&self, data: &Value) -> Option<Failure> {
        Failure::deserialize(data.get(meta::pegboard::FAILURE)?).ok()
    }

    /// Only the daemon may count the crashes of its servers. A host goes on however often the daemon is killed.
    fn supervises(&self) -> bool {
        true
    }
}

/// A dialer of the daemon's servers. The command has applied the rules of the config and asked for approval where a person must agree.
///
/// While the daemon `is_reloading`, a server that the reload changes is waited for.
pub(super) fn daemon_dialer(socket: PathBuf, starter: Option<Starter>, is_reloading: bool) -> impl Dialer {
    let shared = Arc::new((socket, starter.map(|starter| (starter, Semaphore::new(1)))));
    DaemonDialer(dialer(move |context| {
        let shared = shared.clone();
        async move {
            let (socket, starter) = &*shared;
            let path = format!("/approved/mcp/{}", context.server());
            if is_reloading {
                // If it does not answer, the connection below says why.
                let _ = settle(socket, context.server()).await;
            }
            match (open(socket, &path).await, starter) {
                (Err(error), Some((starter, turn))) if has_ended(&error) => {
                    // One at a time: each server of the board notices that the daemon has ended.
                    let _turn = turn.acquire().await.map_err(io::Error::other)?;
                    restart(socket, &path, starter).await
                }
                (opened, _) => opened.map_err(|error| match has_ended(&error) {
                    true => io::Error::other("the daemon has ended"),
                    false => error,
                }),
            }
            .map(UnixStream::into_split)
        }
    }))
}

/// Opens a stream of messages to a server of the daemon, which is started unless another dialer has done so.
async fn restart(socket: &Path, path: &str, starter: &Starter) -> io::Result<UnixStream> {
    match open(socket, path).await {
        Err(error) if has_ended(&error) => starter.start()?,
        opened => return opened,
    }
    loop {
        match open(socket, path).await {
            Err(error) if has_ended(&error) => tokio::time::sleep(POLL).await,
            opened => return opened,
        }
    }
}

/// Waits until no reload of the daemon changes a server.
async fn settle(socket: &Path, server: &str) -> io::Result<()> {
    let mut stream = connect(socket).await?;
    http::get(&mut stream, &format!("/local/settled/{server}")).await?;
    Ok(())
}

/// Opens a stream of messages to the server at a path of the daemon.
async fn open(socket: &Path, path: &str) -> io::Result<UnixStream> {
    let mut stream = connect(socket).await?;
    match http::upgrade(&mut stream, path).await?.status {
        101 => Ok(stream),
        404 => Err(io::Error::other("the daemon has no such server")),
        status => Err(io::Error::other(format!(
            "the daemon refused the connection with status {status}"
        ))),
    }
}

/// Whether a stream could not be opened because no daemon listens, or because it ended meanwhile: the kernel accepts connections for a daemon
/// until its socket is closed, and resets those that it did not accept itself.
pub(super) fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(
        error.kind(),
        NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof
    )
}

/// Connects to a daemon of the same user.
pub(super) async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket).await?;
    match stream.peer_cred()?.uid() == user() {
        true => Ok(stream),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the socket belongs to a process of another user",
        )),
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::UnixListener,
    };

    use super::*;

    #[tokio::test]
    async fn a_daemon_that_ends_before_it_answers_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let missing = open(&socket, "/approved/mcp/fx").await.unwrap_err();
        assert!(has_ended(&missing), "{missing:?}");
        let listener = UnixListener::bind(&socket).unwrap();
        let never_accepted = async {
            tokio::task::yield_now().await;
            drop(listener);
        };
        let (opened, ()) = tokio::join!(open(&socket, "/approved/mcp/fx"), never_accepted);
        let reset = opened.unwrap_err();
        assert!(has_ended(&reset), "{reset:?}");
        assert!(has_ended(&answered(&folder.path().join("early"), b"").await));
        assert!(has_ended(&answered(&folder.path().join("late"), b"HTTP/1.1 10").await));
    }

    #[tokio::test]
    async fn a_daemon_that_answers_has_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let unknown = answered(&folder.path().join("a"), b"HTTP/1.1 404 Not Found\r\n\r\n").await;
        assert!(!has_ended(&unknown), "{unknown:?}");
        let nonsense = answered(&folder.path().join("b"), b"nonsense\r\n\r\n").await;
        assert!(!has_ended(&nonsense), "{nonsense:?}");
    }

    /// Why no stream is opened at a daemon that reads the request, answers this and closes the connection.
    async fn answered(socket: &Path, answer: &[u8]) -> io::Error {
        let listener = UnixListener::bind(socket).unwrap();
        let daemon = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut read).await.unwrap();
            }
            stream.write_all(answer).await.unwrap();
        };
        tokio::join!(open(socket, "/approved/mcp/fx"), daemon).0.unwrap_err()
    }
}
