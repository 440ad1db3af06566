//! `POST servers/{name}/signin` and `POST signin`: links to the pages on which people sign in.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use pegboard::{
    Hint as _, Principal, ServerName,
    audit::{AdminChange, ChangeOutcome},
    login_command,
};
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
        return Err(not_possible(&api, &caller, &name).await);
    }
    issue_link(&api, &caller, Some(&name)).await
}

/// Why nobody can sign in to a server, and what would change that.
async fn not_possible(api: &ApiState, caller: &Caller, name: &ServerName) -> Problem {
    let known = api.board.is_signed_in(name.as_str(), caller.principal()).await;
    let (detail, hint) = match known {
        Err(error) => (error.to_string(), error.hint()),
        Ok(_) => (
            format!("nobody has to sign in to `{name}`: its `oauth` settings obtain tokens without a person"),
            Some("call its tools; if they fail, the operator checks the `oauth` settings of the server".to_owned()),
        ),
    };
    let problem = Problem::new(StatusCode::CONFLICT, detail).server(name.as_str());
    problem.hint(hint.unwrap_or_else(|| "call its tools without a sign-in".to_owned()))
}

/// `POST signin`: a link to the list of all servers that the caller may use.
pub(super) async fn to_list(
    State(api): State<Arc<ApiState>>,
    ToolCaller(caller): ToolCaller,
) -> Result<Response, Problem> {
    issue_link(&api, &caller, None).await
}

/// Gives out a link, and records that.
async fn issue_link(api: &ApiState, caller: &Caller, server: Option<&ServerName>) -> Result<Response, Problem> {
    let change = |outcome: ChangeOutcome| {
        let mut change = AdminChange::new("sign_in_link", outcome);
        if let Some(server) = server {
            change = change.server(server.clone());
        }
        if let Some(principal) = caller.principal() {
            change = change.principal(principal.clone());
        }
        if let Some(view) = caller.view() {
            change = change.view(view);
        }
        change
    };
    if let Err(failure) = api.board.begin_change(&change(ChangeOutcome::Begun)).await {
        return Err(Problem::unrecorded(failure));
    }
    let link = link(api, caller, server);
    api.board.record_change(change(match link {
        Ok(_) => ChangeOutcome::Done,
        Err(_) => ChangeOutcome::Refused,
    }));
    link
}

/// How a person signs in where there is no page.
fn command_hint(caller: &Caller, server: Option<&ServerName>) -> String {
    let server = server.map_or("NAME", ServerName::as_str);
    let command = login_command(server, caller.principal().map(Principal::as_str));
    format!("`{command}` on the machine of the gateway signs in without a page")
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
        Problem::new(status, why.to_string()).hint(match why {
            NoSignInPage::TooMany | NoSignInPage::NoRandomNumbers => "try again later".to_owned(),
            _ => command_hint(caller, server),
        })
    })?;
    let document = SignInLinkDocument {
        url: link.url.expose().to_owned(),
        expires_in_s: link.expires_in.as_secs(),
    };
    Ok(json(StatusCode::OK, &document))
}
