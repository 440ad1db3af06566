//! Opaque access tokens: the authorization server is asked about them, and not too often.

use std::time::{Duration, SystemTime};

use pegboard::config::OAuthIntrospection;
use serde_json::json;

use crate::http::{
    client::Http,
    issuer::{GATEWAY, Issuer, Mode, call_with, gateway, in_seconds},
    service::Running,
    signer::Signer,
};

async fn start() -> (Signer, Issuer, Running) {
    start_with(|url| OAuthIntrospection::new(url, "gate", "p w")).await
}

/// A gateway that asks at the endpoint which is made of the URL of the authorization server's.
async fn start_with(endpoint: impl FnOnce(String) -> OAuthIntrospection) -> (Signer, Issuer, Running) {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let mut settings = issuer.settings();
    settings.introspection = Some(endpoint(issuer.introspection_url()));
    let server = gateway(settings).await;
    (signer, issuer, server)
}

#[tokio::test]
async fn the_server_is_asked_once_about_an_opaque_token() {
    let (client_id, client_secret) = ("gate", "p w");
    let endpoint = |url: String| OAuthIntrospection::new(url, client_id, client_secret);
    let (signer, issuer, server) = start_with(endpoint).await;
    let active = json!({"active": true, "sub": "ada", "aud": [GATEWAY], "exp": in_seconds(300)});
    issuer.book().opaque.insert("opaque-1".to_owned(), active);
    let calls = (0..20).map(|_| call_with(&server, "opaque-1"));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.text(), format!("{}#ada", issuer.url));
    }
    assert_eq!(issuer.book().introspections, 1);
    for _ in 0..3 {
        let unknown = call_with(&server, "opaque-2").await;
        assert_eq!(unknown.status, 401);
        assert!(unknown.header("www-authenticate").contains("not active"));
    }
    assert_eq!(issuer.book().introspections, 2, "an inactive token is remembered too");
    let jwt = signer.token(&issuer.claims(&json!({})));
    assert_eq!(call_with(&server, &jwt).await.status, 200);
    assert_eq!(issuer.book().introspections, 2, "a JWT is verified here");
}

#[tokio::test]
async fn what_the_server_says_is_checked_like_the_claims_of_a_jwt() {
    let (_, issuer, server) = start().await;
    for (name, answer, status) in [
        (
            "audience",
            json!({"active": true, "sub": "ada", "aud": "https://other.example"}),
            401,
        ),
        ("no-audience", json!({"active": true, "sub": "ada"}), 401),
        (
            "issuer",
            json!({"active": true, "sub": "ada", "aud": GATEWAY, "iss": "https://evil.example"}),
            401,
        ),
        (
            "expired",
            json!({"active": true, "sub": "ada", "aud": GATEWAY, "exp": in_seconds(-61)}),
            401,
        ),
        ("subject", json!({"active": true, "aud": GATEWAY}), 401),
        (
            "bound",
            json!({"active": true, "sub": "ada", "aud": GATEWAY, "token_type": "DPoP"}),
            401,
        ),
        (
            "certificate",
            json!({"active": true, "sub": "ada", "aud": GATEWAY, "cnf": {"x5t#S256": "x"}}),
            401,
        ),
        (
            "refresh",
            json!({"active": true, "sub": "ada", "aud": GATEWAY, "token_use": "refresh_token"}),
            401,
        ),
        (
            "bearer",
            json!({"active": true, "sub": "ada", "aud": GATEWAY, "token_type": "bearer"}),
            200,
        ),
        (
            "nulls",
            json!({"active": true, "sub": "ada", "aud": GATEWAY, "token_type": null, "cnf": null}),
            200,
        ),
        ("text", json!({"active": "true", "sub": "ada", "aud": GATEWAY}), 503),
        ("silent", json!({"sub": "ada", "aud": GATEWAY}), 503),
        ("lasting", json!({"active": true, "sub": "ada", "aud": GATEWAY}), 200),
    ] {
        issuer.book().opaque.insert(name.to_owned(), answer);
        assert_eq!(call_with(&server, name).await.status, status, "{name}");
    }
}

#[tokio::test]
async fn while_the_server_is_down_an_opaque_token_is_neither_good_nor_bad() {
    let (_, issuer, server) = start().await;
    issuer.book().mode = Mode::Down;
    let answer = call_with(&server, "opaque").await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (503, ""));
    issuer.book().mode = Mode::Well;
    let active = json!({"active": true, "sub": "ada", "aud": GATEWAY});
    issuer.book().opaque.insert("opaque".to_owned(), active);
    assert_eq!(
        call_with(&server, "opaque").await.status,
        200,
        "the failure is not remembered"
    );
}

#[tokio::test]
async fn without_an_endpoint_an_opaque_token_is_refused() {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let answer = call_with(&issuer.gateway().await, "opaque").await;
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").contains("is no signed JWT"));
}

#[tokio::test]
async fn a_stream_of_an_opaque_token_ends_when_it_expires() {
    let (_, issuer, server) = start().await;
    // The clocks may differ by a minute.
    let expires = in_seconds(2 - 60);
    let active = json!({"active": true, "sub": "ada", "aud": GATEWAY, "exp": expires});
    issuer.book().opaque.insert("short".to_owned(), active);
    let begun = SystemTime::now();
    let mut http = Http::connect(server.address).await;
    let answer = http.ask("GET", "/sse", &[("authorization", "Bearer short")], "").await;
    if answer.status == 200 {
        assert!(http.event().await.is_some());
        assert_eq!(http.event().await, None);
    }
    assert!(begun.elapsed().unwrap() < Duration::from_secs(30));
}
