//! What is sent to a token endpoint for each grant and method, and what its answers mean.

use base64::Engine as _;
use serde_json::json;

use super::*;
use crate::test_server::{Seen, TestServer};
use pegboard_config::{ClientKey, OAuthGrant, SafeUrl};

fn client(auth: ClientAuth) -> StoredClient {
    StoredClient {
        id: "me:1".to_owned(),
        secret: Some(Secret::new("s3cret%")),
        auth,
    }
}

async fn send(server: &TestServer, client: &StoredClient, grant: &Grant<'_>) -> Result<TokenAnswer, TokenError> {
    let account = server.account(OAuthConfig::default());
    let identity = ClientIdentity::new(client, &account.settings, "https://as.example", None);
    let endpoint = Url::parse(&format!("{}/token", server.url)).unwrap();
    let wanted = TokenRequestBase {
        resource: Some("https://mcp.example/mcp"),
        audience: None,
        scopes: &["a".to_owned(), "b".to_owned()],
    };
    request(
        &CheckedHttp::new(),
        &ConfiguredOrigins::new(&account),
        &endpoint,
        &identity,
        grant,
        wanted,
    )
    .await
}

fn last(server: &TestServer) -> Seen {
    server.seen("/token").pop().unwrap()
}

#[tokio::test]
async fn a_client_authenticates_by_its_method_and_sends_its_secret_once() {
    let server = TestServer::complete().await;
    for (auth, in_header, in_form) in [
        (ClientAuth::None, false, false),
        (ClientAuth::ClientSecretBasic, true, false),
        (ClientAuth::ClientSecretPost, false, true),
    ] {
        send(&server, &client(auth), &Grant::ClientCredentials).await.unwrap();
        let seen = last(&server);
        let header = seen
            .headers
            .get("authorization")
            .map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header.is_some(), in_header, "{auth:?}");
        if let Some(header) = header {
            let pair = STANDARD.decode(header.strip_prefix("Basic ").unwrap()).unwrap();
            assert_eq!(pair, b"me%3A1:s3cret%25", "form-encoded first");
        }
        assert_eq!(seen.form.contains_key("client_secret"), in_form, "{auth:?}");
        assert_eq!(seen.form["client_id"], "me:1", "{auth:?}");
    }
}

