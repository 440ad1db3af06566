//! Redacts secrets in settings as written, for display and warnings.

use super::{
    expand::{self, Piece},
    secret_args::{self, SecretArg},
    secret_parts::{is_urls, secrets_in, secrets_in_url, url_parts},
};
use pegboard_base::secret::{HIDDEN, is_random, is_token_like};

/// The indexes of the arguments that contain a literal secret, as written.
pub(super) fn literal_secret_args(args: &[&str]) -> Vec<usize> {
    let found = secret_args::secret_args(args).into_iter();
    let is_literal = |arg: &SecretArg| !expand::has_variables(&args[arg.index][arg.value.clone()]);
    let mut indexes: Vec<usize> = found.filter(is_literal).map(|arg| arg.index).collect();
    indexes.dedup();
    indexes
}

/// Redacts arguments as written: references to variables stay, literal secrets are hidden.
pub(super) fn redact_args(args: &[&str]) -> Vec<String> {
    let mut shown: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    // From the end, so that the places of the others stay.
    for found in secret_args::secret_args(args).into_iter().rev() {
        let value = &args[found.index][found.value.clone()];
        let value = match found.is_url {
            true => redact_url(value),
            false => redact_secret(value),
        };
        shown[found.index].replace_range(found.value, &value);
    }
    shown
}

/// Redacts a program, or a command line, as written.
pub(super) fn redact_line(line: &str) -> String {
    match line.contains(char::is_whitespace) {
        true => redact_args(&[line]).concat(),
        false => line.to_owned(),
    }
}

/// Whether a URL, as written, contains a literal secret.
pub(super) fn secret_in_url(written: &str) -> bool {
    let is_literal = |secret: &pegboard_base::secret::Secret| !expand::has_variables(secret.expose());
    secrets_in_url(written).iter().any(is_literal)
}

/// Redacts a URL as written: its user info, the literal values of its query, and parts of its path that look like tokens.
pub(super) fn redact_url(written: &str) -> String {
    let parts = url_parts(written);
    let mut shown = written.to_owned();
    let mut hide =
        |from: &str, mark: &str, to: &str| shown = shown.replacen(&format!("{mark}{from}"), &format!("{mark}{to}"), 1);
    if !parts.fragment.is_empty() {
        hide(parts.fragment, "#", &redact_pairs(parts.fragment));
    }
    if !parts.query.is_empty() {
        hide(parts.query, "?", &redact_pairs(parts.query));
    }
    let segment = |segment: &str| match is_random(segment) && !expand::has_variables(segment) {
        true => HIDDEN.to_owned(),
        false => segment.to_owned(),
    };
    let path: Vec<String> = parts.path.split('/').map(segment).collect();
    let path = path.join("/");
    if path != parts.path {
        hide(parts.path, "", &path);
    }
    if let Some(user) = parts.user_info {
        shown = shown.replacen(&format!("{user}@"), &format!("{HIDDEN}@"), 1);
    }
    shown
}

/// Redacts a URL for a person who approves it, so that its host is always seen: what stands before an `@` in the path is no user info to a program
/// that reads the URL.
pub(super) fn reviewed_url(written: &str) -> String {
    match url_parts(written).user_info {
        Some(user) if user.contains(['/', '\\']) => written.to_owned(),
        _ => redact_url(written),
    }
}

fn redact_pairs(pairs: &str) -> String {
    let shown: Vec<String> = pairs
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) => format!("{name}={}", redact_secret(value)),
            None => redact_secret(pair),
        })
        .collect();
    shown.join("&")
}

