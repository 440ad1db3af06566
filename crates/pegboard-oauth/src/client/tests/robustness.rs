//! What a renewal or a sign-in does while the store or the authorization server does not work.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::{
    super::*,
    {FIRST, REFUSED, age, configured, token, tokens},
};
use crate::{
    signed_out::SignedOut,
    store_key::PlainText,
    test_server::{TestServer, client, query, redirect, sign_in},
};
use pegboard_base::hint::Hint as _;
use pegboard_config::{JwtBearer, OAuthConfig, OAuthGrant, SafeUrl, TokenExchange, TokenInput};

fn in_folder(folder: &tempfile::TempDir) -> OAuthClient {
    OAuthClient::new(
        TokenStore::open(folder.path().to_owned(), Arc::new(PlainText)),
        KnownSecrets::default(),
    )
}

/// Renews the token of an account while the disk becomes full between the request and its answer.
async fn renewed_unstored(server: &TestServer, client: &OAuthClient, account: &OAuthAccount) -> String {
    let asked = server.seen("/token").len();
    let held = server.hold().await;
    let renewing = tokio::spawn({
        let (client, account) = (client.clone(), account.clone());
        async move { token(&client, &account, FIRST).await }
    });
    while server.seen("/token").len() == asked {
        tokio::task::yield_now().await;
    }
    client.store().break_writes(true);
    drop(held);
    renewing.await.unwrap()
}

#[tokio::test]
async fn a_new_token_that_cannot_be_stored_is_used_until_it_can() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let (client, account) = (in_folder(&folder), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    age(&client, &account, 1001).await;
    tokens(&server, "access-2", Some("refresh-2"));
    assert_eq!(renewed_unstored(&server, &client, &account).await, "access-2");
    assert_eq!(token(&client, &account, FIRST).await, "access-2");
    assert_eq!(server.seen("/token").len(), 2);
    // The refresh token is the new one, and it is stored when that is possible again.
    client.store().break_writes(false);
    tokens(&server, "access-3", Some("refresh-3"));
    assert_eq!(token(&client, &account, REFUSED).await, "access-3");
    assert_eq!(server.seen("/token")[2].form["refresh_token"], "refresh-2");
    assert_eq!(token(&in_folder(&folder), &account, FIRST).await, "access-3");
}

#[tokio::test]
async fn a_sign_in_elsewhere_replaces_what_could_not_be_stored() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let (client, other) = (in_folder(&folder), in_folder(&folder));
    let account = server.account(OAuthConfig::default());
    sign_in(&client, &account).await;
    age(&client, &account, 1001).await;
    tokens(&server, "access-2", Some("refresh-2"));
    assert_eq!(renewed_unstored(&server, &client, &account).await, "access-2");
    tokens(&server, "access-3", Some("refresh-3"));
    sign_in(&other, &account).await;
    assert_eq!(token(&client, &account, FIRST).await, "access-3");
}

#[tokio::test]
async fn a_refresh_token_is_not_used_up_while_a_new_one_cannot_be_stored() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let (client, account) = (in_folder(&folder), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    age(&client, &account, 1001).await;
    client.store().break_writes(true);
    tokens(&server, "access-2", Some("refresh-2"));
    let error = client.access_token(&account, FIRST).await.unwrap_err();
    assert!(matches!(error, OAuthError::Store(_)) && error.is_temporary(), "{error}");
    assert_eq!(server.seen("/token").len(), 1, "the refresh token was not sent");
    // Another process with a working disk goes on with it.
    assert_eq!(token(&in_folder(&folder), &account, FIRST).await, "access-2");
}

#[tokio::test]
async fn a_valid_token_is_used_while_the_store_cannot_be_locked() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let (client, account) = (in_folder(&folder), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    age(&client, &account, 900).await;
    let lock = folder.path().join(format!("{}.lock", account.key().as_str()));
    let _ = std::fs::remove_file(&lock);
    std::fs::create_dir(&lock).unwrap();
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
    age(&client, &account, 1001).await;
    tokio::time::pause();
    tokio::time::advance(RETRY_AFTER).await;
    tokio::time::resume();
    let error = client.access_token(&account, FIRST).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

#[tokio::test]
async fn a_refused_revocation_shows_no_token_and_both_tokens_are_tried() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    let echo = json!({"error": "invalid_request", "error_description": "bad token refresh-1, bad token access-1"});
    server.answer("/revoke", 400, &[], &echo.to_string());
    let SignedOut::OnlyForgotten(why) = client.sign_out(&account).await.unwrap() else {
        panic!("nothing was revoked");
    };
    assert_eq!(why, "the authorization server refused it: invalid_request");
    let seen = server.seen("/revoke");
    assert!(seen.iter().any(|seen| seen.form["token"] == "access-1"));
}

