//! stub
use crate::server::Server;
use axum::Router;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
pub(crate) fn router(_: &Arc<Server>, _: &CancellationToken) -> Router {
    Router::new()
}
