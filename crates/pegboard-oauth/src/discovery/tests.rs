//! Which documents are read, in which order, and which are refused.

use serde_json::{Value, json};

use super::*;
use crate::test_server::TestServer;
use pegboard_config::{OAuthConfig, OAuthGrant, SafeUrl};

async fn found(server: &TestServer, challenge: Option<&str>) -> Result<Discovered, OAuthError> {
    found_with(server, challenge, OAuthConfig::default()).await
}

async fn found_with(
    server: &TestServer,
    challenge: Option<&str>,
    settings: OAuthConfig,
) -> Result<Discovered, OAuthError> {
    discover(&CheckedHttp::new(), &server.account(settings), challenge).await
}

fn resource(server: &TestServer, resource: &str, issuer: &str) -> Value {
    let url = &server.url;
    json!({"resource": format!("{url}{resource}"), "authorization_servers": [format!("{url}{issuer}")]})
}

fn metadata(server: &TestServer, issuer: &str) -> Value {
    let mut metadata = server.metadata();
    metadata["issuer"] = format!("{}{issuer}", server.url).into();
    metadata
}

#[tokio::test]
async fn the_document_of_the_challenge_comes_first() {
    let server = TestServer::empty().await;
    server.json("/custom/prm.json", &resource(&server, "/mcp", "/tenant"));
    server.json(
        "/tenant/.well-known/openid-configuration",
        &metadata(&server, "/tenant"),
    );
    let url = format!("{}/custom/prm.json", server.url);
    let found = found(&server, Some(&url)).await.unwrap();
    assert_eq!(found.server.issuer, format!("{}/tenant", server.url));
    assert_eq!(found.resource, format!("{}/mcp", server.url));
    assert_eq!(
        server.paths(),
        [
            "/custom/prm.json",
            "/.well-known/oauth-authorization-server/tenant",
            "/.well-known/openid-configuration/tenant",
            "/tenant/.well-known/openid-configuration",
        ]
    );
}

#[tokio::test]
async fn without_a_challenge_the_path_comes_before_the_root() {
    let server = TestServer::empty().await;
    server.json("/.well-known/oauth-protected-resource", &resource(&server, "", ""));
    server.json("/.well-known/openid-configuration", &metadata(&server, ""));
    let found = found(&server, None).await.unwrap();
    assert_eq!(found.resource, server.url, "exactly as published, without a slash");
    assert_eq!(
        server.paths(),
        [
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-authorization-server",
            "/.well-known/openid-configuration",
        ]
    );
}

#[tokio::test]
async fn the_root_is_not_asked_if_the_path_has_a_document() {
    let server = TestServer::complete().await;
    found(&server, None).await.unwrap();
    assert_eq!(
        server.paths(),
        [
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-authorization-server"
        ]
    );
}

#[tokio::test]
async fn a_server_of_2025_03_26_has_metadata_at_its_root_or_default_endpoints() {
    let server = TestServer::empty().await;
    let without = found(&server, None).await.unwrap();
    assert_eq!(without.resource, format!("{}/mcp", server.url));
    let endpoint = |path: &str| Some(Url::parse(&format!("{}{path}", server.url)).unwrap());
    assert_eq!(without.server.authorization_endpoint, endpoint("/authorize"));
    assert_eq!(Some(without.server.token_endpoint), endpoint("/token"));
    assert_eq!(without.server.registration_endpoint, endpoint("/register"));

    let mut metadata = server.metadata();
    metadata["token_endpoint"] = format!("{}/oauth/token", server.url).into();
    server.json("/.well-known/oauth-authorization-server", &metadata);
    let with = found(&server, None).await.unwrap();
    assert_eq!(Some(with.server.token_endpoint), endpoint("/oauth/token"));
}

#[tokio::test]
async fn at_the_root_of_a_server_of_2025_03_26_an_issuer_of_the_same_origin_is_accepted_and_no_other() {
    let server = TestServer::empty().await;
    server.json("/.well-known/oauth-authorization-server", &metadata(&server, "/oauth"));
    let with_path = found(&server, None).await.unwrap();
    assert_eq!(with_path.server.issuer, format!("{}/oauth", server.url));

    let mut foreign = server.metadata();
    foreign["issuer"] = "https://attacker.example".into();
    server.json("/.well-known/oauth-authorization-server", &foreign);
    let error = found(&server, None).await.unwrap_err();
    assert!(error.to_string().contains("another issuer"), "{error}");
}

