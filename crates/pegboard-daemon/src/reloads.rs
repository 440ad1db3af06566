//! [`Reloads`]: how a request asks for a reload of the config, and how the last ones ended.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use pegboard::Timestamp;
use pegboard::{ServerName, board::Applied};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};

/// The most requests for a reload that wait. They are answered together.
const WAITING: usize = 64;

/// The most changes of servers over the API at once.
const CHANGES: usize = 64;

/// How long a request waits for a reload. Files may be on a slow disk, and servers that change are started.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks for reloads and knows how the last ones ended. Clones share both.
#[derive(Clone, Debug)]
pub struct Reloads {
    requests: mpsc::Sender<ReloadRequest>,
    state: Arc<ArcSwap<ReloadState>>,
    /// One permit for each change over the API, all of them for a reload.
    changes: Arc<Semaphore>,
}

/// The right to change servers. No reload runs while it is held, so that none works with settings from before the change.
#[derive(Debug)]
#[must_use = "a reload may run as soon as it is dropped"]
pub struct ChangePermit(#[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit);

/// The requests for reloads, for whoever applies the config.
#[derive(Debug)]
pub struct ReloadRequests(mpsc::Receiver<ReloadRequest>);

/// A request for a reload. Dropping it tells the caller that there will be none.
#[derive(Debug)]
pub struct ReloadRequest(oneshot::Sender<Result<(), FailedReload>>);

/// How the reloads of a config ended so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReloadState {
    /// When the config was last applied: at the start, or by a reload.
    pub applied_at: Timestamp,
    /// Why the newest reload failed; `None` if it did not. The config from before it is in effect.
    pub failed: Option<FailedReload>,
    /// What of the applied config is not in effect.
    pub notes: Vec<ReloadNote>,
    /// What the newest reload that was applied has changed.
    pub changes: Arc<Applied>,
    /// How many reloads were applied.
    pub applied: u64,
    /// How many reloads failed.
    pub failures: u64,
}

/// Something of a config that was applied and that is not in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReloadNote {
    /// A word by which programs tell such notes apart.
    pub topic: &'static str,
    /// The server that it is about.
    pub server: Option<ServerName>,
    /// What is not in effect, and what to do.
    pub message: String,
    /// Whether the daemon counts as degraded meanwhile.
    pub degrades: bool,
}

impl ReloadState {
    /// Returns `true` if the newest config was applied, and everything that it says is in effect.
    pub fn is_in_effect(&self) -> bool {
        self.failed.is_none() && self.notes.is_empty()
    }

    /// Returns `true` if the newest config was applied, every server has its settings, and nothing that protects calls is missing. Other
    /// settings that take effect at the next start do not count.
    pub fn is_healthy(&self) -> bool {
        self.failed.is_none() && !self.notes.iter().any(|note| note.degrades)
    }
}

impl ReloadNote {
    /// Creates a note.
    pub fn new(topic: &'static str, message: impl Into<String>) -> Self {
        Self {
            topic,
            server: None,
            message: message.into(),
            degrades: false,
        }
    }

    /// The same note, and the daemon counts as degraded.
    #[must_use]
    pub fn degrading(self) -> Self {
        Self { degrades: true, ..self }
    }

    /// Creates the note of a server whose new settings are not in effect.
    pub fn for_server(server: ServerName, message: impl Into<String>) -> Self {
        Self {
            server: Some(server),
            ..Self::new("server", message).degrading()
        }
    }
}

/// A reload that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedReload {
    /// When it was tried.
    pub at: Timestamp,
    /// What is wrong.
    pub message: String,
    /// The errors of the config, or what to do.
    pub hint: Option<String>,
}

/// Why a reload that was asked for did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The config is broken; nothing has changed.
    #[error("{}", .0.message)]
    Failed(FailedReload),
    /// Too many requests wait for a reload.
    #[error("too many requests for a reload are waiting; try again later")]
    Busy,
    /// The reload has not ended yet. It goes on.
    #[error("the reload takes longer than {} s; it goes on", PATIENCE.as_secs())]
    Slow,
    /// Nothing applies the config any more.
    #[error("the daemon stops")]
    Stopping,
}

/// A reload, or changes before it, take too long.
#[derive(Debug)]
pub(crate) struct Busy;

impl Reloads {
    /// A handle for a config that was applied just now, and the requests that it makes.
    pub fn new() -> (Self, ReloadRequests) {
        let (requests, received) = mpsc::channel(WAITING);
        let state = ReloadState {
            applied_at: Timestamp::now(),
            failed: None,
            notes: Vec::new(),
            changes: Arc::default(),
            applied: 0,
            failures: 0,
        };
        let reloads = Self {
            requests,
            state: Arc::new(ArcSwap::from_pointee(state)),
            changes: Arc::new(Semaphore::new(CHANGES)),
        };
        (reloads, ReloadRequests(received))
    }

