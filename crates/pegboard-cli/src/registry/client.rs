//! The registry's API over HTTP.

use std::{fmt, sync::Arc, time::Duration};

use rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider};
use serde_json::Value;
use url::{Host, Url};

use super::entry::RegistryEntry;

/// The registry of the MCP project.
pub(crate) const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// How long a page may take.
const PAGE_TIME: Duration = Duration::from_secs(20);
/// How long opening a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The longest page. One of 100 entries is about 300 KB.
const MAX_PAGE: usize = 16 << 20;
/// How many entries a page has. The API allows no more.
const PAGE: usize = 100;
/// The most characters of an error message of the registry that are shown.
const SHOWN: usize = 300;

/// A registry at an address.
#[derive(Debug)]
pub(crate) struct Registry {
    base: Url,
    client: reqwest::Client,
}

/// One page of the list of servers.
#[derive(Debug, Default)]
pub(crate) struct RegistryPage {
    pub(crate) entries: Vec<RegistryEntry>,
    /// Where the next page begins.
    pub(crate) next: Option<String>,
    /// How many entries could not be read.
    pub(crate) unreadable: usize,
}

/// Why a registry cannot be used.
#[derive(Debug)]
pub(crate) enum RegistryError {
    /// The address cannot be one of a registry.
    Address(String),
    /// The registry cannot be reached, or does not answer as a registry does.
    Failed(String),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(message) | Self::Failed(message) => f.write_str(message),
        }
    }
}

impl Registry {
    /// The registry at an address. What it lists is run, so the connection must be encrypted, except on this machine.
    pub(crate) fn at(address: &str) -> Result<Self, RegistryError> {
        let base = Url::parse(address)
            .ok()
            .filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
            .ok_or_else(|| RegistryError::Address(format!("`{address}` is not an http or https address")))?;
        let is_local = is_loopback(&base);
        if base.scheme() == "http" && !is_local {
            let message = format!("`{address}` is not encrypted: anyone on the way could change what is installed");
            return Err(RegistryError::Address(message));
        }
        let mut builder = reqwest::Client::builder();
        if is_local {
            // A proxy on another machine cannot reach this machine's loopback address.
            builder = builder.no_proxy();
        }
        let client = builder
            .tls_backend_preconfigured(tls()?)
            .connect_timeout(CONNECT_TIME)
            .timeout(PAGE_TIME)
            .redirect(reqwest::redirect::Policy::limited(3))
            .https_only(!is_local)
            .user_agent(concat!("pegboard/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| RegistryError::Failed(with_causes(&error)))?;
        Ok(Self { base, client })
    }

    /// The address, without a password in it.
    pub(crate) fn address(&self) -> String {
        let mut url = self.base.clone();
        if url.password().is_some() {
            let _ = url.set_password(Some("***"));
        }
        url.as_str().trim_end_matches('/').to_owned()
    }

    /// A page of the newest versions of the servers whose names contain `word`.
    pub(crate) async fn search(&self, word: &str, cursor: Option<&str>) -> Result<RegistryPage, RegistryError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/v0.1/servers", self.base.path().trim_end_matches('/')));
        {
            let mut query = url.query_pairs_mut();
            query.clear();
            query.append_pair("search", word).append_pair("version", "latest");
            query.append_pair("limit", &PAGE.to_string());
            if let Some(cursor) = cursor {
                query.append_pair("cursor", cursor);
            }
        }
        page(&self.get(url).await?).ok_or_else(|| {
            RegistryError::Failed(format!(
                "{} does not answer as a registry of MCP servers does",
                self.address()
            ))
        })
    }

    async fn get(&self, url: Url) -> Result<Value, RegistryError> {
        let unreachable = |error: &dyn std::error::Error| {
            RegistryError::Failed(format!("{} cannot be reached: {}", self.address(), with_causes(error)))
        };
        let request = self.client.get(url).header("accept", "application/json");
        let mut response = request
            .send()
            .await
            .map_err(|error| unreachable(&error.without_url()))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| unreachable(&error.without_url()))?
        {
            if body.len() + chunk.len() > MAX_PAGE {
                let message = format!("{} sent more than {MAX_PAGE} bytes", self.address());
                return Err(RegistryError::Failed(message));
            }
            body.extend_from_slice(&chunk);
        }
        let document: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(document);
        }
        let detail = ["detail", "error", "title"]
            .iter()
            .find_map(|field| document.get(field)?.as_str())
            .map(|text| format!(": {}", text.chars().take(SHOWN).collect::<String>()));
        let message = format!(
            "{} answers with HTTP {status}{}",
            self.address(),
            detail.unwrap_or_default()
        );
        Err(RegistryError::Failed(message))
    }
}

/// Reads a page. One bad entry does not cost the others.
fn page(document: &Value) -> Option<RegistryPage> {
    let servers = document.get("servers")?.as_array()?;
    let entries: Vec<RegistryEntry> = servers.iter().filter_map(RegistryEntry::read).collect();
    let next = document.pointer("/metadata/nextCursor").and_then(Value::as_str);
    Some(RegistryPage {
        unreadable: servers.len() - entries.len(),
        entries,
        next: next.filter(|next| !next.is_empty()).map(str::to_owned),
    })
}

fn tls() -> Result<ClientConfig, RegistryError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| RegistryError::Failed(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// An error with the errors below it. The HTTP client's own message alone says too little.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_be_run_is_not_looked_up_over_an_open_network() {
        for (address, is_taken) in [
            ("https://registry.example.com", true),
            ("http://127.0.0.1:8080/api", true),
            ("http://localhost", true),
            ("http://registry.example.com", false),
            ("ftp://registry.example.com", false),
            ("registry.example.com", false),
        ] {
            assert_eq!(Registry::at(address).is_ok(), is_taken, "{address}");
        }
    }

    #[test]
    fn the_last_page_names_no_next_one() {
        for (metadata, next) in [
            (r#"{"nextCursor": "a:1"}"#, Some("a:1")),
            (r#"{"nextCursor": ""}"#, None),
            (r#"{"nextCursor": null}"#, None),
            ("{}", None),
        ] {
            let text = format!(r#"{{"servers": [{{}}], "metadata": {metadata}}}"#);
            let page = page(&serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!((page.next.as_deref(), page.unreadable), (next, 1), "{metadata}");
        }
        assert!(page(&Value::Null).is_none());
    }
}
