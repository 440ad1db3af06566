//! `POST servers/{name}/signin` and `POST signin`: links to the pages on which people sign in.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use pegboard::ServerName;
use pegboard_gateway::{Caller, NoSignInPage};
use schemars::JsonSchema;
use serde::Serialize;

use super::{access::ToolCaller, documents::json, paths::ServerPath, problem::Problem, state::ApiState};

/// A link to a sign-in page.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SignInLink")]
pub(super) struct SignInLinkDocument {
    /// The URL for the person's browser. It works once, for the principal of the token.
    url: String,
    /// For how many seconds it can be followed.
    expires_in_s: u64,
}

/// `POST servers/{name}/signin`: a link to sign in to one server.
pub(super) async fn to_server(
    State(api): State<Arc<ApiState>>,
    ToolCaller(caller): ToolCaller,
    ServerPath(name): ServerPath,
) -> Result<Response, Problem> {
    if !api.board.has_server(name.as_str()) || !api.sees(&caller, name.as_str()) {
        return Err(Problem::no_server(name.as_str()));
    }
    if !api.board.takes_sign_in(name.as_str()) {
        let detail = format!("nobody can sign in to `{name}`: it is not remote, or its config has credentials for it");
        return Err(Problem::new(StatusCode::CONFLICT, detail).server(name.as_str()));
    }
    link(&api, &caller, Some(&name))
}

/// `POST signin`: a link to the list of all servers that the caller may use.
pub(super) async fn to_list(
    State(api): State<Arc<ApiState>>,
    ToolCaller(caller): ToolCaller,
) -> Result<Response, Problem> {
    link(&api, &caller, None)
}

fn link(api: &ApiState, caller: &Caller, server: Option<&ServerName>) -> Result<Response, Problem> {
    let created = match &api.sign_in_links {
        Some(links) => links.create(caller, server),
        None => Err(NoSignInPage::NotServed),
    };
    let link = created.map_err(|why| {
        let status = match why {
            NoSignInPage::TooMany => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::CONFLICT,
        };
        Problem::new(status, why.to_string())
    })?;
    let document = SignInLinkDocument {
        url: link.url.expose().to_owned(),
        expires_in_s: link.expires_in.as_secs(),
    };
    Ok(json(StatusCode::OK, &document))
}
