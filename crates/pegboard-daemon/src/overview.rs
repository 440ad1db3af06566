//! [`Overview`]: what the routes for operators look at.

use pegboard::Pegboard;
use pegboard::Timestamp;
use pegboard_gateway::{Monitor, ReplicaCounts, SignInLinks};
use pegboard_telemetry::Recorder;

use crate::{reloads::Reloads, sign_in_waits::SignInWaits};

/// A board, the reloads of its config, and the gateway in front of it. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Overview {
    pub(crate) board: Pegboard,
    pub(crate) reloads: Reloads,
    /// When the daemon was started.
    pub(crate) started_at: Timestamp,
    /// What the gateway counts, if there is one.
    pub(crate) monitor: Option<Monitor>,
    /// The links to the sign-in pages, if those are served.
    pub(crate) sign_in_links: Option<SignInLinks>,
    /// The durations of requests, and what sends telemetry if anything does.
    pub(crate) recorder: Option<Recorder>,
}

impl Overview {
    pub(crate) fn new(board: Pegboard, reloads: Reloads) -> Self {
        Self {
            board,
            reloads,
            started_at: Timestamp::now(),
            monitor: None,
            sign_in_links: None,
            recorder: None,
        }
    }

    /// The servers that wait only for people to sign in.
    pub(crate) fn sign_in_waits(&self) -> SignInWaits {
        SignInWaits::new(&self.board, self.sign_in_links.as_ref())
    }

    /// What the gateway has done together with other replicas; `None` if it has none.
    pub(crate) fn replicas(&self) -> Option<ReplicaCounts> {
        self.monitor.as_ref().and_then(|monitor| monitor.read().replicas)
    }

    /// Whether the store of the replicas did not answer when it was asked last.
    pub(crate) fn has_lost_store(&self) -> bool {
        self.replicas().is_some_and(|replicas| !replicas.store_answers)
    }

    /// Returns `true` once the gateway stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.monitor.as_ref().is_some_and(Monitor::is_draining)
    }
}
