//! The daemon from the side of its clients: the HTTP API, the fates of calls, and sign-in in browsers.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

mod api;
#[cfg(unix)]
mod call_fates;
#[cfg(unix)]
#[expect(dead_code, reason = "shared with the tests of the gateway")]
#[path = "../../../pegboard-gateway/tests/gateway/http/client.rs"]
mod http_client;
mod sign_in;