#[tokio::test]
async fn a_private_key_signs_an_assertion_for_the_issuer() {
    let server = TestServer::complete().await;
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let settings = OAuthConfig {
        client_id: Some("me".to_owned()),
        private_key: Some(ClientKey::new(Secret::new(pair.serialize_pem()))),
        grant: OAuthGrant::ClientCredentials,
        ..OAuthConfig::default()
    };
    let account = server.account(settings);
    let client = StoredClient {
        id: "me".to_owned(),
        secret: None,
        auth: ClientAuth::PrivateKeyJwt,
    };
    let identity = ClientIdentity::new(&client, &account.settings, "https://as.example", None);
    let endpoint = Url::parse(&format!("{}/token", server.url)).unwrap();
    let wanted = TokenRequestBase {
        resource: None,
        audience: None,
        scopes: &[],
    };
    let grant = Grant::ClientCredentials;
    request(
        &CheckedHttp::new(),
        &ConfiguredOrigins::new(&account),
        &endpoint,
        &identity,
        &grant,
        wanted,
    )
    .await
    .unwrap();
    let form = last(&server).form;
    assert_eq!(
        form["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    let claims = form["client_assertion"].split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(
        (&claims["aud"], &claims["sub"]),
        (&json!("https://as.example"), &json!("me"))
    );
}

#[tokio::test]
async fn the_secret_of_the_config_is_not_sent_for_another_client() {
    let server = TestServer::complete().await;
    let settings = OAuthConfig {
        client_id: Some("mine".to_owned()),
        client_secret: Some(Secret::new("s3cret")),
        ..OAuthConfig::default()
    };
    let other = StoredClient {
        id: "other".to_owned(),
        secret: None,
        auth: ClientAuth::ClientSecretBasic,
    };
    let account = server.account(settings);
    let identity = ClientIdentity::new(&other, &account.settings, "https://as.example", None);
    assert!(authenticate(&identity).is_err());
}

#[tokio::test]
async fn each_grant_sends_its_own_fields_and_always_the_resource() {
    let server = TestServer::complete().await;
    let (code, verifier, token) = (
        Secret::new("the-code"),
        Secret::new("the-verifier"),
        Secret::new("the-token"),
    );
    let mut exchange = TokenExchange::new(TokenInput::Caller);
    exchange.requested_type = Some("urn:x".to_owned());
    type Fields = [(&'static str, &'static str)];
    let grants: [(Grant<'_>, &str, &Fields); 5] = [
        (
            Grant::Code {
                code: &code,
                verifier: &verifier,
                redirect_uri: "http://127.0.0.1:9/callback",
            },
            "authorization_code",
            &[
                ("code", "the-code"),
                ("code_verifier", "the-verifier"),
                ("redirect_uri", "http://127.0.0.1:9/callback"),
            ],
        ),
        (
            Grant::Refresh(&token),
            "refresh_token",
            &[("refresh_token", "the-token")],
        ),
        (Grant::ClientCredentials, "client_credentials", &[("scope", "a b")]),
        (
            Grant::Exchange {
                subject: &token,
                exchange: &exchange,
            },
            "urn:ietf:params:oauth:grant-type:token-exchange",
            &[
                ("subject_token", "the-token"),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
                ("requested_token_type", "urn:x"),
                ("scope", "a b"),
            ],
        ),
        (
            Grant::Assertion(&token),
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
            &[("assertion", "the-token"), ("scope", "a b")],
        ),
    ];
    for (grant, name, expected) in grants {
        send(&server, &client(ClientAuth::None), &grant).await.unwrap();
        let form = last(&server).form;
        assert_eq!(form["grant_type"], name);
        assert_eq!(form["resource"], "https://mcp.example/mcp", "{name}");
        for (field, value) in expected {
            assert_eq!(form.get(*field).map(String::as_str), Some(*value), "{name} {field}");
        }
        assert_eq!(form.len(), 3 + expected.len(), "{form:?}");
    }
}

#[tokio::test]
async fn errors_are_told_apart() {
    let server = TestServer::complete().await;
    for (status, error, expected) in [
        (400, "invalid_grant", "grant"),
        (200, "invalid_grant", "grant"),
        (401, "invalid_client", "client"),
        (400, "unauthorized_client", "client"),
        (400, "invalid_scope", "refused"),
        (503, "temporarily_unavailable", "temporary"),
        (500, "oops", "temporary"),
        (429, "rate", "temporary"),
    ] {
        server.once("/token", status, &json!({"error": error}));
        let token = Secret::new("the-token");
        let result = send(&server, &client(ClientAuth::None), &Grant::Refresh(&token)).await;
        let found = match result.unwrap_err() {
            TokenError::InvalidGrant(_) => "grant",
            TokenError::InvalidClient(_) => "client",
            TokenError::Other(error) if error.is_temporary() => "temporary",
            TokenError::Proof(_) => "proof",
            TokenError::Other(_) => "refused",
        };
        assert_eq!(found, expected, "{status} {error}");
    }
    server.answer("/token", 502, &[], "<html>");
    let error = send(&server, &client(ClientAuth::None), &Grant::ClientCredentials)
        .await
        .unwrap_err();
    assert!(OAuthError::from(error).is_temporary());
}

#[tokio::test]
async fn a_token_file_is_read_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let server = TestServer::empty().await;
    let account = server.account(OAuthConfig::default());
    let input = TokenInput::File(file.clone());
    assert!(read_input(&input, &account).await.unwrap_err().is_temporary());
    for token in ["one", "two"] {
        std::fs::write(&file, format!("{token}\n")).unwrap();
        assert_eq!(read_input(&input, &account).await.unwrap().expose(), token);
    }
    std::fs::write(&file, "\n").unwrap();
    assert!(read_input(&input, &account).await.is_err());
    assert!(read_input(&TokenInput::Caller, &account).await.is_err());
}

#[tokio::test]
async fn an_identity_provider_issues_the_assertion_for_the_authorization_server() {
    let (server, provider) = (TestServer::complete().await, TestServer::complete().await);
    provider.json("/token", &json!({"access_token": "id-jag", "token_type": "N_A"}));
    let mut grant = JwtBearer::new(TokenInput::Value(Secret::new("id-token")));
    let token_url = SafeUrl::parse(&format!("{}/token", provider.url)).unwrap();
    let mut identity_provider = IdentityProvider::new(token_url);
    identity_provider.client_id = Some("at-the-provider".to_owned());
    grant.identity_provider = Some(identity_provider);
    let account = server.account(OAuthConfig::default());
    let wanted = TokenRequestBase {
        resource: Some("https://mcp.example/mcp"),
        audience: None,
        scopes: &[],
    };
    let assertion = assertion(
        &CheckedHttp::new(),
        &account,
        &grant,
        Secret::new("id-token"),
        "https://as.example",
        wanted,
    )
    .await
    .unwrap();
    assert_eq!(assertion.expose(), "id-jag");
    let form = last(&provider).form;
    assert_eq!(form["subject_token"], "id-token");
    assert_eq!(form["subject_token_type"], "urn:ietf:params:oauth:token-type:id_token");
    assert_eq!(form["requested_token_type"], ID_JAG);
    assert_eq!(form["audience"], "https://as.example");
    assert_eq!(form["client_id"], "at-the-provider");
    assert!(server.seen("/token").is_empty());
}
