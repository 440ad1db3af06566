//! Finds tokens in base64 and percent-encoding. Both are decoded, twice if the result is encoded again.

use std::ops::Range;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use memchr::memchr;

use super::withheld::Failed;

/// The shortest encoded text that is decoded.
const MIN_LEN: usize = 24;
/// How many characters are decoded first, to see whether the result is a text.
const SAMPLE: usize = 24;
/// How much of an encoded text is decoded.
const MAX_LEN: usize = 256 << 10;
/// How often a text is decoded.
const MAX_DEPTH: usize = 2;

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);

/// Returns the encoded parts of a text in which `has_token` finds a token. Calls `visit` with every run that is long enough to be encoded.
pub(super) fn find(
    text: &str,
    has_token: &impl Fn(&str) -> Result<bool, Failed>,
    visit: &mut impl FnMut(&Range<usize>),
) -> Result<Vec<Range<usize>>, Failed> {
    let mut found = Vec::new();
    let mut wrapped = 0..0;
    for range in base64_runs(text.as_bytes()) {
        if !continues(text, wrapped.end, range.start) {
            add_wrapped(text, &wrapped, has_token, &mut found)?;
            wrapped.start = range.start;
        }
        wrapped.end = range.end;
        visit(&range);
        if has_token_inside(&text[range.clone()], has_token, 0)? {
            found.push(range);
        }
    }
    add_wrapped(text, &wrapped, has_token, &mut found)?;
    for range in percent_runs(text.as_bytes()) {
        if has_token_inside(&text[range.clone()], has_token, 0)? {
            found.push(range);
        }
    }
    Ok(found)
}

/// Whether there is nothing but a line break and the indentation of a line between two places.
fn continues(text: &str, end: usize, start: usize) -> bool {
    let between = &text.as_bytes()[end..start];
    end > 0 && between.len() < MIN_LEN && memchr(b'\n', between).is_some() && between.trim_ascii().is_empty()
}

/// Adds a base64 text of several lines in which there is a token.
fn add_wrapped(
    text: &str,
    lines: &Range<usize>,
    has_token: &impl Fn(&str) -> Result<bool, Failed>,
    found: &mut Vec<Range<usize>>,
) -> Result<(), Failed> {
    // The last line may be too short for a run of its own.
    let rest = &text[lines.end..];
    let indent = rest.len() - rest.trim_start().len();
    let last = rest[indent..]
        .bytes()
        .take(MIN_LEN)
        .take_while(|b| is_base64(*b))
        .count();
    let padding = rest[indent + last..].bytes().take(2).take_while(|b| *b == b'=').count();
    let ends = rest[indent + last + padding..].is_empty()
        || rest[indent + last + padding..].starts_with(['\r', '\n', '"', '\'']);
    let has_last = last > 0 && ends && continues(text, lines.end, lines.end + indent);
    let with_last = has_last.then_some(lines.end + indent + last + padding);
    for end in with_last.into_iter().chain([lines.end]) {
        let lines = lines.start..end;
        if lines.is_empty() || memchr(b'\n', text[lines.clone()].as_bytes()).is_none() {
            continue;
        }
        let joined: String = text[lines.clone()].split_ascii_whitespace().collect();
        if has_token_inside(&joined, has_token, 0)? {
            found.push(lines);
            break;
        }
    }
    Ok(())
}

