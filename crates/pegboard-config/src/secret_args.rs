//! Finds the secrets in the arguments of a command.

use std::ops::Range;

use serde_json::Value;

use super::secret_parts::{secrets_in, secrets_in_url};
use pegboard_base::secret::{Secret, is_token_like, names_secret};

/// The shortest value after a flag that is a secret by the name of the flag.
const MIN_LEN: usize = 6;
/// Flags before a header.
const HEADER_FLAGS: &[&str] = &["-H", "--header", "--headers", "--http-header"];
/// Flags before `NAME=value`.
const ENV_FLAGS: &[&str] = &["-e", "--env"];
/// Flags before `user:password`.
const USER_FLAGS: &[&str] = &["-u", "--user", "--proxy-user"];

/// Headers whose values are secrets in whatever form.
const AUTHORIZATION: &[&str] = &["Authorization", "Proxy-Authorization"];

/// A value in an argument that is or contains a secret.
#[derive(Debug)]
pub(super) struct SecretArg {
    /// The index of the argument.
    pub(super) index: usize,
    /// Where the value is in the argument, without `--token=` or `Authorization:`.
    pub(super) value: Range<usize>,
    pub(super) is_url: bool,
    pub(super) secrets: Vec<Secret>,
}

/// Returns the secrets in arguments: `--token=abc`, `--api-key abc`, `--header 'X-Key: abc'`, `ghp_…`.
///
/// An argument may be a command line itself, as that of `sh -c`. Then its words are searched as arguments are.
pub(super) fn secret_args(args: &[&str]) -> Vec<SecretArg> {
    let mut found = Vec::new();
    for (index, (flag, arg)) in after_flags(args.iter().copied()).enumerate() {
        let words = secret_words(index, arg);
        // `PASSWORD=$(cat file) exec server` is a command line that reads its secret.
        let is_reference =
            |found: &SecretArg| arg.contains(char::is_whitespace) && arg[found.value.clone()].starts_with("$(");
        match secret_arg(index, arg, flag).filter(|found| !is_reference(found)) {
            Some(mut whole) => {
                // `PASSWORD=abc exec server` may be a password of three words, or a command line whose server says one of them alone.
                if !arg.starts_with('-') && arg[..whole.value.start].ends_with('=') {
                    whole.secrets.extend(words.into_iter().flat_map(|word| word.secrets));
                }
                found.push(whole);
            }
            None => found.extend(words),
        }
    }
    found
}

/// Each word with the flag before it, which is empty if there is none.
fn after_flags<'a>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (&'a str, &'a str)> {
    words.scan("", |before, word| {
        let is_flag = word.starts_with('-') && !word.contains('=') && !is_env_flag(word);
        Some((std::mem::replace(before, if is_flag { word } else { "" }), word))
    })
}

/// The secrets in the words of a command line that is one argument. Code may stand there too, which is no secret.
fn secret_words(index: usize, line: &str) -> Vec<SecretArg> {
    let ranges = shell_words(line);
    if ranges.len() < 2 {
        return Vec::new();
    }
    let words = ranges.iter().map(|range| &line[range.clone()]);
    let found = after_flags(words).zip(&ranges).filter_map(|((flag, word), range)| {
        let mut found = secret_arg(index, word, flag)?;
        found.value = range.start + found.value.start..range.start + found.value.end;
        let is_quoted = [range.start, found.value.start]
            .iter()
            .any(|start| line[..*start].ends_with(['\'', '"']));
        let has_default = |secret: &str| secret.contains("${") && secret.contains(":-");
        found.secrets.retain(|secret| {
            let secret = secret.expose();
            pegboard_mask::is_literal(secret, is_quoted) || has_default(secret)
        });
        (!found.secrets.is_empty()).then_some(found)
    });
    found.collect()
}

/// The words of a command line, without the quotes around them.
fn shell_words(line: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(c) = line[at..].chars().next() {
        let next = at + c.len_utf8();
        match c {
            // A quote without an end is an apostrophe.
            '\'' | '"' => at = line[next..].find(c).map_or(next, |length| next + length + 1),
            c if c.is_whitespace() || ";|&<>`".contains(c) => {
                words.push(start..at);
                (start, at) = (next, next);
            }
            _ => at = next,
        }
    }
    words.push(start..line.len());
    words.retain(|word| !word.is_empty());
    words.into_iter().map(|word| unquote(line, word)).collect()
}

/// A part of a text without the quotes around it.
fn unquote(text: &str, part: Range<usize>) -> Range<usize> {
    let inner = &text[part.clone()];
    let is_quoted = |quote| inner.len() >= 2 && inner.starts_with(quote) && inner.ends_with(quote);
    match is_quoted('"') || is_quoted('\'') {
        true => part.start + 1..part.end - 1,
        false => part,
    }
}

