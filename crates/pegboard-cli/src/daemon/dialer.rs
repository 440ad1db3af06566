//! Connects a server of a command's board to the server of the same name in the daemon.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pegboard::in_process::{Dialer, dialer};
use tokio::{net::UnixStream, sync::Semaphore};

use super::{folder::user, http, start::Starter};

/// How often a daemon that starts is looked for. The caller limits the time for all attempts.
const POLL: Duration = Duration::from_millis(20);

/// A dialer of the daemon's servers. The command has applied the rules of the config and asked for approval where a person must agree.
pub(super) fn daemon_dialer(socket: PathBuf, starter: Option<Starter>) -> impl Dialer {
    let shared = Arc::new((socket, starter.map(|starter| (starter, Semaphore::new(1)))));
    dialer(move |context| {
        let shared = shared.clone();
        async move {
            let (socket, starter) = &*shared;
            let mut stream = match (connect(socket).await, starter) {
                (Err(error), Some((starter, turn))) if has_ended(&error) => {
                    // One at a time: each server of the board notices that the daemon has ended.
                    let _turn = turn.acquire().await.map_err(io::Error::other)?;
                    restarted(socket, starter).await?
                }
                (connected, _) => connected.map_err(|error| match has_ended(&error) {
                    true => io::Error::other("the daemon has ended"),
                    false => error,
                })?,
            };
            let path = format!("/approved/mcp/{}", context.server());
            let response = http::upgrade(&mut stream, &path).await?;
            match response.status {
                101 => Ok(stream.into_split()),
                404 => Err(io::Error::other("the daemon has no such server")),
                status => Err(io::Error::other(format!(
                    "the daemon refused the connection with status {status}"
                ))),
            }
        }
    })
}

/// Connects to the daemon, which is started unless another dialer has done so.
async fn restarted(socket: &Path, starter: &Starter) -> io::Result<UnixStream> {
    if let Ok(stream) = connect(socket).await {
        return Ok(stream);
    }
    starter.start()?;
    loop {
        match connect(socket).await {
            Err(error) if has_ended(&error) => tokio::time::sleep(POLL).await,
            connected => return connected,
        }
    }
}

/// Whether an attempt to connect failed because no daemon listens.
fn has_ended(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
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
