//! The form of a value: tokens, random text, and values that are plainly no secret.

/// Prefixes of the tokens of well-known providers.
const PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "hf_",
    "npm_",
    "pypi-",
    "dop_v1_",
    "lin_api_",
    "ntn_",
    "shpat_",
    "hvs.",
    "eyJ",
];

/// The shortest text that can look random.
const MIN_RANDOM: usize = 12;
/// The longest number that is plainly none: account numbers and timestamps in milliseconds are shorter.
const MAX_NUMBER: usize = 15;
/// The longest text of letters that is taken for a word.
const MAX_WORD: usize = 20;

/// Extensions of files that hold secrets or settings.
const FILES: &[&str] = &[
    ".pem", ".key", ".crt", ".p12", ".pfx", ".json", ".yaml", ".yml", ".toml", ".env", ".txt",
];

/// Whether a text has the form of a provider's token.
pub(crate) fn is_token(text: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            rest.len() >= 12 && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        })
    })
}

/// Whether a value looks random: letters and digits alternate more often than in words, versions or numbers.
pub fn is_random(value: &str) -> bool {
    let plain: Vec<u8> = value.bytes().filter(|b| !b"-_.".contains(b)).collect();
    let alternations = plain
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count();
    let is_text = plain
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || b"+/=~!@#$%^&*".contains(b));
    value.len() >= MIN_RANDOM && is_text && alternations >= 4 && !value.starts_with('/') && !is_uuid(value)
}

/// Whether a value without a telling name is a token: it has the form of one, or it is random and not made of words and numbers.
pub fn is_token_like(value: &str) -> bool {
    let is_digest = value.contains("sha256:") || value.contains("sha512-");
    is_token(value) || (is_random(value) && !is_plain(value) && !is_digest)
}

/// Whether a value is a UUID.
fn is_uuid(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|b| b.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
}

/// Whether a value switches something on or off.
pub(super) fn is_switch(value: &str) -> bool {
    let words = [
        "true", "false", "yes", "no", "on", "off", "null", "none", "nil", "auto", "default", "enabled", "disabled",
        "required", "optional",
    ];
    words.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Whether a value is a number.
pub(super) fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit() || b".+-_,".contains(&b))
}

/// Whether a value is a file path, or a list of them.
pub(super) fn is_path(value: &str) -> bool {
    let is_drive = |path: &str| {
        let bytes = path.as_bytes();
        bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && b"\\/".contains(&bytes[2])
    };
    let is_one = |path: &str| match path.strip_prefix('/') {
        Some(rest) => {
            let mut segments = rest.split('/');
            // Base64 may start with a slash too.
            let first = segments.next().unwrap_or_default();
            let is_folder = first
                .split(['.', '_', '-'])
                .all(|part| part.is_empty() || is_plain_part(part));
            is_folder && !segments.any(is_token)
        }
        None => path.starts_with("~/") || path.starts_with("./") || path.starts_with("../") || is_drive(path),
    };
    let has_extension = FILES.iter().any(|extension| value.ends_with(extension));
    is_one(value)
        || (value.contains(':') && value.split(':').all(|part| !part.is_empty() && is_one(part)))
        || (has_extension && value.split(['/', '.', '-', '_']).all(is_plain_part))
}

/// Whether a value is plainly no secret: words, numbers, versions, hosts, addresses, paths, media types, locales.
pub(super) fn is_plain(value: &str) -> bool {
    if is_switch(value) || is_path(value) || is_host(value) || value.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    let is_sentence = value.contains(' ');
    let separates = |c: char| c.is_whitespace() || "-_./:,;=@+*()[]<>|".contains(c);
    let is_mark = |c: char| is_sentence && "!?'\"&%#`".contains(c);
    value
        .split(|c| separates(c) || is_mark(c))
        .filter(|part| !part.is_empty())
        .all(is_plain_part)
}

/// Whether a value is a host with a domain, and perhaps a port or a user: `db-7x2.internal:5432`, `me@example.com`.
fn is_host(value: &str) -> bool {
    let host = value.rsplit_once('@').map_or(value, |(user, host)| {
        if is_plain_part(user) || user.split('.').all(is_plain_part) {
            host
        } else {
            ""
        }
    });
    let host = match host.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => host,
    };
    let labels: Vec<&str> = host.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !(label.len() >= 20 && is_random(label))
    };
    let is_domain = |last: &&&str| (2..=10).contains(&last.len()) && last.bytes().all(|b| b.is_ascii_lowercase());
    labels.len() >= 2 && labels.iter().all(is_label) && labels.last().filter(is_domain).is_some()
}

