//! [`StoreAddress`]: where a store is, printed without its passwords.

mod servers;

use std::{fmt, path::PathBuf};

pub(crate) use servers::Servers;
#[cfg(feature = "redis")]
pub(crate) use servers::{HostPort, TlsFiles, Topology, UserAndPassword};

use crate::error::StoreError;

/// Where a store is:
///
/// - `memory`
/// - `file:/shared/folder`
/// - `redis://[user:password@]host[:port][/db]`, and `rediss://` with TLS
/// - `redis+sentinel://[user:password@]host[:port],host[:port]/PRIMARY[/db]`
/// - `redis+cluster://[user:password@]host[:port],host[:port]`
///
/// `valkey` may stand for `redis`, and `rediss+sentinel` and `rediss+cluster` use TLS. A user, a password or a name with a character that has a meaning
/// in a URL is percent-encoded. After a `?`, separated by `&`:
///
/// - `prefix=pegboard`: what all keys begin with
/// - `ca=/path/ca.pem`: the certificates that servers must be signed by, instead of those that the system trusts
/// - `cert=/path/cert.pem` and `key=/path/key.pem`: the certificate of this client, for servers that want one
/// - `sentinel-user=user` and `sentinel-password=password`: for the sentinels themselves
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress(Place);

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Folder(PathBuf),
    Redis(Box<Servers>),
}

impl StoreAddress {
    /// Parses an address. The error does not contain it.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        parse(text)
            .map(Self)
            .map_err(|reason| StoreError::BadAddress { reason })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.0
    }

    /// Whether other processes can use the store.
    pub fn is_shared(&self) -> bool {
        self.0 != Place::Memory
    }
}

fn parse(text: &str) -> Result<Place, String> {
    let forms = "write `memory`, `file:/folder`, `redis://host:port`, `redis+sentinel://host:port/NAME` or `redis+cluster://host:port`";
    if text == "memory" {
        return Ok(Place::Memory);
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(format!("it has no scheme; {forms}"));
    };
    if scheme == "file" {
        let path = PathBuf::from(rest.strip_prefix("//").unwrap_or(rest));
        return match path.is_absolute() {
            true => Ok(Place::Folder(path)),
            false => Err("its folder is not absolute; write `file:/folder`".into()),
        };
    }
    let Some(servers) = rest
        .strip_prefix("//")
        .and_then(|rest| Servers::parse(scheme, rest).transpose())
    else {
        return Err(format!("its scheme is none of a store; {forms}"));
    };
    servers.map(|servers| Place::Redis(Box::new(servers)))
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Memory => f.write_str("memory"),
            Place::Folder(folder) => write!(f, "file:{}", folder.display()),
            Place::Redis(servers) => servers.fmt(f),
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_printed_without_its_passwords() {
        for (text, shown) in [
            ("memory", "memory"),
            ("file:/srv/pegboard", "file:/srv/pegboard"),
            ("file:///srv/pegboard", "file:/srv/pegboard"),
            ("redis://localhost", "redis://localhost:6379/0"),
            ("valkey://h:1/3", "redis://h:1/3"),
            ("valkeys://h:1", "rediss://h:1/0"),
            ("redis://me:p%40ss@h:1?prefix=a", "redis://****@h:1/0?prefix=a"),
            ("redis://:pass@[::1]:7", "redis://****@[::1]:7/0"),
            (
                "rediss+sentinel://u:pass@a:1,b/main/2?sentinel-password=pass",
                "rediss+sentinel://****@a:1,b:26379/main/2",
            ),
            ("valkey+cluster://a:1,b:2", "redis+cluster://a:1,b:2"),
        ] {
            let address = StoreAddress::parse(text).unwrap();
            assert_eq!(format!("{address} {address:?}"), format!("{shown} {shown}"), "{text}");
            assert!(!format!("{address:#?}").contains("pass"), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_it() {
        for (text, reason) in [
            ("", "it has no scheme"),
            ("secret", "it has no scheme"),
            ("http://secret", "its scheme is none"),
            ("redis:secret", "its scheme is none"),
            ("redis+secret://h", "its scheme is none"),
            ("file:secret", "not absolute"),
            ("redis://", "no host"),
            ("redis://secret:@h:x", "port"),
            ("redis://h:70000", "port"),
            ("redis://h:0", "port"),
            ("redis://u:%zz@h", "percent"),
            ("redis://h/secret", "database"),
            ("redis://h,i", "one host"),
            ("redis://h/1/2", "too much"),
            ("redis://[::1", "bracket"),
            ("redis+sentinel://h", "name of the primary"),
            ("redis+cluster://h/1", "too much"),
            ("redis://h?secret=1", "not known"),
            ("redis://h?prefix=a:b", "prefix"),
            ("redis://h?prefix=", "prefix"),
            ("redis://h?ca=/x", "rediss"),
            ("rediss://h?cert=/x", "`cert` and `key`"),
            ("redis://h?sentinel-password=secret", "sentinel"),
        ] {
            let error = StoreAddress::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