/// The secret that an argument after a flag is or contains.
fn secret_arg(index: usize, arg: &str, flag: &str) -> Option<SecretArg> {
    let has_some = |(_, secrets): &(Range<usize>, Vec<Secret>)| !secrets.is_empty();
    let (value, secrets) = json(arg)
        .filter(has_some)
        .or_else(|| find_by_name(arg, flag).filter(has_some))
        .or_else(|| find_by_form(arg).filter(has_some))?;
    let text = &arg[value.clone()];
    Some(SecretArg {
        index,
        is_url: text.contains("://") && !text.starts_with(['{', '[']),
        value,
        secrets,
    })
}

/// The secrets of a value by its name: that of a header or a variable, of the part before `=`, or of the flag before it.
fn find_by_name(arg: &str, flag: &str) -> Option<(Range<usize>, Vec<Secret>)> {
    let start = if arg.starts_with("-H") { "-H".len() } else { 0 };
    pair_after_flag(arg, flag)
        .or_else(|| header(arg, start..arg.len()).filter(|(name, _)| names_secret(name)))
        .map(|(name, value)| {
            let place = unquote(arg, value);
            (place.clone(), secrets_in(name, &arg[place]))
        })
        .or_else(|| parse_assignment(arg))
        .or_else(|| {
            let follows = names_secret(flag) && !arg.starts_with('-') && arg.len() >= MIN_LEN;
            (follows && !is_variable_name(arg)).then(|| (0..arg.len(), secrets_in(flag, arg)))
        })
}

/// The secrets of an argument by its form alone: a URL, or a token.
fn find_by_form(arg: &str) -> Option<(Range<usize>, Vec<Secret>)> {
    let secrets = if arg.contains("://") && !arg.contains(char::is_whitespace) {
        secrets_in_url(arg)
    } else if is_token_like(arg) && !is_variable_name(arg) && !is_env_flag(arg) {
        vec![Secret::new(arg)]
    } else {
        return None;
    };
    Some((0..arg.len(), secrets))
}