#[tokio::test]
async fn a_document_of_another_resource_or_issuer_is_refused() {
    let server = TestServer::complete().await;
    let prm = "/.well-known/oauth-protected-resource/mcp";
    let foreign = json!({"resource": "https://evil.example/mcp", "authorization_servers": [server.url]});
    server.json(prm, &foreign);
    let error = found(&server, None).await.unwrap_err();
    assert!(error.to_string().contains("another resource"), "{error}");
    assert_eq!(server.paths(), [prm]);

    server.json(prm, &resource(&server, "/mcp", ""));
    let mut metadata = server.metadata();
    metadata["issuer"] = "https://attacker.example".into();
    server.json("/.well-known/oauth-authorization-server", &metadata);
    let error = found(&server, None).await.unwrap_err();
    assert!(error.to_string().contains("another issuer"), "{error}");
}

#[tokio::test]
async fn a_resource_without_a_reachable_authorization_server_is_an_error() {
    let server = TestServer::empty().await;
    let prm = "/.well-known/oauth-protected-resource/mcp";
    server.json(prm, &resource(&server, "/mcp", "/none"));
    let error = found(&server, None).await.unwrap_err();
    assert!(error.to_string().contains("no metadata"), "{error}");
    for bad in [
        "not a url",
        "ftp://as.example",
        "javascript:alert(1)",
        "http://10.0.0.1/",
        "http://169.254.169.254/",
    ] {
        let url = &server.url;
        server.json(
            prm,
            &json!({"resource": format!("{url}/mcp"), "authorization_servers": [bad]}),
        );
        let error = found(&server, None).await.unwrap_err();
        assert!(!error.is_temporary(), "{bad}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_fails_now_is_not_one_without_metadata() {
    let server = TestServer::empty().await;
    server.status("/.well-known/oauth-protected-resource/mcp", 503);
    let error = found(&server, None).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

#[tokio::test]
async fn endpoints_and_the_issuer_of_the_config_win() {
    let server = TestServer::complete().await;
    let mut settings = OAuthConfig {
        issuer: Some(format!("{}/other", server.url)),
        ..OAuthConfig::default()
    };
    server.json(
        "/.well-known/oauth-authorization-server/other",
        &metadata(&server, "/other"),
    );
    let found = found_with(&server, None, settings.clone()).await.unwrap();
    assert_eq!(found.server.issuer, format!("{}/other", server.url));

    settings.token_url = Some(SafeUrl::parse(&format!("{}/my-token", server.url)).unwrap());
    settings.grant = OAuthGrant::ClientCredentials;
    settings.resource = Some("urn:my-resource".to_owned());
    let before = server.paths().len();
    let found = found_with(&server, None, settings).await.unwrap();
    assert_eq!(found.server.token_endpoint.path(), "/my-token");
    assert_eq!(found.resource, "urn:my-resource");
    assert_eq!(server.paths().len(), before, "nothing has to be found");
}

#[tokio::test]
async fn a_probe_reads_the_challenge_of_a_refused_request() {
    let server = TestServer::empty().await;
    let challenge = r#"Bearer scope="a", resource_metadata="https://x.example/prm""#.to_owned();
    server.answer(
        "/mcp",
        401,
        &[
            ("www-authenticate", "Basic".to_owned()),
            ("www-authenticate", challenge),
        ],
        "",
    );
    let account = server.account(OAuthConfig::default());
    let probed = probe(&CheckedHttp::new(), &account).await.unwrap();
    assert!(!probed.is_open);
    let found = probed.challenge;
    assert_eq!(found.resource_metadata.as_deref(), Some("https://x.example/prm"));
    assert_eq!(found.scopes, ["a"]);
    server.status("/mcp", 200);
    let probed = probe(&CheckedHttp::new(), &account).await.unwrap();
    assert_eq!((probed.challenge, probed.is_open), (Challenge::default(), true));
}
