//! Protects against DNS rebinding and against web pages: only requests whose `Host` and `Origin` name this server are admitted.
//! A page whose host name resolves to 127.0.0.1 still sends that name, and is refused.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{HOST, ORIGIN},
    request::Parts,
};

use super::rejection::Rejection;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names under which clients may reach this server, and the web origins that may use it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteCheck {
    /// The addresses that the listeners are bound to.
    bound: Vec<IpAddr>,
    /// Further names, in lower case, each with or without a port.
    hosts: Vec<String>,
    /// Further origins, in lower case.
    origins: Vec<String>,
}

/// Which page sent a request that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// No page, or one of this server or machine.
    Local,
    /// A page of a configured origin, which may read the response.
    Configured(HeaderValue),
}

impl SiteCheck {
    /// Accepts loopback names, the addresses in `bound`, and what is configured.
    pub(crate) fn new(bound: Vec<IpAddr>, hosts: &[String], origins: &[String]) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
        let mut origins: Vec<String> = lower(origins);
        for origin in &mut origins {
            origin.truncate(origin.trim_end_matches('/').len());
        }
        Self {
            bound: bound.into_iter().map(|ip| ip.to_canonical()).collect(),
            hosts: lower(hosts),
            origins,
        }
    }

    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<Origin, Rejection> {
        let host = single(headers, &HOST)?.ok_or(Rejection::NoHost)?;
        if !self.is_here(host) || uri.authority().is_some_and(|named| !self.is_here(named.as_str())) {
            return Err(Rejection::Host);
        }
        let origin = match single(headers, &ORIGIN)? {
            None => Origin::Local,
            Some(origin) if self.is_configured(origin) => {
                // The value comes from a valid header.
                Origin::Configured(HeaderValue::from_str(origin).map_err(|_| Rejection::NotText)?)
            }
            Some(origin) if self.is_local_origin(origin, host) => Origin::Local,
            Some(_) => return Err(Rejection::Origin),
        };
        match (single(headers, &SEC_FETCH_SITE)?, &origin) {
            (None | Some("same-origin" | "same-site" | "none"), _) | (Some("cross-site"), Origin::Configured(_)) => {
                Ok(origin)
            }
            (Some(_), _) => Err(Rejection::CrossSite),
        }
    }

    fn is_configured(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }

    /// Returns `true` if the origin is a page of this server, or of this machine.
    fn is_local_origin(&self, origin: &str, host: &str) -> bool {
        let authority = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        // A page of any machine can have an IP address as its origin. It is one of ours only if the request goes to that address.
        authority.is_some_and(|authority| {
            authority.eq_ignore_ascii_case(host)
                || is_loopback(authority)
                || host_of(authority)
                    .and_then(|host| host.parse::<IpAddr>().ok())
                    .is_some_and(|ip| self.bound.contains(&ip.to_canonical()) && !ip.is_unspecified())
        })
    }

    /// Returns `true` if `host` or `host:port` names this server.
    fn is_here(&self, authority: &str) -> bool {
        self.is_this_machine(authority)
            || host_of(authority).is_some_and(|host| {
                let matches =
                    |known: &String| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(authority);
                self.hosts.iter().any(matches)
            })
    }

    /// Returns `true` for `localhost`, loopback addresses and the bound ones. A browser cannot be made to resolve an IP address, so
    /// a server that listens on every interface accepts any of them.
    fn is_this_machine(&self, authority: &str) -> bool {
        if is_loopback(authority) {
            return true;
        }
        let Some(Ok(ip)) = host_of(authority).map(str::parse::<IpAddr>) else {
            return false;
        };
        let ip = ip.to_canonical();
        self.bound.iter().any(|bound| *bound == ip || bound.is_unspecified())
    }
}

/// Returns `true` for `localhost` and loopback addresses.
fn is_loopback(authority: &str) -> bool {
    host_of(authority).is_some_and(|host| {
        let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
        host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
    })
}

/// The host of `host`, `host:port`, `[address]` or `[address]:port`.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = if port.is_empty() {
            None
        } else {
            Some(port.strip_prefix(':')?)
        };
        (host, port)
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let is_port =
        |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    (!host.is_empty() && port.is_none_or(is_port)).then_some(host)
}

/// The single value of a header. Repeated headers are refused: two parsers could choose different values.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Rejection> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Rejection::Doubled);
    }
    value.to_str().map(Some).map_err(|_| Rejection::NotText)
}