/// The secrets in JSON, and where it is: `{"TOKEN": "abc"}`, `--headers={"Authorization": "Bearer abc"}`.
fn json(arg: &str) -> Option<(Range<usize>, Vec<Secret>)> {
    let start = match arg.starts_with(['{', '[']) {
        true => 0,
        false => arg.find("={").or_else(|| arg.find("=["))? + 1,
    };
    let json: Value = serde_json::from_str(&arg[start..]).ok()?;
    let mut secrets = Vec::new();
    let mut left = vec![("", &json)];
    while let Some((key, value)) = left.pop() {
        match value {
            // With the scheme that is before the credentials.
            Value::String(text) if AUTHORIZATION.iter().any(|name| name.eq_ignore_ascii_case(key)) => {
                secrets.extend(secrets_in(key, text));
            }
            Value::String(text) if pegboard_mask::is_secret_string(key, text) || is_token_like(text) => {
                secrets.push(Secret::new(text.as_str()));
            }
            Value::Array(items) => left.extend(items.iter().map(|item| (key, item))),
            Value::Object(entries) => left.extend(entries.iter().map(|(key, value)| (key.as_str(), value))),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Some((start..arg.len(), secrets))
}

/// Whether an argument is docker's `-eNAME`, which is complete.
fn is_env_flag(arg: &str) -> bool {
    arg.strip_prefix("-e").is_some_and(is_variable_name)
}

/// Whether a text has the form of a variable's name, such as `GH_TOKEN` after `--token-env`. Random text has more digits and no words.
fn is_variable_name(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.contains('_') && text.bytes().all(is_name) && digits <= 2
}

/// The name and the place of the value of an argument after a flag for headers, variables or users.
fn pair_after_flag<'a>(arg: &'a str, flag: &'a str) -> Option<(&'a str, Range<usize>)> {
    let rest = |value: &str| arg.len() - value.len()..arg.len();
    if HEADER_FLAGS.contains(&flag) {
        header(arg, 0..arg.len())
    } else if ENV_FLAGS.contains(&flag) {
        arg.split_once('=').map(|(name, value)| (name, rest(value)))
    } else if USER_FLAGS.contains(&flag) {
        let (user, password) = arg.split_once(':')?;
        // `1000:1000` and `1000:staff` are the user and the group of a container.
        let is_number = user.bytes().all(|byte| byte.is_ascii_digit());
        (password.len() >= MIN_LEN && !is_number).then(|| ("password", rest(password)))
    } else {
        None
    }
}

/// Splits `Name: value` in a part of an argument. Returns the name and the place of the value.
fn header(arg: &str, part: Range<usize>) -> Option<(&str, Range<usize>)> {
    let whole = unquote(arg, part);
    let text = &arg[whole.clone()];
    let (name, value) = text.split_once(':').or_else(|| text.split_once('='))?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let place = whole.end - value.trim_start().len()..whole.end;
    (is_name && !name.starts_with('-') && !value.starts_with("//")).then_some((name, place))
}

/// The secrets of `--name=value` and `NAME=value`, and where the value is.
fn parse_assignment(arg: &str) -> Option<(Range<usize>, Vec<Secret>)> {
    let (name, _) = arg.split_once('=')?;
    if name.is_empty() || name.contains(['/', ' ', ':']) {
        return None;
    }
    let place = unquote(arg, name.len() + 1..arg.len());
    if HEADER_FLAGS.contains(&name) {
        let (name, value) = header(arg, place)?;
        return Some((value.clone(), secrets_in(name, &arg[value])));
    }
    if ENV_FLAGS.contains(&name) {
        let (name, value) = arg[place.clone()].split_once('=')?;
        return Some((place.end - value.len()..place.end, secrets_in(name, value)));
    }
    let value = &arg[place.clone()];
    let is_named = names_secret(name) && value.len() >= MIN_LEN && !is_variable_name(value);
    if is_named || value.contains("://") {
        return Some((place, secrets_in(name, value)));
    }
    is_token_like(value).then(|| (place, vec![Secret::new(value)]))
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
            (&["run", "-e", "GITHUB_TOKEN", "image:1.0"], &[]),
            (&["-eGITHUB_TOKEN", "image:1.0"], &[]),
            (&["--token-env", "GH_TOKEN"], &[]),
            (&["--token", "A1B2C3_D4E5F6"], &["A1B2C3_D4E5F6"]),
            (&["--user", "1000:1000000"], &[]),
            (&["--user", "ada:1000000x"], &["1000000x"]),
            (&["--user", "1000:docker-group"], &[]),
            (&["-HAuthorization: Bearer abc-123"], &["abc-123"]),
            (&["--password-env", "MyPassVar"], &[]),
            (&[r#"[{"apiKey": "hunter2secret"}]"#], &["hunter2secret"]),
            (&[r#"{"password": "correct horse 42"}"#], &["correct horse 42"]),
            (&[r#"--headers={"Authorization": "Bearer abc"}"#], &["abc"]),
            (
                &[r#"{"key": "colour", "path": "/secrets/dir", "x": "ghp_0123456789abcdef0123"}"#],
                &["ghp_0123456789abcdef0123"],
            ),
        ] {
            let found = secret_args(args);
            let found: Vec<&str> = found.iter().flat_map(|arg| &arg.secrets).map(Secret::expose).collect();
            assert_eq!(found, want, "{args:?}");
        }
    }

    #[test]
    fn words_of_command_lines_are_searched_as_arguments_are() {
        for (line, want) in [
            ("env PASSWORD=hunter2secret server", &["hunter2secret"][..]),
            ("export PASSWORD='hunter2 secret'; exec server", &["hunter2 secret"]),
            ("exec server --token abcd-1234-efgh --verbose", &["abcd-1234-efgh"]),
            ("curl -H \"Authorization: Bearer abc-123\" https://h/x", &["abc-123"]),
            ("curl -H\"Authorization: Bearer abc-123\" https://h/x", &["abc-123"]),
            (
                "curl --header='Authorization: Bearer abc-123' https://h/x",
                &["abc-123"],
            ),
            (
                "docker run -e 'PASSWORD=hunter5 secretword' image",
                &["hunter5 secretword"],
            ),
            ("psql postgres://me:tomatoes@h/db", &["tomatoes"]),
            ("Server=h;User=me;Password=hunter2secret;", &["hunter2secret"]),
            ("don't worry, password=hunter2secret", &["hunter2secret"]),
            ("server --token $TOKEN", &[]),
            ("curl -H \"Authorization: Bearer $TOKEN\" https://h/x", &[]),
            ("PASSWORD=$(cat /run/password) exec server", &[]),
            ("import x; token=x.get_token(); x.run(token)", &[]),
            ("server --token-file /run/token", &[]),
        ] {
            let found = secret_args(&["-c", line]);
            let found: Vec<&str> = found.iter().flat_map(|arg| &arg.secrets).map(Secret::expose).collect();
            assert_eq!(found, want, "{line}");
        }
        let found = secret_args(&["PASSWORD=hunter2secret exec server"]);
        assert!(
            found[0].secrets.iter().any(|secret| secret.expose() == "hunter2secret"),
            "{found:?}"
        );
    }
}
