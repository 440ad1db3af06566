//! Whether the gateway that a host is to connect to answers, and whether it wants a token.

use pegboard::url::Url;

use crate::{commands::health, output::clean};

/// What a person must know about the gateway at this URL, if anything: the host would only say that it cannot connect.
pub(super) async fn warn(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let shown = clean(url.as_str());
    match health::status_of(&url).await {
        Ok(401) => Some(format!(
            "the gateway at {shown} wants a token, and the entry has none: add the header `Authorization: Bearer TOKEN` to the entry of the host, by a \
             variable if the host supports that; `pegboard token new NAME` makes a token"
        )),
        Ok(404) => Some(format!(
            "the server at {shown} has nothing at this path: the paths of `pegboard serve` are /mcp, /mcp/SERVER and /mcp/view/NAME"
        )),
        Ok(_) => None,
        Err(error) => Some(format!(
            "nothing answers at {shown} now: {error}; start `pegboard serve`, or correct the URL"
        )),
    }
}
