//! The authorization server of the kit follows OAuth, and misbehaves as asked.

use std::time::Duration;

use pegboard_testkit::{
    FakeServer, Tool,
    oauth::{
        Algorithm, AuthFault, AuthorizationServer, Client, IssuerHandle, MetadataPlace, Protected, SigningKey,
        follow_redirect, unsigned,
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const REDIRECT: &str = "http://127.0.0.1:4711/callback";

/// The status, the head and the body of a response.
async fn http(method: &str, url: &str, more: &[(&str, &str)], body: &str) -> (u16, String, String) {
    let rest = url.strip_prefix("http://").expect("a plain URL");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).await.expect("the server listens");
    let mut request = format!("{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    for (name, value) in more {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.expect("the server responds");
    let response = String::from_utf8_lossy(&response).into_owned();
    let (head, body) = response.split_once("\r\n\r\n").expect("a whole response");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.expect("a status"), head.to_ascii_lowercase(), body.to_owned())
}

async fn post_form(url: &str, fields: &[(&str, &str)]) -> (u16, Value) {
    let body: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", value.replace('&', "%26").replace('+', "%2B")))
        .collect();
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let (status, _, body) = http("POST", url, &form, &body.join("&")).await;
    (status, serde_json::from_str(&body).unwrap_or_default())
}

async fn metadata(issuer: &IssuerHandle) -> Value {
    let url = format!("{}/.well-known/oauth-authorization-server", issuer.url());
    serde_json::from_str(&http("GET", &url, &[], "").await.2).expect("metadata")
}

async fn wiki(issuer: &IssuerHandle) -> Protected {
    let fake = FakeServer::new("wiki").tool(Tool::new("read").answers_text("page"));
    issuer.protect(&fake).await.expect("a free port")
}

/// The token response of a sign-in with these scopes.
async fn sign_in(issuer: &IssuerHandle, server: &Protected, scope: &str) -> Value {
    issuer.add_client(Client::new("app"));
    let url = format!(
        "{}/authorize?response_type=code&client_id=app&redirect_uri={REDIRECT}&state=s&code_challenge={CHALLENGE}\
         &code_challenge_method=S256&scope={scope}&resource={}",
        issuer.url(),
        server.url()
    );
    let redirected = follow_redirect(&url, Some("alice")).await.expect("a redirect");
    let code = redirected
        .split("code=")
        .nth(1)
        .and_then(|rest| rest.split('&').next())
        .expect("a code");
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ];
    let (status, answer) = post_form(&format!("{}/token", issuer.url()), &form).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

async fn refresh(issuer: &IssuerHandle, token: &Value) -> (u16, Value) {
    let token = token["refresh_token"].as_str().expect("a refresh token");
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", "app"),
        ("refresh_token", token),
    ];
    post_form(&format!("{}/token", issuer.url()), &form).await
}

/// The status and head of a call with this token.
async fn call(server: &Protected, token: &str) -> (u16, String) {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let (status, head, _) = http("POST", &server.url(), &headers, &message.to_string()).await;
    (status, head)
}

fn access(token: &Value) -> &str {
    token["access_token"].as_str().expect("an access token")
}

#[tokio::test]
async fn a_token_is_accepted_by_its_own_server_only() {
    for server in [
        AuthorizationServer::new(),
        AuthorizationServer::new().algorithm(Algorithm::Rs256),
        AuthorizationServer::new().algorithm(Algorithm::EdDsa),
        AuthorizationServer::new().opaque(),
    ] {
        let issuer = server.start().await.expect("a free port");
        let (own, other) = (wiki(&issuer).await, wiki(&issuer).await);
        let token = sign_in(&issuer, &own, "read").await;
        assert_eq!(call(&own, access(&token)).await.0, 200);
        let (status, head) = call(&other, access(&token)).await;
        assert_eq!(status, 401);
        assert!(
            head.contains("error=\"invalid_token\"") && head.contains("resource_metadata=\"http://"),
            "{head}"
        );
        let seen = own.seen();
        assert_eq!(seen[0].subject.as_deref(), Some("alice"));
        assert_eq!(seen[0].token.as_deref(), Some(access(&token)));
    }
}

#[tokio::test]
async fn a_code_works_once_and_only_with_its_verifier() {
    let issuer = AuthorizationServer::new().start().await.expect("a free port");
    issuer.add_client(Client::new("app"));
    let url = format!(
        "{}/authorize?response_type=code&client_id=app&redirect_uri={REDIRECT}&code_challenge={CHALLENGE}&code_challenge_method=S256",
        issuer.url()
    );
    let redirected = follow_redirect(&url, None).await.expect("a redirect");
    assert!(redirected.contains("iss=http%3A%2F%2F127.0.0.1"), "{redirected}");
    let code = redirected
        .split("code=")
        .nth(1)
        .and_then(|rest| rest.split('&').next())
        .expect("a code");
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", "another-verifier-of-enough-length-for-the-rules"),
    ];
    let (status, answer) = post_form(&format!("{}/token", issuer.url()), &form).await;
    assert_eq!((status, &answer["error"]), (400, &json!("invalid_grant")));
    let unproven = url.replace("&code_challenge_method=S256", "");
    assert!(
        follow_redirect(&unproven, None)
            .await
            .expect("a redirect")
            .contains("error=invalid_request")
    );
}

