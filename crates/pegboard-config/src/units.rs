//! Parses and formats durations and sizes: `30s`, `1h30m`, `8MiB`.

use std::{fmt, time::Duration};

/// Parses a duration in the syntax of config files and the command line: `30s`, `2m`, `500ms`, `1h30m`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    duration(text)
}

/// Parses a size in the syntax of config files and the command line: `48KiB`, `2MB`, `1000`.
pub fn parse_size(text: &str) -> Option<u64> {
    size(text)
}

/// Parses `30s`, `500ms`, `1.5h`, `1h30m`. Days are the largest unit.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut millis = 0.0_f64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = number(rest)?;
        let after = after.trim_start();
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let factor = match unit {
            "ms" | "millis" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hour" | "hours" => 3_600_000.0,
            "d" | "day" | "days" => 86_400_000.0,
            _ => return None,
        };
        millis += number * factor;
        rest = next.trim_start();
    }
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// Parses `8MiB`, `512k`, `1048576`. `k`, `M` and `G` count in 1024s, with or without `iB`; `kB`, `MB`, `GB` in thousands.
pub(super) fn size(text: &str) -> Option<u64> {
    let (number, unit) = number(text.trim())?;
    let factor = match unit.trim_start() {
        "" | "B" | "b" | "bytes" => 1.0,
        "k" | "K" | "KiB" | "kiB" | "Ki" => 1024.0,
        "M" | "MiB" | "Mi" => 1_048_576.0,
        "G" | "GiB" | "Gi" => 1_073_741_824.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return None,
    };
    let bytes = number * factor;
    // An `f64` is exact up to 2^53, which no limit here reaches.
    (0.0..=9e15).contains(&bytes).then_some(bytes as u64)
}

/// Formats a duration in its largest whole unit: `90s`, `2m`.
pub(super) fn duration_text(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
        if millis >= size && millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    format!("{millis}ms")
}

/// Formats a size in its largest whole unit: `8MiB`.
pub(super) struct SizeText(pub(super) u64);

impl fmt::Display for SizeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

/// Parses the number at the start of a text, and returns the rest.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number = number.replace('_', "").parse().ok()?;
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, millis) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1.5h", 5_400_000),
            ("1h30m", 5_400_000),
            ("1 min", 60_000),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "30",
            "s",
            "-1s",
            "1.2.3s",
            "10 parsecs",
            "1e400s",
            "9999999999999999999999999d",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_may_have_a_unit() {
        for (text, bytes) in [
            ("8MiB", 8 << 20),
            ("512k", 512 << 10),
            ("1_000", 1000),
            ("2 MB", 2_000_000),
            ("1.5Ki", 1536),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "MiB", "-1", "8XB", "99999999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
        assert_eq!(SizeText(8 << 20).to_string(), "8MiB");
        assert_eq!(duration_text(Duration::from_secs(90)), "90s");
    }
}
