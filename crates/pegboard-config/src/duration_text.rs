//! Durations in stored configs: `"30s"` as in config files, and exact to the nanosecond.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::units;

/// Writes a duration, or a collection of durations. For `#[serde(with = "duration_text")]`.
pub(super) fn serialize<T: Durations, S: Serializer>(durations: &T, serializer: S) -> Result<S::Ok, S::Error> {
    durations.write(serializer)
}

/// Reads what [`serialize`] has written.
pub(super) fn deserialize<'de, T: Durations, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(deserializer)
}

/// A duration or a collection of durations.
pub(super) trait Durations: Sized {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl Durations for Duration {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        DurationText(*self).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DurationText::deserialize(deserializer).map(|text| text.0)
    }
}

impl Durations for Option<Duration> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.map(DurationText).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(|DurationText(duration)| duration))
    }
}

impl Durations for Vec<Duration> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().copied().map(DurationText))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<DurationText>::deserialize(deserializer)?;
        Ok(texts.into_iter().map(|text| text.0).collect())
    }
}

impl Durations for BTreeMap<String, Option<Duration>> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, duration)| (name, duration.map(DurationText))))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = BTreeMap::<String, Option<DurationText>>::deserialize(deserializer)?;
        let entries = texts.into_iter();
        Ok(entries.map(|(name, text)| (name, text.map(|text| text.0))).collect())
    }
}

/// A duration as text.
struct DurationText(Duration);

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.subsec_nanos().is_multiple_of(1_000_000) {
            return serializer.serialize_str(&units::duration_text(self.0));
        }
        serializer.collect_str(&format_args!("{}.{:09}s", self.0.as_secs(), self.0.subsec_nanos()))
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        match parse_exact(&text).or_else(|| units::duration(&text)) {
            Some(duration) => Ok(Self(duration)),
            None => Err(D::Error::custom(format!(
                "`{}` is no duration; write it as `30s` or `500ms`",
                text.escape_debug()
            ))),
        }
    }
}

/// Reads the texts that are written here. The parser of config files computes with floating-point numbers, which are not exact for all of
/// them.
fn parse_exact(text: &str) -> Option<Duration> {
    let (number, per_unit_millis) = match text {
        _ if text.ends_with("ms") => (text.strip_suffix("ms")?, 1),
        _ if text.ends_with('s') => (text.strip_suffix('s')?, 1000),
        _ if text.ends_with('m') => (text.strip_suffix('m')?, 60_000),
        _ => (text.strip_suffix('h')?, 3_600_000),
    };
    if let Some((seconds, nanos)) = number.split_once('.') {
        let is_nanos = per_unit_millis == 1000 && nanos.len() == 9;
        return is_nanos.then_some(Duration::new(seconds.parse().ok()?, nanos.parse().ok()?));
    }
    let millis = number.parse::<u128>().ok()?.checked_mul(per_unit_millis)?;
    let seconds = u64::try_from(millis / 1000).ok()?;
    let nanos = u32::try_from(millis % 1000).ok()? * 1_000_000;
    Some(Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(duration: Duration) -> String {
        serde_json::to_string(&DurationText(duration)).unwrap()
    }

    #[test]
    fn a_duration_is_written_as_in_a_config_file() {
        assert_eq!(written(Duration::from_secs(90)), "\"90s\"");
        assert_eq!(written(Duration::from_millis(1500)), "\"1500ms\"");
        assert_eq!(written(Duration::from_nanos(1_500_000_001)), "\"1.500000001s\"");
        let read: DurationText = serde_json::from_str("\"1h30m\"").unwrap();
        assert_eq!(read.0, Duration::from_secs(5400));
        for bad in ["\"soon\"", "\"\"", "30", "\"99999999999999999999999999h\""] {
            assert!(serde_json::from_str::<DurationText>(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_duration_is_read_as_it_was_written(seconds: u64, nanos in 0u32..1_000_000_000, millis: u64) {
            for duration in [Duration::new(seconds, nanos), Duration::from_millis(millis), Duration::from_secs(seconds)] {
                let read: DurationText = serde_json::from_str(&written(duration)).unwrap();
                prop_assert_eq!(read.0, duration);
            }
        }
    }
}
