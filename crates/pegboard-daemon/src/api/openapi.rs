//! `GET /openapi.json`: the API as an OpenAPI 3.1 document, with one operation for each tool that the caller sees.

mod components;
mod operations;
mod parts;
mod tool_operations;
mod tool_schema;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use pegboard::{ListedTool, Provider};
use serde_json::{Value, json};

use super::{access::StatusReader, documents::json_bytes, listings::PATIENCE, problem::Problem, state::ApiState};

/// The most tools that have an operation in the document. The others can be called by name.
const MAX_TOOLS: usize = 10_000;

/// `GET /openapi.json`.
pub(super) async fn openapi(
    State(api): State<Arc<ApiState>>,
    StatusReader(caller): StatusReader,
) -> Result<Response, Problem> {
    let mut tools = api.listings(&caller, Provider::Mcp)?.list(PATIENCE).await.tools;
    tools.truncate(MAX_TOOLS);
    let needs_token = api.board.gateway_settings().serve.requires_token();
    let failed = |error: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let _place = api
        .documents
        .acquire()
        .await
        .map_err(|error| failed(error.to_string()))?;
    let written = tokio::task::spawn_blocking(move || document(&tools, needs_token).to_string());
    let written = written.await.map_err(|error| failed(error.to_string()))?;
    Ok(json_bytes(StatusCode::OK, written.into_bytes()))
}

/// The document for these tools. It is the same for the same tools.
fn document(tools: &[ListedTool], needs_token: bool) -> Value {
    let mut schemas = components::schemas();
    let mut paths = operations::paths();
    tool_operations::add(tools, &mut paths, &mut schemas);
    let mut security = vec![json!({"bearer": []})];
    if !needs_token {
        security.push(json!({}));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Pegboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The servers and tools of a board. Every tool that the token sees has an operation of its own.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": security,
        "paths": Value::Object(paths),
        "components": {
            "schemas": Value::Object(schemas),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

#[cfg(test)]
mod tests;
