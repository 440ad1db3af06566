//! HTTP clients for requests that are not MCP, such as those to a model's API or an authorization server.

use std::{net::SocketAddr, time::Duration};

use pegboard_http::{Client, Settings, Target};
use url::Url;

#[cfg(feature = "oauth")]
use super::http_client::before_response;
use super::{dial_error::DialError, tls};
use pegboard_config::Tls;

/// A client with a connect timeout. The caller sets all other timeouts. With `addresses`, it connects to those and looks up no name.
pub fn plain_client(
    target: &Target,
    tls: &Tls,
    connect: Duration,
    addresses: Option<Vec<SocketAddr>>,
) -> Result<Client, DialError> {
    let settings = Settings {
        connect_timeout: connect,
        addresses,
        ..Settings::new(tls::client_config(tls, target.url())?)
    };
    Ok(Client::new(target, settings))
}

/// Loads the TLS roots that a connection to `url` needs, on a blocking thread.
pub async fn prepare(url: &Url) {
    tls::prepare(url).await;
}

/// The text of a failed request to `url`, without the URL.
#[cfg(feature = "oauth")]
pub fn failure_text(error: &pegboard_http::Error, url: &Url) -> String {
    before_response(error, url).message
}
