//! An HTTP client for requests that are not MCP, such as those to a model's API. It trusts the system's certificates and follows no redirects.

#[cfg(feature = "oauth")]
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::redirect;
use url::Url;

#[cfg(feature = "oauth")]
use super::http_client::after_response;
use super::{connect_error::with_causes, dial_error::DialError, http_client::is_loopback, tls};
use pegboard_config::Tls;

/// Builds a client with a connect timeout. The caller sets all other timeouts.
pub fn plain_client(url: &Url, connect: Duration) -> Result<reqwest::Client, DialError> {
    let mut builder = reqwest::Client::builder();
    if is_loopback(url) {
        // A proxy on another machine cannot reach this machine's loopback address.
        builder = builder.no_proxy();
    }
    builder
        .tls_backend_preconfigured(tls::client_config(&Tls::default())?)
        .connect_timeout(connect)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("pegboard/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| DialError::Setting(with_causes(&error)))
}

/// Loads the TLS roots that a connection to `url` needs, on a blocking thread.
pub async fn prepare(url: &Url) {
    tls::prepare(url).await;
}

/// Builds a client that connects to `addresses` and looks up no name; without them, a proxy of the system has to look it up. The caller sets all
/// other timeouts.
#[cfg(feature = "oauth")]
pub fn pinned_client(
    url: &Url,
    addresses: Option<&[SocketAddr]>,
    tls: &Tls,
    connect: Duration,
) -> Result<reqwest::Client, DialError> {
    let mut builder = reqwest::Client::builder();
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if let (Some(addresses), Some(host)) = (addresses, url.host_str()) {
        builder = builder.resolve_to_addrs(host, addresses);
    }
    builder
        .tls_backend_preconfigured(tls::client_config(tls)?)
        .connect_timeout(connect)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("pegboard/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| DialError::Setting(with_causes(&error)))
}

/// The text of a failed request, without its URL.
#[cfg(feature = "oauth")]
pub fn failure_text(error: reqwest::Error) -> String {
    after_response(error).message
}

/// Whether the host of a URL is this machine, by its name or address.
#[cfg(feature = "oauth")]
pub fn is_this_machine(url: &Url) -> bool {
    is_loopback(url)
}