#[tokio::test]
async fn a_sign_out_of_tokens_that_cannot_be_read_says_that_they_are_not_revoked() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let (client, account) = (in_folder(&folder), server.account(OAuthConfig::default()));
    let file = folder.path().join(format!("{}.json", account.key().as_str()));
    for content in [r#"{"version":1,"sealed":"AAAA"}"#, "cut"] {
        sign_in(&client, &account).await;
        std::fs::write(&file, content).unwrap();
        let ended = client.sign_out(&account).await.unwrap();
        assert!(matches!(ended, SignedOut::OnlyForgotten(_)), "{content}: {ended:?}");
        assert!(!file.exists() && !file.with_extension("damaged").exists());
        assert_eq!(client.sign_out(&account).await.unwrap(), SignedOut::WasNot);
    }
}

#[tokio::test]
async fn a_sign_out_ends_the_session_of_another_dpop_setting_too() {
    let server = TestServer::complete().await;
    let client = client();
    sign_in(&client, &server.account(OAuthConfig::default())).await;
    let changed = server.account(OAuthConfig {
        dpop: pegboard_config::Dpop::Off,
        ..OAuthConfig::default()
    });
    assert_eq!(client.sign_out(&changed).await.unwrap(), SignedOut::Revoked);
    let account = server.account(OAuthConfig::default());
    assert!(!client.is_signed_in(&account).await.unwrap());
}

#[tokio::test]
async fn the_reason_why_a_session_was_ended_is_kept_until_its_token_is_over() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    let ended = json!({"error": "invalid_grant", "error_description": "the user has left"});
    server.answer("/token", 400, &[], &ended.to_string());
    age(&client, &account, 900).await;
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
    age(&client, &account, 1001).await;
    let error = client.access_token(&account, FIRST).await.unwrap_err();
    assert!(
        error.needs_sign_in() && error.to_string().contains("the user has left"),
        "{error}"
    );
}

