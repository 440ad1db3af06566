//! The authorization endpoint: a user who approves at once.

use axum::{http::StatusCode, response::Response};

use super::{
    books::{Code, Grant},
    fault::AuthFault,
    issuer::Issuer,
    record::{AuthRequest, TokenKind},
    reply::{oauth_error, redirect},
};
use crate::server::lock;

/// The user of requests without `login_hint`.
const SOMEONE: &str = "user";

pub(super) fn serve(issuer: &Issuer, request: &AuthRequest) -> Response {
    let (Some(id), Some(target)) = (request.parameter("client_id"), request.parameter("redirect_uri")) else {
        return oauth_error(400, "invalid_request", "no client_id or no redirect_uri");
    };
    let Some(client) = issuer.client(id) else {
        return oauth_error(400, "invalid_client", "unknown client");
    };
    if !client.may_redirect_to(target) {
        return oauth_error(400, "invalid_request", "the client did not register this redirect_uri");
    }
    let outcome = match issuer.fault(|fault| match fault {
        AuthFault::CallbackError(error) => Some(*error),
        _ => None,
    }) {
        Some(error) => Err((error, "the user refused")),
        None => approve(issuer, request, id, target),
    };
    redirect(StatusCode::FOUND, &callback(issuer, request, target, outcome))
}

/// A code for the request, or why it gets none.
fn approve(
    issuer: &Issuer,
    request: &AuthRequest,
    client: &str,
    target: &str,
) -> Result<String, (&'static str, &'static str)> {
    if request.parameter("response_type") != Some("code") {
        return Err(("unsupported_response_type", "only code"));
    }
    let challenge = request.parameter("code_challenge").filter(|text| !text.is_empty());
    let Some(challenge) = challenge.filter(|_| request.parameter("code_challenge_method") == Some("S256")) else {
        return Err(("invalid_request", "PKCE with S256 is needed"));
    };
    let mut books = lock(&issuer.books);
    let grant = Grant {
        subject: request.parameter("login_hint").unwrap_or(SOMEONE).to_owned(),
        client: client.to_owned(),
        scope: select_granted(issuer, request.parameter("scope").unwrap_or_default()),
        resource: request.parameter("resource").map(str::to_owned),
        session: Some(books.open_session()),
        key: request.parameter("dpop_jkt").map(str::to_owned),
    };
    let code = books.add_code(Code {
        grant: grant.clone(),
        redirect: target.to_owned(),
        challenge: challenge.to_owned(),
    });
    issuer.note(TokenKind::Code, &code, &grant);
    Ok(code)
}

/// The asked scopes that the issuer knows.
pub(super) fn select_granted(issuer: &Issuer, asked: &str) -> String {
    let known = |scope: &&str| issuer.settings.scopes.iter().any(|known| known == scope) || *scope == "offline_access";
    asked
        .split_ascii_whitespace()
        .filter(known)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The address that the browser is sent to.
fn callback(
    issuer: &Issuer,
    request: &AuthRequest,
    target: &str,
    outcome: Result<String, (&'static str, &'static str)>,
) -> String {
    let Ok(mut url) = url::Url::parse(target) else {
        return target.to_owned();
    };
    let state = issuer.fault(|fault| match fault {
        AuthFault::CallbackState(state) => Some(state.clone()),
        _ => None,
    });
    let stated = issuer.fault(|fault| match fault {
        AuthFault::CallbackIssuer(stated) => Some(stated.clone()),
        _ => None,
    });
    let own = issuer.settings.states_issuer.then(|| issuer.url.clone());
    {
        let mut query = url.query_pairs_mut();
        match outcome {
            Ok(code) => query.append_pair("code", &code),
            Err((error, why)) => query.append_pair("error", error).append_pair("error_description", why),
        };
        if let Some(state) = state.as_deref().or(request.parameter("state")) {
            query.append_pair("state", state);
        }
        if let Some(stated) = stated.unwrap_or(own) {
            query.append_pair("iss", &stated);
        }
    }
    url.into()
}
