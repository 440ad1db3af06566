//! [`Health`]: whether a collector takes what is sent to it. A change is logged once, however much is sent meanwhile.

use pegboard_base::sync::Mutex;

use crate::signal::Signal;

/// Whether one collector takes what is sent to it.
#[derive(Debug)]
pub(crate) struct Health {
    /// The collector in log lines: scheme, host and port.
    origin: String,
    /// The bits of the signals that it does not take.
    failing: Mutex<u8>,
}

impl Health {
    pub(crate) fn new(origin: String) -> Self {
        Self {
            origin,
            failing: Mutex::default(),
        }
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Notes that the collector has not taken something.
    pub(crate) fn note_failure(&self, signal: Signal, why: &str) {
        let mut failing = self.failing.lock();
        let was_well = *failing == 0;
        *failing |= signal.bit();
        drop(failing);
        if was_well {
            tracing::warn!(
                target: "pegboard::telemetry",
                "the collector at {} does not take {signal}: {why}; it is tried again, and what there is no room for meanwhile is dropped",
                self.origin
            );
        }
    }

    /// Notes that the collector has taken something.
    pub(crate) fn note_success(&self, signal: Signal) {
        let mut failing = self.failing.lock();
        let was_failing = *failing != 0;
        *failing &= !signal.bit();
        let is_well = *failing == 0;
        drop(failing);
        if was_failing && is_well {
            // As severe as the other line, so that a log that has one has both.
            tracing::warn!(target: "pegboard::telemetry", "the collector at {} takes telemetry again", self.origin);
        }
    }
}
