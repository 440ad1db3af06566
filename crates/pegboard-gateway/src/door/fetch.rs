//! [`Fetcher`]: requests to authorization servers that the config names. Certificates are verified, no redirect is followed, and time and
//! size have limits.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE},
};
use pegboard_base::sync::Mutex;
use pegboard_http::{Client, Settings, Target};
use serde_json::Value;
use url::{Host, Origin, Url};

use crate::cryptography;

/// The limit on one fetch, however many requests it takes.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The limit on metadata and keys.
pub(super) const MAX_DOCUMENT: usize = 1024 * 1024;
/// The limit on the time to connect.
const CONNECT: Duration = Duration::from_secs(5);

/// How many origins a server is known to have at once: of its metadata, of its keys, and of each after a change.
const MAX_CLIENTS: usize = 4;

/// Sends requests to one authorization server. Clones share their connections.
#[derive(Clone, Debug)]
pub(super) struct Fetcher {
    /// Whether the server is on this machine, so that http and other addresses of this machine are allowed.
    is_local: bool,
    clients: Arc<Mutex<Vec<(Origin, Client)>>>,
}

/// A document, and how long it may be cached.
pub(super) struct FetchedDocument {
    pub(super) json: Value,
    pub(super) max_age: Option<Duration>,
}

/// Why a document cannot be fetched. The texts have nothing of the response.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("its URL is not on https")]
    Address,
    #[error("it does not answer in time")]
    Timeout,
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it answers with status {0}")]
    Status(u16),
    #[error("its answer is longer than {0} bytes")]
    TooLong(usize),
    #[error("its answer is no JSON object")]
    NotJson,
    #[error("{0}")]
    Content(&'static str),
}

impl Fetcher {
    /// A client for an authorization server. If it is on this machine, http will do.
    pub(super) fn for_server_at(url: &str) -> Self {
        Self {
            is_local: Url::parse(url).is_ok_and(|url| is_local(&url)),
            clients: Arc::default(),
        }
    }

    /// Fetches a document.
    pub(super) async fn get(&self, url: &Url, limit: usize) -> Result<FetchedDocument, FetchError> {
        self.check(url)?;
        self.send(Method::GET, url, HeaderMap::new(), Bytes::new(), limit).await
    }

    /// Posts a form, with the credentials of the gateway.
    pub(super) async fn post(
        &self,
        url: &Url,
        (id, secret): (&str, &str),
        form: &[(&str, &str)],
        limit: usize,
    ) -> Result<FetchedDocument, FetchError> {
        self.check(url)?;
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
        let mut authorization = HeaderValue::try_from(format!("Basic {pair}"))
            .map_err(|_| FetchError::Content("its credentials cannot be sent in a header"))?;
        authorization.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, authorization);
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        self.send(Method::POST, url, headers, body.into(), limit).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
        limit: usize,
    ) -> Result<FetchedDocument, FetchError> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let target = Target::new(url.clone()).map_err(|error| FetchError::Unreachable(error.to_string()))?;
        let exchange = async {
            let client = self.client(&target).await?;
            let sent = client.send(method, &Arc::new(target), headers, body).await;
            let mut response = sent.map_err(|error| transport_error(&error))?;
            if !response.status().is_success() {
                return Err(FetchError::Status(response.status().as_u16()));
            }
            let max_age = response
                .headers()
                .get(CACHE_CONTROL)
                .and_then(|value| max_age(value.to_str().ok()?));
            let mut body = BytesMut::new();
            while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(&error))? {
                if body.len() + chunk.len() > limit {
                    return Err(FetchError::TooLong(limit));
                }
                body.extend_from_slice(&chunk);
            }
            let json: Value = serde_json::from_slice(&body).map_err(|_| FetchError::NotJson)?;
            match json.is_object() {
                true => Ok(FetchedDocument { json, max_age }),
                false => Err(FetchError::NotJson),
            }
        };
        tokio::time::timeout(TIME_LIMIT, exchange)
            .await
            .unwrap_or(Err(FetchError::Timeout))
    }

    /// The client for the origin of a target, which keeps its connections.
    async fn client(&self, target: &Target) -> Result<Client, FetchError> {
        let origin = target.url().origin();
        let known = |clients: &[(Origin, Client)]| {
            let known = clients.iter().find(|(known, _)| *known == origin);
            known.map(|(_, client)| client.clone())
        };
        if let Some(client) = known(&self.clients.lock()) {
            return Ok(client);
        }
        let client = new_client(target).await?;
        let mut clients = self.clients.lock();
        if let Some(client) = known(&clients) {
            return Ok(client);
        }
        if clients.len() == MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((origin, client.clone()));
        Ok(client)
    }

    /// Refuses what is not encrypted, and addresses of this machine that a server elsewhere names.
    fn check(&self, url: &Url) -> Result<(), FetchError> {
        let is_allowed = match (url.scheme(), is_local(url)) {
            ("https", false) => true,
            ("https" | "http", true) => self.is_local,
            _ => false,
        };
        is_allowed.then_some(()).ok_or(FetchError::Address)
    }
}