#[tokio::test]
async fn a_refresh_token_rotates_and_its_reuse_ends_the_session() {
    let issuer = AuthorizationServer::new().start().await.expect("a free port");
    let server = wiki(&issuer).await;
    let first = sign_in(&issuer, &server, "read").await;
    let (status, second) = refresh(&issuer, &first).await;
    assert_eq!(status, 200);
    assert_ne!(first["refresh_token"], second["refresh_token"]);
    let (status, refused) = refresh(&issuer, &first).await;
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    assert_eq!(refresh(&issuer, &second).await.0, 400);
    assert_eq!(call(&server, access(&second)).await.0, 401);
    assert_eq!(issuer.reuses(), 1);
    assert_eq!(issuer.token_requests("refresh_token"), 3);
}

#[tokio::test]
async fn within_the_grace_a_replaced_refresh_token_works() {
    let server = AuthorizationServer::new().reuse_grace(Duration::from_secs(60));
    let issuer = server.start().await.expect("a free port");
    let server = wiki(&issuer).await;
    let first = sign_in(&issuer, &server, "read").await;
    assert_eq!(refresh(&issuer, &first).await.0, 200);
    assert_eq!(refresh(&issuer, &first).await.0, 200);
    assert_eq!(issuer.reuses(), 0);
}

#[tokio::test]
async fn scopes_are_asked_for_with_403() {
    let issuer = AuthorizationServer::new().start().await.expect("a free port");
    let server = wiki(&issuer).await;
    server.needs_scope("write");
    let little = sign_in(&issuer, &server, "read").await;
    let (status, head) = call(&server, access(&little)).await;
    assert_eq!(status, 403);
    assert!(head.contains("error=\"insufficient_scope\", scope=\"write\""), "{head}");
    let much = sign_in(&issuer, &server, "read%20write").await;
    assert_eq!(call(&server, access(&much)).await.0, 200);
}

#[tokio::test]
async fn clients_prove_themselves_with_a_secret_or_a_key() {
    let key = SigningKey::generate(Algorithm::EdDsa, "c");
    let server = AuthorizationServer::new()
        .client(Client::new("robot").secret("hunter2"))
        .client(Client::new("signer").key(key.public_jwk()));
    let issuer = server.start().await.expect("a free port");
    let token_url = format!("{}/token", issuer.url());
    let grant = ("grant_type", "client_credentials");
    for (secret, expected) in [("hunter2", 200), ("wrong", 401)] {
        let form = [grant, ("client_id", "robot"), ("client_secret", secret)];
        assert_eq!(post_form(&token_url, &form).await.0, expected);
    }
    let mut claims = issuer.claims("signer", issuer.url());
    claims["iss"] = "signer".into();
    claims["jti"] = "1".into();
    for (assertion, expected) in [(key.sign("JWT", &claims), 200), (unsigned(&claims), 401)] {
        let form = [
            grant,
            (
                "client_assertion_type",
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            ),
            ("client_assertion", assertion.as_str()),
        ];
        assert_eq!(post_form(&token_url, &form).await.0, expected);
    }
}

#[tokio::test]
async fn a_token_is_exchanged_for_one_of_the_same_user_elsewhere() {
    let server = AuthorizationServer::new().client(Client::new("gate").secret("s"));
    let issuer = server.start().await.expect("a free port");
    let (front, back) = (wiki(&issuer).await, wiki(&issuer).await);
    let token = sign_in(&issuer, &front, "read").await;
    let form = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("client_id", "gate"),
        ("client_secret", "s"),
        ("subject_token", access(&token)),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
        ("resource", &back.url()),
    ];
    let (status, exchanged) = post_form(&format!("{}/token", issuer.url()), &form).await;
    assert_eq!(status, 200, "{exchanged}");
    assert_eq!(call(&back, access(&exchanged)).await.0, 200);
    assert_eq!(back.seen()[0].subject.as_deref(), Some("alice"));
}

#[tokio::test]
async fn metadata_is_at_the_chosen_places_only() {
    let server = AuthorizationServer::new()
        .path("/tenant")
        .metadata_at(&[MetadataPlace::OpenIdAppended]);
    let issuer = server.start().await.expect("a free port");
    let origin = issuer.url().strip_suffix("/tenant").expect("its path");
    for (path, expected) in [
        ("/.well-known/oauth-authorization-server/tenant", 404),
        ("/.well-known/openid-configuration/tenant", 404),
        ("/tenant/.well-known/openid-configuration", 200),
    ] {
        assert_eq!(
            http("GET", &format!("{origin}{path}"), &[], "").await.0,
            expected,
            "{path}"
        );
    }
}

