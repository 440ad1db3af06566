//! [`RedirectUri`]: where the authorization server sends the browser after a sign-in.

use url::Url;

use super::error::OAuthError;
use pegboard_config::RedirectConfig;

/// An address that takes the answer to a sign-in: one of this machine, or a page of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectUri {
    /// As it is sent: authorization servers compare it as a string.
    text: String,
    url: Url,
}

impl RedirectUri {
    /// An `https` URL, or an `http` URL of this machine.
    pub fn parse(text: &str) -> Result<Self, OAuthError> {
        let bad = |why: &str| OAuthError::Setting(format!("the redirect address cannot be used: {why}"));
        let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
        if url.host_str().is_none_or(str::is_empty) || !url.username().is_empty() || url.fragment().is_some() {
            return Err(bad("it needs a host, and has neither user nor fragment"));
        }
        match url.scheme() {
            "https" => {}
            "http" if is_local(&url) => {}
            _ => return Err(bad("it is neither https nor an address of this machine")),
        }
        Ok(Self {
            text: text.to_owned(),
            url,
        })
    }

    /// The address of a listener on this machine.
    pub fn local(redirect: &RedirectConfig, port: u16) -> Result<Self, OAuthError> {
        let path = redirect.path.trim_start_matches('/');
        Self::parse(&format!("http://{}:{port}/{path}", redirect.host))
    }

    /// The address exactly as it is sent to the authorization server.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Whether the address is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        is_local(&self.url)
    }
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_goes_to_this_machine_or_over_tls() {
        for good in [
            "http://127.0.0.1:8080/callback",
            "http://localhost:1/",
            "http://[::1]:9/x",
            "https://gateway.example/sign-in/callback",
        ] {
            assert_eq!(RedirectUri::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "http://example.com/callback",
            "ftp://127.0.0.1/",
            "javascript:alert(1)",
            "https://user@example.com/",
            "https://example.com/#x",
            "callback",
        ] {
            assert!(RedirectUri::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_local_redirect_has_the_host_port_and_path_of_the_config() {
        let uri = RedirectUri::local(&RedirectConfig::default(), 4321).unwrap();
        assert_eq!(uri.as_str(), "http://127.0.0.1:4321/callback");
        assert!(uri.is_local());
    }
}
