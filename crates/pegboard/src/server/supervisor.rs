//! The task that owns the session of a link. Each state is a function, each transition its return value.
//!
//! The supervisor publishes a [`Phase`] to callers. While a server is down, calls fail at once. The supervisor retries in the background without
//! going back to `Connecting`, so that no caller waits for a start that is likely to fail again. There are three exceptions: while first starts
//! fail, callers wait as long as `start_wait` says; they wait over the backoff of restarts that fail quickly, as long as `restart.wait` says;
//! and a server without automatic restarts is started by the next call.

mod command;
mod connecting;
mod failure;
mod history;
mod serving;
mod start_attempt;
mod state;

pub(super) use command::Command;
pub(super) use history::History;
pub(super) use state::Supervisor;

use std::time::Duration;

use tracing::Instrument;

use super::phase::Phase;
use state::NextState;

impl Supervisor {
    /// Runs until the link ends.
    pub(super) async fn run(mut self) {
        // Every log line of the task carries the server's name.
        let span = tracing::error_span!("supervisor", server = %self.plan().spec.name);
        async {
            let mut step = NextState::Idle;
            loop {
                step = match step {
                    NextState::Idle => self.wait_for_command().await,
                    NextState::Connect { after, patience } => self.start_server(after, Some(patience)).await,
                    NextState::ConnectBehindOutage => self.start_server(Duration::ZERO, None).await,
                    NextState::Serve(live) => self.serve(live).await,
                    NextState::Wait(next) => self.wait_for_start(next).await,
                    NextState::Stop => break,
                }
            }
            self.publish(Phase::Closed);
            self.closing.wait().await;
        }
        .instrument(span)
        .await;
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
