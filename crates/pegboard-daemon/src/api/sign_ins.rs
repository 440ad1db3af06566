//! `GET sign-ins`: who has signed in to which server.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use pegboard::{Hint as _, Pegboard, Principal, ServerName, SignInError, StoredSignIn, Timestamp};
use pegboard_gateway::Caller;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{access::Admin, documents, problem::Problem, state::ApiState};

/// The sign-ins that are stored.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SignIns")]
pub(super) struct SignInsDocument {
    /// One for each server and principal.
    sign_ins: Vec<SignInDocument>,
}

/// A sign-in that is stored.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SignIn")]
pub(super) struct SignInDocument {
    /// The server; `null` if the config has none with this URL and these settings any more.
    server: Option<ServerName>,
    /// The URL of the server, without its query.
    url: String,
    /// Whose sign-in it is; `null` for that of all clients without a principal.
    principal: Option<Principal>,
    /// The authorization server that issued the tokens.
    issuer: String,
    /// The scopes that were granted; those that were requested if the authorization server did not say.
    scopes: Vec<String>,
    /// The scopes that were requested and not granted.
    not_granted: Vec<String>,
    /// When the sign-in was made; `null` if an older version has made it.
    #[schemars(with = "Option<String>")]
    since: Option<Timestamp>,
    /// When the access token expires.
    #[schemars(with = "String")]
    expires_at: Timestamp,
    /// Whether the access token is renewed without a person.
    renewable: bool,
    /// Whether the tokens are in an encrypted file.
    encrypted: bool,
}

impl From<StoredSignIn> for SignInDocument {
    fn from(stored: StoredSignIn) -> Self {
        Self {
            server: stored.server,
            url: stored.url,
            principal: stored.principal,
            issuer: stored.signed_in.issuer,
            scopes: stored.signed_in.scopes,
            not_granted: stored.signed_in.not_granted,
            encrypted: stored.is_encrypted,
            since: stored.signed_in.since,
            expires_at: stored.signed_in.expires_at,
            renewable: stored.signed_in.is_renewable,
        }
    }
}

/// `GET sign-ins`.
pub(super) async fn all(State(api): State<Arc<ApiState>>, Admin(caller): Admin) -> Result<Response, Problem> {
    let stored = api.board.sign_ins().await.map_err(|error| problem(&error))?;
    let shown = stored.into_iter().filter(|stored| is_shown(&api, &caller, stored));
    let document = SignInsDocument {
        sign_ins: shown.map(Into::into).collect(),
    };
    Ok(documents::json(StatusCode::OK, &document))
}

/// All sign-ins of a board, for the user whose board it is.
pub(crate) async fn sign_ins(board: &Pegboard) -> Result<Value, SignInError> {
    let stored = board.sign_ins().await?;
    Ok(json!(SignInsDocument {
        sign_ins: stored.into_iter().map(Into::into).collect(),
    }))
}

/// Whether a caller sees a sign-in. One with a view sees those of its servers, and none of other principals.
fn is_shown(api: &ApiState, caller: &Caller, stored: &StoredSignIn) -> bool {
    let is_own = stored
        .principal
        .as_ref()
        .is_none_or(|of| Some(of) == caller.principal());
    let sees = |server: &ServerName| api.sees(caller, server.as_str());
    caller.view().is_none() || (is_own && stored.server.as_ref().is_some_and(sees))
}

fn problem(error: &SignInError) -> Problem {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
    match error.hint() {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}
