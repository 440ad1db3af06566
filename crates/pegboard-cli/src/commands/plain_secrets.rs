//! Secrets that a config file holds as plain text in `env` and `headers`, and the reference that takes the place of one.

/// Words in the names of variables and headers whose values are secrets.
const SECRET_WORDS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "credential",
    "private_key",
    "cookie",
];
/// The ends of such names.
const SECRET_ENDS: &[&str] = &["_key", "_pat", "auth"];
/// The schemes of credentials in headers. A server expects them before the token.
const SCHEMES: &[&str] = &["bearer", "basic", "token", "apikey", "api-key", "digest", "negotiate"];

/// Whether a value, as it is written, holds a secret: by the name of its variable or header, or because it is a URL with a password.
pub(super) fn is_secret(key: &str, value: &str) -> bool {
    let key = key.to_lowercase();
    let is_named =
        SECRET_WORDS.iter().any(|word| key.contains(word)) || SECRET_ENDS.iter().any(|end| key.ends_with(end));
    let is_plain = !value.is_empty() && !value.contains("${") && !is_path(value);
    (is_named && is_plain) || has_password(value)
}

/// Whether a URL in the text has a literal password, as `postgres://user:password@host/db` has.
fn has_password(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let password = || {
            let (scheme, rest) = word.split_once("://")?;
            let authority = rest.split(['/', '?', '#']).next()?;
            let (user_info, _) = authority.rsplit_once('@')?;
            let (_, password) = user_info.split_once(':')?;
            (!scheme.is_empty()).then_some(password)
        };
        password().is_some_and(|password| !password.is_empty() && !password.contains("${"))
    })
}

/// The path of a file with a secret is none.
fn is_path(value: &str) -> bool {
    value.starts_with('/') || value.starts_with("./") || value.starts_with("~/")
}

/// The text that takes a value from a variable. A scheme before the value stays, because the variable holds the token alone:
/// `Bearer abc` becomes `Bearer ${AUTHORIZATION}`.
pub(super) fn from_variable(key: &str, value: &str) -> String {
    format!("{}${{{}}}", scheme(value), variable(key))
}

/// The text that takes a value from a secret of the user.
pub(super) fn from_secret(key: &str, value: &str) -> String {
    format!("{}${{secret:{}}}", scheme(value), variable(key))
}

/// The command that stores that secret.
pub(super) fn command(key: &str) -> String {
    format!("pegboard secret set {}", variable(key))
}

/// The scheme of credentials with the space after it, as it is written; nothing if there is none.
fn scheme(value: &str) -> &str {
    match value.split_once(' ') {
        Some((scheme, _)) if SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)) => &value[..=scheme.len()],
        _ => "",
    }
}

/// The name of the variable for a secret.
fn variable(key: &str) -> String {
    let in_name = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    key.to_uppercase().chars().map(in_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_or_a_password_in_a_url_makes_a_value_a_secret() {
        for (key, value) in [
            ("GITHUB_TOKEN", "abc"),
            ("X-Api-Key", "abc"),
            ("STRIPE_KEY", "abc"),
            ("Authorization", "Bearer abc"),
            ("X-Auth", "abc"),
            ("Cookie", "sid=abc"),
            ("DATABASE_URL", "postgres://u:PASS@h/db"),
            ("DSN", "mysql://u:PASS@h:3306"),
            ("REDIS", "redis://:PASS@h"),
            ("DATABASE_URL", "postgres://u:PASS@${HOST}/db"),
            ("HOSTS", "http://a http://u:p@b"),
        ] {
            assert!(is_secret(key, value), "{key}={value}");
        }
        for (key, value) in [
            ("TZ", "UTC"),
            ("GITHUB_TOKEN", ""),
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}"),
            ("SSH_KEY", "~/.ssh/id_ed25519"),
            ("AUTHOR", "Ada"),
            ("AUTH_URL", "https://example.com/authorize"),
            ("DATABASE_URL", "postgres://localhost:5432/db"),
            ("DATABASE_URL", "postgres://user@h/db"),
            ("DATABASE_URL", "postgres://user:${PASSWORD}@h/db"),
            ("URL", "https://example.com:8080/@scope/name"),
        ] {
            assert!(!is_secret(key, value), "{key}={value}");
        }
    }

    #[test]
    fn the_scheme_of_a_header_stays_before_the_variable() {
        for (key, value, expected) in [
            ("Authorization", "Bearer abc", "Bearer ${AUTHORIZATION}"),
            ("authorization", "basic dTpw", "basic ${AUTHORIZATION}"),
            // A server may expect the key alone.
            ("Authorization", "lin_api_abc", "${AUTHORIZATION}"),
            ("X-Api-Key", "abc", "${X_API_KEY}"),
            ("PASSWORD", "two words", "${PASSWORD}"),
        ] {
            assert_eq!(from_variable(key, value), expected);
        }
        assert_eq!(from_secret("X-Auth", "Token abc"), "Token ${secret:X_AUTH}");
        assert_eq!(command("X-Auth"), "pegboard secret set X_AUTH");
    }
}
