//! The routes of the API.

use std::sync::Arc;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{get, post, put},
};
use http::StatusCode;

use super::{
    calls, change_records, events, listings, openapi, problem::Problem, reloading, server_changes as changes, servers,
    sign_in, sign_ins, state::ApiState,
};

/// The router of the API.
pub(crate) fn router(api: Arc<ApiState>) -> Router {
    let changes = Router::new()
        .route("/api/v1/mcp/servers/{name}", put(changes::put).delete(changes::delete))
        .route("/api/v1/mcp/servers/{name}/reconnect", post(changes::reconnect))
        .route("/api/v1/mcp/servers/{name}/enable", post(changes::enable))
        .route("/api/v1/mcp/servers/{name}/disable", post(changes::disable))
        .route("/api/v1/mcp/servers/{name}/refresh", post(changes::refresh))
        .route("/api/v1/mcp/reload", post(reloading::reload))
        .route_layer(from_fn_with_state(api.clone(), change_records::record));
    Router::new()
        .route("/api/v1/mcp/servers", get(servers::all))
        .route("/api/v1/mcp/servers/{name}", get(servers::one))
        .route("/api/v1/mcp/servers/{name}/signin", post(sign_in::to_server))
        .route("/api/v1/mcp/signin", post(sign_in::to_list))
        .route("/api/v1/mcp/sign-ins", get(sign_ins::all))
        .route("/api/v1/mcp/tools", get(listings::tools))
        .route("/api/v1/mcp/tools/{server}/{tool}", post(calls::call_tool))
        .route("/api/v1/mcp/resources", get(listings::resources))
        .route("/api/v1/mcp/prompts", get(listings::prompts))
        .route("/api/v1/mcp/call", post(calls::call))
        .route("/api/v1/mcp/warnings", get(servers::warnings))
        .route("/api/v1/mcp/events", get(events::events))
        .route("/openapi.json", get(openapi::openapi))
        .merge(changes)
        .with_state(api)
}

/// The response to a method that a path does not have. The router adds the header `Allow`.
pub(crate) async fn wrong_method() -> Problem {
    let detail = "the path does not have this method; the header `Allow` says which it has";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

/// The response to a path that does not exist.
pub(crate) async fn unknown_path() -> Problem {
    let problem = Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path");
    problem.hint("MCP is served at /mcp, the API at /api/v1/mcp, and /openapi.json describes it")
}
