//! Moments for people: in UTC, as exact as it helps.

use std::time::SystemTime;

use pegboard::Timestamp;

/// Shows a moment in a format of strftime.
pub(crate) fn moment(at: Timestamp, format: &str) -> String {
    let at = jiff::Timestamp::try_from(SystemTime::from(at)).unwrap_or_default();
    at.strftime(format).to_string()
}