    /// Asks for a reload and waits until it has been tried.
    pub async fn request(&self) -> Result<(), ReloadError> {
        let (answer, answered) = oneshot::channel();
        self.requests
            .try_send(ReloadRequest(answer))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => ReloadError::Busy,
                mpsc::error::TrySendError::Closed(_) => ReloadError::Stopping,
            })?;
        match timeout(PATIENCE, answered).await {
            Ok(Ok(outcome)) => outcome.map_err(ReloadError::Failed),
            Ok(Err(_)) => Err(ReloadError::Stopping),
            Err(_) => Err(ReloadError::Slow),
        }
    }

    /// How the last reloads ended.
    pub fn last(&self) -> Arc<ReloadState> {
        self.state.load_full()
    }

    /// Waits until no reload runs, and keeps others from running. Fails if that takes too long.
    pub(crate) async fn change(&self) -> Result<ChangePermit, Busy> {
        let permit = timeout(PATIENCE, self.changes.clone().acquire_owned()).await;
        match permit {
            Ok(Ok(permit)) => Ok(ChangePermit(permit)),
            _ => Err(Busy),
        }
    }

    /// Waits until no server is being changed over the API, and keeps others from being changed: for a reload, from reading the config until
    /// it is applied. Each of those changes has limits of its own.
    pub async fn lock_changes(&self) -> Option<ChangePermit> {
        let permits = u32::try_from(CHANGES).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let all = self.changes.clone().acquire_many_owned(permits).await;
        all.ok().map(ChangePermit)
    }

    /// As [`Self::lock_changes`], if no server is being changed now.
    pub fn try_lock_changes(&self) -> Option<ChangePermit> {
        let permits = u32::try_from(CHANGES).unwrap_or(u32::MAX);
        let all = self.changes.clone().try_acquire_many_owned(permits);
        all.ok().map(ChangePermit)
    }

    /// Notes that a config was applied.
    pub fn note_applied(&self) {
        self.note_applied_with(&[], Applied::default());
    }

    /// Notes that a config was applied, what of it is not in effect, and what has changed.
    pub fn note_applied_with(&self, notes: &[ReloadNote], changes: Applied) {
        let changes = Arc::new(changes);
        self.state.rcu(|state| ReloadState {
            applied_at: Timestamp::now(),
            failed: None,
            notes: notes.to_vec(),
            changes: changes.clone(),
            applied: state.applied.saturating_add(1),
            failures: state.failures,
        });
    }

    /// Notes that a reload changed nothing. Returns what was noted.
    pub fn note_failed(&self, message: &str, hint: Option<&str>) -> FailedReload {
        let failed = FailedReload {
            at: Timestamp::now(),
            message: message.to_owned(),
            hint: hint.map(str::to_owned),
        };
        self.state.rcu(|state| ReloadState {
            failed: Some(failed.clone()),
            failures: state.failures.saturating_add(1),
            ..ReloadState::clone(state)
        });
        failed
    }
}

impl ReloadRequests {
    /// The next request. Never completes once all handles are gone.
    pub async fn next(&mut self) -> ReloadRequest {
        match self.0.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }

    /// The requests that wait now.
    pub fn take_waiting(&mut self) -> Vec<ReloadRequest> {
        std::iter::from_fn(|| self.0.try_recv().ok()).take(WAITING).collect()
    }
}

impl ReloadRequest {
    /// Tells the caller how the reload ended.
    pub fn answer(self, outcome: Result<(), FailedReload>) {
        // A caller that has gone needs no answer.
        let _ = self.0.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_told_how_the_reload_ended() {
        let (reloads, mut requests) = Reloads::new();
        let (asked, ()) = tokio::join!(reloads.request(), async {
            let request = requests.next().await;
            request.answer(Err(reloads.note_failed("it has errors", Some("line 3"))));
        });
        let Err(ReloadError::Failed(failed)) = asked else {
            panic!("{asked:?}");
        };
        assert_eq!(
            (failed.message.as_str(), failed.hint.as_deref()),
            ("it has errors", Some("line 3"))
        );
        assert_eq!(reloads.last().failed.as_ref(), Some(&failed));
        reloads.note_applied();
        let last = reloads.last();
        assert_eq!((last.applied, last.failures, last.failed.is_none()), (1, 1, true));
    }

    #[tokio::test]
    async fn a_request_ends_when_nothing_applies_the_config() {
        let (reloads, requests) = Reloads::new();
        let (asked, ()) = tokio::join!(reloads.request(), async move { drop(requests) });
        assert_eq!(asked, Err(ReloadError::Stopping));
        assert_eq!(reloads.request().await, Err(ReloadError::Stopping));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reload_and_changes_wait_for_each_other_and_a_change_not_for_ever() {
        let (reloads, _requests) = Reloads::new();
        let (one, other) = (reloads.change().await.unwrap(), reloads.change().await.unwrap());
        let mut reload = std::pin::pin!(reloads.lock_changes());
        assert!(
            timeout(PATIENCE, &mut reload).await.is_err(),
            "servers are being changed"
        );
        drop((one, other));
        let alone = reload.await;
        assert!(reloads.change().await.is_err(), "a reload takes too long");
        drop(alone);
        assert!(reloads.change().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_does_not_wait_for_ever() {
        let (reloads, mut requests) = Reloads::new();
        let (asked, _held) = tokio::join!(reloads.request(), requests.next());
        assert_eq!(asked, Err(ReloadError::Slow));
    }

    #[tokio::test(start_paused = true)]
    async fn the_requests_that_wait_are_bounded() {
        let (reloads, mut requests) = Reloads::new();
        let waiting: Vec<_> = (0..WAITING)
            .map(|_| {
                let reloads = reloads.clone();
                tokio::spawn(async move { reloads.request().await })
            })
            .collect();
        // Time is paused: it passes once all of them wait.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(reloads.request().await, Err(ReloadError::Busy));
        for request in requests.take_waiting() {
            request.answer(Ok(()));
        }
        for one in waiting {
            assert_eq!(one.await.unwrap(), Ok(()));
        }
    }
}