/// Redacts a text of a field that is not meant for secrets.
pub(super) fn redact_text(name: &str, written: &str) -> String {
    if is_urls(written) || name.ends_with("url") {
        return written.split(' ').map(redact_url).collect::<Vec<_>>().join(" ");
    }
    let is_named = pegboard_base::secret::names_secret(name) && !secrets_in(name, written).is_empty();
    if is_named || is_token_like(written) {
        return redact_secret(written);
    }
    // A longer text stays readable without the words that are tokens.
    let word = |word| {
        if is_token_like(word) {
            redact_secret(word)
        } else {
            str::to_owned(word)
        }
    };
    written.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Redacts a secret as written: references to variables stay, literal text is hidden.
pub(super) fn redact_secret(written: &str) -> String {
    expand::pieces(written)
        .into_iter()
        .map(|piece| match piece {
            Piece::Literal(scheme @ ("Bearer " | "bearer " | "Basic " | "token " | "Token ")) => scheme.to_owned(),
            Piece::Variable {
                name,
                default: Some(default),
                ..
            } if !default.is_empty() => {
                format!("${{{name}:-{HIDDEN}}}")
            }
            Piece::Variable { written, .. } => written.to_owned(),
            Piece::Literal(_) | Piece::Malformed { .. } => HIDDEN.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_without_literal_secrets() {
        for (args, want, literal) in [
            (&["--token=abcdefgh", "x"][..], &["--token=****", "x"][..], &[0][..]),
            (&["--api-key", "${KEY}"], &["--api-key", "${KEY}"], &[]),
            (&["--api-key=${KEY}"], &["--api-key=${KEY}"], &[]),
            (
                &["--header", "Authorization: Bearer ${T}"],
                &["--header", "Authorization: Bearer ${T}"],
                &[],
            ),
            (
                &["--header", "Authorization: Bearer abc"],
                &["--header", "Authorization: ****"],
                &[1],
            ),
            (
                &["--header", "Authorization: Bearer abc${T}"],
                &["--header", "Authorization: ****${T}"],
                &[],
            ),
            (&["--proxy=http://u:pw@h:1/"], &["--proxy=http://****@h:1/"], &[0]),
            (
                &["-c", "export PASSWORD='hunter2 secret'; exec server --token abcd-1234"],
                &["-c", "export PASSWORD='****'; exec server --token ****"],
                &[1],
            ),
            (
                &["--headers", r#"{"Authorization": "Bearer abcd-1234", "Accept": "x"}"#],
                &["--headers", "****"],
                &[1],
            ),
            (
                &[r#"--env={"LOG_LEVEL": "debugging"}"#],
                &[r#"--env={"LOG_LEVEL": "debugging"}"#],
                &[],
            ),
            (
                &["-c", "exec server --token ${T} --key ${K:-abcd-1234}"],
                &["-c", "exec server --token ${T} --key ${K:-****}"],
                &[],
            ),
        ] {
            assert_eq!(redact_args(args), want);
            assert_eq!(literal_secret_args(args), literal, "{args:?}");
        }
    }

    #[test]
    fn command_lines_are_shown_without_literal_secrets() {
        for (line, want) in [
            ("/opt/c4nary-7f3a9b1e/server", "/opt/c4nary-7f3a9b1e/server"),
            ("npx -y x --token=abcd-1234-efgh", "npx -y x --token=****"),
            ("npx -y x --pw hunter2secret -v", "npx -y x --pw **** -v"),
            ("npx -y x --token ${TOKEN}", "npx -y x --token ${TOKEN}"),
        ] {
            assert_eq!(redact_line(line), want);
        }
    }

    #[test]
    fn urls_are_shown_without_credentials() {
        for (written, shown, secret) in [
            ("https://a.example/mcp", "https://a.example/mcp", false),
            ("https://u:pw@a.example/mcp", "https://****@a.example/mcp", true),
            ("https://${U}:${P}@a.example/", "https://****@a.example/", false),
            (
                "https://a.example/mcp?api_key=abc&v=1",
                "https://a.example/mcp?api_key=****&v=****",
                true,
            ),
            (
                "https://a.example/mcp?key=${KEY}",
                "https://a.example/mcp?key=${KEY}",
                false,
            ),
            ("https://a.example/${T}/mcp", "https://a.example/${T}/mcp", false),
            (
                "https://a.example/s/c4nary-7f3a9b1e/mcp",
                "https://a.example/s/****/mcp",
                true,
            ),
            (
                "https://a.example/mcp#token=abc",
                "https://a.example/mcp#token=****",
                true,
            ),
        ] {
            assert_eq!(redact_url(written), shown);
            assert_eq!(secret_in_url(written), secret, "{written}");
        }
    }

    #[test]
    fn texts_are_shown_without_tokens() {
        for (name, written, shown) in [
            ("description", "Files of the team", "Files of the team"),
            ("description", "uses c4nary-7f3a9b1e here", "uses **** here"),
            ("model", "claude-3-5-sonnet-20241022", "claude-3-5-sonnet-20241022"),
            ("key", "certs/client.pem", "certs/client.pem"),
            ("roots", "https://u:pw@h/x", "https://****@h/x"),
        ] {
            assert_eq!(redact_text(name, written), shown, "{written}");
        }
    }

    #[test]
    fn secrets_are_shown_by_their_variables_only() {
        for (written, shown) in [
            ("abc", "****"),
            ("${TOKEN}", "${TOKEN}"),
            ("Bearer ${TOKEN}", "Bearer ${TOKEN}"),
            ("Bearer abc", "****"),
            ("abc${X}def", "****${X}****"),
            ("${X:-hunter2}", "${X:-****}"),
            ("{{.X}}", "{{.X}}"),
        ] {
            assert_eq!(redact_secret(written), shown);
        }
    }
}
