//! An HTTP client for requests that are not MCP, such as those to a model's API. It trusts the system's certificates and follows no redirects.

use std::time::Duration;

use reqwest::redirect;
use url::Url;

use super::{connect_error::with_causes, dial_error::DialError, http_client::is_loopback, tls};
use crate::config::Tls;

/// Builds a client with a connect timeout. The caller sets all other timeouts.
pub(crate) fn plain_client(url: &Url, connect: Duration) -> Result<reqwest::Client, DialError> {
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
pub(crate) async fn prepare(url: &Url) {
    tls::prepare(url).await;
}
