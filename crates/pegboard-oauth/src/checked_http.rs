//! HTTP requests to URLs that servers name. Each URL is checked, its host is resolved once, and the request goes to the resolved address.
//!
//! A server can name any URL in its metadata. Without these checks it could make this program send requests to services of this machine or of
//! a private network, or have a token sent to another origin than the one it was made for.

mod resolver;
mod trust;

pub(super) use resolver::{Resolver, SystemResolver};
pub(super) use trust::ConfiguredOrigins;
use trust::Verdict;

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE},
};
use url::Url;

use super::{address_class::AddressClass, dpop::DpopKey};
use pegboard_base::hint::Hint;
use pegboard_client::{
    credential::PROOF_HEADER,
    transport::{failure_text, plain_client, prepare},
};
use pegboard_http::{Body, Target};

/// How long one request may take, from resolving the host to the end of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for requests that change something, such as a refresh: one that is given up too early may cost the session.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest response.
const MAX_BODY: usize = 1 << 20;
/// The most redirects of a request, all within its origin.
const MAX_REDIRECTS: usize = 3;
/// The longest URL.
const MAX_URL: usize = 8 << 10;

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Makes checked requests.
pub(super) struct CheckedHttp {
    resolver: Arc<dyn Resolver>,
    /// Whether requests may go through a proxy of the system, which then resolves names.
    has_proxy: bool,
    /// The servers that tests reach at private addresses.
    #[cfg(test)]
    reached: Option<Vec<String>>,
}

/// A response: its status and body. Other parts are not used.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) challenge: Option<String>,
    /// Whether another proof may be accepted, if it was the proof that was refused.
    pub(super) may_take_other_proof: bool,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the server may answer otherwise a little later.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self.status, 408 | 425 | 429 | 500..=599)
    }
}

/// What is sent.
enum Message<'a> {
    Get,
    Probe {
        body: Vec<u8>,
    },
    Post {
        body: Vec<u8>,
        content_type: &'static str,
        authorization: Option<HeaderValue>,
        proof_key: Option<&'a DpopKey>,
    },
}

impl CheckedHttp {
    pub(super) fn new() -> Self {
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        Self {
            resolver: Arc::new(SystemResolver),
            has_proxy: names.iter().any(is_set),
            #[cfg(test)]
            reached: None,
        }
    }

    #[cfg(test)]
    pub(super) fn with_resolver(resolver: Arc<dyn Resolver>) -> Self {
        Self {
            resolver,
            has_proxy: false,
            reached: None,
        }
    }

    pub(super) async fn get(&self, trust: &ConfiguredOrigins<'_>, url: &Url) -> Result<Response, HttpError> {
        self.request(trust, url, &Message::Get).await
    }

    /// Posts a form. `authorization` is sent to this URL's origin only, like everything else.
    pub(super) async fn post_form(
        &self,
        trust: &ConfiguredOrigins<'_>,
        url: &Url,
        form: &[(&str, &str)],
        authorization: Option<HeaderValue>,
    ) -> Result<Response, HttpError> {
        self.post_proven(trust, url, form, authorization, None).await
    }

    /// Posts a form like [`post_form`](Self::post_form), with a proof that this program has a key.
    pub(super) async fn post_proven(
        &self,
        trust: &ConfiguredOrigins<'_>,
        url: &Url,
        form: &[(&str, &str)],
        authorization: Option<HeaderValue>,
        proof_key: Option<&DpopKey>,
    ) -> Result<Response, HttpError> {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let message = Message::Post {
            body: body.into_bytes(),
            content_type: "application/x-www-form-urlencoded",
            authorization,
            proof_key,
        };
        self.request(trust, url, &message).await
    }

    pub(super) async fn post_json(
        &self,
        trust: &ConfiguredOrigins<'_>,
        url: &Url,
        body: Vec<u8>,
    ) -> Result<Response, HttpError> {
        let message = Message::Post {
            body,
            content_type: "application/json",
            authorization: None,
            proof_key: None,
        };
        self.request(trust, url, &message).await
    }

    /// Sends a server a ping without a token, and returns only the status and the challenge: the body may be an endless stream.
    pub(super) async fn probe(&self, trust: &ConfiguredOrigins<'_>, url: &Url) -> Result<Response, HttpError> {
        let body = PING.to_vec();
        self.request(trust, url, &Message::Probe { body }).await
    }

