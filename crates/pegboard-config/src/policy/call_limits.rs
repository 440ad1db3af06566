//! How often an agent may call a tool, and what it may call after it has read untrusted output.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{choice::words, duration_text, from_setting::FromSetting, key::unless, setting::Setting, units};

/// The most calls of one principal, or of one view without a principal, within a period. Written `60/min`, `5/s` or `100/10m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "StoredRate")]
#[non_exhaustive]
pub struct Rate {
    /// How many calls; at least one.
    pub calls: u32,
    /// Within which time; not zero.
    #[serde(with = "duration_text")]
    pub per: Duration,
}

/// A rate as it is read, which may be out of range.
#[derive(Deserialize)]
struct StoredRate {
    calls: u32,
    #[serde(with = "duration_text")]
    per: Duration,
}

impl From<StoredRate> for Rate {
    fn from(stored: StoredRate) -> Self {
        Self::new(stored.calls, stored.per)
    }
}

impl Rate {
    /// The longest period.
    const MAX_PER: Duration = Duration::from_secs(24 * 3600);

    /// `calls` within `per`. At least one call, and a period between a millisecond and a day.
    pub fn new(calls: u32, per: Duration) -> Self {
        Self {
            calls: calls.max(1),
            per: per.clamp(Duration::from_millis(1), Self::MAX_PER),
        }
    }

    /// Parses `60/min`, `5/s` or `100/10m`.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
    /// # use std::time::Duration;
    /// # use pegboard::config::Rate;
    /// assert_eq!(Rate::parse("60/min"), Some(Rate::new(60, Duration::from_secs(60))));
    /// assert_eq!(Rate::parse("often"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (calls, per) = text.split_once('/')?;
        let calls: u32 = calls.trim().parse().ok()?;
        let per = per.trim();
        let per = units::duration(per).or_else(|| units::duration(&format!("1{per}")))?;
        let is_valid = calls > 0 && per >= Duration::from_millis(1) && per <= Self::MAX_PER;
        is_valid.then_some(Self { calls, per })
    }

    /// What is wrong with a text that is no rate.
    pub(crate) fn problem(text: &str) -> Option<String> {
        let problem = "must be a number of calls and a period of up to a day, such as `60/min` or `100/10m`";
        unless(Self::parse(text).is_some(), problem)
    }
}

/// A rate that does not parse is reported when the config is checked.
impl FromSetting for Rate {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Text(text) => Self::parse(&text.value),
            _ => None,
        }
    }
}

/// Whether a rate allows more calls at once or over time.
pub(crate) fn is_faster(own: Rate, floor: Rate) -> bool {
    let at_once = own.calls > floor.calls;
    at_once || u128::from(own.calls) * floor.per.as_nanos() > u128::from(floor.calls) * own.per.as_nanos()
}

/// Whether a limit of repeated calls is higher; zero means no limit.
pub(crate) fn allows_more_repeats(own: usize, floor: usize) -> bool {
    floor != 0 && (own == 0 || own > floor)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = if self.calls == 1 { "call" } else { "calls" };
        write!(f, "{} {calls} in {:?}", self.calls, self.per)
    }
}

words! {
    /// What happens to calls of high risk after an agent has read output of an untrusted server. Such output may contain instructions of an
    /// attacker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Taint as "taint mode" default Off {
        /// Nothing.
        Off = "off",
        /// They need approval.
        Ask = "ask",
        /// They are refused.
        Block = "block",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_of_calls_and_a_period() {
        let rate = |calls, millis| Some(Rate::new(calls, Duration::from_millis(millis)));
        for (text, expected) in [
            ("60/min", rate(60, 60_000)),
            ("5 / s", rate(5, 1000)),
            ("100/10m", rate(100, 600_000)),
            ("1/h", rate(1, 3_600_000)),
            ("0/s", None),
            ("-1/s", None),
            ("5", None),
            ("5/", None),
            ("5/0s", None),
            ("5/2d", None),
            ("5/parsec", None),
            ("99999999999/s", None),
        ] {
            assert_eq!(Rate::parse(text), expected, "{text}");
        }
    }
}
