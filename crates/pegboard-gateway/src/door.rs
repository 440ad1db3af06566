//! Decides who may send a request: by `Host` and `Origin`, which stop web pages, and by token, which says who the client is.
//!
//! A [`Door`] stands before every route, WebSocket handshakes included. What it knows of a client that it admits is a [`Caller`].

mod caller;
mod rejection;
mod scope;
mod site_check;
mod tokens;

pub use caller::Caller;
pub(crate) use rejection::Rejection;
pub use scope::{Scope, Scopes};
pub(crate) use site_check::{Origin, SiteCheck};
pub use tokens::Token;
pub(crate) use tokens::Tokens;

/// The checks that every request passes before it is routed.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) site: SiteCheck,
    pub(crate) tokens: Tokens,
}
