//! Where the audit log goes besides a file.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use url::Url;

use crate::{from_setting::FromSetting, setting::Setting};

/// The socket of the system's own syslog.
const LOCAL: &str = "/dev/log";
/// The port of syslog.
const PORT: u16 = 514;

/// Where the audit log goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditTarget {
    /// To a file, which is verified by its chain.
    #[default]
    File,
    /// To stdout, one JSON object in each line.
    Stdout,
    /// To a syslog (RFC 5424), one JSON object in each message.
    Syslog(SyslogAddress),
}

/// Where a syslog listens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyslogAddress {
    /// A socket for datagrams on this machine.
    Unix(PathBuf),
    /// Datagrams, to a host and a port.
    Udp(String, u16),
    /// A stream, in which each message has its length before it (RFC 6587), to a host and a port.
    Tcp(String, u16),
}

impl AuditTarget {
    /// Reads `file`, `stdout`, `syslog`, `unix:/path`, `udp://host:port` or `tcp://host:port`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "file" => return Some(Self::File),
            "stdout" => return Some(Self::Stdout),
            "syslog" => return Some(Self::Syslog(SyslogAddress::Unix(LOCAL.into()))),
            _ => {}
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return path
                .starts_with('/')
                .then(|| Self::Syslog(SyslogAddress::Unix(path.into())));
        }
        let url = Url::parse(text).ok()?;
        let is_plain = matches!(url.path(), "" | "/")
            && url.username().is_empty()
            && url.query().is_none()
            && url.fragment().is_none();
        let host = url.host_str().filter(|host| is_plain && !host.is_empty())?;
        // Sockets are opened by an address without brackets.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port().unwrap_or(PORT);
        match url.scheme() {
            "udp" => Some(Self::Syslog(SyslogAddress::Udp(host, port))),
            "tcp" => Some(Self::Syslog(SyslogAddress::Tcp(host, port))),
            _ => None,
        }
    }
}

/// What is wrong with the text of a target.
pub(super) fn problem(text: &str) -> Option<String> {
    let message = "must be `file`, `stdout`, `syslog`, `unix:/path`, `udp://host:port` or `tcp://host:port`";
    AuditTarget::parse(text).is_none().then(|| message.to_owned())
}

impl fmt::Display for AuditTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |host: &str| match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        match self {
            Self::File => f.write_str("file"),
            Self::Stdout => f.write_str("stdout"),
            Self::Syslog(SyslogAddress::Unix(path)) => write!(f, "unix:{}", path.display()),
            Self::Syslog(SyslogAddress::Udp(name, port)) => write!(f, "udp://{}:{port}", host(name)),
            Self::Syslog(SyslogAddress::Tcp(name, port)) => write!(f, "tcp://{}:{port}", host(name)),
        }
    }
}

impl FromSetting for AuditTarget {
    fn from_setting(setting: &Setting) -> Option<Self> {
        Self::parse(&String::from_setting(setting)?)
    }
}

impl Serialize for AuditTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AuditTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no place for an audit log")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for (text, shown) in [
            ("file", "file"),
            ("stdout", "stdout"),
            ("syslog", "unix:/dev/log"),
            ("unix:/run/systemd/journal/dev-log", "unix:/run/systemd/journal/dev-log"),
            ("udp://logs.example.com", "udp://logs.example.com:514"),
            ("udp://127.0.0.1:5514", "udp://127.0.0.1:5514"),
            ("tcp://[::1]:601/", "tcp://[::1]:601"),
        ] {
            let target = AuditTarget::parse(text).unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(AuditTarget::parse(shown), Some(target));
        }
        for wrong in [
            "",
            "stderr",
            "unix:",
            "unix:log",
            "http://h",
            "udp://",
            "udp://u@h",
            "tcp://h/x",
            "tcp://h:99999",
        ] {
            assert!(problem(wrong).is_some(), "{wrong}");
        }
    }
}
