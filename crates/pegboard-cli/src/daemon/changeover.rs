//! [`Changeover`]: the wait of a command for a daemon that holds its place and does not listen, because it starts or stops.

use std::{io::IsTerminal as _, path::Path, time::Duration};

use pegboard::deadline::Deadline;
use tokio::time::Instant;

use super::lock::holder_of;
use crate::output::Output;

/// How long a command waits. Its own servers would be started a second time beside those of a daemon that stops: its calls in flight have five
/// seconds, then its servers are stopped.
const CHANGE_TIME: Duration = Duration::from_secs(15);

/// After which time a person is told what the command waits for.
const TELL_AFTER: Duration = Duration::from_millis(500);

/// How often the place is looked at.
const POLL: Duration = Duration::from_millis(5);

/// The wait of one command.
pub(super) struct Changeover<'a> {
    lock: &'a Path,
    output: &'a Output,
    limit: Deadline,
    begun: Instant,
    is_told: bool,
}

/// What one step of the wait has found.
pub(super) enum Step {
    /// No other process holds the place.
    Free,
    /// One does, and a moment has passed.
    Waited,
    /// The process with this id does so for too long.
    TooLong(u32),
}

impl<'a> Changeover<'a> {
    /// A wait for the process that holds a lock, within the time that the command has for everything.
    pub(super) fn new(lock: &'a Path, output: &'a Output, limit: Deadline) -> Self {
        Self {
            lock,
            output,
            limit,
            begun: Instant::now(),
            is_told: false,
        }
    }

    /// Waits a moment if a process other than `own` holds the place.
    pub(super) async fn step(&mut self, own: Option<u32>) -> Step {
        let Some(holder) = holder_of(self.lock).filter(|holder| Some(*holder) != own) else {
            return Step::Free;
        };
        if self.begun.elapsed() >= CHANGE_TIME || self.limit.has_passed() {
            return Step::TooLong(holder);
        }
        if !self.is_told && self.begun.elapsed() >= TELL_AFTER {
            self.is_told = true;
            if std::io::stderr().is_terminal() {
                self.output.note(&format!(
                    "waiting for the daemon (process {holder}), which starts or stops"
                ));
            }
        }
        tokio::time::sleep(POLL).await;
        Step::Waited
    }
}

/// Why a command does without the daemon that it has waited for.
pub(super) fn tell_too_long(holder: u32) -> String {
    format!("the one before (process {holder}) is still stopping")
}
