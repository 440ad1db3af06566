//! Servers that must have ended before a connection is made.

use pegboard_base::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The servers of the same name that must have ended before a connection is made: two processes of one server could fight over a lock, a port
/// or a file.
#[derive(Debug, Default)]
pub(super) struct Predecessors(Mutex<Vec<CancellationToken>>);

impl Predecessors {
    /// Adds a server, by the token that is cancelled when it has ended.
    pub(super) fn add(&self, ended: CancellationToken) {
        self.0.lock().push(ended);
    }

    /// Returns `true` if one of them has not ended.
    pub(super) fn are_any(&self) -> bool {
        self.0.lock().iter().any(|ended| !ended.is_cancelled())
    }

    /// Waits until all of them have ended.
    pub(super) async fn ended(&self) {
        loop {
            let next = self.0.lock().iter().find(|ended| !ended.is_cancelled()).cloned();
            match next {
                Some(ended) => ended.cancelled().await,
                None => return self.0.lock().clear(),
            }
        }
    }
}
