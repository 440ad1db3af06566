//! Secrets without a sign before them: arguments of calls and cmdlets, and directives of config files.

use std::ops::Range;

use memchr::memrchr;

use super::value;
use crate::plausibility;

/// Calls whose second argument is a password.
const LOGINS: [&str; 4] = [
    "networkcredential",
    "passwordcredential",
    "usernamepasswordcredentials",
    "passwordauthentication",
];
/// The most bytes of an argument before the password.
const MAX_ARGUMENT: usize = 64;
/// The most bytes of a string that is piped.
const MAX_PIPED: usize = 256;

/// Returns the password in a call such as `NetworkCredential("ada", "…")`.
pub(super) fn login(bytes: &[u8], name: &Range<usize>) -> Option<Range<usize>> {
    let is_login = |login: &&str| ends_with(&bytes[..name.end], login.as_bytes());
    if bytes.get(name.end) != Some(&b'(') || !LOGINS.iter().any(is_login) {
        return None;
    }
    let start = name.end + 1 + run(bytes, name.end + 1, |b| b.is_ascii_whitespace());
    let end = match value::find_quoted(bytes, start) {
        Some(first) => first.end + run(bytes, first.end, |b| b == b'\\') + 1,
        None => start + run(bytes, start, |b| b.is_ascii_alphanumeric() || b"_.$[]@".contains(&b)).min(MAX_ARGUMENT),
    };
    let comma = end + run(bytes, end, |b| matches!(b, b' ' | b'\t'));
    if bytes.get(comma) != Some(&b',') {
        return None;
    }
    value::find_quoted(bytes, comma + 1 + run(bytes, comma + 1, |b| b.is_ascii_whitespace()))
}

/// Returns the string that PowerShell's `ConvertTo-SecureString` converts. `word` is the second half of its name.
pub(super) fn find_secure_string_argument(bytes: &[u8], word: &Range<usize>) -> Option<Range<usize>> {
    const VERB: &[u8] = b"convertto-";
    if !ends_with(&bytes[..word.start], VERB) {
        return None;
    }
    let is_blank = |b: u8| matches!(b, b' ' | b'\t');
    let mut at = word.end + run(bytes, word.end, is_blank);
    // `-String`, `-AsPlainText`, `-Force`
    while bytes.get(at) == Some(&b'-') {
        at += 1 + run(bytes, at + 1, |b| b.is_ascii_alphabetic());
        at += run(bytes, at, is_blank);
    }
    let inside = value::find_quoted(bytes, at);
    inside.or_else(|| find_piped(bytes, word.start - VERB.len()))
}

/// Returns the inside of the string that is piped to what begins at `at`: `'…' | `.
fn find_piped(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let from = at.saturating_sub(MAX_PIPED);
    let before = bytes[from..at].trim_ascii_end().strip_suffix(b"|")?.trim_ascii_end();
    let (quote, inside) = before.split_last()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let start = memrchr(*quote, inside)? + 1;
    (!inside[start..].contains(&b'\n')).then_some(from + start..from + inside.len())
}

/// Returns the value of a directive such as `requirepass …`, which begins at `at`. In the middle of a line it must look like a password.
pub(super) fn directive(text: &str, name: &Range<usize>, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if let Some(inside) = value::find_quoted(bytes, at) {
        return Some(inside);
    }
    let end = at + run(bytes, at, |b| !b.is_ascii_whitespace() && !b"\"'`\\<>".contains(&b));
    let is_last = || matches!(bytes.get(end), None | Some(b'\n' | b'\r'));
    let is_alone = || value::is_line_start(text, name.start) && is_last();
    (is_alone() || plausibility::is_token_like(&text[at..end])).then_some(at..end)
}

/// Whether a text ends with a word, in any case.
fn ends_with(text: &[u8], word: &[u8]) -> bool {
    let start = text.len().checked_sub(word.len());
    start.is_some_and(|start| text[start..].eq_ignore_ascii_case(word))
}

/// The length of the run of such bytes at `at`.
fn run(bytes: &[u8], at: usize, is_such: impl Fn(u8) -> bool) -> usize {
    bytes
        .get(at..)
        .map_or(0, |rest| rest.iter().take_while(|b| is_such(**b)).count())
}