#[tokio::test]
async fn something_else_that_answers_for_the_authorization_server_needs_no_person() {
    let server = TestServer::complete().await;
    for (status, body) in [
        (403, "<html>blocked</html>"),
        (200, "<html>welcome</html>"),
        (400, r#"{"error":"use_dpop_nonce"}"#),
    ] {
        let (client, account) = (client(), server.account(OAuthConfig::default()));
        tokens(&server, "access-1", Some("refresh-1"));
        sign_in(&client, &account).await;
        age(&client, &account, 1001).await;
        server.answer("/token", status, &[], body);
        let error = client.access_token(&account, FIRST).await.unwrap_err();
        assert!(error.is_temporary(), "{status} {body}: {error}");
    }
}

#[tokio::test]
async fn a_refused_step_up_without_a_person_is_not_repeated_at_once() {
    let server = TestServer::complete().await;
    let mut settings = configured();
    settings.grant = OAuthGrant::ClientCredentials;
    let (client, account) = (client(), server.account(settings));
    token(&client, &account, FIRST).await;
    server.answer("/token", 400, &[], r#"{"error":"invalid_scope"}"#);
    let reason = CredentialReason::Refused {
        challenge: Some(r#"Bearer error="insufficient_scope", scope="write""#),
    };
    for _ in 0..5 {
        assert!(client.access_token(&account, reason).await.is_err());
    }
    assert_eq!(server.seen("/token").len(), 2);
}

#[tokio::test]
async fn a_token_of_a_few_seconds_is_not_renewed_with_each_request() {
    for lifetime in 1..5 {
        let server = TestServer::complete().await;
        server.json(
            "/token",
            &json!({"access_token": "short", "expires_in": lifetime, "refresh_token": "r"}),
        );
        let (client, account) = (client(), server.account(OAuthConfig::default()));
        sign_in(&client, &account).await;
        let stored = client.store().account(&account.key()).await.unwrap().unwrap();
        let session = stored.session.unwrap();
        assert!(session.refresh_at() > session.issued_at, "{lifetime}");
    }
}

#[tokio::test]
async fn a_valid_token_is_not_risked_for_one_that_cannot_be_stored() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let (client, account) = (in_folder(&folder), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    age(&client, &account, 900).await;
    client.store().break_writes(true);
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
    assert_eq!(server.seen("/token").len(), 1);
}

#[tokio::test]
async fn a_sign_in_whose_tokens_cannot_be_stored_fails_and_works_in_this_process() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let (client, account) = (in_folder(&folder), server.account(OAuthConfig::default()));
    let pending = client.begin(&account, &redirect()).await.unwrap();
    client.store().break_writes(true);
    let answer = format!("code=c&state={}", pending.state());
    let error = client.finish(pending, &answer).await.unwrap_err();
    assert!(matches!(error, OAuthError::Store(_)) && error.is_temporary(), "{error}");
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
}

#[tokio::test]
async fn a_code_is_not_used_before_its_tokens_can_be_stored() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    let pending = client.begin(&account, &redirect()).await.unwrap();
    let held = client.store().lock(&account.key()).await.unwrap();
    let answer = format!("code=c&state={}", pending.state());
    let finishing = client.finish(pending, &answer);
    tokio::pin!(finishing);
    assert!(
        tokio::time::timeout(Duration::from_millis(100), &mut finishing)
            .await
            .is_err()
    );
    assert!(server.seen("/token").is_empty());
    drop(held);
    finishing.await.unwrap();
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
}

#[tokio::test]
async fn an_authorization_server_that_does_not_answer_stalls_no_request_with_a_valid_token() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    age(&client, &account, 900).await;
    tokens(&server, "access-2", None);
    let held = server.hold().await;
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
    // The renewal goes on: nobody waits for it, and none is added.
    let began = Instant::now();
    for _ in 0..10 {
        assert_eq!(token(&client, &account, FIRST).await, "access-1");
    }
    assert!(began.elapsed() < GRACE, "{:?}", began.elapsed());
    drop(held);
    client.close().await;
    assert_eq!(token(&client, &account, FIRST).await, "access-2");
    assert_eq!(server.seen("/token").len(), 2);
}

#[tokio::test]
async fn a_refusal_that_does_not_pass_is_not_repeated_at_once() {
    let server = TestServer::complete().await;
    let mut settings = configured();
    settings.grant = OAuthGrant::ClientCredentials;
    let (client, account) = (client(), server.account(settings.clone()));
    server.answer("/token", 401, &[], r#"{"error":"invalid_client"}"#);
    for _ in 0..20 {
        let error = client.access_token(&account, FIRST).await.unwrap_err();
        assert!(matches!(error, OAuthError::WrongClient { .. }), "{error}");
    }
    assert_eq!(server.seen("/token").len(), 1);
    // Another secret is tried at once.
    settings.client_secret = Some(Secret::new("better"));
    tokens(&server, "access-1", None);
    assert_eq!(token(&client, &server.account(settings), FIRST).await, "access-1");
}

#[tokio::test]
async fn a_client_that_is_not_known_any_more_is_not_sent_again_and_again() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    age(&client, &account, 1001).await;
    server.answer("/token", 401, &[], r#"{"error":"invalid_client"}"#);
    for _ in 0..5 {
        assert!(client.access_token(&account, FIRST).await.unwrap_err().needs_sign_in());
    }
    assert_eq!(server.seen("/token").len(), 2);
}

#[tokio::test]
async fn metadata_that_is_gone_does_not_block_a_sign_in() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    let challenge = r#"Bearer scope="files", resource_metadata="https://192.168.255.1/gone""#;
    let reason = CredentialReason::Refused {
        challenge: Some(challenge),
    };
    assert!(client.access_token(&account, reason).await.unwrap_err().needs_sign_in());
    let pending = client.begin(&account, &redirect()).await.unwrap();
    assert_eq!(query(pending.url())["scope"], "files");
}

