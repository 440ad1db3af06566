//! Decides whether a value is a secret. Masking, `config show`, warnings and logs all ask here.

use super::{
    forms::{is_number, is_path, is_plain, is_random, is_switch, is_token},
    names::{names_count, names_ordinary, names_secret},
};

/// The shortest random value that is a secret although values under its name are ordinary.
const LONG_RANDOM: usize = 20;

/// Whether the value under a name (of a variable, header, query parameter or JSON key) is a secret.
///
/// Every value counts unless it is plainly none: a switch, a number, words, a path, a host, a media type. Under the name of a secret only
/// switches, paths and limits (`MAX_TOKENS`) do not count.
pub fn is_secret(name: &str, value: &str) -> bool {
    let value = value.trim();
    if value.is_empty() || is_switch(value) {
        return false;
    }
    if names_secret(name) {
        let is_limit = names_count(name) && is_number(value);
        return !is_path(value) && !is_limit;
    }
    if is_token(value) {
        return true;
    }
    if names_ordinary(name) {
        return value.len() >= LONG_RANDOM && is_random(value) && !is_plain(value);
    }
    !is_plain(value)
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn a_value_is_a_secret_unless_it_is_plainly_none() {
        for (name, value) in [
            ("API_TOKEN", "abc"),
            ("PASSWORD", "hunter"),
            ("PASSWORD", "12345678"),
            ("password2", "tomato"),
            ("OTHER", "c4nary-7f3a9b1e"),
            ("X-Thing", "p@ssw0rd"),
            ("LICENCE", "123e4567-e89b-12d3-a456-426614174000"),
            ("GITHUB_OWNER", "ghp_0123456789abcdef0123"),
            ("REGION", "a1b2c3d4e5f6a7b8c9d0e1f2"),
        ] {
            assert!(is_secret(name, value), "{name}={value}");
        }
    }

    #[test]
    fn ordinary_settings_are_no_secrets() {
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("NODE_ENV", "production"),
            ("DEBUG", "true"),
            ("USE_TOKEN", "false"),
            ("MAX_TOKENS", "128000"),
            ("TOKEN_FILE", "/run/token"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
            ("TENANT_ID", "123e4567-e89b-12d3-a456-426614174000"),
            ("GOOGLE_CLOUD_PROJECT", "acme-4f7a2b"),
            ("SLACK_TEAM_ID", "T0AB12CD34"),
            ("PORT", "8080"),
            ("Accept", "application/json"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("MODEL", "claude-3-5-sonnet-20241022"),
            ("TOKEN", ""),
        ] {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }
}