/// Whether a request is a probe of a load balancer, which names an address or nothing as its host. Pages cannot send it: what they know under a
/// foreign name has that name as its host.
pub(crate) fn is_probe(request: &Parts) -> bool {
    let headers = &request.headers;
    let is_without_name = match headers.get(HOST).map(HeaderValue::to_str) {
        None => true,
        Some(Ok(host)) => host_of(host)
            .and_then(|host| host.parse::<IpAddr>().ok())
            .is_some_and(|ip| !ip.is_unspecified()),
        Some(Err(_)) => false,
    };
    is_without_name
        && matches!(request.method, Method::GET | Method::HEAD)
        && matches!(request.uri.path(), "/livez" | "/readyz")
        && !headers.contains_key(ORIGIN)
        && !headers.contains_key(SEC_FETCH_SITE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bound: &str, headers: &[(&'static str, &'static str)]) -> Result<Origin, Rejection> {
        let hosts = ["gateway.example.com".to_owned(), "Exact.example:8443".to_owned()];
        let origins = ["https://app.example.com/".to_owned()];
        let site = SiteCheck::new(vec![bound.parse().unwrap()], &hosts, &origins);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        site.check(&Uri::from_static("/mcp"), &map)
    }

    #[test]
    fn probes_of_load_balancers_need_no_name_of_this_server() {
        let probe = |method: &str, path: &str, headers: &[(&'static str, &'static str)]| {
            let request = http::Request::builder().method(method).uri(path);
            let add = |request: http::request::Builder, (name, value): &(&'static str, &'static str)| {
                request.header(*name, *value)
            };
            is_probe(&headers.iter().fold(request, add).body(()).unwrap().into_parts().0)
        };
        for path in ["/livez", "/readyz"] {
            assert!(probe("GET", path, &[]));
            assert!(probe("HEAD", path, &[("host", "10.1.2.3:7337")]));
            assert!(probe("GET", path, &[("host", "[fd00::1]:7337")]));
            assert!(!probe("POST", path, &[]));
            // A page whose name resolves to this machine.
            assert!(!probe("GET", path, &[("host", "evil.example:7337")]));
            assert!(!probe(
                "GET",
                path,
                &[("host", "10.1.2.3"), ("origin", "http://10.1.2.3")]
            ));
            assert!(!probe(
                "GET",
                path,
                &[("host", "10.1.2.3"), ("sec-fetch-site", "cross-site")]
            ));
        }
        for path in ["/health", "/mcp", "/metrics", "/api/v1/mcp/servers", "/readyz/x"] {
            assert!(!probe("GET", path, &[]), "{path}");
        }
    }

    #[test]
    fn only_hosts_that_name_this_server_are_admitted() {
        for (bound, host, admitted) in [
            ("127.0.0.1", "127.0.0.1:7000", true),
            ("127.0.0.1", "localhost:7000", true),
            ("127.0.0.1", "LOCALHOST", true),
            ("127.0.0.1", "[::1]:7000", true),
            ("127.0.0.1", "[::ffff:127.0.0.1]", true),
            ("::1", "[::1]", true),
            ("127.0.0.1", "gateway.example.com", true),
            ("127.0.0.1", "Gateway.Example.com:443", true),
            ("127.0.0.1", "exact.example:8443", true),
            ("127.0.0.1", "exact.example", false),
            ("127.0.0.1", "exact.example:443", false),
            ("127.0.0.1", "x.gateway.example.com", false),
            ("127.0.0.1", "evil.example", false),
            ("127.0.0.1", "evil.example:7000", false),
            ("127.0.0.1", "localhost.evil.example", false),
            ("127.0.0.1", "localhost.", false),
            ("127.0.0.1", "127.0.0.1.evil.example", false),
            ("127.0.0.1", "user@localhost", false),
            ("127.0.0.1", "localhost:7000:1", false),
            ("127.0.0.1", "localhost:port", false),
            ("127.0.0.1", "localhost:+80", false),
            ("127.0.0.1", "localhost:", false),
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
            let outcome = check(bound, &[("host", host)]);
            assert_eq!(outcome.is_ok(), admitted, "{host} on {bound}");
            assert!(admitted || outcome == Err(Rejection::Host), "{host} on {bound}");
        }
    }

    #[test]
    fn only_origins_of_this_machine_or_of_the_config_are_admitted() {
        for (origin, admitted) in [
            ("http://localhost:3000", true),
            ("https://127.0.0.1", true),
            ("http://[::1]:1", true),
            ("https://app.example.com", true),
            ("http://app.example.com", false),
            ("https://app.example.com:8443", false),
            ("https://app.example.com.evil.example", false),
            ("null", false),
            ("", false),
            ("http://evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://localhost@evil.example", false),
            ("http://localhost/../evil.example", false),
            ("file://localhost", false),
            ("chrome-extension://localhost", false),
            ("localhost", false),
            ("http://gateway.example.com", false),
        ] {
            let outcome = check("127.0.0.1", &[("host", "localhost"), ("origin", origin)]);
            assert_eq!(outcome.is_ok(), admitted, "{origin}");
            assert!(admitted || outcome == Err(Rejection::Origin), "{origin}");
        }
    }

    #[test]
    fn a_gateway_on_every_address_takes_pages_of_its_own_address_only() {
        for (bound, host, origin, admitted) in [
            ("0.0.0.0", "192.0.2.7:7000", "http://192.0.2.7:7000", true),
            ("0.0.0.0", "192.0.2.7:7000", "http://192.0.2.8:7000", false),
            ("0.0.0.0", "192.0.2.7:7000", "http://192.0.2.7", false),
            ("0.0.0.0", "192.0.2.7:7000", "http://203.0.113.9", false),
            ("0.0.0.0", "192.0.2.7:7000", "http://0.0.0.0", false),
            ("0.0.0.0", "192.0.2.7:7000", "http://[2001:db8::1]", false),
            ("::", "[2001:db8::7]:7000", "http://[2001:db8::8]:7000", false),
            ("::", "[2001:db8::7]:7000", "http://[2001:db8::7]:7000", true),
            ("0.0.0.0", "192.0.2.7:7000", "http://localhost:3000", true),
            ("192.0.2.7", "192.0.2.7:7000", "http://192.0.2.7:3000", true),
        ] {
            let outcome = check(bound, &[("host", host), ("origin", origin)]);
            assert_eq!(outcome.is_ok(), admitted, "{origin} at {host} on {bound}");
        }
    }

    #[test]
    fn a_page_of_this_server_is_admitted_under_the_name_that_it_was_loaded_from() {
        let host = ("host", "gateway.example.com:8443");
        assert!(check("127.0.0.1", &[host, ("origin", "https://gateway.example.com:8443")]).is_ok());
        assert!(check("127.0.0.1", &[host, ("origin", "https://gateway.example.com")]).is_err());
    }

    #[test]
    fn doubled_missing_and_cross_site_headers_are_refused() {
        const HOST: (&str, &str) = ("host", "localhost");
        const LOCAL: (&str, &str) = ("origin", "http://localhost");
        const APP: (&str, &str) = ("origin", "https://app.example.com");
        let app = HeaderValue::from_static(APP.1);
        for (headers, outcome) in [
            (&[][..], Err(Rejection::NoHost)),
            (&[HOST, HOST], Err(Rejection::Doubled)),
            (&[HOST, LOCAL, LOCAL], Err(Rejection::Doubled)),
            (&[HOST, ("sec-fetch-site", "cross-site")], Err(Rejection::CrossSite)),
            (
                &[HOST, LOCAL, ("sec-fetch-site", "cross-site")],
                Err(Rejection::CrossSite),
            ),
            (&[HOST, ("sec-fetch-site", "Same-Origin")], Err(Rejection::CrossSite)),
            (
                &[HOST, ("sec-fetch-site", "none"), ("sec-fetch-site", "none")],
                Err(Rejection::Doubled),
            ),
            (
                &[HOST, APP, ("sec-fetch-site", "cross-site")],
                Ok(Origin::Configured(app)),
            ),
            (&[HOST, ("sec-fetch-site", "same-origin")], Ok(Origin::Local)),
            (&[HOST, ("sec-fetch-site", "same-site")], Ok(Origin::Local)),
            (&[HOST, ("sec-fetch-site", "none")], Ok(Origin::Local)),
        ] {
            assert_eq!(check("127.0.0.1", headers), outcome, "{headers:?}");
        }
    }

    #[test]
    fn a_request_line_with_another_authority_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_static("localhost"));
        let site = SiteCheck::new(vec![], &[], &[]);
        assert!(site.check(&Uri::from_static("http://localhost/mcp"), &headers).is_ok());
        assert_eq!(
            site.check(&Uri::from_static("http://evil.example/mcp"), &headers),
            Err(Rejection::Host)
        );
    }
}
