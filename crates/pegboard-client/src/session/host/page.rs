//! Checks the pages that servers send users to.

use url::{Host, Url};

/// The longest address of a page.
const MAX_URL: usize = 8 << 10;

/// Returns the address of a page in ASCII, or why no user is sent there.
pub(super) fn parse_page_url(text: &str) -> Result<String, &'static str> {
    if text.len() > MAX_URL {
        return Err("`url` is too long");
    }
    let url = Url::parse(text).map_err(|_| "`url` is no address")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("only pages on http and https can be visited");
    }
    // `https://bank.example@evil.example` shows the wrong host to a quick reader.
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`url` must not contain a user or a password");
    }
    if url.scheme() == "http" && !is_loopback(&url) {
        return Err("only pages on https can be visited, except on this machine");
    }
    Ok(url.into())
}

/// The host of an address, in ASCII.
pub(super) fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

/// Whether a host in ASCII stands for a name in other characters.
pub(super) fn is_foreign(host: &str) -> bool {
    host.split('.').any(|label| label.starts_with("xn--"))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_on_https_or_on_this_machine_and_shows_its_host() {
        for (text, want) in [
            ("https://example.org/x?a=b", Some("https://example.org/x?a=b")),
            ("http://localhost:8080/", Some("http://localhost:8080/")),
            ("http://127.0.0.1/", Some("http://127.0.0.1/")),
            ("http://[::1]/", Some("http://[::1]/")),
            // A Cyrillic letter.
            ("https://ex\u{430}mple.org/", Some("https://xn--exmple-4nf.org/")),
            ("http://example.org/", None),
            ("http://localhost.example.org/", None),
            ("https://bank.example@evil.example/", None),
            ("https://u:p@evil.example/", None),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("data:text/html,x", None),
            ("-x", None),
            ("https://", None),
        ] {
            assert_eq!(parse_page_url(text).ok().as_deref(), want, "{text}");
        }
        assert!(parse_page_url(&format!("https://example.org/{}", "a".repeat(MAX_URL))).is_err());
        assert!(is_foreign(&host("https://ex\u{430}mple.org/").unwrap()));
        assert!(!is_foreign("example.org"));
    }
}