#[tokio::test]
async fn exchanged_tokens_and_codes_go_only_where_the_config_says() {
    let server = TestServer::complete().await;
    let client = client();
    let url = || Some(SafeUrl::parse(&format!("{}/own", server.url)).unwrap());
    let value = || TokenInput::Value("subject".into());
    for grant in [
        OAuthGrant::TokenExchange(TokenExchange::new(value())),
        OAuthGrant::JwtBearer(JwtBearer::new(value())),
    ] {
        let mut settings = configured();
        settings.grant = grant;
        let error = client.access_token(&server.account(settings), FIRST).await.unwrap_err();
        assert!(error.to_string().contains("needs `issuer` or `token_url`"), "{error}");
    }
    let page = OAuthConfig {
        authorization_url: url(),
        ..configured()
    };
    let endpoint = OAuthConfig {
        token_url: url(),
        ..configured()
    };
    for settings in [page, endpoint] {
        let error = client.begin(&server.account(settings), &redirect()).await.unwrap_err();
        assert!(matches!(error, OAuthError::Setting(_)), "{error}");
    }
    assert!(server.paths().is_empty(), "{:?}", server.paths());
}

#[tokio::test]
async fn tokens_are_revoked_only_where_they_came_from() {
    let (server, other) = (TestServer::complete().await, TestServer::complete().await);
    let mut metadata = server.metadata();
    metadata["revocation_endpoint"] = json!(format!("{}/revoke", other.url));
    server.json("/.well-known/oauth-authorization-server", &metadata);
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    let ended = client.sign_out(&account).await.unwrap();
    assert!(matches!(ended, SignedOut::OnlyForgotten(_)), "{ended:?}");
    assert!(other.paths().is_empty());
}

#[tokio::test]
async fn another_token_url_gets_nothing_of_the_old_session_and_the_old_one_nothing_new() {
    let server = TestServer::complete().await;
    let client = client();
    let settings = |path: &str, secret: &str| {
        let mut settings = configured();
        settings.grant = OAuthGrant::ClientCredentials;
        settings.client_secret = Some(Secret::new(secret));
        settings.token_url = Some(SafeUrl::parse(&format!("{}{path}", server.url)).unwrap());
        server.account(settings)
    };
    tokens(&server, "access-1", None);
    server.json("/token2", &json!({"access_token": "access-2"}));
    assert_eq!(token(&client, &settings("/token", "old"), FIRST).await, "access-1");
    assert_eq!(token(&client, &settings("/token2", "new"), FIRST).await, "access-2");
    assert_eq!((server.seen("/token").len(), server.seen("/token2").len()), (1, 1));
}

#[tokio::test]
async fn a_secret_stays_at_the_first_authorization_server_after_a_sign_out_too() {
    let (server, other) = (TestServer::complete().await, TestServer::complete().await);
    let client = client();
    let secret = server.account(configured());
    sign_in(&client, &secret).await;
    client.sign_out(&secret).await.unwrap();
    let moved = json!({"resource": format!("{}/mcp", server.url), "authorization_servers": [other.url]});
    server.json("/.well-known/oauth-protected-resource/mcp", &moved);
    let error = client.begin(&secret, &redirect()).await.unwrap_err();
    for text in [server.url.as_str(), other.url.as_str()] {
        assert!(error.to_string().contains(text), "{error}");
    }
    let mut robot = configured();
    robot.grant = OAuthGrant::ClientCredentials;
    let error = client.access_token(&server.account(robot), FIRST).await.unwrap_err();
    assert!(matches!(error, OAuthError::IssuerChanged { .. }), "{error}");
    assert!(other.seen("/token").is_empty());
    // The hint says how to accept it.
    assert!(
        error
            .hint()
            .unwrap()
            .contains(&format!("oauth.issuer = \"{}\"", other.url))
    );
    let mut accepted = configured();
    accepted.issuer = Some(other.url.clone());
    sign_in(&client, &server.account(accepted)).await;
    assert_eq!(other.seen("/token").len(), 1);
}

#[tokio::test]
async fn a_registration_or_pinned_issuer_that_is_damaged_blocks_no_sign_in() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let client = in_folder(&folder);
    let accounts = [server.account(OAuthConfig::default()), server.account(configured())];
    for content in ["cut", r#"{"version":1,"plain":{"other":1}}"#] {
        for account in &accounts {
            sign_in(&client, account).await;
        }
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "json") {
                std::fs::write(path, content).unwrap();
            }
        }
        for account in &accounts {
            sign_in(&client, account).await;
        }
    }
    assert_eq!(server.seen("/register").len(), 3);
}
