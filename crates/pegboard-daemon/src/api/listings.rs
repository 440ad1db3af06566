//! `GET tools`, `GET resources` and `GET prompts`: what the caller sees of the servers.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Query, State},
    response::Response,
};
use http::{StatusCode, Uri};
use pegboard::{ListedTool, Provider, State as ServerState, Toolset};
use serde::Deserialize;

use super::{access::StatusReader, documents::json, problem::Problem, state::ApiState};
use crate::sign_in_waits::route_hint;

/// How long a listing waits for servers that are starting.
pub(super) const PATIENCE: Duration = Duration::from_millis(1500);

/// How many tools a search finds at most.
const SEARCHED: usize = 10;

/// Which tools are listed, and how.
#[derive(Debug, Deserialize)]
struct ToolQuery {
    server: Option<String>,
    provider: Option<String>,
    search: Option<String>,
}

/// `GET tools`.
pub(super) async fn tools(
    State(api): State<Arc<ApiState>>,
    StatusReader(caller): StatusReader,
    uri: Uri,
) -> Result<Response, Problem> {
    let unreadable = |error: axum::extract::rejection::QueryRejection| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the query cannot be read: {error}"))
    };
    let Query(query) = Query::<ToolQuery>::try_from_uri(&uri).map_err(unreadable)?;
    let provider = query.provider.as_deref().map(str::parse::<Provider>).transpose();
    let provider = provider.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    if let Some(server) = &query.server
        && !(api.board.has_server(server) && api.sees(&caller, server))
    {
        return Err(Problem::no_server(server));
    }
    let toolset = api.listings(&caller, provider.unwrap_or_default())?;
    let mut listing = toolset.list(PATIENCE).await;
    if let Some(words) = &query.search {
        listing.tools = search(&toolset, words, &listing.tools);
    }
    if let Some(server) = &query.server {
        listing.tools.retain(|listed| listed.tool.server.as_str() == server);
        listing.unavailable.retain(|one| one.server.as_str() == server);
    }
    for one in &mut listing.unavailable {
        if one.state == ServerState::NeedsAuth
            && let Some(hint) = route_hint(api.sign_in_links.as_ref(), &one.server)
        {
            one.hint = Some(hint);
        }
    }
    Ok(match provider {
        // Exactly the array that the provider's API takes. It has no place for a mark, so tools that cannot be called are left out.
        Some(_) => {
            listing.tools.retain(|listed| listed.available);
            json(StatusCode::OK, &listing.definitions())
        }
        None => json(StatusCode::OK, &listing),
    })
}

/// The listed tools that match a query, best match first.
fn search(toolset: &Toolset, words: &str, listed: &[ListedTool]) -> Vec<ListedTool> {
    let found = toolset.find(words, SEARCHED).into_iter();
    // The listing knows which tools cannot be called.
    let marked = |name: &str| listed.iter().find(|listed| listed.name == name).cloned();
    found
        .map(|found| marked(&found.tool.name).unwrap_or(found.tool))
        .collect()
}

/// `GET resources`.
pub(super) async fn resources(
    State(api): State<Arc<ApiState>>,
    StatusReader(caller): StatusReader,
) -> Result<Response, Problem> {
    let listing = api.listings(&caller, Provider::Mcp)?.resources(PATIENCE).await;
    Ok(json(StatusCode::OK, &listing))
}

/// `GET prompts`.
pub(super) async fn prompts(
    State(api): State<Arc<ApiState>>,
    StatusReader(caller): StatusReader,
) -> Result<Response, Problem> {
    let listing = api.listings(&caller, Provider::Mcp)?.prompts(PATIENCE).await;
    Ok(json(StatusCode::OK, &listing))
}
