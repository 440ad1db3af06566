//! The URL that is sent a DELETE request when a view ends, with the variables of the view: `https://h.example/sessions/{{SESSION_ID}}`.

use super::view_template::{BadTemplate, Piece, pieces};
use pegboard_base::secret::SafeUrl;

/// Why a URL cannot be used for cleanup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadCleanupUrl {
    #[error("must start with http:// or https://")]
    Scheme,
    #[error("has a `{{{{…}}}}` that is not in its path or query")]
    Place,
    #[error(transparent)]
    Template(#[from] BadTemplate),
}

/// Checks that a URL can be used, with variables in its path and query only: a view must not choose where the request goes.
pub(super) fn check(url: &SafeUrl) -> Result<(), BadCleanupUrl> {
    let parsed = url.expose();
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(BadCleanupUrl::Scheme);
    }
    let has_braces = |text: &str| text.contains(['{', '}']) || text.contains("%7B") || text.contains("%7D");
    let outside = [
        parsed.host_str().unwrap_or_default(),
        parsed.username(),
        parsed.password().unwrap_or_default(),
    ];
    if outside.into_iter().any(has_braces) {
        return Err(BadCleanupUrl::Place);
    }
    pieces(&unescape_braces(url)).map(drop)?;
    Ok(())
}

/// The URL for one view. `None` if a variable has no value, or one that cannot be part of a path.
pub(super) fn fill(url: &SafeUrl, lookup: &dyn Fn(&str) -> Option<String>) -> Option<SafeUrl> {
    let written = unescape_braces(url);
    let mut text = String::with_capacity(written.len());
    for piece in pieces(&written).ok()? {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Variable(name) => {
                // A segment of dots is removed from a path together with the one before it, even if it is escaped.
                let value = lookup(name).filter(|value| !matches!(value.as_str(), "" | "." | ".."))?;
                push_escaped(&mut text, &value);
            }
        }
    }
    SafeUrl::parse(&text)
        .ok()
        .filter(|filled| filled.expose().origin() == url.expose().origin())
}

/// The URL with its braces as they were written: parsing has escaped those in the path, and spaces.
fn unescape_braces(url: &SafeUrl) -> String {
    let url = url.expose().as_str();
    let braces = url.replace("%7B%7B", "{{").replace("%7D%7D", "}}");
    braces.replace("{{%20", "{{").replace("%20}}", "}}")
}

fn push_escaped(text: &mut String, value: &str) {
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            _ => {
                text.push('%');
                for digit in [byte >> 4, byte & 0xf] {
                    text.push(char::from(
                        b"0123456789ABCDEF".get(usize::from(digit)).copied().unwrap_or(b'0'),
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_with(url: &str, id: &str) -> Option<String> {
        let url = SafeUrl::parse(url).unwrap();
        check(&url).unwrap();
        let lookup = |name: &str| (name == "SESSION_ID").then(|| id.to_owned());
        fill(&url, &lookup).map(|url| url.expose().to_string())
    }

    #[test]
    fn a_variable_stays_within_its_place() {
        let path = "https://h.example/s/{{SESSION_ID}}/x";
        for (id, want) in [
            ("a-1", "https://h.example/s/a-1/x"),
            ("a/../b", "https://h.example/s/a%2F..%2Fb/x"),
            ("a?b#c", "https://h.example/s/a%3Fb%23c/x"),
            ("ü{{X}}", "https://h.example/s/%C3%BC%7B%7BX%7D%7D/x"),
        ] {
            assert_eq!(filled_with(path, id).as_deref(), Some(want), "{id}");
        }
        for id in ["", ".", ".."] {
            assert_eq!(filled_with(path, id), None, "{id:?}");
        }
        for name in ["{{SESSION_ID}}", "{{ SESSION_ID }}"] {
            let want = "https://h.example/s?id=a%26b%3Dc&x=1";
            let query = format!("https://h.example/s?id={name}&x=1");
            assert_eq!(filled_with(&query, "a&b=c").as_deref(), Some(want));
        }
        assert_eq!(filled_with("https://h.example/s/{{OTHER}}", "a"), None);
        assert_eq!(
            filled_with("https://h.example/s", "a").as_deref(),
            Some("https://h.example/s")
        );
    }

    #[test]
    fn a_variable_cannot_choose_the_host() {
        for (url, want) in [
            ("https://u{{X}}@h.example/", BadCleanupUrl::Place),
            ("https://{{X}}.example/", BadCleanupUrl::Place),
            ("ftp://h.example/", BadCleanupUrl::Scheme),
            ("https://h.example/{{X", BadCleanupUrl::Template(BadTemplate::Unclosed)),
        ] {
            // What is no URL at all is refused before.
            if let Ok(url) = SafeUrl::parse(url) {
                assert_eq!(check(&url), Err(want), "{url:?}");
            }
        }
    }
}
