//! Durations in stored values: numbers in milliseconds, as everywhere in the JSON of calls.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The factor from nanoseconds to milliseconds.
const NANOS: u32 = 1_000_000;

/// Writes whole milliseconds as an integer, and others with a fraction. For `#[serde(with = "stored_millis")]`.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
pub(crate) fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(duration) = duration else {
        return serializer.serialize_none();
    };
    match u64::try_from(duration.as_millis()) {
        Ok(millis) if duration.subsec_nanos().is_multiple_of(NANOS) => millis.serialize(serializer),
        _ => to_nanos(duration.as_secs_f64() * 1e3).serialize(serializer),
    }
}

/// Rounds a number of milliseconds to whole nanoseconds, so that 1.9 ms is not written as 1.9000000000000001.
fn to_nanos(millis: f64) -> f64 {
    format!("{millis:.6}").parse().unwrap_or(millis)
}

/// Reads a number of milliseconds.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let millis = Option::<f64>::deserialize(deserializer)?;
    millis.map(duration).transpose()
}

/// The duration of this many milliseconds; the longest one if there is none so long.
pub(super) fn duration<E: Error>(millis: f64) -> Result<Duration, E> {
    if millis.is_nan() || millis < 0.0 {
        return Err(E::custom(format!("`{millis}` is no number of milliseconds")));
    }
    Ok(Duration::try_from_secs_f64(millis / 1e3).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Stored(#[serde(with = "super")] Option<Duration>);

    #[test]
    fn a_duration_is_read_as_it_was_written() {
        for (duration, written) in [
            (None, "null"),
            (Some(Duration::from_secs(30)), "30000"),
            (Some(Duration::from_micros(1900)), "1.9"),
            (Some(Duration::from_nanos(1)), "1e-6"),
            (Some(Duration::from_nanos(86_400_000_000_001)), "86400000.000001"),
        ] {
            assert_eq!(serde_json::to_string(&Stored(duration)).unwrap(), written);
            assert_eq!(serde_json::from_str::<Stored>(written).unwrap(), Stored(duration));
        }
        let longest = serde_json::to_string(&Stored(Some(Duration::MAX))).unwrap();
        assert_eq!(serde_json::from_str::<Stored>(&longest).unwrap().0, Some(Duration::MAX));
        assert!(serde_json::from_str::<Stored>("-1").is_err());
    }
}
