//! Changes of a server's URL, made in the text that its file has: messages show URLs without secrets and without the values of variables.

use std::{ops::Range, path::Path};

use pegboard::{Config, Env, Format, config::SafeUrl, url::Url};
use serde_json::json;

use super::{finding::Remedy, fix};

/// Adds a scheme to the URL at a path of keys. Returns the advice, and the change.
pub(super) fn with_scheme(file: &Path, path: &[String], scheme: &str) -> Option<(String, Remedy)> {
    let (path, value) = fix::find_written(file, path)?;
    let wanted = format!("{scheme}{}", value.as_str()?.trim());
    let advice = advice(&wanted, &format!("write `{scheme}` at the start of `url`"));
    Some((advice, set(file, path, &wanted)))
}

/// Gives the URL of a server, which is `from`, the path of `to`. `None` if the file does not have the path as it is, but a variable with it.
pub(super) fn with_path(file: &Path, server: &str, from: &Url, to: &Url) -> Option<(String, Remedy)> {
    let (path, value) = fix::find_written(file, &["servers", server, "url"].map(str::to_owned))?;
    let text = value.as_str()?;
    let range = path_in(text)?;
    let wanted = format!("{}{}{}", &text[..range.start], to.path(), &text[range.end..]);
    // A variable before the path may hold a part of it.
    let is_meant = resolve(text)?.expose() == from && resolve(&wanted)?.expose() == to;
    is_meant.then(|| {
        let advice = advice(&wanted, &format!("write the path `{}` in `url`", to.path()));
        (advice, set(file, path, &wanted))
    })
}

/// The line of the config, or other words if it has a secret.
fn advice(wanted: &str, other: &str) -> String {
    match resolve(wanted) {
        Some(url) if url.to_string() == wanted => format!("url = {wanted:?}"),
        _ => other.to_owned(),
    }
}

fn set(file: &Path, path: Vec<String>, url: &str) -> Remedy {
    Remedy::Set {
        file: file.to_owned(),
        values: vec![(path, json!(url))],
    }
}

/// The URL that a text of a config file stands for.
fn resolve(text: &str) -> Option<SafeUrl> {
    let config = json!({"servers": {"x": {"url": text}}}).to_string();
    let loaded = Config::from_text(&config, Format::Json, &Env::process());
    let server = loaded.config.servers.values().next()?;
    server.transport.endpoint().map(|endpoint| endpoint.url.clone())
}

/// Where the path is in the text of a URL. `None` if a variable is in it.
fn path_in(text: &str) -> Option<Range<usize>> {
    let plain = without_variables(text);
    let authority = plain.find("://").map_or(0, |at| at + 3);
    let start = plain[authority..]
        .find(['/', '?', '#'])
        .map_or(plain.len(), |at| authority + at);
    let end = plain[start..].find(['?', '#']).map_or(plain.len(), |at| start + at);
    let path = &text[start..end];
    (!path.contains('$') && !path.contains("{{")).then_some(start..end)
}

/// The text with other characters in the place of `${…}`, whose default value may be a URL.
fn without_variables(text: &str) -> String {
    let mut depth = 0_usize;
    let mut plain = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        if c == '{' && (before == '$' || depth > 0) {
            depth += 1;
        }
        match depth {
            0 => plain.push(c),
            _ => plain.extend(std::iter::repeat_n('v', c.len_utf8())),
        }
        if c == '}' {
            depth = depth.saturating_sub(1);
        }
        before = c;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_url_is_found_in_its_text() {
        for (text, path) in [
            ("http://h:1/wrong?a=/b#/c", Some("/wrong")),
            ("http://h", Some("")),
            ("http://h?a=b", Some("")),
            ("${BASE}/wrong?a=${A}", Some("/wrong")),
            ("${BASE:-http://h/x}/wrong", Some("/wrong")),
            ("${BASE:-${OTHER:-http://ä/x}}/wrong", Some("/wrong")),
            ("${BASE}", Some("")),
            ("https://${HOST}/a/b/", Some("/a/b/")),
            ("https://h/${PATH_OF_IT}", None),
            ("https://h/{{.PATH_OF_IT}}/x", None),
        ] {
            assert_eq!(path_in(text).map(|range| &text[range]), path, "{text}");
        }
    }
}
