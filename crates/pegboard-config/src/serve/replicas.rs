//! Where the replicas of a gateway keep what they share, and how they reach each other.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    from_setting,
    key::{text, unless},
    settings::settings,
};
use pegboard_base::secret::Secret;

settings! {
    /// How the replicas of a gateway send requests to each other.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct ServeReplicas in serve_replicas = "serve.replicas" {
        /// The address on which the gateway takes requests of other replicas, such as `10.0.0.7:7338`. Only replicas should reach it: requests are sealed with
        /// `state_key`, responses are not.
        listen: Option<SocketAddr> = text().syntax(
            |text| unless(from_setting::address(text).is_some(), "must be an IP address and a port"),
            "write `10.0.0.7:7338`, or `0.0.0.0:7338` and the address of this replica in `address`",
        );
        /// The host and port at which other replicas reach `listen`, such as `${POD_IP}:7338`. Without it, that of `listen`.
        address: Option<String> = text().syntax(
            |text| unless(is_host_and_port(text), "must be a host and a port"),
            "write `10.0.0.7:7338` or `pegboard-0.pegboard:7338`",
        );
    }
}

/// The schemes of addresses of stores.
const SCHEMES: &[&str] = &[
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
    "valkey+sentinel",
    "valkeys+sentinel",
    "valkey+cluster",
    "valkeys+cluster",
    "file",
];

/// Whether a text may be the address of a store. What else is wrong with it is found when it is opened.
pub(super) fn is_store_address(text: &str) -> bool {
    let scheme = text
        .trim()
        .split_once(':')
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| SCHEMES.contains(&scheme.as_str()))
}

/// The parts of a store's address that are secret: all of it, and its password as it is written and as it is meant.
pub(crate) fn secrets_of(store: &Secret) -> Vec<Secret> {
    let text = store.expose();
    let query = text.split_once('?').map_or("", |(_, query)| query);
    let of_query = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("sentinel-password="));
    let of_query: Vec<&str> = of_query.filter(|password| !password.is_empty()).collect();
    let user_info = text
        .split_once("://")
        .map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let of_user = user_info.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let of_user = of_user
        .map(|(_, password)| password)
        .filter(|password| !password.is_empty());
    let mut secrets: Vec<String> = Vec::new();
    for password in of_user.into_iter().chain(of_query) {
        secrets.push(password.to_owned());
        secrets.extend(percent_decoded(password).filter(|decoded| decoded != password));
    }
    if !secrets.is_empty() {
        secrets.insert(0, text.to_owned());
    }
    secrets.into_iter().map(Secret::from).collect()
}

/// A part of a URL without its escapes.
fn percent_decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

fn is_host_and_port(text: &str) -> bool {
    let Ok(url) = Url::parse(&format!("ws://{}", text.trim())) else {
        return false;
    };
    let has_port = text
        .trim()
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
    has_port && url.path() == "/" && url.username().is_empty() && url.query().is_none() && url.fragment().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_store_has_a_known_scheme() {
        for text in [
            "redis://a",
            "rediss://u:p@a:1/2",
            "valkey://a",
            "redis+cluster://a,b",
            "file:/shared",
            "FILE:/x",
        ] {
            assert!(is_store_address(text), "{text}");
        }
        for text in ["", "a", "memory", "http://a", "postgres://a"] {
            assert!(!is_store_address(text), "{text}");
        }
    }

    #[test]
    fn the_password_of_a_store_is_a_secret_however_it_is_written() {
        let secrets = |text: &str| -> Vec<String> {
            let secrets = secrets_of(&Secret::from(text.to_owned()));
            secrets.iter().map(|secret| secret.expose().to_owned()).collect()
        };
        assert_eq!(
            secrets("redis://ada:a%40b@h:1/0?prefix=x"),
            ["redis://ada:a%40b@h:1/0?prefix=x", "a%40b", "a@b"]
        );
        assert_eq!(secrets("redis://:pw@h"), ["redis://:pw@h", "pw"]);
        let sentinel = "redis+sentinel://a,b/m?prefix=x&sentinel-password=s%20t";
        assert_eq!(secrets(sentinel), [sentinel, "s%20t", "s t"]);
        for text in ["redis://h", "redis://ada@h", "file:/a:b@c"] {
            assert_eq!(secrets(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn an_address_of_a_replica_is_a_host_and_a_port() {
        for (text, is_one) in [
            ("a:1", true),
            ("[::1]:80", true),
            ("a", false),
            ("a:0", false),
            ("a:1/x", false),
            ("http://a:1", false),
        ] {
            assert_eq!(is_host_and_port(text), is_one, "{text}");
        }
    }
}
