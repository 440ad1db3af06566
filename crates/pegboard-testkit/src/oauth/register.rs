//! Dynamic client registration (RFC 7591).

use axum::response::Response;
use serde_json::Value;

use super::{
    clients::Client,
    fault::AuthFault,
    issuer::Issuer,
    jws::random_text,
    record::AuthRequest,
    reply::{html, json_response, oauth_error},
};

pub(super) fn serve(issuer: &Issuer, request: &AuthRequest) -> Response {
    if let Some(status) = issuer.fault(|fault| match fault {
        AuthFault::RegisterStatus(status) => Some(*status),
        _ => None,
    }) {
        return html(status);
    }
    let Ok(mut metadata) = serde_json::from_str::<Value>(&request.body) else {
        return oauth_error(400, "invalid_client_metadata", "not JSON");
    };
    if metadata["redirect_uris"].as_array().is_none_or(Vec::is_empty) {
        return oauth_error(400, "invalid_redirect_uri", "no redirect_uris");
    }
    let id = random_text("client-");
    let mut client = Client::from_metadata(&id, &metadata);
    metadata["client_id"] = id.into();
    if client
        .method
        .as_deref()
        .is_some_and(|method| method.starts_with("client_secret"))
    {
        let secret = random_text("secret-");
        client = client.secret(&secret);
        metadata["client_secret"] = secret.into();
        metadata["client_secret_expires_at"] = 0.into();
    }
    issuer.add_client(client);
    json_response(201, &metadata)
}
