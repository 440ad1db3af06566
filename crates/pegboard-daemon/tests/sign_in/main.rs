//! People sign in on the pages of a gateway, in browsers with cookies of their own, at an authorization server on this machine.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

mod browser;
mod canary;
mod client;
mod elicitation;
mod fixture;
mod flows;
mod hostile;
mod readiness;
mod rights;
mod sign_in_tools;
