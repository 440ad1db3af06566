//! The metadata of an authorization server, at each of its places.

use std::time::Duration;

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    fault::AuthFault,
    issuer::Issuer,
    reply::{html, json_response, redirect},
    settings::MetadataPlace,
};

/// The place that a path is, if the issuer has metadata there.
pub(super) fn place_of(issuer: &Issuer, path: &str) -> Option<MetadataPlace> {
    let own = issuer.settings.path.as_str();
    let all = [
        (
            MetadataPlace::OAuth,
            format!("/.well-known/oauth-authorization-server{own}"),
        ),
        (
            MetadataPlace::OpenIdInserted,
            format!("/.well-known/openid-configuration{own}"),
        ),
        (
            MetadataPlace::OpenIdAppended,
            format!("{own}/.well-known/openid-configuration"),
        ),
    ];
    all.into_iter()
        .find(|(place, known)| known == path && issuer.settings.places.contains(place))
        .map(|(place, _)| place)
}

pub(super) async fn serve(issuer: &Issuer, place: MetadataPlace) -> Response {
    let slow = issuer.fault(|fault| match fault {
        AuthFault::MetadataSlow(ms) => Some(*ms),
        _ => None,
    });
    if let Some(ms) = slow {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    let instead = issuer.fault(|fault| match fault {
        AuthFault::MetadataHtml => Some(html(200)),
        AuthFault::MetadataOtherTypes => Some(json_response(200, &other_types())),
        AuthFault::MetadataStatus(status) => Some(html(*status)),
        AuthFault::MetadataRedirect(to) => Some(redirect(StatusCode::FOUND, to)),
        _ => None,
    });
    if let Some(instead) = instead {
        return instead;
    }
    let mut metadata = document(issuer, place);
    while let Some((endpoint, url)) = issuer.fault(|fault| match fault {
        AuthFault::MetadataEndpoint(endpoint, url) if metadata[endpoint] != url.as_str() => {
            Some((*endpoint, url.clone()))
        }
        _ => None,
    }) {
        metadata[endpoint] = url.into();
    }
    if let Some(other) = issuer.fault(|fault| match fault {
        AuthFault::MetadataIssuer(other) => Some(other.clone()),
        _ => None,
    }) {
        metadata["issuer"] = other.into();
    }
    let more = issuer.fault(|fault| match fault {
        AuthFault::MetadataHuge(bytes) => Some(*bytes),
        _ => None,
    });
    padded_response(&metadata, more.unwrap_or(0))
}

/// JSON after this many bytes of white space.
pub(super) fn padded_response(body: &Value, bytes: usize) -> Response {
    let body = " ".repeat(bytes) + &body.to_string();
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn document(issuer: &Issuer, place: MetadataPlace) -> Value {
    let (settings, base) = (&issuer.settings, &issuer.url);
    let mut metadata = json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "revocation_endpoint": format!("{base}/revoke"),
        "introspection_endpoint": format!("{base}/introspect"),
        "jwks_uri": format!("{base}/jwks"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials", "urn:ietf:params:oauth:grant-type:token-exchange", "urn:ietf:params:oauth:grant-type:jwt-bearer"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["RS256", "ES256", "EdDSA"],
        "scopes_supported": settings.scopes,
        "client_id_metadata_document_supported": settings.documents,
        "authorization_response_iss_parameter_supported": settings.states_issuer,
    });
    if settings.binds_tokens() {
        metadata["dpop_signing_alg_values_supported"] = json!(["ES256"]);
    }
    if settings.registration {
        metadata["registration_endpoint"] = format!("{base}/register").into();
    }
    if place != MetadataPlace::OAuth {
        metadata["subject_types_supported"] = json!(["public"]);
        metadata["id_token_signing_alg_values_supported"] = json!([settings.algorithm.name()]);
    }
    metadata
}

fn other_types() -> Value {
    json!({"issuer": 7, "authorization_endpoint": ["a"], "token_endpoint": {"url": 1}, "scopes_supported": "read"})
}
