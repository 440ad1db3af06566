//! Ends daemons: asks their processes to, and waits until they are gone.

use std::{io, path::Path, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use super::{dialer::connect, lock::holder_of};

/// How long a daemon may take to end: calls in flight have five seconds, then its servers are stopped.
pub(super) const STOP_TIME: Duration = Duration::from_secs(20);

/// How often it is looked for.
const POLL: Duration = Duration::from_millis(5);

/// Asks a process to end as Ctrl-C does.
pub(super) fn ask_to_end(process: u32) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let process = i32::try_from(process)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(invalid)?;
    Ok(kill_process(process, Signal::TERM)?)
}

/// Whether the daemon with this socket starts or ends: nothing listens there.
async fn is_ending(socket: &Path) -> bool {
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    socket.exists() && connect(socket).await.is_err_and(|error| is_refused(&error))
}

/// Ends the daemon that holds a lock, and waits until it is gone. Fails with what is wrong.
pub(super) async fn end(lock: &Path, process: u32, limit: Duration) -> Result<(), String> {
    if holder_of(lock) != Some(process) {
        return Ok(());
    }
    // A second signal would cancel the calls in flight.
    if !is_ending(&lock.with_extension("sock")).await {
        ask_to_end(process).map_err(|error| format!("process {process} cannot be ended: {error}"))?;
    }
    let limit = limit.min(STOP_TIME);
    let gone = async {
        while holder_of(lock) == Some(process) {
            tokio::time::sleep(POLL).await;
        }
    };
    let gone = tokio::time::timeout(limit, gone).await;
    gone.map_err(|_| format!("process {process} has not ended after {} s", limit.as_secs()))
}
