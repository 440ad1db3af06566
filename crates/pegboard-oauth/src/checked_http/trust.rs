//! [`ConfiguredOrigins`]: which URLs may be used for the sign-in to one server.

use std::net::IpAddr;

use tokio::sync::OnceCell;
use url::{Host, Origin, Url};

use crate::{
    account::OAuthAccount,
    address_class::{AddressClass, is_metadata_service},
};
use pegboard_config::Tls;
use pegboard_http::is_this_machine;

/// What the config says about where a server and its authorization server are. Everything else comes from servers.
#[derive(Debug)]
pub(crate) struct ConfiguredOrigins<'a> {
    server: &'a Url,
    tls: &'a Tls,
    /// The origins that the config names for sign-ins.
    named: Vec<Origin>,
    is_private: OnceCell<bool>,
}

/// Whether an address may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// If the server is on a private network too: a server of a company with an authorization server of that company.
    IfServerIsPrivate,
}

impl<'a> ConfiguredOrigins<'a> {
    pub(crate) fn new(account: &'a OAuthAccount) -> Self {
        let settings = &account.settings;
        let issuer = settings.issuer.as_deref().and_then(|issuer| Url::parse(issuer).ok());
        let urls = [&settings.token_url, &settings.authorization_url];
        let urls = urls.into_iter().flatten().map(|url| url.expose().origin());
        Self {
            server: &account.url,
            tls: &account.tls,
            named: urls.chain(issuer.map(|issuer| issuer.origin())).collect(),
            is_private: OnceCell::new(),
        }
    }

    /// Adds the origin of another URL of the config.
    pub(crate) fn and(mut self, url: &Url) -> Self {
        self.named.push(url.origin());
        self
    }

    /// Whether the config names the origin of a URL: as that of the server, or for sign-ins.
    pub(super) fn is_named(&self, url: &Url) -> bool {
        url.origin() == self.server.origin() || self.named.contains(&url.origin())
    }

    /// HTTPS, or HTTP where the server itself is reached without TLS.
    pub(crate) fn check_scheme(&self, url: &Url) -> Result<(), &'static str> {
        let is_named = self.named.contains(&url.origin());
        match url.scheme() {
            "https" => Ok(()),
            "http" if url.origin() == self.server.origin() => Ok(()),
            "http" if is_this_machine(url) && (is_named || is_this_machine(self.server)) => Ok(()),
            "http" => Err("it is not https"),
            _ => Err("it is neither https nor http"),
        }
    }

    /// Public addresses are allowed, others only if the server is on the same network or the config names the origin.
    pub(super) fn check_address(&self, url: &Url, address: IpAddr) -> Result<Verdict, String> {
        let class = AddressClass::classify(address);
        let origin = url.origin();
        if origin == self.server.origin() {
            return Ok(Verdict::Allowed);
        }
        if is_metadata_service(address) {
            return Err("it is the metadata service of a cloud".to_owned());
        }
        let is_allowed = match class {
            AddressClass::Public => true,
            AddressClass::Unusable => false,
            _ if self.named.contains(&origin) => true,
            AddressClass::Loopback => is_this_machine(self.server),
            AddressClass::LinkLocal => self.server_address() == Some(AddressClass::LinkLocal),
            AddressClass::Private => match self.server_address() {
                Some(class) => class == AddressClass::Private,
                None => return Ok(Verdict::IfServerIsPrivate),
            },
        };
        match is_allowed {
            true => Ok(Verdict::Allowed),
            false => Err(format!("it is {}, and the server is not", class.as_str())),
        }
    }

    pub(super) fn server(&self) -> &Url {
        self.server
    }

    /// Whether the server is on a private network, once it is known.
    pub(super) fn is_private(&self) -> &OnceCell<bool> {
        &self.is_private
    }

    /// The class of the server, if its URL has an address in place of a name.
    fn server_address(&self) -> Option<AddressClass> {
        match self.server.host()? {
            Host::Ipv4(address) => Some(AddressClass::classify(address.into())),
            Host::Ipv6(address) => Some(AddressClass::classify(address.into())),
            Host::Domain(_) => None,
        }
    }

    /// The server's TLS settings for its own origin, and only its trusted authorities for others.
    pub(super) fn tls(&self, url: &Url) -> Tls {
        if url.origin() == self.server.origin() {
            return self.tls.clone();
        }
        Tls {
            ca: self.tls.ca.clone(),
            ..Tls::default()
        }
    }
}
