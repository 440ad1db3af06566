//! People sign in on the pages of a gateway, in browsers with cookies of their own, at an authorization server on this machine.

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