fn has_token_inside(
    run: &str,
    has_token: &impl Fn(&str) -> Result<bool, Failed>,
    depth: usize,
) -> Result<bool, Failed> {
    let Some(decoded) = decode(run) else {
        return Ok(false);
    };
    if has_token(&decoded)? {
        return Ok(true);
    }
    if depth + 1 == MAX_DEPTH {
        return Ok(false);
    }
    let bytes = decoded.as_bytes();
    for range in base64_runs(bytes).chain(percent_runs(bytes)) {
        if has_token_inside(&decoded[range], has_token, depth + 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Decodes base64 of either alphabet, with or without padding.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let plain = text.trim_end_matches('=');
    STANDARD.decode(plain).or_else(|_| URL_SAFE.decode(plain)).ok()
}

/// The text that a run encodes, if it is one.
fn decode(run: &str) -> Option<String> {
    if memchr(b'%', run.as_bytes()).is_some() {
        return decode_percent(run.as_bytes());
    }
    let plain = run.trim_end_matches('=');
    let engine = match plain.bytes().any(|b| matches!(b, b'-' | b'_')) {
        true => URL_SAFE,
        false => STANDARD,
    };
    // Most runs are identifiers and paths, whose decoding is no text.
    let mut sample = [0; SAMPLE];
    let sample_len = engine.decode_slice(&plain[..SAMPLE], &mut sample).ok()?;
    if !sample[..sample_len].iter().all(|b| is_printable(*b)) {
        return None;
    }
    let len = plain.len().min(MAX_LEN);
    // A last character alone encodes nothing.
    let len = len - usize::from(len % 4 == 1);
    let decoded = String::from_utf8(engine.decode(&plain[..len]).ok()?).ok()?;
    decoded
        .bytes()
        .all(|b| is_printable(b) || !b.is_ascii())
        .then_some(decoded)
}

fn decode_percent(run: &[u8]) -> Option<String> {
    let digit = |at: usize| run.get(at).and_then(|b| char::from(*b).to_digit(16));
    let mut out = Vec::with_capacity(run.len());
    let mut at = 0;
    while at < run.len() {
        match (run[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

fn is_printable(byte: u8) -> bool {
    byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Whether a byte is a character of base64. A table, because every text is searched for runs of these.
static BASE64: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    table
};

fn is_base64(byte: u8) -> bool {
    BASE64[usize::from(byte)]
}

/// The runs of at least [`MIN_LEN`] characters of base64, with padding.
pub(super) fn base64_runs(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + MIN_LEN <= bytes.len() {
            // From the end: a character that ends a run rules out all starts before it.
            match bytes[at..at + MIN_LEN].iter().rposition(|b| !is_base64(*b)) {
                Some(step) => at += step + 1,
                None => {
                    let len = bytes[at..].iter().take_while(|b| is_base64(**b)).count();
                    let padding = bytes[at + len..].iter().take(2).take_while(|b| **b == b'=').count();
                    let run = at..at + len + padding;
                    at = run.end + 1;
                    return Some(run);
                }
            }
        }
        None
    })
}

/// The runs of at least [`MIN_LEN`] characters without spaces and quotes that contain a percent sign with two hex digits.
fn percent_runs(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let sign = at + memchr(b'%', bytes.get(at..)?)?;
            let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"%-_.~+/=!*@:,".contains(b);
            let is_code = bytes
                .get(sign + 1..sign + 3)
                .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
            if !is_code {
                at = sign + 1;
                continue;
            }
            let before = bytes[at..sign].iter().rev().take_while(|b| is_part(b)).count();
            let after = bytes[sign..].iter().take(MAX_LEN).take_while(|b| is_part(b)).count();
            let run = sign - before..sign + after;
            at = run.end;
            if run.len() >= MIN_LEN {
                return Some(run);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose;

    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let ranges = find(text, &|decoded| Ok(decoded.contains("canary")), &mut |_| {}).unwrap();
        ranges.into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn what_is_encoded_once_or_twice_is_found() {
        let once = general_purpose::STANDARD.encode("the canary sings at dawn");
        let twice = general_purpose::URL_SAFE_NO_PAD.encode(format!("inner: {once} end"));
        let percent = "the%20canary%20sings%20at%20dawn";
        let mixed = general_purpose::STANDARD.encode(percent);
        for encoded in [once.as_str(), &twice, percent, &mixed] {
            assert_eq!(found(&format!("a \"{encoded}\" b")), [encoded], "{encoded}");
        }
        let thrice = general_purpose::STANDARD.encode(&twice);
        assert_eq!(found(&thrice), [""; 0]);
    }

    #[test]
    fn what_is_wrapped_into_lines_is_found_as_a_whole() {
        let once = general_purpose::STANDARD.encode(format!("{} the canary {}", "x".repeat(43), "y".repeat(21)));
        for width in [60, 64, 76] {
            let lines: Vec<&str> = once
                .as_bytes()
                .chunks(width)
                .map(|line| str::from_utf8(line).unwrap())
                .collect();
            for separator in ["\n", "\r\n", "\n    "] {
                let wrapped = lines.join(separator);
                let text = format!("data: |\n  {wrapped}\nend");
                assert!(
                    found(&text).iter().any(|found| found.starts_with(&wrapped)),
                    "{width} {separator:?}"
                );
            }
        }
    }

    #[test]
    fn identifiers_and_digests_are_no_texts() {
        assert_eq!(
            found("a_long_identifier_of_a_program 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b 100% %zz"),
            [""; 0]
        );
    }

    #[test]
    fn a_secret_may_stand_at_any_place_of_a_long_run() {
        let text = general_purpose::STANDARD.encode(format!("{}canary{}", "x".repeat(5000), "y".repeat(77)));
        assert_eq!(found(&text), [text.as_str()]);
    }
}
