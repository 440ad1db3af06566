//! [`Servers`]: where the servers of Redis or Valkey are, and how they are used.

use std::{fmt, path::PathBuf};

use pegboard_base::secret::{HIDDEN, Secret};

/// Of a server.
const PORT: u16 = 6379;
/// Of a sentinel.
const SENTINEL_PORT: u16 = 26379;

/// What keys begin with if the address does not say it.
const PREFIX: &str = "pegboard";

/// The longest prefix.
const MAX_PREFIX: usize = 64;

/// The servers of a store.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Servers {
    pub(crate) topology: Topology,
    pub(crate) hosts: Vec<HostPort>,
    pub(crate) login: Option<UserAndPassword>,
    pub(crate) database: u32,
    pub(crate) prefix: String,
    pub(crate) tls: Option<TlsFiles>,
}

/// How the servers work together.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Topology {
    /// There is one.
    Single,
    /// The hosts are sentinels, which know the primary of this name.
    Sentinel {
        primary: String,
        login: Option<UserAndPassword>,
    },
    /// The hosts are nodes of a cluster, which know each other.
    Cluster,
}

/// A host and a port. The host is an IPv6 address without its brackets, another address, or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserAndPassword {
    /// `None` is the default user.
    pub(crate) user: Option<String>,
    pub(crate) password: Secret,
}

/// Files in PEM for TLS.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) ca: Option<PathBuf>,
    /// The certificate and the key of the client.
    pub(crate) client: Option<(PathBuf, PathBuf)>,
}

impl Servers {
    /// Parses what comes after `scheme://`. `None` if the scheme is another one.
    pub(crate) fn parse(scheme: &str, rest: &str) -> Result<Option<Self>, String> {
        let (base, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let has_tls = match base {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Ok(None),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let query = Query::parse(query)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (userinfo, hosts) = match authority.rsplit_once('@') {
            Some((userinfo, hosts)) => (Some(userinfo), hosts),
            None => (None, authority),
        };
        let mut path = path.split('/').filter(|segment| !segment.is_empty());
        let (topology, port) = match kind {
            "" => (Topology::Single, PORT),
            "cluster" => (Topology::Cluster, PORT),
            "sentinel" => {
                let primary = path
                    .next()
                    .ok_or("it has no name of the primary; write `redis+sentinel://host:port/NAME`")?;
                let sentinel = Topology::Sentinel {
                    primary: percent_decode(primary)?,
                    login: query.sentinel_login(),
                };
                (sentinel, SENTINEL_PORT)
            }
            _ => return Ok(None),
        };
        let database = match (path.next(), &topology) {
            (None, _) => 0,
            (Some(_), Topology::Cluster) => return Err("its path has too much; a cluster has no databases".into()),
            (Some(number), _) => number.parse().map_err(|_| "its database is no number")?,
        };
        if path.next().is_some() {
            return Err("its path has too much after the database".into());
        }
        if !matches!(topology, Topology::Sentinel { .. }) && query.has_sentinel_login() {
            return Err("only an address of sentinels has a user and a password for sentinels".into());
        }
        let hosts = hosts
            .split(',')
            .map(|host| HostPort::parse(host, port))
            .collect::<Result<Vec<_>, _>>()?;
        if topology == Topology::Single && hosts.len() > 1 {
            return Err("it may have one host only; write `redis+cluster://` or `redis+sentinel://` for more".into());
        }
        Ok(Some(Self {
            topology,
            hosts,
            login: userinfo.map(UserAndPassword::parse).transpose()?.flatten(),
            database,
            tls: query.tls_files(has_tls)?,
            prefix: query.prefix()?,
        }))
    }
}

impl HostPort {
    /// Parses `host`, `host:port` or `[address]:port`.
    pub(crate) fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or("a host has no closing bracket")?;
                (host, rest.strip_prefix(':'))
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        if host.is_empty() {
            return Err("it has no host".into());
        }
        let port = match port {
            None => default_port,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or("a port is no number from 1 to 65535")?,
        };
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl UserAndPassword {
    /// Parses `user:password`, or `:password` for the default user.
    fn parse(text: &str) -> Result<Option<Self>, String> {
        let (user, password) = text.split_once(':').ok_or("it has a user without a password")?;
        let (user, password) = (percent_decode(user)?, percent_decode(password)?);
        if user.is_empty() && password.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            user: (!user.is_empty()).then_some(user),
            password: password.into(),
        }))
    }
}

