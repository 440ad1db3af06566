//! Detects text that looks like a secret, and redacts it for display.

use super::expand::{self, Piece};
use crate::secret::HIDDEN;

/// Prefixes of the tokens of well-known providers.
const PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
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
    "eyJ",
];

/// Parts of names that usually denote a secret.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "accesskey",
    "credential",
    "privatekey",
];

/// Whether a text has the form of a provider's token.
pub(super) fn is_secret(text: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            rest.len() >= 12 && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        })
    })
}

/// Whether a value under this name is usually a secret.
pub(super) fn names_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    NAMES.iter().any(|part| plain.contains(part)) || plain == "key" || plain == "auth" || plain == "pat"
}

/// Whether a value looks random: letters and digits alternate more often than in words, versions or numbers.
pub(super) fn is_random(value: &str) -> bool {
    let plain: Vec<u8> = value.bytes().filter(|b| !b"-_.".contains(b)).collect();
    let alternations = plain
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count();
    let is_text = plain
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || b"+/=~!@#$%^&*".contains(b));
    value.len() >= 12 && is_text && alternations >= 4 && !value.starts_with('/') && !is_uuid(value)
}

/// Whether a value consists of words: letters and punctuation only.
pub(super) fn is_word(value: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphabetic() || b"-_./;,=*".contains(&b);
    value.bytes().all(is_letter) && !value.bytes().any(|b| b.is_ascii_digit())
}

fn is_uuid(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
}

/// The indexes of the arguments, as written, that contain a secret: `--token=abc`, `--api-key abc`, `ghp_…`.
pub(super) fn secret_args(args: &[&str]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut flag_before = false;
    for (index, arg) in args.iter().enumerate() {
        let literal = !expand::has_variables(arg);
        let assigned = arg
            .split_once('=')
            .is_some_and(|(name, value)| names_secret(name) && value.len() >= 6 && !name.contains(['/', ' ']));
        let follows_flag = flag_before && !arg.starts_with('-') && arg.len() >= 6;
        if literal && (assigned || follows_flag || is_secret(arg)) {
            found.push(index);
        }
        flag_before = arg.starts_with('-') && !arg.contains('=') && names_secret(arg) && !arg.ends_with("file");
    }
    found
}

/// Whether a URL, as written, contains a secret: a password, or a query value whose name or form is that of a secret.
pub(super) fn secret_in_url(written: &str) -> bool {
    let (authority, query) = url_parts(written);
    let user_info = authority.rsplit_once('@').map(|(user, _)| user);
    user_info.is_some_and(|user| user.contains(':') && !expand::has_variables(user))
        || query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .any(|(name, value)| {
                (names_secret(name) || is_secret(value)) && !value.is_empty() && !expand::has_variables(value)
            })
}

/// Redacts a URL as written: its user info and the literal values of its query.
pub(super) fn shown_url(written: &str) -> String {
    let (authority, query) = url_parts(written);
    let mut shown = written.to_owned();
    if !query.is_empty() {
        let hidden: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) => format!("{name}={}", shown_secret(value)),
                None => HIDDEN.to_owned(),
            })
            .collect();
        shown = shown.replacen(&format!("?{query}"), &format!("?{}", hidden.join("&")), 1);
    }
    if let Some((user, _)) = authority.rsplit_once('@') {
        shown = shown.replacen(&format!("{user}@"), &format!("{HIDDEN}@"), 1);
    }
    shown
}

/// Redacts a secret as written: references to variables stay, literal text is hidden.
pub(super) fn shown_secret(written: &str) -> String {
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

/// Splits off the authority (`user@host:port`) and the query of a URL. It may contain variables, so a URL parser might reject it.
fn url_parts(written: &str) -> (&str, &str) {
    let after_scheme = written.split_once("://").map_or(written, |(_, rest)| rest);
    let authority_end = after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len());
    let (authority, rest) = after_scheme.split_at(authority_end);
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    (authority, query.split('#').next().unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obvious_secrets_in_arguments_are_found() {
        for (args, want) in [
            (&["--token=abcdefgh", "x"][..], &[0][..]),
            (&["--api-key", "abcdefgh"], &[1]),
            (&["--api-key", "${KEY}"], &[]),
            (&["--token-file", "/run/token"], &[]),
            (&["ghp_0123456789abcdef0123"], &[0]),
            (&["-y", "@scope/server-token", "--verbose"], &[]),
            (&["-e", "GITHUB_TOKEN=abcdefgh"], &[1]),
            (&["--path=/secrets/dir"], &[]),
        ] {
            assert_eq!(secret_args(args), want, "{args:?}");
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
        ] {
            assert_eq!(shown_url(written), shown);
            assert_eq!(secret_in_url(written), secret, "{written}");
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
            assert_eq!(shown_secret(written), shown);
        }
    }
}
