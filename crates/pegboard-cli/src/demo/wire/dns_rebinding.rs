//! Protects against DNS rebinding: only requests whose `Host` and `Origin` name this machine are served. A web page
//! whose host name resolves to 127.0.0.1 still sends that name, and is refused.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The address that the server is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound(pub(super) IpAddr);

pub(super) async fn check(State(bound): State<Bound>, request: Request, next: Next) -> Response {
    match bound.admits(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => (StatusCode::FORBIDDEN, why).into_response(),
    }
}

impl Bound {
    fn admits(self, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
        let host = only(headers, HOST.as_str())?.ok_or("the Host header is missing\n")?;
        if !self.is_here(host) || uri.authority().is_some_and(|named| !self.is_here(named.as_str())) {
            return Err("the Host header does not name this server\n");
        }
        if let Some(origin) = only(headers, ORIGIN.as_str())? {
            let authority = origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"));
            if !authority.is_some_and(|authority| self.is_here(authority)) {
                return Err("the Origin header names another site\n");
            }
        }
        match only(headers, "sec-fetch-site")? {
            None | Some("same-origin" | "same-site" | "none") => Ok(()),
            Some(_) => Err("the request comes from another site\n"),
        }
    }

    /// Returns `true` if `host` or `host:port` names this machine. IP addresses cannot be rebound, so a server that listens
    /// on every interface accepts any of them. Of names only `localhost` is accepted.
    fn is_here(self, authority: &str) -> bool {
        let Some(host) = host_of(authority) else { return false };
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let Ok(ip) = host.parse::<IpAddr>() else { return false };
        let ip = ip.to_canonical();
        ip.is_loopback() || ip == self.0.to_canonical() || self.0.is_unspecified()
    }
}

/// The host of `host`, `host:port`, `[address]` or `[address]:port`.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (
                host,
                if port.is_empty() {
                    None
                } else {
                    Some(port.strip_prefix(':')?)
                },
            )
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    port.is_none_or(|port| port.parse::<u16>().is_ok()).then_some(host)
}

/// The single value of a header. Repeated headers are refused: two parsers could choose different values.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("a header that must be single is given twice\n");
    }
    value.to_str().map(Some).map_err(|_| "a header is not plain text\n")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn admits(bound: &str, headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        Bound(bound.parse().unwrap())
            .admits(&Uri::from_static("/mcp"), &map)
            .is_ok()
    }

    #[test]
    fn only_hosts_that_name_this_machine_are_served() {
        for (bound, host, served) in [
            ("127.0.0.1", "127.0.0.1:7000", true),
            ("127.0.0.1", "localhost:7000", true),
            ("127.0.0.1", "LOCALHOST", true),
            ("127.0.0.1", "[::1]:7000", true),
            ("127.0.0.1", "[::ffff:127.0.0.1]", true),
            ("::1", "[::1]", true),
            ("127.0.0.1", "evil.example", false),
            ("127.0.0.1", "evil.example:7000", false),
            ("127.0.0.1", "localhost.evil.example", false),
            ("127.0.0.1", "127.0.0.1.evil.example", false),
            ("127.0.0.1", "localhost:7000:1", false),
            ("127.0.0.1", "localhost:port", false),
            ("127.0.0.1", "2130706433", false),
            ("127.0.0.1", "0x7f000001", false),
            ("127.0.0.1", "0.0.0.0", false),
            ("127.0.0.1", "192.0.2.7", false),
            ("127.0.0.1", "[::1", false),
            ("127.0.0.1", "[::1]x", false),
            ("127.0.0.1", "", false),
            ("192.0.2.7", "192.0.2.7:80", true),
            ("192.0.2.7", "192.0.2.8:80", false),
            ("0.0.0.0", "192.0.2.7", true),
            ("0.0.0.0", "evil.example", false),
        ] {
            assert_eq!(admits(bound, &[("host", host)]), served, "{host} on {bound}");
        }
    }

    #[test]
    fn only_origins_on_this_machine_are_served() {
        for (origin, served) in [
            ("http://localhost:3000", true),
            ("https://127.0.0.1", true),
            ("http://[::1]:1", true),
            ("null", false),
            ("", false),
            ("http://evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://localhost@evil.example", false),
            ("http://localhost/../evil.example", false),
            ("file://localhost", false),
            ("chrome-extension://localhost", false),
            ("localhost", false),
        ] {
            assert_eq!(
                admits("127.0.0.1", &[("host", "localhost"), ("origin", origin)]),
                served,
                "{origin}"
            );
        }
    }

    #[test]
    fn doubled_missing_and_cross_site_headers_are_refused() {
        for (headers, served) in [
            (&[][..], false),
            (&[("host", "localhost"), ("host", "localhost")], false),
            (
                &[
                    ("host", "localhost"),
                    ("origin", "http://localhost"),
                    ("origin", "http://localhost"),
                ],
                false,
            ),
            (&[("host", "localhost"), ("sec-fetch-site", "cross-site")], false),
            (&[("host", "localhost"), ("sec-fetch-site", "same-origin")], true),
            (&[("host", "localhost"), ("sec-fetch-site", "none")], true),
        ] {
            assert_eq!(admits("127.0.0.1", headers), served, "{headers:?}");
        }
    }
}
