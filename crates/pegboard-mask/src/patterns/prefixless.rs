//! Search functions for tokens without a keyword. They run on every text, so each starts from a rare byte where the token has one.

use std::{ops::Range, sync::LazyLock};

use memchr::{memchr_iter, memmem};

use crate::plausibility;

/// Discord bot tokens: three parts separated by dots, the second of six characters.
pub(super) fn discord(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    for dot in memchr_iter(b'.', bytes) {
        if bytes.get(dot + 7) != Some(&b'.') || found.last().is_some_and(|last| last.end > dot) {
            continue;
        }
        let mut start = dot - run_back(&bytes[..dot], 36, is_word);
        // The end of a terminal's colour code is no part of the token.
        if bytes[..start].ends_with(b"[") || bytes[..start].ends_with(b";") {
            start += bytes[start..dot]
                .iter()
                .take(4)
                .position(|b| *b == b'm')
                .map_or(0, |m| m + 1);
        }
        let end = dot + 8 + run(&bytes[dot + 8..], 64, is_word);
        let middle = &bytes[dot + 1..dot + 7];
        let is_token = (24..=28).contains(&(dot - start))
            && matches!(bytes[start], b'M' | b'N' | b'O')
            && middle.iter().copied().all(is_word)
            && end - dot >= 8 + 27;
        if is_token {
            found.push(start..end);
        }
    }
    found
}

/// Twilio keys: `SK` and 32 hex digits.
pub(super) fn twilio(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_key = |at: &usize| {
        let digits = run(&bytes[at + 2..], 33, |b| {
            b.is_ascii_digit() || (b'a'..=b'f').contains(&b)
        });
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let after = bytes.get(at + 34).copied();
        // The `m` of a terminal's colour code is no part of a word, nor is the `-` of a diff.
        let is_coloured = before == Some(b'm') && bytes[..*at].iter().rev().skip(1).take(8).any(|b| *b == b'\x1b');
        let is_inside = before.is_some_and(|b| is_word(b) && b != b'-') && !is_coloured;
        digits == 32 && !is_inside && !after.is_some_and(is_word)
    };
    static START: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("SK"));
    let found = START.find_iter(bytes).filter(is_key);
    found.map(|at| at..at + 34).collect()
}

/// The fewest and the most digits of a card number.
const MIN_DIGITS: usize = 13;
const MAX_DIGITS: usize = 19;

/// Card numbers: 13 to 19 digits that pass the Luhn check, optionally separated by single spaces or dashes.
pub(super) fn cards(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begins = (b'2'..=b'6').contains(&bytes[at]) && !at.checked_sub(1).is_some_and(is_digit);
        if !begins {
            at += 1;
            continue;
        }
        // The end of each digit.
        let (mut ends, mut count) = ([0; MAX_DIGITS], 0);
        let mut next = at;
        while count < MAX_DIGITS {
            if count > 0 && matches!(bytes.get(next), Some(b' ' | b'-')) && is_digit(next + 1) {
                next += 1;
            }
            if !is_digit(next) {
                break;
            }
            next += 1;
            ends[count] = next;
            count += 1;
        }
        let is_card = |end: &&usize| !is_digit(**end) && plausibility::luhn(&text[at..**end]);
        match ends[..count].iter().skip(MIN_DIGITS - 1).rev().find(is_card) {
            Some(end) => {
                found.push(at..*end);
                at = *end;
            }
            None => at += 1,
        }
    }
    found
}

/// Base64 of at least twenty characters. Digests, commits, names and paths are skipped, because agents need them.
pub(super) fn base64(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let len = run(&bytes[at..], usize::MAX, is_digit);
        let padding = run(&bytes[at + len..], 2, |b| b == b'=');
        let range = at..at + len + padding;
        at = range.end + 1;
        if len < 20 {
            continue;
        }
        let value = &text[range.clone()];
        let before = &bytes[range.start.saturating_sub(8)..range.start];
        let is_digest = before.ends_with(b"-") || before.ends_with(b":");
        let is_digest = is_digest && memmem::find(before, b"sha").is_some();
        let is_path = value.matches('/').count() > len / 12 && padding == 0 && !plausibility::is_mixed(value);
        if !plausibility::is_hex(value)
            && !is_digest
            && !is_path
            && (plausibility::is_mixed(value) || padding > 0)
            && plausibility::is_random(value)
        {
            found.push(range);
        }
    }
    found
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
}

/// The number of leading bytes that match, up to `most`.
fn run(bytes: &[u8], most: usize, is_such: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take(most).take_while(|b| is_such(**b)).count()
}

/// The number of trailing bytes that match; `most + 1` if there are more than `most`.
fn run_back(bytes: &[u8], most: usize, is_such: impl Fn(u8) -> bool) -> usize {
    bytes.iter().rev().take(most + 1).take_while(|b| is_such(**b)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_and_commits_are_no_base64_secrets() {
        for text in [
            "commit 4ca3503e26c4f28e684263671734836370e46f78",
            "image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "integrity: sha512-Z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
            "usr/local/share/applications/desktop",
            "thisIsJustAVeryLongIdentifierWithoutDigits",
        ] {
            assert!(base64(text).is_empty(), "{text}");
        }
        assert_eq!(base64("x c2VjcmV0LXZhbHVlLTEyMzQ1Njc4OTA= y"), vec![2..34]);
    }
}
