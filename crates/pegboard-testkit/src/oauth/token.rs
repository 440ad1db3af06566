//! The token endpoint.

use axum::{http::StatusCode, response::Response};
use serde_json::{Value, json};

use super::{
    authorize::select_granted,
    books::{Grant, now_seconds},
    clients::{Client, Proof, names_one_of},
    dpop::Wanted,
    fault::AuthFault,
    issuer::Issuer,
    jws::{challenge_of, verify},
    record::AuthRequest,
    reply::{html, json_response, oauth_error, redirect},
    settings::Refresh,
};
use crate::server::lock;

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// An OAuth error and why.
type Refusal = (&'static str, String);

pub(super) async fn serve(issuer: &Issuer, request: &AuthRequest) -> Response {
    let instead = issuer.fault(|fault| match fault {
        AuthFault::TokenStatus(status) => Some(html(*status)),
        AuthFault::TokenError(error) => Some(oauth_error(400, error, "as the test asked")),
        AuthFault::TokenErrorWith200(error) => Some(oauth_error(200, error, "as the test asked")),
        AuthFault::TokenRedirect(to) => Some(redirect(StatusCode::TEMPORARY_REDIRECT, to)),
        _ => None,
    });
    if let Some(instead) = instead {
        return instead;
    }
    if issuer.has(&AuthFault::TokenHangs) {
        return std::future::pending().await;
    }
    if issuer.has(&AuthFault::TokenWaitsFirst) {
        issuer.pass_gate().await;
    }
    let answer = answer(issuer, request);
    if issuer.has(&AuthFault::TokenWaits) {
        issuer.pass_gate().await;
    }
    let is_refusal = answer.is_err();
    let mut response = match answer {
        Ok(answer) => json_response(200, &answer),
        Err((error @ "invalid_client", why)) => oauth_error(401, error, &why),
        Err((error, why)) => oauth_error(400, error, &why),
    };
    if issuer.settings.binds_tokens() {
        issuer.proofs.stamp(issuer, is_refusal, &mut response);
    }
    response
}

fn answer(issuer: &Issuer, request: &AuthRequest) -> Result<Value, Refusal> {
    let refuse = |why: String| ("invalid_client", why);
    let (id, proof) = Proof::read(request).map_err(refuse)?;
    let client = issuer
        .client(&id)
        .ok_or_else(|| refuse(format!("unknown client {id}")))?;
    client.check(&proof, &issuer.audiences()).map_err(refuse)?;
    let key = proven_key(issuer, request)?;
    match request.parameter("grant_type") {
        Some("authorization_code") => code(issuer, request, &client, key),
        Some("refresh_token") => refresh(issuer, request, &client, key.as_deref()),
        Some("client_credentials") if matches!(proof, Proof::None) => {
            Err(("invalid_client", "the client must prove itself".into()))
        }
        Some("client_credentials") => Ok(issuer.issue_access(&Grant {
            subject: id.clone(),
            client: id,
            scope: select_granted(issuer, request.parameter("scope").unwrap_or_default()),
            resource: request
                .parameter("resource")
                .or(request.parameter("audience"))
                .map(str::to_owned),
            session: None,
            key,
        })),
        Some(EXCHANGE) => exchange(issuer, request, &client, key),
        Some(JWT_BEARER) => {
            let assertion = request.parameter("assertion").unwrap_or_default();
            Ok(issuer.issue_access(&for_subject(issuer, request, &client, assertion, key)?))
        }
        other => Err(("unsupported_grant_type", format!("{other:?}"))),
    }
}

/// The thumbprint of the key that the request proves to have, if tokens are bound to it.
fn proven_key(issuer: &Issuer, request: &AuthRequest) -> Result<Option<String>, Refusal> {
    let proof = request.header("dpop").filter(|_| issuer.settings.binds_tokens());
    let Some(proof) = proof.filter(|_| !issuer.has(&AuthFault::DpopIgnored)) else {
        return Ok(None);
    };
    let wanted = Wanted {
        method: &request.method,
        url: &format!("{}/token", issuer.url),
        token: None,
    };
    let checked = issuer.proofs.check(issuer, proof, wanted);
    checked.map(Some).map_err(|bad| (bad.error, bad.why))
}

fn code(issuer: &Issuer, request: &AuthRequest, client: &Client, key: Option<String>) -> Result<Value, Refusal> {
    let invalid = |why: &str| ("invalid_grant", why.to_owned());
    let given = request.parameter("code").unwrap_or_default();
    let code = lock(&issuer.books)
        .take_code(given)
        .ok_or_else(|| invalid("unknown code"))?;
    if code.grant.client != client.id {
        return Err(invalid("the code is for another client"));
    }
    if request.parameter("redirect_uri") != Some(&code.redirect) {
        return Err(invalid("another redirect_uri"));
    }
    if request.parameter("code_verifier").map(challenge_of).as_ref() != Some(&code.challenge) {
        return Err(invalid("the code_verifier is wrong"));
    }
    same_resource(request, &code.grant)?;
    let is_checked = issuer.settings.binds_tokens() && !issuer.has(&AuthFault::DpopIgnored);
    if is_checked && code.grant.key.is_some() && code.grant.key != key {
        return Err(invalid("the code is bound to another key"));
    }
    Ok(issuer.issue(&Grant { key, ..code.grant }))
}

fn refresh(issuer: &Issuer, request: &AuthRequest, client: &Client, key: Option<&str>) -> Result<Value, Refusal> {
    let token = request.parameter("refresh_token").unwrap_or_default();
    let rotates = issuer.settings.refresh == Refresh::Rotated;
    let bound_to = lock(&issuer.books).key_of_refresh(token);
    if bound_to.is_some() && bound_to.as_deref() != key {
        return Err(("invalid_grant", "the refresh token is bound to another key".into()));
    }
    let used = lock(&issuer.books).use_refresh(token, rotates, issuer.settings.reuse_grace);
    let grant = used.map_err(|why| ("invalid_grant", why.to_owned()))?;
    if grant.client != client.id {
        return Err(("invalid_grant", "the token is for another client".into()));
    }
    same_resource(request, &grant)?;
    if rotates {
        return Ok(issuer.issue(&grant));
    }
    Ok(issuer.issue_access(&grant))
}

fn same_resource(request: &AuthRequest, grant: &Grant) -> Result<(), Refusal> {
    match request.parameter("resource") {
        Some(resource) if Some(resource) != grant.resource.as_deref() => {
            Err(("invalid_target", format!("the grant is for {:?}", grant.resource)))
        }
        _ => Ok(()),
    }
}

fn exchange(issuer: &Issuer, request: &AuthRequest, client: &Client, key: Option<String>) -> Result<Value, Refusal> {
    let subject = request.parameter("subject_token").unwrap_or_default();
    if request.parameter("subject_token_type").is_none() {
        return Err(("invalid_request", "no subject_token_type".into()));
    }
    let mut answer = issuer.issue_access(&for_subject(issuer, request, client, subject, key)?);
    answer["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token".into();
    Ok(answer)
}

/// The grant for the subject of a token of this issuer, or of an assertion by a key that it trusts.
fn for_subject(
    issuer: &Issuer,
    request: &AuthRequest,
    client: &Client,
    token: &str,
    key: Option<String>,
) -> Result<Grant, Refusal> {
    let subject = match issuer.judge(token, None) {
        Ok(grant) => grant.subject,
        Err(_) => {
            let claims = verify(token, &issuer.settings.trusted).map_err(|why| ("invalid_grant", why))?;
            let in_time = claims["exp"].as_u64().is_some_and(|end| end > now_seconds());
            let wanted = claims["aud"].is_null() || names_one_of(&claims["aud"], &issuer.audiences());
            if !in_time || !wanted {
                return Err(("invalid_grant", "the assertion has expired or is for another".into()));
            }
            claims["sub"].as_str().unwrap_or_default().to_owned()
        }
    };
    Ok(Grant {
        subject,
        client: client.id.clone(),
        scope: select_granted(issuer, request.parameter("scope").unwrap_or_default()),
        resource: request
            .parameter("resource")
            .or(request.parameter("audience"))
            .map(str::to_owned),
        session: None,
        key,
    })
}

/// The claims that a test signs for itself: `sub`, `aud` and an hour to live.
pub(super) fn test_claims(issuer: &Issuer, subject: &str, audience: &str) -> Value {
    let now = now_seconds();
    json!({"iss": issuer.url, "sub": subject, "aud": audience, "iat": now, "exp": now + 3600})
}
