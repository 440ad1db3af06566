//! Texts and numbers as people read them. Texts of servers are made visible; maud escapes them.

use std::{borrow::Cow, time::Duration};

use maud::{Markup, html};
use pegboard::Timestamp;
use pegboard_base::visible_text;

/// The most characters of a text in a line of a table.
const LINE: usize = 200;

/// A text of a server: invisible characters, and those that change the direction of a text are written out.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    visible_text::clean(text)
}

/// The same on one line, cut where it gets long.
pub(crate) fn line(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        // A language without spaces is one long word.
        let room = LINE.saturating_sub(words.chars().count());
        words.extend(word.chars().take(room));
        if word.chars().nth(room).is_some() {
            words.push('…');
            break;
        }
    }
    visible_text::clean(&words).into_owned()
}

/// A part of a path.
pub(crate) fn segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => escaped.push(char::from(byte)),
            // Also a dot, because `.` and `..` mean something else.
            byte => {
                escaped.push('%');
                escaped.push(
                    char::from_digit(u32::from(byte >> 4), 16)
                        .unwrap_or('0')
                        .to_ascii_uppercase(),
                );
                escaped.push(
                    char::from_digit(u32::from(byte & 15), 16)
                        .unwrap_or('0')
                        .to_ascii_uppercase(),
                );
            }
        }
    }
    escaped
}

/// A duration in milliseconds, with its unit.
pub(crate) fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 0.0005 => "0 ms".to_owned(),
        ms if ms < 1.0 => format!("{:.0} µs", ms * 1000.0),
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        ms => duration(Duration::from_secs_f64(ms / 1000.0)),
    }
}

/// A duration in its largest units.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A size in bytes, with its unit.
pub(crate) fn bytes(size: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a size for people is not exact")]
    let size_of = |unit: f64| size as f64 / unit;
    match size {
        0..1024 => format!("{size} B"),
        1024..1_048_576 => format!("{:.1} KiB", size_of(1024.0)),
        _ => format!("{:.1} MiB", size_of(1_048_576.0)),
    }
}

/// A count with spaces between thousands.
pub(crate) fn count(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            // A narrow space that does not break.
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of things of the platform's size.
pub(crate) fn count_of(number: usize) -> String {
    count(u128::try_from(number).unwrap_or(u128::MAX))
}

/// How long ago a moment is.
pub(crate) fn ago(at: Timestamp) -> Markup {
    let age = Timestamp::now().checked_duration_since(at).unwrap_or_default();
    let words = match age.as_secs() {
        0..2 => "just now".to_owned(),
        _ => format!("{} ago", duration(age)),
    };
    html! { time datetime=(at) title=(at) { (words) } }
}

/// A moment, exact to the second.
pub(crate) fn moment(at: Timestamp) -> Markup {
    let text = at.to_string();
    let second = text
        .split_once('.')
        .map_or(text.trim_end_matches('Z'), |(second, _)| second);
    html! { time datetime=(at) title=(at) { (second.replacen('T', " ", 1)) } }
}

/// The time of a day.
pub(crate) fn clock(at: Timestamp) -> Markup {
    let text = at.to_string();
    let time = text.split_once('T').map_or(text.as_str(), |(_, time)| time);
    let time = time.split(['.', 'Z']).next().unwrap_or(time);
    html! { time datetime=(at) title=(at) { (time) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_groups() {
        for (ms, text) in [
            (0.0, "0 ms"),
            (0.25, "250 µs"),
            (1.25, "1.2 ms"),
            (12.3, "12 ms"),
            (1234.0, "1.2 s"),
            (90_000.0, "1 min"),
        ] {
            assert_eq!(millis(ms), text);
        }
        assert_eq!(count(1_234_567_u32), "1\u{202f}234\u{202f}567");
        assert_eq!(count(12_u32), "12");
        assert_eq!((bytes(12), bytes(1536)), ("12 B".to_owned(), "1.5 KiB".to_owned()));
        assert_eq!(duration(Duration::from_secs(90_061)), "1 d 1 h");
    }

    #[test]
    fn a_text_of_a_server_hides_nothing_and_a_name_stays_one_part_of_a_path() {
        assert_eq!(shown("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(line(" a\n b "), "a b");
        assert!(line(&"word ".repeat(100)).chars().count() <= LINE + 1);
        assert_eq!(segment("../a b/ü?"), "%2E%2E%2Fa%20b%2F%C3%BC%3F");
    }
}
