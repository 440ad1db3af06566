//! Revocation, introspection and the key set.

use axum::response::Response;
use serde_json::json;

use super::{
    clients::Proof,
    fault::AuthFault,
    issuer::Issuer,
    record::AuthRequest,
    reply::{html, json_response, oauth_error},
};
use crate::server::lock;

pub(super) fn revoke(issuer: &Issuer, request: &AuthRequest) -> Response {
    if let Err(response) = authenticate(issuer, request) {
        return *response;
    }
    let Some(token) = request.parameter("token") else {
        return oauth_error(400, "invalid_request", "no token");
    };
    lock(&issuer.books).revoke(token);
    json_response(200, &json!({}))
}

pub(super) fn introspect(issuer: &Issuer, request: &AuthRequest) -> Response {
    if let Err(response) = authenticate(issuer, request) {
        return *response;
    }
    let Some(token) = request.parameter("token") else {
        return oauth_error(400, "invalid_request", "no token");
    };
    match issuer.judge(token, None) {
        Err(_) => json_response(200, &json!({"active": false})),
        Ok(grant) => json_response(
            200,
            &json!({
                "active": true, "iss": issuer.url, "sub": grant.subject, "client_id": grant.client,
                "scope": grant.scope, "aud": grant.resource, "token_type": "Bearer",
                "exp": super::books::now_seconds() + issuer.settings.lifetime.as_secs(),
            }),
        ),
    }
}

pub(super) fn keys(issuer: &Issuer) -> Response {
    let refused = issuer.fault(|fault| match fault {
        AuthFault::KeysStatus(status) => Some(*status),
        _ => None,
    });
    match refused {
        Some(status) => html(status),
        None => json_response(200, &json!({"keys": issuer.public_keys()})),
    }
}

fn authenticate(issuer: &Issuer, request: &AuthRequest) -> Result<(), Box<Response>> {
    let outcome = Proof::read(request).and_then(|(id, proof)| {
        let client = issuer.client(&id).ok_or("unknown client")?;
        client.check(&proof, &issuer.audiences())
    });
    outcome.map_err(|why| Box::new(oauth_error(401, "invalid_client", &why)))
}
