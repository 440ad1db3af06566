//! Where a request goes: a URL in the forms that HTTP has for it, made once for many requests.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderValue, Uri};
use pegboard_base::secret::take_userinfo;
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
    /// User and password of the URL. They are sent with each request that has no `Authorization`.
    pub(crate) authorization: Option<HeaderValue>,
}

/// A URL that no request can be sent to.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no HTTP request can be sent to this URL")]
pub struct InvalidTarget;

impl Target {
    /// A URL with the scheme `http` or `https`, or `ws` or `wss`, which begin as those.
    pub fn new(mut url: Url) -> Result<Self, InvalidTarget> {
        let scheme = match url.scheme() {
            "http" | "ws" => "http",
            "https" | "wss" => "https",
            _ => return Err(InvalidTarget),
        };
        let authorization = match take_userinfo(&mut url) {
            None => None,
            Some((user, password)) => {
                let pair = BASE64_STANDARD.encode([&user[..], b":", &password].concat());
                let mut value = HeaderValue::try_from(format!("Basic {pair}")).map_err(|_| InvalidTarget)?;
                value.set_sensitive(true);
                Some(value)
            }
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
            authorization,
            url,
        })
    }

    /// The URL that a redirect from this one names. It gets no user and password of its own, and those of this one only at the same origin.
    pub fn redirect(&self, to: &str) -> Result<Self, InvalidTarget> {
        let mut url = self.url.join(to).map_err(|_| InvalidTarget)?;
        let _ = take_userinfo(&mut url);
        let mut target = Self::new(url)?;
        if target.is_at(&self.absolute) {
            target.authorization.clone_from(&self.authorization);
        }
        Ok(target)
    }

    /// The URL, without user and password.
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
    fn user_and_password_stay_at_their_origin() {
        let target = target("https://me:pw@h/a").unwrap();
        assert_eq!(
            (target.url().as_str(), target.authorization.clone().unwrap()),
            ("https://h/a", "Basic bWU6cHc=".try_into().unwrap())
        );
        let to = |to: &str| target.redirect(to).unwrap();
        assert_eq!(to("/b?c").url().as_str(), "https://h/b?c");
        assert_eq!(to("https://you:no@h/b").authorization, target.authorization);
        for elsewhere in ["https://h:444/", "http://h/", "//i/", "https://you:no@i/"] {
            assert_eq!(to(elsewhere).authorization, None, "{elsewhere}");
        }
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