#[tokio::test]
async fn keys_rotate_and_old_ones_can_go() {
    let issuer = AuthorizationServer::new().start().await.expect("a free port");
    let server = wiki(&issuer).await;
    let token = issuer.sign(&issuer.claims("bob", &server.url()));
    issuer.rotate_keys();
    assert_eq!(call(&server, &token).await.0, 200);
    issuer.replace_keys();
    assert_eq!(call(&server, &token).await.0, 401);
    let keys = http("GET", &format!("{}/jwks", issuer.url()), &[], "").await.2;
    assert_eq!(
        serde_json::from_str::<Value>(&keys).expect("a key set")["keys"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn bad_tokens_are_issued_on_demand_and_refused() {
    for fault in [
        AuthFault::Unsigned,
        AuthFault::ForeignKey,
        AuthFault::ExpiredAtOnce,
        AuthFault::Audience("https://elsewhere.example/mcp".into()),
        AuthFault::TokenIssuer("https://elsewhere.example".into()),
    ] {
        let issuer = AuthorizationServer::new().start().await.expect("a free port");
        let server = wiki(&issuer).await;
        issuer.add_fault_times(1, fault.clone());
        let bad = sign_in(&issuer, &server, "read").await;
        assert_eq!(call(&server, access(&bad)).await.0, 401, "{fault:?}");
        let good = sign_in(&issuer, &server, "read").await;
        assert_eq!(call(&server, access(&good)).await.0, 200, "{fault:?}");
    }
}

#[tokio::test]
async fn metadata_lies_on_demand() {
    let issuer = AuthorizationServer::new().start().await.expect("a free port");
    assert_eq!(metadata(&issuer).await["issuer"], issuer.url());
    issuer.add_fault_times(1, AuthFault::MetadataIssuer("https://elsewhere.example".into()));
    assert_eq!(metadata(&issuer).await["issuer"], "https://elsewhere.example");
    issuer.add_fault(AuthFault::MetadataEndpoint("token_endpoint", "http://10.0.0.1/".into()));
    assert_eq!(metadata(&issuer).await["token_endpoint"], "http://10.0.0.1/");
    issuer.heal();
    issuer.add_fault_times(1, AuthFault::MetadataHuge(100_000));
    let url = format!("{}/.well-known/oauth-authorization-server", issuer.url());
    assert!(http("GET", &url, &[], "").await.2.len() > 100_000);
    issuer.add_fault_times(1, AuthFault::MetadataRedirect("http://10.0.0.1/".into()));
    let (status, head, _) = http("GET", &url, &[], "").await;
    assert!(status == 302 && head.contains("location: http://10.0.0.1/"), "{head}");
    assert_eq!(issuer.count("/oauth-authorization-server"), 5);
}

#[tokio::test]
async fn the_token_endpoint_fails_on_demand() {
    let issuer = AuthorizationServer::new().start().await.expect("a free port");
    let server = wiki(&issuer).await;
    let token = sign_in(&issuer, &server, "read").await;
    for (fault, status, error) in [
        (AuthFault::TokenStatus(500), 500, Value::Null),
        (AuthFault::TokenError("invalid_grant"), 400, json!("invalid_grant")),
        (
            AuthFault::TokenErrorWith200("temporarily_unavailable"),
            200,
            json!("temporarily_unavailable"),
        ),
    ] {
        issuer.add_fault_times(1, fault.clone());
        let (got, answer) = refresh(&issuer, &token).await;
        assert_eq!((got, &answer["error"]), (status, &error), "{fault:?}");
    }
    issuer.add_fault_times(1, AuthFault::NoExpiresIn);
    let (_, answer) = refresh(&issuer, &token).await;
    assert!(
        answer["access_token"].is_string() && answer["expires_in"].is_null(),
        "{answer}"
    );
}

#[tokio::test]
async fn a_server_moves_to_another_issuer() {
    let (old, new) = (
        AuthorizationServer::new().start().await,
        AuthorizationServer::new().start().await,
    );
    let (old, new) = (old.expect("a free port"), new.expect("a free port"));
    let server = wiki(&old).await;
    let token = sign_in(&old, &server, "read").await;
    new.take_over(&server);
    assert_eq!(call(&server, access(&token)).await.0, 401);
    let url = server
        .url()
        .replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let resource: Value = serde_json::from_str(&http("GET", &url, &[], "").await.2).expect("metadata");
    assert_eq!(resource["authorization_servers"], json!([new.url()]));
    assert_eq!(resource["resource"], server.url());
}
