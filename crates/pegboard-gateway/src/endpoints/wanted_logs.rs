//! [`WantedLevels`]: the levels from which on the clients of a toolset want the logs of its servers.

use std::{collections::HashMap, time::Duration};

use pegboard::{Toolset, watch};
use pegboard_base::sync::Mutex;
use tokio::time::Instant;

use super::open_exchanges::Audience;
use crate::protocol::LogLevel;

/// How long a level is kept after the last request of a modern client that named it. Setting it for each request would cost two more
/// requests to a legacy server.
const LINGER: Duration = Duration::from_secs(60);

/// Keeps the log levels of servers as low as the clients of one toolset want them.
#[derive(Debug)]
pub(super) struct WantedLevels {
    audience: Audience,
    wanted: Mutex<HashMap<(String, LogLevel), LogSubscription>>,
}

#[derive(Debug)]
struct LogSubscription {
    /// Dropped to raise the level again. `None` if the server has refused.
    _logs: Option<watch::WantedLogs>,
    used: Instant,
}

impl WantedLevels {
    pub(super) fn new(audience: Audience) -> Self {
        Self {
            audience,
            wanted: Mutex::default(),
        }
    }

    /// Makes a server log from this level on. A legacy client has one level; those of modern clients last as long as they are used.
    pub(super) async fn want(&self, toolset: &Toolset, server: &str, level: LogLevel) {
        let key = (server.to_owned(), level);
        if let Some(known) = self.wanted.lock().get_mut(&key) {
            known.used = Instant::now();
            return;
        }
        // A server without logs refuses. The client wanted something else in the first place, and gets that.
        let logs = toolset.want_logs(server, level).await;
        let logs = logs.inspect_err(|failure| tracing::debug!(server, %failure, "the log level was not set"));
        let wanted = LogSubscription {
            _logs: logs.ok(),
            used: Instant::now(),
        };
        let mut all = self.wanted.lock();
        let mut dropped: Vec<_> = match self.audience {
            Audience::OneClient => all.extract_if(|(known, _), _| known == server).collect(),
            Audience::Several => Vec::new(),
        };
        dropped.extend(all.insert(key.clone(), wanted).map(|replaced| (key, replaced)));
        drop(all);
        drop(dropped);
    }

    /// Drops the levels that no request of a modern client has named for a while.
    pub(super) fn sweep(&self, now: Instant) {
        if self.audience == Audience::OneClient {
            return;
        }
        let is_old = |wanted: &LogSubscription| now.duration_since(wanted.used) >= LINGER;
        let dropped: Vec<_> = self.wanted.lock().extract_if(|_, wanted| is_old(wanted)).collect();
        drop(dropped);
    }
}
