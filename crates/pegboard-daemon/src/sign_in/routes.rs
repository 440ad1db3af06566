//! The routes of the pages.

use std::sync::Arc;

use axum::{Router, routing::get};
use pegboard_gateway::SignInLinks;

use super::{handlers, site::SignInSite};
use crate::api::ApiState;

/// The router of the pages.
pub(crate) fn router(api: Arc<ApiState>, links: SignInLinks) -> Router {
    let board = api.board().clone();
    links.serve(move |server| board.takes_sign_in(server.as_str()));
    Router::new()
        .route("/signin", get(handlers::list))
        .route("/signin/server/{name}", get(handlers::server).post(handlers::submit))
        .route("/signin/callback", get(handlers::callback))
        .with_state(Arc::new(SignInSite::new(api, links)))
}
