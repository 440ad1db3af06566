//! Compares the clock of this machine with that of a server over HTTP, by the `Date` of its response.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, Method, header::DATE};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use pegboard::{ServerConfig, config::Endpoint};
use pegboard_http::{Client, Settings, Target};

use super::{
    finding::{Finding, ReportSection},
    kinds,
};
use crate::commands::server_tls;

/// The largest difference that is no finding. Certificates and tokens are good for longer.
const TOLERATED: SignedDuration = SignedDuration::from_mins(5);
/// How long a server may take to answer.
const LIMIT: Duration = Duration::from_secs(3);
/// The most servers that are asked. One that answers with a date is enough.
const MAX_ASKED: usize = 3;

/// Adds a finding if the clocks differ. `servers` are those that have answered already.
pub(super) async fn check(section: &mut ReportSection, servers: &[&ServerConfig]) {
    let endpoints = servers.iter().filter_map(|server| server.transport.endpoint());
    let over_http = endpoints.filter(|endpoint| endpoint.url.expose().scheme().starts_with("http"));
    for endpoint in over_http.take(MAX_ASKED) {
        let Some(theirs) = date_of(endpoint).await else {
            continue;
        };
        let host = endpoint.url.expose().host_str().unwrap_or_default();
        if let Some(found) = difference(host, theirs, Timestamp::now()) {
            section.add_finding(Finding::new(&kinds::CLOCK_WRONG, found).fix("sudo timedatectl set-ntp true"));
        }
        return;
    }
}

/// The `Date` of a response to a request without credentials, whatever its status is.
async fn date_of(endpoint: &Endpoint) -> Option<Timestamp> {
    let target = Arc::new(Target::new(endpoint.url.expose().clone()).ok()?);
    let tls = server_tls::client_config(&endpoint.tls).ok()?;
    let client = Client::new(&target, Settings::new(tls));
    let sent = client.send(Method::HEAD, &target, HeaderMap::new(), Vec::new());
    let response = tokio::time::timeout(LIMIT, sent).await.ok()?.ok()?;
    let date = response.headers().get(DATE)?.to_str().ok()?;
    rfc2822::parse(date).ok().map(|date| date.timestamp())
}

/// What is said about two clocks, unless they agree.
fn difference(host: &str, theirs: Timestamp, ours: Timestamp) -> Option<String> {
    let apart = ours.duration_since(theirs);
    if apart.abs() <= TOLERATED {
        return None;
    }
    let how = if apart.is_positive() { "ahead of" } else { "behind" };
    let apart = SignedDuration::from_secs(apart.abs().as_secs());
    Some(format!(
        "the clock of this machine is {apart:#} {how} that of {host}: here it is {}, there {}",
        ours.strftime("%FT%TZ"),
        theirs.strftime("%FT%TZ"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(theirs: &str, ours: &str) -> Option<String> {
        let theirs = rfc2822::parse(theirs).unwrap().timestamp();
        difference("h", theirs, ours.parse().unwrap())
    }

    #[test]
    fn only_clocks_that_differ_by_more_than_five_minutes_are_found() {
        let theirs = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(check(theirs, "1994-11-06T08:54:37Z"), None);
        assert_eq!(check(theirs, "1994-11-06T08:44:37Z"), None);
        assert_eq!(
            check(theirs, "1994-11-06T09:54:38Z").unwrap(),
            "the clock of this machine is 1h 5m 1s ahead of that of h: here it is 1994-11-06T09:54:38Z, there 1994-11-06T08:49:37Z"
        );
        assert!(check(theirs, "1994-11-06T08:44:36Z").unwrap().contains("5m 1s behind"));
    }
}
