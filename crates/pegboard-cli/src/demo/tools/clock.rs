//! `now`: the current time in a time zone.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{Failure, Output, at_most, harmless};

/// More than the longest name in the time zone database.
const MAX_NAME: usize = 64;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    timezone: Option<String>,
}

pub(super) fn definition() -> Value {
    json!({
        "name": "now",
        "title": "Current time",
        "description": "Tells the current date and time, in UTC or in a time zone of your choice. Use it whenever the \
            answer depends on today's date.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "timezone": {
                    "type": "string",
                    "description": "An IANA name such as Europe/Berlin, an offset such as +05:30, or UTC",
                    "default": "UTC",
                    "minLength": 1,
                    "maxLength": MAX_NAME,
                }
            },
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "iso": {"type": "string", "description": "RFC 3339 with milliseconds and the zone's offset"},
                "unix_ms": {"type": "integer", "description": "Milliseconds since 1970-01-01T00:00:00Z"},
                "timezone": {"type": "string", "description": "The zone that `iso` is written in"},
            },
            "required": ["iso", "unix_ms", "timezone"],
        },
        "annotations": harmless(),
    })
}

pub(super) fn run(arguments: Arguments) -> Result<Output, Failure> {
    let name = arguments.timezone.unwrap_or_else(|| "UTC".into());
    tell(Timestamp::now(), &name).map(Output::structured)
}

fn tell(now: Timestamp, name: &str) -> Result<Value, Failure> {
    at_most("timezone", name, MAX_NAME)?;
    let (zone, label) = zone(name).ok_or_else(|| {
        Failure(format!(
            "`{name}` is no time zone; give an IANA name such as Europe/Berlin, or an offset such as +05:30"
        ))
    })?;
    let iso = if label == "UTC" {
        now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    } else {
        now.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
    };
    Ok(json!({"iso": iso, "unix_ms": now.as_millisecond(), "timezone": label}))
}

fn zone(name: &str) -> Option<(TimeZone, String)> {
    if name.eq_ignore_ascii_case("utc") || name.eq_ignore_ascii_case("z") {
        return Some((TimeZone::UTC, "UTC".into()));
    }
    if name.starts_with(['+', '-']) {
        let seconds = offset(name)?;
        return Some((Offset::from_seconds(seconds).ok()?.to_time_zone(), name.into()));
    }
    let zone = TimeZone::get(name).ok()?;
    let label = zone.iana_name().unwrap_or(name).to_owned();
    Some((zone, label))
}

/// Seconds east of UTC of `+HH`, `+HHMM` or `+HH:MM`.
fn offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match (digits.len(), digits.split_once(':')) {
        (5, Some(parts)) => parts,
        (4, None) => digits.split_at_checked(2)?,
        (2, None) => (digits, "00"),
        _ => return None,
    };
    let number = |part: &str| {
        let plain = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| part.parse::<i32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(timezone: &str, iso: &str, label: &str) {
        let now = Timestamp::from_millisecond(1_767_323_045_006).unwrap();
        let told = tell(now, timezone).unwrap();
        assert_eq!(
            told,
            json!({"iso": iso, "unix_ms": 1_767_323_045_006_i64, "timezone": label}),
            "{timezone}"
        );
    }

    #[test]
    fn the_time_is_told_in_any_zone() {
        check("UTC", "2026-01-02T03:04:05.006Z", "UTC");
        check("utc", "2026-01-02T03:04:05.006Z", "UTC");
        check("+05:30", "2026-01-02T08:34:05.006+05:30", "+05:30");
        check("-0800", "2026-01-01T19:04:05.006-08:00", "-0800");
        check("+02", "2026-01-02T05:04:05.006+02:00", "+02");
        check("Europe/Berlin", "2026-01-02T04:04:05.006+01:00", "Europe/Berlin");
        check("america/new_york", "2026-01-01T22:04:05.006-05:00", "America/New_York");
    }

    #[test]
    fn what_is_no_zone_is_refused_by_name() {
        for name in [
            "",
            "Mars/Olympus",
            "+5",
            "+24:00",
            "+1:30",
            "+01:60",
            "+é1",
            "++1:0",
            "../etc/passwd",
        ] {
            let Failure(message) = tell(Timestamp::UNIX_EPOCH, name).unwrap_err();
            assert!(message.contains("is no time zone"), "{name}: {message}");
        }
    }
}
