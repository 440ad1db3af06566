//! [`Resolver`]: the addresses of a host.

use std::{future::Future, io, net::IpAddr, pin::Pin};

use url::{Host, Url};

/// Resolves names. Tests replace it.
pub(crate) trait Resolver: Send + Sync + 'static {
    fn resolve<'a>(&'a self, name: &'a str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;
}

/// The resolver of the operating system.
#[derive(Debug)]
pub(crate) struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The addresses of a URL's host. Addresses in unusual forms (decimal, octal, hexadecimal) are addresses for the URL parser already.
pub(super) async fn addresses_of(resolver: &dyn Resolver, url: &Url) -> io::Result<Vec<IpAddr>> {
    match url.host() {
        Some(Host::Ipv4(address)) => Ok(vec![address.into()]),
        Some(Host::Ipv6(address)) => Ok(vec![address.into()]),
        Some(Host::Domain(name)) => {
            let addresses = resolver.resolve(name).await?;
            if addresses.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
            }
            Ok(addresses)
        }
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no host")),
    }
}
