//! What a daemon serves besides MCP: the HTTP API, the sign-in pages, metrics and health of its board.
//!
//! A [`Daemon`] is a router to pass to [`GatewayBuilder::fallback`](pegboard_gateway::GatewayBuilder::fallback), so the checks of the gateway
//! stand before every route.

mod access;
mod api;
mod daemon;
mod health;
mod metrics;
mod overview;
mod reloads;
mod sign_in;
mod sign_in_waits;

pub use api::{ApiReply, LocalApi, ResolvedServer, ServerSettings, StatusDocument, UnresolvedServer, WarningDocument};
pub use daemon::Daemon;
pub use metrics::board_metrics;
pub use reloads::{
    ChangePermit, FailedReload, ReloadError, ReloadNote, ReloadRequest, ReloadRequests, ReloadState, Reloads,
};
