//! The registry of a board: every live server, whether shared by all views, owned by one view, or draining its last calls.
//!
//! The servers that only the views of one principal use are registered with that principal. They outlive its last view for a while, so that a
//! view per request does not reconnect them.
//!
//! A session-scoped server is registered as a *spare*: the next view takes it over with the session that it may have, and a new spare
//! replaces it. Status, readiness, drain, shutdown and every run-time command go through this registry, so none of them can miss a server.

mod board_registry;
mod principal_views;
mod principals;
mod replacement;
mod views;

pub(crate) use board_registry::Registry;
pub(super) use views::OpenedView;
