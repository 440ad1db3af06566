//! The registry's API over HTTP.

use std::{fmt, sync::Arc, time::Duration};

use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, LOCATION},
};
use pegboard_http::{Client, Response, Settings, Target, is_this_machine};
use rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider};
use serde_json::Value;
use url::Url;

use super::entry::RegistryEntry;

/// The registry of the MCP project.
pub(crate) const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// How long a page may take.
const PAGE_TIME: Duration = Duration::from_secs(20);
/// How long opening a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The longest page. One of 100 entries is about 300 KB.
const MAX_PAGE: usize = 16 << 20;
/// How many redirects are followed.
const MAX_REDIRECTS: usize = 3;
/// How many entries a page has. The API allows no more.
const PAGE: usize = 100;
/// The most characters of an error message of the registry that are shown.
const SHOWN: usize = 300;

/// A registry at an address.
#[derive(Debug)]
pub(crate) struct Registry {
    base: Url,
    tls: ClientConfig,
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
        if base.scheme() == "http" && !is_this_machine(&base) {
            let message = format!("`{address}` is not encrypted: anyone on the way could change what is installed");
            return Err(RegistryError::Address(message));
        }
        Ok(Self { base, tls: tls()? })
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
        let late = || self.unreachable(&format!("there was no answer within {} s", PAGE_TIME.as_secs()));
        let reading = tokio::time::timeout(PAGE_TIME, self.read(url));
        reading.await.unwrap_or_else(|_| Err(late()))
    }

    async fn read(&self, url: Url) -> Result<Value, RegistryError> {
        let mut response = self.follow(url).await?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.unreachable(&with_causes(&error)))?
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

    /// Sends a GET request, and follows redirects that stay encrypted or on this machine.
    async fn follow(&self, url: Url) -> Result<Response, RegistryError> {
        let mut target = Target::new(url).map_err(|error| self.unreachable(&error.to_string()))?;
        for _ in 0..=MAX_REDIRECTS {
            let settings = Settings {
                connect_timeout: CONNECT_TIME,
                ..Settings::new(self.tls.clone())
            };
            let (client, asked) = (Client::new(&target, settings), Arc::new(target));
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            let sent = client.send(Method::GET, &asked, headers, Vec::new());
            let response = sent.await.map_err(|error| self.unreachable(&with_causes(&error)))?;
            let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let Some(to) = location.filter(|_| response.status().is_redirection()) else {
                return Ok(response);
            };
            let next = asked.redirect(to);
            target = next.map_err(|_| self.unreachable("it redirects to what is no address"))?;
            let url = target.url();
            let is_safe = url.scheme() == "https" || is_this_machine(url) && is_this_machine(&self.base);
            if !is_safe {
                return Err(self.unreachable("it redirects to an address that is not encrypted"));
            }
        }
        Err(self.unreachable("it redirects too often"))
    }

    fn unreachable(&self, why: &str) -> RegistryError {
        RegistryError::Failed(format!("{} cannot be reached: {why}", self.address()))
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
