//! Keys of services whose prefix is too short for a keyword, such as `re_` and `pa-`. They are known by the length and alphabet of their parts.

use std::ops::Range;

use crate::plausibility;

/// Returns the key that a run of letters, digits, `-` and `_` is or belongs to.
pub(super) fn service_key(bytes: &[u8], run: &Range<usize>) -> Option<Range<usize>> {
    if is_key(&bytes[run.clone()]) {
        return Some(run.clone());
    }
    dotted_key(bytes, run)
}

/// Whether a whole run is a key.
fn is_key(run: &[u8]) -> bool {
    let is_mixed = || str::from_utf8(run).is_ok_and(plausibility::is_mixed);
    let is_uuid = |id: &[u8]| str::from_utf8(id).is_ok_and(plausibility::is_uuid);
    match (run, run.len()) {
        // ElevenLabs, Firecrawl.
        ([b's', b'k', b'_', key @ ..], 51) | ([b'f', b'c', b'-', key @ ..], 35) => is_lower_hex(key),
        // Resend.
        ([b'r', b'e', b'_', key @ ..], 33..=40) => key[8] == b'_' && is_alphanumeric(&key[9..]) && is_mixed(),
        // Voyage.
        ([b'p', b'a', b'-', ..], 46) => is_mixed(),
        // ClickUp: a number and the secret.
        ([b'p', b'k', b'_', key @ ..], 38..=45) => {
            let (id, secret) = key.split_at(key.len() - 32);
            let is_upper = |b: &u8| b.is_ascii_digit() || b.is_ascii_uppercase();
            id.strip_suffix(b"_")
                .is_some_and(|id| id.iter().all(u8::is_ascii_digit))
                && secret.iter().all(is_upper)
        }
        // LaunchDarkly.
        ([b's', b'd', b'k', b'-', id @ ..] | [b'a', b'p', b'i', b'-', id @ ..], 40) => is_uuid(id),
        // Mailgun.
        (key, 50) => {
            let parts = [&key[..32], &key[33..41], &key[42..]];
            key[32] == b'-' && key[41] == b'-' && parts.into_iter().all(is_lower_hex)
        }
        _ => false,
    }
}

/// Returns the key that has a run as one of several parts.
fn dotted_key(bytes: &[u8], run: &Range<usize>) -> Option<Range<usize>> {
    let part = &bytes[run.clone()];
    if !matches!(part.len(), 24 | 32 | 64) || !is_lower_hex(part) {
        return None;
    }
    let before = |len: usize| bytes.get(run.start.checked_sub(len)?..run.start);
    // The start of a key with this much before the run, unless that is the middle of a word.
    let from = |len: usize| {
        let start = run.start - len;
        (!start.checked_sub(1).is_some_and(|at| is_word(bytes[at]))).then_some(start)
    };
    match part.len() {
        // Airtable: `pat` and 14 characters before the dot.
        64 => {
            let id = before(18)?.strip_prefix(b"pat")?.strip_suffix(b".")?;
            is_alphanumeric(id).then_some(from(18)?..run.end)
        }
        // Harness: `pat` and an account before a number, and the secret after it.
        24 => {
            let account = before(27)?.strip_prefix(b"pat.")?.strip_suffix(b".")?;
            let secret = bytes[run.end..]
                .strip_prefix(b".")?
                .iter()
                .take(64)
                .take_while(|b| is_word(**b))
                .count();
            (account.iter().all(|b| is_word(*b)) && secret >= 18).then_some(from(27)?..run.end + 1 + secret)
        }
        // Infisical: `st`, and two more parts before the last.
        _ if before(61).is_some_and(|id| id.starts_with(b"st.")) => {
            let id = before(61)?.strip_prefix(b"st.")?.strip_suffix(b".")?;
            let is_dotted = id[24] == b'.' && is_lower_hex(&id[..24]) && is_lower_hex(&id[25..]);
            is_dotted.then_some(from(61)?..run.end)
        }
        // Asana: numbers before a colon.
        _ => {
            let id = bytes[..run.start].strip_suffix(b":")?;
            let len = id
                .iter()
                .rev()
                .take(40)
                .take_while(|b| b.is_ascii_digit() || **b == b'/')
                .count();
            let id = &id[id.len() - len..];
            let is_asana = len >= 14 && (id.starts_with(b"1/") || id.starts_with(b"2/"));
            is_asana.then_some(from(len + 1)?..run.end)
        }
    }
}

fn is_lower_hex(part: &[u8]) -> bool {
    part.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b))
}

fn is_alphanumeric(part: &[u8]) -> bool {
    part.iter().all(u8::is_ascii_alphanumeric)
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
}
