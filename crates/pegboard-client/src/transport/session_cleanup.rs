//! The request that tells a server that the session of an agent has ended.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, header::AUTHORIZATION};
use pegboard_http::Target;
use url::{Origin, Url};

use super::{connection_credentials::ConnectionCredentials, http_client::HttpClient, request_headers};
use pegboard_config::{Endpoint, Limits, SafeUrl, Tls};
use pegboard_mask::ServerMasker;

/// How long the request may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Sends a DELETE request to the `session_cleanup_url` of an endpoint, if it has one. Headers and credentials of the server go along only if the
/// URL has the origin of the server.
pub async fn clean_up_session(
    endpoint: &Endpoint,
    limits: &Limits,
    credentials: Option<ConnectionCredentials>,
    masker: &ServerMasker,
) -> Result<(), String> {
    let Some(url) = &endpoint.session_cleanup_url else {
        return Ok(());
    };
    let sending = async {
        let client = match origin(url.expose()) == origin(endpoint.url.expose()) {
            true => HttpClient::new(endpoint, limits, credentials).await,
            false => HttpClient::new(&stranger(url, &endpoint.tls), limits, None).await,
        };
        let client = client.map_err(|error| error.to_string())?;
        let mut url = url.expose().clone();
        let mut headers = HeaderMap::new();
        if let Some(basic) = request_headers::take_userinfo(&mut url) {
            headers.insert(AUTHORIZATION, basic);
        }
        let target = Arc::new(Target::new(url).map_err(|error| error.to_string())?);
        let response = client.delete(&target, headers).await;
        let response = response.map_err(|failure| failure.message)?;
        match response.status().as_u16() {
            200..=299 | 404 => Ok(()),
            status => Err(format!("the server answered with HTTP {status}")),
        }
    };
    let sent = tokio::time::timeout(TIMEOUT, sending).await;
    let sent = sent.unwrap_or_else(|_| Err(format!("the server did not answer within {} s", TIMEOUT.as_secs())));
    sent.map_err(|mut text| {
        masker.hide(&mut text);
        text
    })
}

/// Another origin, which gets nothing of the server's settings but the authorities to trust.
fn stranger(url: &SafeUrl, tls: &Tls) -> Endpoint {
    let mut endpoint = Endpoint::from(url.clone());
    endpoint.tls.ca.clone_from(&tls.ca);
    endpoint
}

/// The origin of a URL. WebSockets have the origin of HTTP.
fn origin(url: &Url) -> Origin {
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return url.origin(),
    };
    // The URL standard does not let the scheme be set in place.
    let rest = url.as_str().split_once(':').map_or("", |(_, rest)| rest);
    Url::parse(&format!("{scheme}:{rest}")).map_or_else(|_| url.origin(), |url| url.origin())
}
