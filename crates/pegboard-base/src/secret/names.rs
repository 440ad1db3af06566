//! Decides by its name whether a setting, header, variable or form field holds a secret.

/// The service under which a keyring has the secrets that the user has stored for configs, `${secret:NAME}`.
pub const USER_SECRETS: &str = "pegboard-secret";
/// The longest name of such a secret.
const MAX_SECRET_NAME: usize = 64;

/// Parts of names that denote a secret.
const PARTS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "apikey",
    "accesskey",
    "credential",
    "privatekey",
    "authorization",
    "bearer",
    "cookie",
];

/// Words that denote a secret as the last word of a name.
const LAST_WORDS: &[&str] = &[
    "key",
    "keys",
    "auth",
    "pat",
    "pwd",
    "pw",
    "pass",
    "jwt",
    "sig",
    "signature",
    "salt",
    "otp",
    "creds",
];

/// Words before `key` with which it is no secret.
const OPEN_KEYS: &[&str] = &[
    "public",
    "primary",
    "foreign",
    "partition",
    "sort",
    "cache",
    "routing",
    "host",
    "idempotency",
];

/// The last words of names that describe a secret, such as its file or its lifetime, and do not hold it.
const DESCRIBES: &[&str] = &[
    "argument", "count", "dir", "enabled", "endpoint", "env", "expiry", "field", "file", "folder", "from", "header",
    "host", "length", "limit", "max", "name", "path", "policy", "provider", "required", "size", "store", "timeout",
    "ttl", "type", "uri", "url", "var", "variable",
];

/// The last words of names whose values appear in ordinary results.
const ORDINARY: &[&str] = &[
    "accept",
    "account",
    "agent",
    "app",
    "base",
    "board",
    "branch",
    "bucket",
    "catalog",
    "channel",
    "client",
    "cluster",
    "code",
    "container",
    "control",
    "country",
    "currency",
    "database",
    "dataset",
    "db",
    "dir",
    "domain",
    "email",
    "encoding",
    "env",
    "environment",
    "file",
    "folder",
    "format",
    "group",
    "guid",
    "home",
    "host",
    "hostname",
    "id",
    "ids",
    "image",
    "index",
    "instance",
    "label",
    "lang",
    "language",
    "level",
    "list",
    "locale",
    "location",
    "mode",
    "model",
    "name",
    "names",
    "namespace",
    "node",
    "org",
    "organization",
    "origin",
    "owner",
    "path",
    "platform",
    "pod",
    "port",
    "prefix",
    "profile",
    "project",
    "protocol",
    "queue",
    "ref",
    "region",
    "repo",
    "repository",
    "role",
    "room",
    "root",
    "schema",
    "scope",
    "service",
    "site",
    "source",
    "space",
    "stage",
    "status",
    "suffix",
    "table",
    "tag",
    "tags",
    "team",
    "tenant",
    "time",
    "timezone",
    "title",
    "topic",
    "type",
    "tz",
    "unit",
    "user",
    "username",
    "uuid",
    "version",
    "warehouse",
    "workspace",
    "zone",
];

/// Whether a text can be the name of a secret that the user stores: letters, digits, `_`, `-` and `.`, with a letter, digit or `_` at its start.
///
/// Such a name is no option of a program, and no path.
pub fn is_secret_name(name: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    name.len() <= MAX_SECRET_NAME
        && name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().all(is_part)
}

/// Whether a name mentions a secret. The value may also be about the secret: `TOKEN_URL`, `PASSWORD_FILE`.
pub fn mentions_secret(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    if PARTS.iter().any(|part| joined.contains(part)) {
        return true;
    }
    match words.as_slice() {
        [.., before, last] if matches!(last.as_str(), "key" | "keys") => !OPEN_KEYS.contains(&before.as_str()),
        [.., last] => LAST_WORDS.contains(&last.as_str()),
        [] => false,
    }
}

/// Whether a value under this name is a secret: `API_KEY_1`, `password2`, `x-auth`.
pub fn names_secret(name: &str) -> bool {
    mentions_secret(name) && !ends_in(name, DESCRIBES)
}

/// Whether values under this name appear in ordinary results: `AWS_REGION`, `LOG_LEVEL`, `GITHUB_OWNER`.
pub(super) fn names_ordinary(name: &str) -> bool {
    ends_in(name, ORDINARY)
}

/// Whether a name counts or limits something: `MAX_TOKENS`.
pub(super) fn names_count(name: &str) -> bool {
    let counts = ["max", "min", "limit", "count", "budget", "total", "num"];
    words(name).iter().any(|word| counts.contains(&word.as_str()))
}

fn ends_in(name: &str, list: &[&str]) -> bool {
    words(name).last().is_some_and(|last| list.contains(&last.as_str()))
}

/// The words of a name in lower case, without numbers: `api`, `key` for `API_KEY_1`, `apiKey2` and `--api-key`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in name.chars() {
        let starts = !before.is_ascii_alphabetic() || (before.is_ascii_lowercase() && c.is_ascii_uppercase());
        if c.is_ascii_alphabetic() {
            match words.last_mut() {
                Some(word) if !starts => word.push(c.to_ascii_lowercase()),
                _ => words.push(c.to_ascii_lowercase().to_string()),
            }
        }
        before = c;
    }
    // Software that splits text into tokens has no secret.
    words.retain(|word| !word.starts_with("tokeni"));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_secret_has_a_name_that_is_neither_a_path_nor_an_option() {
        for name in ["GITHUB_TOKEN", "_x", "9", "a.b-c", &"a".repeat(64)] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["", "-a", ".a", "..", "a/b", "a b", "ä", "a\n", &"a".repeat(65)] {
            assert!(!is_secret_name(name), "{name:?}");
        }
    }

    #[test]
    fn names_of_secrets_are_known_in_every_spelling_and_with_a_number() {
        for name in [
            "token",
            "API_KEY",
            "API_KEY_1",
            "apiKey2",
            "--api-key",
            "password2",
            "DB_PWD",
            "X-Auth",
            "Authorization",
            "Cookie",
            "STRIPE_KEY",
            "KEY1",
            "AWS_ACCESS_KEY_ID",
            "client_secret",
            "PAT",
            "SSH_PASSPHRASE",
            "sig",
        ] {
            assert!(names_secret(name), "{name}");
        }
    }

    #[test]
    fn names_that_describe_a_secret_or_have_one_by_chance_are_none() {
        for name in [
            "TOKEN_URL",
            "PASSWORD_FILE",
            "secretName",
            "API_KEY_HEADER",
            "PUBLIC_KEY",
            "sort_key",
            "TOKENIZERS_PARALLELISM",
            "LOG_LEVEL",
            "MONKEY",
            "keyboard",
            "my_keyboard",
            "author",
            "",
        ] {
            assert!(!names_secret(name), "{name}");
        }
        assert!(mentions_secret("TOKEN_URL"));
    }
}
