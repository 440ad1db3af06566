//! [`PageAddress`]: where browsers reach the sign-in pages.

use std::net::SocketAddr;

use url::{Host, Url};

/// Why there is no sign-in page for a browser, or no link to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSignInPage {
    /// The program serves no such pages.
    #[error("this gateway has no sign-in page; run `pegboard login` on its machine")]
    NotServed,
    /// No browser can connect to the gateway.
    #[error(
        "the gateway listens on a socket only, which no browser can open; run `pegboard login` on its machine, or start `pegboard serve` with an \
         address"
    )]
    NoAddress,
    /// The address is not one that an authorization server may redirect a browser to.
    #[error(
        "the sign-in page needs `https` beyond this machine; set `serve.public_url` to the URL under which browsers reach the gateway"
    )]
    NeedsPublicUrl,
    /// The public URL is not one that an authorization server may redirect a browser to.
    #[error(
        "the sign-in page needs `https` beyond this machine, and `serve.public_url` is not an `https` URL; set it to the one under which browsers \
         reach the gateway"
    )]
    PublicUrlNotHttps,
    /// People cannot sign in to this server.
    #[error("nobody can sign in to the server: it is not remote, or its config has credentials for it")]
    NotPossible,
    /// Too many links are open.
    #[error("too many sign-ins are open; try again in ten minutes")]
    TooMany,
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoRandomNumbers,
}

/// Where browsers reach the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PageAddress {
    /// Nowhere.
    #[default]
    None,
    /// Only at an address that needs a public URL.
    Unusable,
    /// At a public URL without `https`.
    PublicWithoutTls,
    /// At the URL that the config names.
    Public(String),
    /// At a listener on this machine, and wherever a tunnel leads to it.
    Local { scheme: &'static str, listener: SocketAddr },
}

impl PageAddress {
    /// Chooses the address: the public URL, or a listener on this machine.
    pub(crate) fn choose(public_url: Option<&str>, listeners: &[SocketAddr], speaks_tls: bool) -> Self {
        if let Some(text) = public_url {
            let is_usable = Url::parse(text).is_ok_and(|url| url.scheme() == "https" || is_local(&url));
            return match is_usable {
                true => Self::Public(text.trim_end_matches('/').to_owned()),
                false => Self::PublicWithoutTls,
            };
        }
        let is_local = |address: &&SocketAddr| address.ip().to_canonical().is_loopback();
        match listeners.iter().find(is_local) {
            Some(listener) => Self::Local {
                scheme: if speaks_tls { "https" } else { "http" },
                listener: *listener,
            },
            None if listeners.is_empty() => Self::None,
            None => Self::Unusable,
        }
    }

    /// The URL before the path of a page.
    pub(super) fn base(&self) -> Result<String, NoSignInPage> {
        match self {
            Self::None => Err(NoSignInPage::NoAddress),
            Self::Unusable => Err(NoSignInPage::NeedsPublicUrl),
            Self::PublicWithoutTls => Err(NoSignInPage::PublicUrlNotHttps),
            Self::Public(url) => Ok(url.clone()),
            Self::Local { scheme, listener } => Ok(format!("{scheme}://{listener}")),
        }
    }

    /// The same for a browser that has named the gateway as `host`: its cookies are for that name only.
    pub(super) fn base_for(&self, host: &str) -> Result<String, NoSignInPage> {
        let Self::Local { scheme, .. } = self else {
            return self.base();
        };
        let base = format!("{scheme}://{host}");
        match Url::parse(&base) {
            Ok(url) if is_local(&url) && url.path() == "/" && url.username().is_empty() => Ok(base),
            _ => Err(NoSignInPage::NeedsPublicUrl),
        }
    }
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_come_over_https_or_from_this_machine() {
        let local: SocketAddr = "127.0.0.1:7000".parse().unwrap();
        let six: SocketAddr = "[::1]:7000".parse().unwrap();
        let open: SocketAddr = "0.0.0.0:7000".parse().unwrap();
        for (public, listeners, tls, base) in [
            (
                Some("https://mcp.example.com"),
                &[open][..],
                false,
                Ok("https://mcp.example.com"),
            ),
            (
                Some("https://mcp.example.com/"),
                &[],
                false,
                Ok("https://mcp.example.com"),
            ),
            (
                Some("http://mcp.example.com"),
                &[local],
                false,
                Err(NoSignInPage::PublicUrlNotHttps),
            ),
            (Some("http://localhost:1"), &[], false, Ok("http://localhost:1")),
            (None, &[open, local], false, Ok("http://127.0.0.1:7000")),
            (None, &[six], true, Ok("https://[::1]:7000")),
            (None, &[open], true, Err(NoSignInPage::NeedsPublicUrl)),
            (None, &[], false, Err(NoSignInPage::NoAddress)),
        ] {
            let address = PageAddress::choose(public, listeners, tls);
            assert_eq!(
                address.base().as_deref(),
                base.as_ref().map(|base| *base),
                "{address:?}"
            );
        }
    }

    #[test]
    fn a_browser_stays_at_the_name_that_it_came_to() {
        let local = PageAddress::choose(None, &["127.0.0.1:7000".parse().unwrap()], false);
        for (host, base) in [
            ("localhost:7000", Ok("http://localhost:7000")),
            ("127.0.0.1:9000", Ok("http://127.0.0.1:9000")),
            ("[::1]:9000", Ok("http://[::1]:9000")),
            ("gateway.example.com", Err(NoSignInPage::NeedsPublicUrl)),
            ("localhost.example.com", Err(NoSignInPage::NeedsPublicUrl)),
            ("127.0.0.1/@example.com", Err(NoSignInPage::NeedsPublicUrl)),
            ("me@127.0.0.1", Err(NoSignInPage::NeedsPublicUrl)),
            ("", Err(NoSignInPage::NeedsPublicUrl)),
        ] {
            assert_eq!(
                local.base_for(host).as_deref(),
                base.as_ref().map(|base| *base),
                "{host}"
            );
        }
        let public = PageAddress::choose(Some("https://mcp.example.com"), &[], false);
        assert_eq!(public.base_for("10.0.0.1").as_deref(), Ok("https://mcp.example.com"));
    }
}