    async fn request(
        &self,
        trust: &ConfiguredOrigins<'_>,
        url: &Url,
        message: &Message<'_>,
    ) -> Result<Response, HttpError> {
        let limit = match message {
            Message::Get | Message::Probe { .. } => REQUEST_TIMEOUT,
            Message::Post { .. } => CHANGE_TIMEOUT,
        };
        // Boxed, because many futures contain this one.
        match tokio::time::timeout(limit, Box::pin(self.follow(trust, url, message))).await {
            Ok(result) => result,
            Err(_) => Err(HttpError::failed(
                url,
                format!("there was no answer within {} s", limit.as_secs()),
            )),
        }
    }

    /// Sends a request, and sends it again after a redirect within its origin.
    async fn follow(
        &self,
        trust: &ConfiguredOrigins<'_>,
        url: &Url,
        message: &Message<'_>,
    ) -> Result<Response, HttpError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let addresses = self.check(trust, &url).await?;
            let response = send(trust, &url, addresses, message).await?;
            let status = response.status().as_u16();
            let is_redirect = match message {
                Message::Get => matches!(status, 301 | 302 | 303 | 307 | 308),
                Message::Post { .. } | Message::Probe { .. } => matches!(status, 307 | 308),
            };
            if !is_redirect {
                let learned = match message {
                    Message::Probe { .. } => return Ok(without_body(&response)),
                    Message::Post {
                        proof_key: Some(key), ..
                    } => key.learn(&url, response.status(), response.headers()),
                    Message::Get | Message::Post { .. } => false,
                };
                let response = read(&url, response).await?;
                return Ok(Response {
                    may_take_other_proof: learned,
                    ..response
                });
            }
            url = redirect(&url, response.headers())?;
        }
        Err(HttpError::refused(&url, "it redirects too often"))
    }

    /// Checks a URL and returns the addresses that may be connected to; `None` if a proxy has to find them.
    async fn check(&self, trust: &ConfiguredOrigins<'_>, url: &Url) -> Result<Option<Vec<SocketAddr>>, HttpError> {
        let refused = |why: &str| Err(HttpError::refused(url, why));
        if url.as_str().len() > MAX_URL {
            return refused("it is too long");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("it contains a user name");
        }
        trust.check_scheme(url).map_err(|why| HttpError::refused(url, why))?;
        let Some(port) = url.port_or_known_default() else {
            return refused("it has no port");
        };
        let addresses = match resolver::addresses_of(&*self.resolver, url).await {
            Ok(addresses) => addresses,
            // Only the proxy knows the address, so that nobody can check it.
            Err(_) if self.has_proxy && trust.is_named(url) => return Ok(None),
            Err(_) if self.has_proxy => return Err(HttpError::unchecked(url)),
            Err(error) => {
                return Err(HttpError::failed(url, format!("its host cannot be resolved: {error}")));
            }
        };
        for address in &addresses {
            let verdict = trust.check_address(url, *address);
            let verdict = verdict.map_err(|why| HttpError::refused(url, why))?;
            if verdict == Verdict::IfServerIsPrivate && !self.server_is_private(trust).await {
                return refused("it is a private network, and the server is not known to be there");
            }
        }
        Ok(Some(
            addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, port))
                .collect(),
        ))
    }
}

impl CheckedHttp {
    /// Whether the server is on a private network: its certificate is at a private address. What its name resolves to proves nothing, because
    /// whoever owns the name can answer with any address.
    async fn server_is_private(&self, trust: &ConfiguredOrigins<'_>) -> bool {
        let proof = async {
            let server = trust.server();
            let port = server.port_or_known_default().unwrap_or(443);
            // A proxy has the address that is connected to, and without TLS any host could be the server.
            if self.has_proxy || server.scheme() != "https" {
                return false;
            }
            let addresses = resolver::addresses_of(&*self.resolver, server)
                .await
                .unwrap_or_default();
            let is_private = |address: &IpAddr| AddressClass::classify(*address) == AddressClass::Private;
            if addresses.is_empty() || !addresses.iter().all(is_private) {
                return false;
            }
            #[cfg(test)]
            if let Some(reached) = &self.reached {
                return reached.iter().any(|name| Some(name.as_str()) == server.host_str());
            }
            let addresses: Vec<SocketAddr> = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, port))
                .collect();
            let ping = Message::Probe { body: PING.to_vec() };
            send(trust, server, Some(addresses), &ping).await.is_ok()
        };
        *trust.is_private().get_or_init(|| proof).await
    }
}