/// What stands after the `?`.
#[derive(Default)]
struct Query {
    prefix: Option<String>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    sentinel_user: Option<String>,
    sentinel_password: Option<Secret>,
}

impl Query {
    fn parse(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode(value)?;
            match name {
                "prefix" => query.prefix = Some(value),
                "ca" => query.ca = Some(value.into()),
                "cert" => query.cert = Some(value.into()),
                "key" => query.key = Some(value.into()),
                "sentinel-user" => query.sentinel_user = Some(value),
                "sentinel-password" => query.sentinel_password = Some(value.into()),
                _ => {
                    let known = "`prefix`, `ca`, `cert`, `key`, `sentinel-user` and `sentinel-password`";
                    return Err(format!("a word after the `?` is not known; these are: {known}"));
                }
            }
        }
        Ok(query)
    }

    fn prefix(&self) -> Result<String, String> {
        let prefix = self.prefix.as_deref().unwrap_or(PREFIX);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if prefix.is_empty() || prefix.len() > MAX_PREFIX || !prefix.bytes().all(is_plain) {
            return Err(format!(
                "its prefix is not 1 to {MAX_PREFIX} letters, digits, `-`, `_` and `.`"
            ));
        }
        Ok(prefix.to_owned())
    }

    fn tls_files(&self, has_tls: bool) -> Result<Option<TlsFiles>, String> {
        let client = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
            (None, None) => None,
            _ => return Err("it needs both `cert` and `key`, or none of them".into()),
        };
        if !has_tls && (self.ca.is_some() || client.is_some()) {
            return Err("it has certificates and no TLS; write `rediss://`".into());
        }
        let ca = self.ca.clone();
        Ok(has_tls.then_some(TlsFiles { ca, client }))
    }

    fn has_sentinel_login(&self) -> bool {
        self.sentinel_user.is_some() || self.sentinel_password.is_some()
    }

    fn sentinel_login(&self) -> Option<UserAndPassword> {
        Some(UserAndPassword {
            user: self.sentinel_user.clone(),
            password: self.sentinel_password.clone()?,
        })
    }
}

fn percent_decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let byte;
        (byte, rest) = match (first, after) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex_digit(*high) * 16 + hex_digit(*low), after)
            }
            (b'%', _) => {
                return Err("a `%` in it is not followed by two hexadecimal digits; write `%25` for percent".into());
            }
            _ => (first, after),
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| "its percent-encoded characters are not UTF-8".into())
}

fn hex_digit(digit: u8) -> u8 {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
        .unwrap_or_default()
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls.is_some() { "rediss" } else { "redis" })?;
        f.write_str(match self.topology {
            Topology::Single => "://",
            Topology::Sentinel { .. } => "+sentinel://",
            Topology::Cluster => "+cluster://",
        })?;
        if self.login.is_some() {
            write!(f, "{HIDDEN}@")?;
        }
        let hosts: Vec<String> = self.hosts.iter().map(HostPort::to_string).collect();
        f.write_str(&hosts.join(","))?;
        match &self.topology {
            Topology::Single => write!(f, "/{}", self.database)?,
            Topology::Sentinel { primary, .. } => write!(f, "/{primary}/{}", self.database)?,
            Topology::Cluster => {}
        }
        if self.prefix != PREFIX {
            write!(f, "?prefix={}", self.prefix)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
