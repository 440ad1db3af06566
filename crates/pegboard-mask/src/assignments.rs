//! Matches assignments of a value to a name in config files, source code and command lines.
//!
//! A regular expression finds the whole assignment. Its parts are located by hand, because capture groups cost ten times as much as a plain
//! match.

use std::ops::Range;

/// Builds the expression for a name that ends in `key`, an assignment operator, and a value: quoted, quoted inside a quoted string, or bare.
///
/// The alternatives of `key` consist of letters, digits, `_`, `.` and `-`; [`parts`] relies on it.
pub(super) fn pattern(key: &str) -> String {
    let quoted = r#""((?:[^"\\\r\n]|\\[^\r\n])*)"#;
    let quoted_within = r#"\\+"([^"\\\r\n]*)"#;
    let single = r"'([^'\r\n]*)";
    let bare = r#"([^\s"'\\,;&<>{}\[\]()|`]+)"#;
    format!(
        r#"(?i)([A-Z0-9_.-]*(?:{key}))(?:\\*["'])?(?:[ \t]*(?:=>|:=|[:=])[ \t]*|>)(?:{quoted}|{quoted_within}|{single}|{bare})"#
    )
}

/// Returns the ranges of the name and the value in a match of [`pattern`]; the same ranges as its capture groups.
pub(super) fn parts(bytes: &[u8], found: Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
    let (start, end) = (found.start, found.end);
    let skip = |at: usize, is_such: fn(u8) -> bool| at + bytes[at..end].iter().take_while(|b| is_such(**b)).count();
    let name_end = skip(start, |b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    let mut at = skip(name_end, |b| b == b'\\');
    at += usize::from(matches!(bytes.get(at), Some(b'"' | b'\'')));
    at = skip(at, |b| matches!(b, b' ' | b'\t'));
    let sign = bytes.get(at..end)?;
    let mut value = at
        + match sign {
            [b'=', b'>', ..] | [b':', b'=', _, ..] => 2,
            _ => 1,
        };
    value = skip(value, |b| matches!(b, b' ' | b'\t'));
    // `:=` without a value is `:` with the value `=`.
    if value == end {
        value = at + 1;
    }
    let opening = match bytes.get(value)? {
        b'"' | b'\'' => 1,
        b'\\' => skip(value, |b| b == b'\\') + 1 - value,
        _ => 0,
    };
    Some((start..name_end, (value + opening).min(end)..end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::compile;

    proptest! {
        #[test]
        fn the_parts_are_those_of_the_capture_groups(
            text in "([A-Za-z_.-]{0,3}|pin|PIN| |\t|[:=>]{1,3}|[\"'\\\\]{1,3}|\n|é|[,;&<{\\[(|`]|x9[a-z=]{0,5}|=){0,40}"
        ) {
            let regex = compile(&pattern("\\bkey|pin|pi[_.-]?n")).unwrap();
            for found in regex.captures_iter(text.as_bytes()) {
                let value = (2..found.len()).find_map(|group| found.get(group)).unwrap().range();
                let expected = (found.get(1).unwrap().range(), value);
                prop_assert_eq!(parts(text.as_bytes(), found.get(0).unwrap().range()), Some(expected), "{:?}", text);
            }
        }
    }
}
