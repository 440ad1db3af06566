//! Finds the secrets in the arguments of a command.

use super::secret_parts::{secrets_in, secrets_in_url};
use crate::secret::{Secret, is_token_like, names_secret};

/// The shortest value after a flag that is a secret by the name of the flag.
const MIN_LEN: usize = 6;
/// Flags before a header.
const HEADER_FLAGS: &[&str] = &["-H", "--header", "--headers", "--http-header"];
/// Flags before `NAME=value`.
const ENV_FLAGS: &[&str] = &["-e", "--env"];
/// Flags before `user:password`.
const USER_FLAGS: &[&str] = &["-u", "--user", "--proxy-user"];

/// An argument that contains a secret.
#[derive(Debug)]
pub(super) struct SecretArg {
    /// The index of the argument.
    pub(super) index: usize,
    /// Where its value begins, after `--token=` or `Authorization:`.
    pub(super) value_at: usize,
    pub(super) is_url: bool,
    pub(super) secrets: Vec<Secret>,
}

/// Returns the arguments that contain a secret: `--token=abc`, `--api-key abc`, `--header 'X-Key: abc'`, `ghp_…`.
pub(super) fn secret_args(args: &[&str]) -> Vec<SecretArg> {
    let mut found = Vec::new();
    let mut flag = "";
    for (index, arg) in args.iter().enumerate() {
        if let Some((value_at, secrets, is_url)) = secrets_of(arg, flag) {
            found.push(SecretArg {
                index,
                value_at,
                is_url,
                secrets,
            });
        }
        flag = if arg.starts_with('-') && !arg.contains('=') {
            arg
        } else {
            ""
        };
    }
    found
}

fn secrets_of(arg: &str, flag: &str) -> Option<(usize, Vec<Secret>, bool)> {
    let (value_at, secrets) = pair_after_flag(arg, flag)
        .or_else(|| header(arg).filter(|(name, _)| names_secret(name)))
        .map(|(name, value)| (arg.len() - value.len(), secrets_in(name, value)))
        .or_else(|| assigned(arg))
        .or_else(|| {
            let follows = names_secret(flag) && !arg.starts_with('-') && arg.len() >= MIN_LEN;
            follows.then(|| (0, secrets_in(flag, arg)))
        })
        .unwrap_or_default();
    if !secrets.is_empty() {
        return Some((value_at, secrets, arg[value_at..].contains("://")));
    }
    if arg.contains("://") && !arg.contains(char::is_whitespace) {
        let secrets = secrets_in_url(arg);
        return (!secrets.is_empty()).then_some((0, secrets, true));
    }
    is_token_like(arg).then(|| (0, vec![Secret::new(arg)], false))
}

/// The name and the value of an argument after a flag for headers, variables or users.
fn pair_after_flag<'a>(arg: &'a str, flag: &'a str) -> Option<(&'a str, &'a str)> {
    if HEADER_FLAGS.contains(&flag) {
        header(arg)
    } else if ENV_FLAGS.contains(&flag) {
        arg.split_once('=')
    } else if USER_FLAGS.contains(&flag) {
        let (_, password) = arg.split_once(':')?;
        (password.len() >= MIN_LEN).then_some(("password", password))
    } else {
        None
    }
}

/// Splits `Name: value`.
fn header(arg: &str) -> Option<(&str, &str)> {
    let (name, value) = arg.split_once(':').or_else(|| arg.split_once('='))?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    (is_name && !name.starts_with('-') && !value.starts_with("//")).then(|| (name, value.trim_start()))
}

/// The secrets of `--name=value` and `NAME=value`.
fn assigned(arg: &str) -> Option<(usize, Vec<Secret>)> {
    let (name, value) = arg.split_once('=')?;
    if name.is_empty() || name.contains(['/', ' ', ':']) {
        return None;
    }
    let value_at = name.len() + 1;
    if HEADER_FLAGS.contains(&name) {
        let (name, value) = header(value)?;
        return Some((arg.len() - value.len(), secrets_in(name, value)));
    }
    if ENV_FLAGS.contains(&name) {
        let (name, value) = value.split_once('=')?;
        return Some((arg.len() - value.len(), secrets_in(name, value)));
    }
    let is_named = names_secret(name) && value.len() >= MIN_LEN;
    if is_named || value.contains("://") {
        return Some((value_at, secrets_in(name, value)));
    }
    is_token_like(value).then(|| (value_at, vec![Secret::new(value)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obvious_secrets_in_arguments_are_found() {
        for (args, want) in [
            (&["--token=abcdefgh", "x"][..], &["abcdefgh"][..]),
            (&["--api-key", "abcdefgh"], &["abcdefgh"]),
            (&["--token-file", "/run/token"], &[]),
            (&["ghp_0123456789abcdef0123"], &["ghp_0123456789abcdef0123"]),
            (&["-y", "@scope/server-token", "--verbose"], &[]),
            (&["-e", "GITHUB_TOKEN=abcdefgh"], &["abcdefgh"]),
            (&["-e", "THING=c4nary-7f3a"], &["c4nary-7f3a"]),
            (&["-e", "LOG_LEVEL=debugging"], &[]),
            (&["--env=API_KEY=abcdefgh"], &["abcdefgh"]),
            (&["--header", "Authorization: Bearer abc"], &["abc"]),
            (&["--header", "Authorization:Bearer abc"], &["abc"]),
            (&["--header=X-Thing: c4nary-7f3a"], &["c4nary-7f3a"]),
            (&["-H", "Accept: text/html"], &[]),
            (&["Authorization: token abc"], &["abc"]),
            (&["-u", "me:tomatoes"], &["tomatoes"]),
            (&["--proxy=http://u:pw@h:1"], &["pw"]),
            (&["https://h/x?key=tomato"], &["tomato"]),
            (&["--endpoint", "https://h/x"], &[]),
            (&["c4nary-7f3a9b1e"], &["c4nary-7f3a9b1e"]),
            (&["--path=/secrets/dir"], &[]),
            (&["mcp/fetch@sha256:0a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f"], &[]),
            (&["--model", "claude-3-5-sonnet-20241022", "--pin", "v1.2.3"], &[]),
            (&["mcp-server-time", "--local-timezone", "Europe/Berlin"], &[]),
        ] {
            let found = secret_args(args);
            let found: Vec<&str> = found.iter().flat_map(|arg| &arg.secrets).map(Secret::expose).collect();
            assert_eq!(found, want, "{args:?}");
        }
    }
}
