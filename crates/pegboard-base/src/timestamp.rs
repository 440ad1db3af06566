//! [`Timestamp`]: a moment of the wall clock.

use std::{
    fmt,
    ops::{Add, Sub},
    str::FromStr,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

/// A moment in UTC, as text and in JSON such as `2027-01-31T12:00:00Z`.
///
/// ```
/// # mod pegboard { pub use pegboard_base::timestamp::Timestamp; }
/// use std::time::{Duration, SystemTime};
/// use pegboard::Timestamp;
///
/// let noon: Timestamp = "2027-01-31T12:00:00Z".parse()?;
/// let later = noon + Duration::from_secs(90);
/// assert_eq!(later.to_string(), "2027-01-31T12:01:30Z");
/// assert_eq!(later.duration_since(noon), Duration::from_secs(90));
/// assert!(noon > Timestamp::from(SystemTime::UNIX_EPOCH));
/// # Ok::<(), pegboard_base::timestamp::BadTimestamp>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);
    /// The last moment that can be told: the end of the year 9999.
    pub const MAX: Self = Self(jiff::Timestamp::MAX);

    /// The time of the system's clock.
    pub fn now() -> Self {
        Self(jiff::Timestamp::now())
    }

    /// A moment so many seconds after 1970; `None` if it is out of range.
    pub fn from_second(seconds: i64) -> Option<Self> {
        jiff::Timestamp::from_second(seconds).ok().map(Self)
    }

    /// A moment so many milliseconds after 1970; `None` if it is out of range.
    pub fn from_millisecond(milliseconds: i64) -> Option<Self> {
        jiff::Timestamp::from_millisecond(milliseconds).ok().map(Self)
    }

    /// The seconds since 1970.
    pub fn as_second(self) -> i64 {
        self.0.as_second()
    }

    /// The milliseconds since 1970.
    pub fn as_millisecond(self) -> i64 {
        self.0.as_millisecond()
    }

    /// The seconds since 1970 with their fraction, as metrics have them.
    pub fn as_secs_f64(self) -> f64 {
        self.0.as_duration().as_secs_f64()
    }

    /// How long after `earlier` this is; zero if it is before.
    pub fn duration_since(self, earlier: Self) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// How long after `earlier` this is; `None` if it is before, as when the clock was set back.
    pub fn checked_duration_since(self, earlier: Self) -> Option<Duration> {
        Duration::try_from(self.0.duration_since(earlier.0)).ok()
    }
}

/// At most [`Timestamp::MAX`].
impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.0.checked_add(duration).map_or(Self::MAX, Self)
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        self.0.checked_sub(duration).map_or(Self(jiff::Timestamp::MIN), Self)
    }
}

/// A time out of range is the nearest one that can be told.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let nearest = match time < SystemTime::UNIX_EPOCH {
            true => jiff::Timestamp::MIN,
            false => jiff::Timestamp::MAX,
        };
        Self(jiff::Timestamp::try_from(time).unwrap_or(nearest))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(at: Timestamp) -> Self {
        at.0.into()
    }
}

/// A text is no moment in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` must be a time such as `2027-01-31T12:00:00Z`", .0.escape_debug())]
pub struct BadTimestamp(String);

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        text.parse().map(Self).map_err(|_| BadTimestamp(text.to_owned()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_out_of_range_are_the_nearest_that_can_be_told() {
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
        let first = Timestamp(jiff::Timestamp::MIN);
        assert_eq!(first - Duration::from_secs(1), first);
        assert_eq!(Timestamp::from_second(i64::MAX), None);
        assert_eq!(
            Timestamp::UNIX_EPOCH - Duration::from_secs(1),
            Timestamp::from_second(-1).unwrap()
        );
    }

    #[test]
    fn a_clock_that_was_set_back_leaves_no_time_between() {
        let (before, after) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(5).unwrap());
        assert_eq!(after.checked_duration_since(before), Some(Duration::from_secs(5)));
        assert_eq!(before.checked_duration_since(after), None);
        assert_eq!(before.duration_since(after), Duration::ZERO);
    }

    #[test]
    fn text_and_json_are_those_of_rfc_3339() {
        let json = "\"2027-01-31T12:00:00.25Z\"";
        let at: Timestamp = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&at).unwrap(), json);
        let error = "noon".parse::<Timestamp>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`noon` must be a time such as `2027-01-31T12:00:00Z`"
        );
    }
}
