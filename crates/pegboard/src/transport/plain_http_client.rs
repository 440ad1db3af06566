//! An HTTP client for requests that are no MCP: to one address, trusting what the system trusts, following no redirect.

use std::time::Duration;

use reqwest::redirect;
use url::Url;

use super::{DialError, http_client::is_loopback, remote::fault::causes, tls};
use crate::config::Tls;

/// A client that waits for a connection no longer than `connect`. Everything else must be bounded by its user.
pub(crate) fn plain_client(url: &Url, connect: Duration) -> Result<reqwest::Client, DialError> {
    let mut builder = reqwest::Client::builder();
    if is_loopback(url) {
        // What listens on this machine is not meant to be reached through another one.
        builder = builder.no_proxy();
    }
    builder
        .tls_backend_preconfigured(tls::client_config(&Tls::default())?)
        .connect_timeout(connect)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("pegboard/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| DialError::Setting(causes(&error)))
}

/// Reads what a connection to `url` needs from the disk, so that no async thread waits for it.
pub(crate) async fn prepare(url: &Url) {
    tls::prepare(url).await;
}
