//! Where a request goes: a URL in the forms that HTTP has for it, made once for many requests.

use http::{HeaderValue, Uri};
use url::{Host, Url};

/// A URL that requests go to.
#[derive(Debug, Clone)]
pub struct Target {
    url: Url,
    /// With scheme and host, as HTTP/2 and proxies want it.
    pub(crate) absolute: Uri,
    /// Path and query only, as HTTP/1.1 wants it.
    pub(crate) path: Uri,
    /// The value of `Host`.
    pub(crate) host: HeaderValue,
}

/// A URL that no request can be sent to.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no HTTP request can be sent to this URL")]
pub struct InvalidTarget;

impl Target {
    /// A URL with the scheme `http` or `https`, or `ws` or `wss`, which begin as those. Its user and password are not sent.
    pub fn new(url: Url) -> Result<Self, InvalidTarget> {
        let scheme = match url.scheme() {
            "http" | "ws" => "http",
            "https" | "wss" => "https",
            _ => return Err(InvalidTarget),
        };
        let host = url.host_str().ok_or(InvalidTarget)?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let host = HeaderValue::from_str(&authority).map_err(|_| InvalidTarget)?;
        let absolute = Uri::builder().scheme(scheme).authority(authority);
        Ok(Self {
            absolute: absolute.path_and_query(&*path).build().map_err(|_| InvalidTarget)?,
            path: Uri::try_from(path).map_err(|_| InvalidTarget)?,
            host,
            url,
        })
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether requests to both can use the same connection.
    pub(crate) fn is_at(&self, origin: &Uri) -> bool {
        self.absolute.scheme() == origin.scheme() && self.absolute.authority() == origin.authority()
    }
}

/// Whether the host of a URL is this machine, by its name or address. No proxy is used for it, because a proxy on another machine cannot reach it.
pub fn is_this_machine(url: &Url) -> bool {
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

    fn target(url: &str) -> Result<Target, InvalidTarget> {
        Target::new(Url::parse(url).unwrap())
    }

    #[test]
    fn a_url_has_the_forms_of_both_versions() {
        for (url, absolute, path) in [
            ("http://h", "http://h/", "/"),
            ("https://u:p@h:8443/a/b?c=d#e", "https://h:8443/a/b?c=d", "/a/b?c=d"),
            (
                "https://h:443/ä|?ö=|",
                "https://h/%C3%A4|?%C3%B6=|",
                "/%C3%A4|?%C3%B6=|",
            ),
            ("http://[::1]:8080/?", "http://[::1]:8080/?", "/?"),
            ("http://h//a", "http://h//a", "//a"),
            ("wss://h:443/a", "https://h/a", "/a"),
        ] {
            let target = target(url).unwrap();
            assert_eq!(
                (&*target.absolute.to_string(), &*target.path.to_string()),
                (absolute, path),
                "{url}"
            );
        }
        assert!(target("ftp://h/").is_err() && target("data:x").is_err());
    }

    #[test]
    fn only_requests_to_one_origin_share_connections() {
        let origin = target("https://h/a").unwrap().absolute;
        let is_there = |url: &str| target(url).unwrap().is_at(&origin);
        assert!(is_there("https://h:443/b") && is_there("https://u@h/"));
        assert!(!is_there("http://h/") && !is_there("https://h:444/") && !is_there("https://h.h/"));
    }

    #[test]
    fn only_this_machine_is_reached_without_a_proxy() {
        let local = |url: &str| is_this_machine(&Url::parse(url).unwrap());
        for url in [
            "http://localhost/",
            "http://x.localhost:1/",
            "http://127.9.9.9/",
            "http://[::1]/",
        ] {
            assert!(local(url), "{url}");
        }
        for url in ["http://localhost.example/", "http://10.0.0.1/", "http://example.com/"] {
            assert!(!local(url), "{url}");
        }
    }
}
