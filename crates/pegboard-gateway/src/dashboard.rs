//! The browsers that have signed in to the dashboard of a gateway: their sessions, the cookie that identifies one, and one-time links.
//!
//! The pages themselves are served by the router of [`GatewayBuilder::fallback`](crate::GatewayBuilder::fallback).

mod cookie;
mod session;
mod sessions;
mod tables;

pub use session::{BrowserSession, NoSession};
pub use sessions::BrowserSessions;