impl fmt::Debug for CheckedHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedHttp").finish_non_exhaustive()
    }
}

async fn send(
    trust: &ConfiguredOrigins<'_>,
    url: &Url,
    addresses: Option<Vec<SocketAddr>>,
    message: &Message<'_>,
) -> Result<pegboard_http::Response, HttpError> {
    prepare(url).await;
    let failed = |why: String| HttpError::failed(url, why);
    let target = Target::new(url.clone()).map_err(|error| failed(error.to_string()))?;
    let client = plain_client(&target, &trust.tls(url), REQUEST_TIMEOUT, addresses)
        .map_err(|error| failed(error.to_string()))?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let (method, body) = match message {
        Message::Get => (Method::GET, Body::from(Vec::new())),
        Message::Probe { body } => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
            (Method::POST, Body::from(body.clone()))
        }
        Message::Post {
            body,
            content_type,
            authorization,
            proof_key,
        } => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            if let Some(authorization) = authorization {
                let mut authorization = authorization.clone();
                authorization.set_sensitive(true);
                headers.insert(AUTHORIZATION, authorization);
            }
            if let Some(key) = proof_key {
                headers.insert(PROOF_HEADER, key.proof(&Method::POST, url, None).map_err(failed)?);
            }
            (Method::POST, Body::from(body.clone()))
        }
    };
    let sent = client.send(method, &Arc::new(target), headers, body).await;
    sent.map_err(|error| failed(failure_text(&error, url)))
}

fn without_body(response: &pegboard_http::Response) -> Response {
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenges: Vec<&str> = challenges.filter_map(|value| value.to_str().ok()).collect();
    Response {
        status: response.status().as_u16(),
        challenge: (!challenges.is_empty()).then(|| challenges.join(", ")),
        may_take_other_proof: false,
        body: Vec::new(),
    }
}

async fn read(url: &Url, mut response: pegboard_http::Response) -> Result<Response, HttpError> {
    let head = without_body(&response);
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| HttpError::failed(url, failure_text(&error, url)))?
    {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(HttpError::refused(url, "its response is longer than 1 MiB"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { body, ..head })
}

/// The target of a redirect, which must be in the same origin.
fn redirect(url: &Url, headers: &HeaderMap) -> Result<Url, HttpError> {
    let target = headers.get(LOCATION).and_then(|target| target.to_str().ok());
    let Some(target) = target.and_then(|target| url.join(target).ok()) else {
        return Err(HttpError::refused(url, "it redirects to what is no URL"));
    };
    if target.origin() != url.origin() {
        return Err(HttpError::refused(url, "it redirects to another origin"));
    }
    Ok(target)
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The URL, a redirect or the response is refused.
    #[error("{url} is not used for signing in: {why}")]
    Refused { url: String, why: String },
    /// The request could not be made, or its response did not arrive.
    #[error("the request to {url} failed: {why}")]
    Failed { url: String, why: String },
    /// Its address cannot be checked.
    #[error(
        "{url} is not used for signing in: its host cannot be resolved on this machine, and where a proxy would lead is not known"
    )]
    Unchecked { url: String },
}

impl HttpError {
    fn refused(url: &Url, why: impl Into<String>) -> Self {
        Self::Refused {
            url: show(url),
            why: why.into(),
        }
    }

    fn unchecked(url: &Url) -> Self {
        Self::Unchecked { url: show(url) }
    }

    fn failed(url: &Url, why: impl Into<String>) -> Self {
        Self::Failed {
            url: show(url),
            why: why.into(),
        }
    }

    /// Whether the same request may succeed later.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Unchecked { .. })
    }
}

impl Hint for HttpError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Refused { .. } | Self::Unchecked { .. } => Some(
                "if the authorization server is meant to be there, name it in the server's `oauth` settings (`issuer`, `token_url`)"
                    .to_owned(),
            ),
            Self::Failed { .. } => None,
        }
    }
}

/// A URL without its query, which may have secrets, and not longer than a line.
pub(super) fn show(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let mut text = url.to_string();
    text.truncate(text.floor_char_boundary(200));
    text
}

#[cfg(test)]
mod tests;
