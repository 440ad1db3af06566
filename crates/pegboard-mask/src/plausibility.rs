//! Decides whether a pattern's match can be a secret. Placeholders, references and words in templates, documents and source code are not.

use memchr::memchr;

/// Words that are written in place of a secret.
const WORDS: &[&str] = &[
    "null",
    "none",
    "nil",
    "true",
    "false",
    "undefined",
    "changeme",
    "required",
    "optional",
    "default",
    "string",
    "redacted",
    "hidden",
    "omitted",
    "example",
    "placeholder",
    "password",
    "secret",
    "token",
    "unset",
    "missing",
    "data+omitted",
    "authentication",
    "authorization",
    "credentials",
    "anonymous",
];

/// Whether a value may be a secret: not a reference to a variable, a placeholder, or a word for a missing value.
pub(super) fn plausible(value: &str) -> bool {
    let value = value.trim();
    let is_reference = value.starts_with(['$', '<', '{', '%', '@', '(', '`']) || has_placeholder(value.as_bytes());
    !value.is_empty() && !is_reference && is_varied(value) && !is_placeholder(value) && !is_instruction(value)
}

/// Whether a value is a word that is written in place of a secret.
pub(super) fn is_placeholder(value: &str) -> bool {
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Whether a value tells the reader to replace it, as `changeme-in-production` does.
pub(super) fn is_instruction(value: &str) -> bool {
    const STARTS: [&str; 10] = [
        "changeme",
        "change-me",
        "change_me",
        "replaceme",
        "replace-me",
        "replace_me",
        "your-",
        "your_",
        "insert-",
        "insert_",
    ];
    let begins = |start: &&str| {
        value
            .get(..start.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(start))
    };
    STARTS.iter().any(begins) && value.bytes().all(|b| b.is_ascii_alphabetic() || b"-_.!".contains(&b))
}

/// Whether a value contains `${`, `{{`, `...` or `…`. One pass, because every match is checked.
fn has_placeholder(value: &[u8]) -> bool {
    let begins = |at: usize, rest: &[u8]| value[at + 1..].starts_with(rest);
    value.iter().enumerate().any(|(at, byte)| match byte {
        b'$' | b'{' => begins(at, b"{"),
        b'.' => begins(at, b".."),
        0xe2 => begins(at, b"\x80\xa6"),
        _ => false,
    })
}

/// Whether a value has at least four distinct bytes, or only distinct ones if it is shorter. Excludes `xxxxxxxx` and `********`.
pub(super) fn is_varied(value: &str) -> bool {
    count_distinct_bytes(value) >= 4.min(value.len())
}

/// Whether a value has at least eight distinct bytes, or half as many as its length if it is shorter than sixteen.
pub(crate) fn is_random(value: &str) -> bool {
    count_distinct_bytes(value) >= 8.min(value.len() / 2)
}

fn count_distinct_bytes(value: &str) -> usize {
    let mut seen = [0_u64; 4];
    value.bytes().for_each(|b| seen[usize::from(b >> 6)] |= 1 << (b & 63));
    seen.iter().map(|bits| bits.count_ones() as usize).sum()
}

/// Whether a value looks like a token and not like a word: it has letters, and either digits or the mixed case of random text.
pub(crate) fn is_token_like(value: &str) -> bool {
    let (mut letters, mut digits, mut turns, mut was_lower) = (0, 0, 0, false);
    for byte in value.bytes() {
        letters += usize::from(byte.is_ascii_alphabetic());
        digits += usize::from(byte.is_ascii_digit());
        turns += usize::from(was_lower && byte.is_ascii_uppercase());
        was_lower = byte.is_ascii_lowercase();
    }
    letters > 0 && (digits > 0 || turns >= 3) && is_random(value) && plausible(value)
}

/// Whether a value is something that agents need: a URL, path, identifier, digest, date, or call in source code.
pub(super) fn is_reference(value: &str) -> bool {
    let has = |part: &str| value.contains(part);
    let has_colon = memchr(b':', value.as_bytes()).is_some();
    let is_address = has_colon && (has("://") || has("::") || has("sha256:"));
    let is_call = memchr(b'(', value.as_bytes()).is_some_and(|at| at > 0 && value[..at].split(['.', ':']).all(is_name));
    let is_path = value.starts_with(['/', '.', '~']) && value.len() < 80;
    let is_number = || value.bytes().all(|b| b.is_ascii_digit() || b".,:-_TZ+".contains(&b));
    let is_path_of_names = || {
        (has_colon || memchr(b'.', value.as_bytes()).is_some())
            && value.split(['.', ':']).filter(|part| !part.is_empty()).count() > 1
            && value.split(['.', ':']).all(is_name)
    };
    is_address || is_call || is_path || is_number() || is_path_of_names() || is_uuid(value)
}

/// Whether a part is an identifier of source code: no leading digit, and at most two digits.
fn is_name(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let is_plain = part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    is_plain && !part.starts_with(|c: char| c.is_ascii_digit()) && digits <= 2 && part.len() <= 32
}

/// Whether a value is a UUID.
pub(super) fn is_uuid(value: &str) -> bool {
    let lengths = value.split('-').map(str::len);
    value.len() == 36 && lengths.eq([8, 4, 4, 4, 12]) && value.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

/// Whether a value has hex digits only, like a digest or a commit.
pub(super) fn is_hex(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether a value has lower-case letters, upper-case letters and digits.
pub(super) fn is_mixed(value: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| value.bytes().any(|b| kind(&b));
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

/// Whether a card number passes the Luhn check.
pub(super) fn luhn(value: &str) -> bool {
    let digits: Vec<u32> = value.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => *digit,
            (_, twice @ 10..) => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    (13..=19).contains(&digits.len()) && sum.is_multiple_of(10) && count_distinct_bytes(value) > 2
}

/// Whether the check digits of an IBAN are right.
pub(super) fn iban(value: &str) -> bool {
    let plain: Vec<u8> = value.bytes().filter(u8::is_ascii_alphanumeric).collect();
    if !(15..=34).contains(&plain.len()) {
        return false;
    }
    let (country, account) = plain.split_at(4);
    let rest = account.iter().chain(country).try_fold(0u32, |rest, b| {
        let digit = char::from(*b).to_digit(36)?;
        Some(
            if digit < 10 {
                rest * 10 + digit
            } else {
                rest * 100 + digit
            } % 97,
        )
    });
    rest == Some(1)
}

/// Whether a US social security number is in a range that is issued.
pub(super) fn ssn(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    matches!(parts.as_slice(), [area, group, serial]
        if !matches!(*area, "000" | "666") && !area.starts_with('9') && *group != "00" && *serial != "0000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_secrets() {
        for value in [
            "${TOKEN}",
            "<token>",
            "{{ .Values.x }}",
            "xxxxxxxxxxxx",
            "********",
            "null",
            "$U:$P",
            "changeme",
            "abc...",
        ] {
            assert!(!plausible(value), "{value}");
        }
        assert!(plausible("hunter2"));
    }

    #[test]
    fn what_agents_need_is_no_secret() {
        for value in [
            "https://id.example.org/token",
            "123e4567-e89b-12d3-a456-426614174000",
            "PrivateKeyDer::Sec1",
            "resp.total_tokens",
            "self.get_token()",
            "/run/secrets/token1",
            "2024-01-01T00:00:00Z",
            "sha256:aa11bb22",
        ] {
            assert!(is_reference(value), "{value}");
        }
        for value in ["8KlbIT5CY8alOK", "p4ss.w0rd99x", "eyJhbGci.eyJzdWIi.c2ln1234"] {
            assert!(!is_reference(value), "{value}");
        }
    }

    #[test]
    fn sums_are_checked() {
        assert!(luhn("4111 1111 1111 1111") && !luhn("4111 1111 1111 1112"));
        assert!(iban("DE89 3704 0044 0532 0130 00") && !iban("DE00 3704 0044 0532 0130 00"));
        assert!(ssn("536-90-4399") && !ssn("000-12-3456"));
    }
}