/// A client that loads the system's certificates on a thread that may block.
async fn new_client(target: &Target) -> Result<Client, FetchError> {
    let loaded = tokio::task::spawn_blocking(tls).await;
    let tls = loaded.map_err(|_| FetchError::Content("the gateway stops"))??;
    let settings = Settings {
        connect_timeout: CONNECT,
        ..Settings::new(tls)
    };
    Ok(Client::new(target, settings))
}

fn tls() -> Result<rustls::ClientConfig, FetchError> {
    static ROOTS: OnceLock<Arc<rustls::RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    let tls = rustls::ClientConfig::builder_with_provider(cryptography::provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| FetchError::Unreachable(error.to_string()))?;
    Ok(tls.with_root_certificates(roots.clone()).with_no_client_auth())
}

/// Returns `true` if the host of a URL is this machine.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost") || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback() || ip.is_unspecified(),
        None => false,
    }
}

/// How long a response may be cached, by its `Cache-Control`.
fn max_age(value: &str) -> Option<Duration> {
    let mut directives = value.split(',').map(|directive| directive.trim().to_ascii_lowercase());
    directives.find_map(|directive| match directive.strip_prefix("max-age=") {
        Some(seconds) => seconds.trim_matches('"').parse().ok().map(Duration::from_secs),
        None => matches!(&*directive, "no-store" | "no-cache").then_some(Duration::ZERO),
    })
}

/// What went wrong below HTTP, without the URL, which says nothing new.
fn transport_error(error: &pegboard_http::Error) -> FetchError {
    struct Causes<'a>(&'a (dyn std::error::Error + 'static));
    impl fmt::Display for Causes<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mut cause = self.0.source();
            let mut is_first = true;
            while let Some(error) = cause {
                let colon = if is_first { "" } else { ": " };
                write!(f, "{colon}{error}")?;
                (cause, is_first) = (error.source(), false);
            }
            Ok(())
        }
    }
    match error.is_timeout() {
        true => FetchError::Timeout,
        false => FetchError::Unreachable(Causes(error).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_is_fetched_and_http_on_this_machine_for_a_server_there() {
        let check = |server: &str, url: &str| Fetcher::for_server_at(server).check(&Url::parse(url).unwrap()).is_ok();
        for (url, from_outside, from_here) in [
            ("https://login.example.com/keys", true, true),
            ("http://login.example.com/keys", false, false),
            ("http://10.0.0.1/keys", false, false),
            ("http://127.0.0.1:8080/keys", false, true),
            ("http://localhost/keys", false, true),
            ("http://[::1]/keys", false, true),
            ("https://[::ffff:127.0.0.1]/keys", false, true),
            ("https://0.0.0.0/keys", false, true),
            ("https://a.localhost/keys", false, true),
            ("file:///etc/passwd", false, false),
            ("ftp://login.example.com", false, false),
        ] {
            assert_eq!(check("https://login.example.com", url), from_outside, "{url}");
            assert_eq!(check("http://127.0.0.1:9000/realm", url), from_here, "{url}");
        }
    }

    #[test]
    fn the_age_of_a_response_is_read() {
        for (value, seconds) in [
            ("max-age=300", Some(300)),
            ("public, Max-Age=60, must-revalidate", Some(60)),
            ("no-store", Some(0)),
            ("public", None),
            ("max-age=soon", None),
        ] {
            assert_eq!(max_age(value), seconds.map(Duration::from_secs), "{value}");
        }
    }
}