/// Whether a part of a value, without separators, is a word, a number, or both as in `v2`, `node18` and `30s`.
fn is_plain_part(part: &str) -> bool {
    let digits_at_start = part.bytes().take_while(u8::is_ascii_digit).count();
    let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits_at_end = part.len() - letters.len();
    part.chars().all(char::is_alphanumeric)
        && (part.len() <= 3
            || digits_at_start == part.len() && part.len() <= MAX_NUMBER
            || (1..=6).contains(&digits_at_start) && part.len() - digits_at_start <= 3
            || digits_at_end <= 4 && is_word(letters)
            || is_measure(part))
}

/// Whether a part is two numbers with a letter between them: `1920x1080`, or the middle of a timestamp.
fn is_measure(part: &str) -> bool {
    let is_short = |number: &str| (1..=5).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    part.split_once(['x', 'T'])
        .is_some_and(|(a, b)| is_short(a) && is_short(b))
}

/// Whether letters are a word, or words in camel case, and not random.
fn is_word(letters: &str) -> bool {
    let is_letters = letters.chars().all(char::is_alphabetic);
    if letters.len() <= 5 || !letters.is_ascii() {
        return is_letters && letters.len() <= 2 * MAX_WORD && !has_mixed_case(letters);
    }
    is_letters && letters.len() <= MAX_WORD && !has_mixed_case(letters) && is_pronounceable(letters)
}

/// Whether upper case follows lower case more often than in camel case.
fn has_mixed_case(letters: &str) -> bool {
    let rises = letters
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        .count();
    rises * 4 > letters.len()
}

/// Whether vowels and consonants alternate as in words, and rare letters do not meet consonants.
fn is_pronounceable(letters: &str) -> bool {
    let lower = letters.to_ascii_lowercase();
    let is_vowel = |b: u8| b"aeiouy".contains(&b);
    let longest = lower.as_bytes().split(|b| is_vowel(*b)).map(<[u8]>::len).max();
    let odd_pairs = lower.as_bytes().windows(2).filter(|pair| {
        let (a, b) = (pair[0], pair[1]);
        let is_rare = b"jqvxz".contains(&a) || b"jqxz".contains(&b);
        let is_common = a == b's' && b == b'q';
        a == b'q' && b != b'u' || is_rare && !is_common && a != b && !is_vowel(a) && !is_vowel(b)
    });
    longest.unwrap_or(0) <= 4 && odd_pairs.count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_values_are_plain() {
        for value in [
            "production",
            "debug",
            "info",
            "eu-central-1",
            "us-gov-west-1",
            "Europe/Berlin",
            "en_US.UTF-8",
            "de-DE,de;q=0.9,en;q=0.8",
            "application/json, text/event-stream",
            "text/html,application/xhtml+xml",
            "no-cache",
            "8080",
            "123456789012",
            "0.25",
            "30s",
            "10MiB",
            "2024-11-05",
            "2024-11-05T10:15:00Z",
            "1920x1080",
            "v1.2.3",
            "python3.11",
            "claude-3-5-sonnet-20241022",
            "gpt-4o-mini",
            "llama3.1:8b",
            "x86_64",
            "localhost:3000",
            "127.0.0.1",
            "2001:db8:85a3::8a2e:370:7334",
            "x7k2p9q1.execute-api.us-east-1.amazonaws.com",
            "db-1.internal:5432",
            "me@example.com",
            "/usr/local/bin:/usr/bin",
            "/home/me/.kube/config",
            "~/data",
            "./data/db.sqlite3",
            "C:\\Users\\me",
            "my agent 1.0",
            "Mozilla/5.0 (X11; Linux x86_64)",
            "PostgreSQL",
            "kubernetes",
            "acme-corp",
            "max-age=0",
            "team_platform",
            "GitHub",
        ] {
            assert!(is_plain(value), "{value}");
        }
    }

    #[test]
    fn passwords_and_tokens_are_not_plain() {
        for value in [
            "c4nary-7f3a9b1e",
            "hunter2!",
            "p@ssw0rd",
            "correct horse b4tt3ry",
            "aB3dE5fG7h",
            "qxzvkjwpbt",
            "aGVsbG8gd29ybGQ",
            "/aB3dE5fG7hIjK+lmnopqrstuvwxyz0123456789",
            "0123456789abcdef",
            "1234567890123456",
            "s3cr3t",
            "QwErTyUiOp",
            "x{y}z#12",
        ] {
            assert!(!is_plain(value), "{value}");
        }
    }
}
