//! The hosts, origins and URLs of a gateway and of authorization servers.

use url::{Host, Url};

use crate::{from_setting::FromSetting as _, setting::Setting};

/// The names of `hosts` that are valid.
pub(crate) fn hosts(setting: &Setting) -> Option<Vec<String>> {
    filter_valid(setting, is_host)
}

/// The values of `origins` that are valid.
pub(crate) fn origins(setting: &Setting) -> Option<Vec<String>> {
    filter_valid(setting, is_origin)
}

fn filter_valid(setting: &Setting, is_valid: fn(&str) -> bool) -> Option<Vec<String>> {
    let texts = Vec::<String>::from_setting(setting)?.into_iter();
    Some(texts.filter(|text| is_valid(text)).collect())
}

/// The URL under which clients reach the gateway, if it is valid.
pub(crate) fn public_url<T: From<String>>(setting: &Setting) -> Option<T> {
    let text = String::from_setting(setting)?;
    parse_public_url(&text).map(T::from)
}

/// A name or an address, with or without a port. A wildcard would let in every page that rebinds its name to this machine.
pub(crate) fn is_host(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    !text.is_empty() && text.len() <= 255 && text.chars().all(is_part)
}

/// A scheme and a host, as browsers send them: without a path, and without a slash at the end.
pub(crate) fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme && is_host(host)
}

/// The URL under which clients reach the gateway, without a slash at its end.
pub(crate) fn parse_public_url(text: &str) -> Option<String> {
    let url = plain_url(text)?;
    (matches!(url.scheme(), "http" | "https") && url.query().is_none())
        .then(|| url.as_str().trim_end_matches('/').to_owned())
}

/// Returns `true` for an https URL, and for an http one on this machine.
pub(crate) fn is_endpoint(text: &str) -> bool {
    plain_url(text).is_some_and(|url| match url.scheme() {
        "https" => true,
        "http" => match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        },
        _ => false,
    })
}

/// A URL with a host, and without user and fragment.
fn plain_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.has_host() && url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    is_plain.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_setting::address;

    #[test]
    fn addresses_hosts_and_origins_are_recognised() {
        for (text, expected) in [
            ("127.0.0.1:7337", Some("127.0.0.1:7337")),
            ("[::1]:80", Some("[::1]:80")),
            ("localhost:0", Some("127.0.0.1:0")),
            ("0.0.0.0:7337", Some("0.0.0.0:7337")),
            ("127.0.0.1", None),
            ("example.com:80", None),
            (":7337", None),
            ("localhost:99999", None),
        ] {
            assert_eq!(
                address(text).map(|found| found.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
        for host in ["gateway", "gateway.example.com:8443", "[::1]", "10.0.0.1"] {
            assert!(is_host(host), "{host}");
            assert!(is_origin(&format!("https://{host}")), "{host}");
        }
        for bad in ["", "*", "*.example.com", "a b", "a/b", "https://a"] {
            assert!(!is_host(bad), "{bad}");
        }
        for bad in ["", "null", "*", "https://", "https://a/", "a.example.com"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }

    #[test]
    fn an_endpoint_is_on_https_or_on_this_machine() {
        for (text, expected) in [
            ("https://login.example.com", true),
            ("https://login.example.com/realms/a", true),
            ("http://127.0.0.1:8080/a", true),
            ("http://localhost", true),
            ("http://[::1]:1", true),
            ("http://login.example.com", false),
            ("http://10.0.0.1", false),
            ("https://user@login.example.com", false),
            ("https://login.example.com/keys?app=b", true),
            ("https://login.example.com#a", false),
            ("file:///etc/passwd", false),
            ("login.example.com", false),
            ("", false),
        ] {
            assert_eq!(is_endpoint(text), expected, "{text}");
        }
    }

    #[test]
    fn the_public_url_has_no_slash_at_its_end() {
        for (text, expected) in [
            ("https://mcp.example.com/", Some("https://mcp.example.com")),
            ("https://MCP.example.com", Some("https://mcp.example.com")),
            ("http://gateway:7337/a/", Some("http://gateway:7337/a")),
            ("ftp://mcp.example.com", None),
            ("https://mcp.example.com?x", None),
        ] {
            assert_eq!(parse_public_url(text).as_deref(), expected, "{text}");
        }
    }
}
