//! Moments for people: in UTC, as exact as it helps.

use std::time::SystemTime;

use pegboard::Timestamp;

/// The format of times for people: no fraction of a second.
pub(crate) const IN_SECONDS: &str = "%Y-%m-%dT%H:%M:%SZ";

/// Shows a moment in a format of strftime.
pub(crate) fn moment(at: Timestamp, format: &str) -> String {
    let at = jiff::Timestamp::try_from(SystemTime::from(at)).unwrap_or_default();
    at.strftime(format).to_string()
}
