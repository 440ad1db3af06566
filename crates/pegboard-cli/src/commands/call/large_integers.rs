//! Finds integers in JSON that a parsed value cannot hold.

use super::quoting::cut;

/// Refuses valid JSON with an integer that would be rounded.
pub(super) fn check(json: &str) -> Result<(), String> {
    match inexact_integer(json) {
        None => Ok(()),
        Some(number) => Err(format!(
            "the integer {} has more than 64 bits and would be rounded; `--json` sends it as it is",
            cut(number)
        )),
    }
}

/// The first integer in valid JSON that does not fit into 64 bits. It would be sent as the nearest number with a fraction.
fn inexact_integer(json: &str) -> Option<&str> {
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[start..];
        if let Some(text) = rest.strip_prefix('"') {
            rest = after_string(text);
            continue;
        }
        let end = rest.find(|c| !is_of_number(c)).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let is_integer = !number.contains(['.', 'e', 'E']);
        if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Some(number);
        }
        rest = after;
    }
    None
}

/// What follows the closing quote of a JSON string.
fn after_string(text: &str) -> &str {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integers_that_would_be_rounded_are_inexact() {
        for (json, inexact) in [
            ("123456789012345678901234567890", Some("123456789012345678901234567890")),
            ("[1, -9223372036854775809]", Some("-9223372036854775809")),
            ("{\"a\": [18446744073709551616]}", Some("18446744073709551616")),
            ("[18446744073709551615, -9223372036854775808, 1e30, 1.5, -0]", None),
            ("\"99999999999999999999\"", None),
            (r#"{"a\"99999999999999999999": true}"#, None),
        ] {
            assert_eq!(inexact_integer(json), inexact, "{json}");
        }
    }
}
