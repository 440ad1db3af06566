//! Sign-in, renewal, step-up and sign-out of accounts, at a small authorization server.

mod grants;
mod robustness;

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::*;
use crate::{
    clock::unix_now,
    signed_out::SignedOut,
    store_key::PlainText,
    test_server::{TestServer, client, query, redirect, sign_in},
};
use pegboard_config::OAuthConfig;

const FIRST: CredentialReason<'static> = CredentialReason::FirstUse;
const REFUSED: CredentialReason<'static> = CredentialReason::Refused { challenge: None };

fn configured() -> OAuthConfig {
    OAuthConfig {
        client_id: Some("mine".to_owned()),
        client_secret: Some(Secret::new("s3cret")),
        ..OAuthConfig::default()
    }
}

fn tokens(server: &TestServer, access: &str, refresh: Option<&str>) {
    let mut body = json!({"access_token": access, "expires_in": 1000});
    if let Some(refresh) = refresh {
        body["refresh_token"] = refresh.into();
    }
    server.json("/token", &body);
}

/// Makes the token of an account older.
async fn age(client: &OAuthClient, account: &OAuthAccount, seconds: u64) {
    let store = client.store();
    let mut stored = store.account(&account.key()).await.unwrap().unwrap();
    let session = stored.session.as_mut().unwrap();
    session.issued_at = unix_now() - seconds;
    store.put_account(&account.key(), &stored).await.unwrap();
}

async fn token(client: &OAuthClient, account: &OAuthAccount, reason: CredentialReason<'_>) -> String {
    client
        .access_token(account, reason)
        .await
        .unwrap()
        .token
        .expose()
        .to_owned()
}

#[tokio::test]
async fn a_person_signs_in_once_and_the_token_is_used() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    assert!(client.access_token(&account, FIRST).await.unwrap_err().needs_sign_in());
    assert!(!client.is_signed_in(&account).await.unwrap());
    sign_in(&client, &account).await;
    assert!(client.is_signed_in(&account).await.unwrap());
    let token = client.access_token(&account, FIRST).await.unwrap();
    assert_eq!(token.token.expose(), "access-1");
    assert!(token.valid_for <= Duration::from_secs(60), "{token:?}");
    let seen = server.seen("/token");
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].form["code"], "the-code");
    assert_eq!(seen[0].form["resource"], format!("{}/mcp", server.url));
    assert_eq!(seen[0].form["client_id"], "registered");
    assert_eq!(
        server.seen("/register")[0].json["redirect_uris"],
        json!(["http://127.0.0.1:9/callback"])
    );
}

#[tokio::test]
async fn a_registration_is_kept_for_the_next_sign_in_at_the_same_authorization_server() {
    let (server, other) = (TestServer::complete().await, TestServer::complete().await);
    let client = client();
    for _ in 0..2 {
        sign_in(&client, &server.account(OAuthConfig::default())).await;
    }
    assert_eq!(server.seen("/register").len(), 1);
    sign_in(&client, &other.account(OAuthConfig::default())).await;
    assert_eq!(other.seen("/register").len(), 1);
}

#[tokio::test]
async fn the_challenge_of_a_refusal_is_where_the_next_sign_in_begins() {
    let server = TestServer::complete().await;
    server.json(
        "/custom",
        &json!({"resource": format!("{}/mcp", server.url), "authorization_servers": [server.url]}),
    );
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    let challenge = format!(r#"Bearer scope="files", resource_metadata="{}/custom""#, server.url);
    let reason = CredentialReason::Refused {
        challenge: Some(&challenge),
    };
    let mut changes = client.store().changes();
    changes.mark_unchanged();
    for _ in 0..2 {
        assert!(client.access_token(&account, reason).await.unwrap_err().needs_sign_in());
    }
    changes.changed().await.unwrap();
    assert!(!changes.has_changed().unwrap(), "the same challenge again is no change");
    let pending = client.begin(&account, &redirect()).await.unwrap();
    assert_eq!(query(pending.url())["scope"], "files");
    assert_eq!(server.seen("/custom").len(), 1);
    assert!(server.seen("/mcp").is_empty(), "the server need not be asked");
}

#[tokio::test]
async fn without_a_challenge_the_server_is_asked_for_one() {
    let server = TestServer::complete().await;
    let challenge = r#"Bearer scope="asked""#.to_owned();
    server.answer("/mcp", 401, &[("www-authenticate", challenge)], "");
    let pending = client()
        .begin(&server.account(OAuthConfig::default()), &redirect())
        .await
        .unwrap();
    assert_eq!(query(pending.url())["scope"], "asked");
    let seen = server.seen("/mcp");
    assert!(seen.len() == 1 && !seen[0].headers.contains_key("authorization"));
}

#[tokio::test]
async fn a_token_is_renewed_at_four_fifths_of_its_lifetime() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    tokens(&server, "access-2", None);
    age(&client, &account, 790).await;
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
    age(&client, &account, 801).await;
    assert_eq!(token(&client, &account, FIRST).await, "access-2");
    let refresh = &server.seen("/token")[1].form;
    assert_eq!(
        (refresh["grant_type"].as_str(), refresh["refresh_token"].as_str()),
        ("refresh_token", "refresh-1")
    );
    assert_eq!(refresh["resource"], format!("{}/mcp", server.url));
    // The old refresh token stays, because none replaced it.
    age(&client, &account, 801).await;
    tokens(&server, "access-3", Some("refresh-2"));
    assert_eq!(token(&client, &account, FIRST).await, "access-3");
    assert_eq!(server.seen("/token")[2].form["refresh_token"], "refresh-1");
    age(&client, &account, 801).await;
    assert_eq!(token(&client, &account, FIRST).await, "access-3");
    assert_eq!(server.seen("/token")[3].form["refresh_token"], "refresh-2");
}

#[tokio::test]
async fn concurrent_requests_of_several_processes_renew_once() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let account = server.account(OAuthConfig::default());
    let process = || {
        OAuthClient::new(
            TokenStore::open(folder.path().to_owned(), Arc::new(PlainText)),
            KnownSecrets::default(),
        )
    };
    let first = process();
    sign_in(&first, &account).await;
    age(&first, &account, 1001).await;
    tokens(&server, "access-2", Some("refresh-2"));
    let held = server.hold().await;
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (client, account) = (process(), account.clone());
        for _ in 0..4 {
            let (client, account) = (client.clone(), account.clone());
            tasks.push(tokio::spawn(async move { token(&client, &account, FIRST).await }));
        }
    }
    while server.seen("/token").len() < 2 {
        tokio::task::yield_now().await;
    }
    drop(held);
    for task in tasks {
        assert_eq!(task.await.unwrap(), "access-2");
    }
    assert_eq!(server.seen("/token").len(), 2, "one sign-in and one refresh");
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_one_that_another_process_renewed_is_used() {
    let server = TestServer::complete().await;
    let folder = tempfile::tempdir().unwrap();
    let account = server.account(OAuthConfig::default());
    let process = || {
        OAuthClient::new(
            TokenStore::open(folder.path().to_owned(), Arc::new(PlainText)),
            KnownSecrets::default(),
        )
    };
    let (one, two) = (process(), process());
    sign_in(&one, &account).await;
    assert_eq!(token(&one, &account, FIRST).await, "access-1");
    assert_eq!(token(&two, &account, FIRST).await, "access-1");
    tokens(&server, "access-2", Some("refresh-2"));
    assert_eq!(token(&one, &account, REFUSED).await, "access-2");
    assert_eq!(token(&two, &account, REFUSED).await, "access-2");
    assert_eq!(server.seen("/token").len(), 2);
}

#[tokio::test]
async fn a_failed_renewal_keeps_the_token_while_it_is_valid_and_asks_nobody() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    age(&client, &account, 900).await;
    server.answer("/token", 503, &[], "");
    let kept = client.access_token(&account, FIRST).await.unwrap();
    assert_eq!(kept.token.expose(), "access-1");
    assert!(kept.valid_for <= RETRY_AFTER);
    age(&client, &account, 1001).await;
    let error = client.access_token(&account, FIRST).await.unwrap_err();
    assert!(error.is_temporary() && !error.needs_sign_in(), "{error}");
    // Not asked again at once.
    let asked = server.seen("/token").len();
    assert!(client.access_token(&account, FIRST).await.unwrap_err().is_temporary());
    assert_eq!(server.seen("/token").len(), asked);
    tokio::time::pause();
    tokio::time::advance(RETRY_AFTER).await;
    tokio::time::resume();
    tokens(&server, "access-2", None);
    assert_eq!(token(&client, &account, FIRST).await, "access-2");
}

#[tokio::test]
async fn an_ended_session_needs_a_person_once_the_token_is_over() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    server.answer("/token", 400, &[], r#"{"error":"invalid_grant"}"#);
    age(&client, &account, 900).await;
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
    age(&client, &account, 1001).await;
    let error = client.access_token(&account, FIRST).await.unwrap_err();
    assert!(error.needs_sign_in(), "{error}");
    assert_eq!(
        server.seen("/token").len(),
        2,
        "an invalid refresh token is not sent again"
    );
    // A sign-in is picked up.
    tokens(&server, "access-9", None);
    sign_in(&client, &account).await;
    assert_eq!(token(&client, &account, FIRST).await, "access-9");
}

#[tokio::test]
async fn a_renewal_that_nobody_waits_for_is_finished_and_stored() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    age(&client, &account, 900).await;
    tokens(&server, "access-2", Some("refresh-2"));
    let held = server.hold().await;
    {
        let asked = client.access_token(&account, FIRST);
        tokio::pin!(asked);
        while server.seen("/token").len() < 2 {
            tokio::select! {
                _ = &mut asked => unreachable!(),
                () = tokio::task::yield_now() => {}
            }
        }
        // The caller gives up.
    }
    drop(held);
    client.close().await;
    let stored = client
        .store()
        .account(&account.key())
        .await
        .unwrap()
        .unwrap()
        .session
        .unwrap();
    assert_eq!(stored.refresh_token.unwrap().expose(), "refresh-2");
    assert!(!stored.refreshing);
}

#[tokio::test]
async fn a_refresh_that_was_killed_is_tried_again_and_told_honestly_if_its_answer_is_lost() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    let store = client.store();
    let mut stored = store.account(&account.key()).await.unwrap().unwrap();
    stored.session.as_mut().unwrap().refreshing = true;
    store.put_account(&account.key(), &stored).await.unwrap();
    // The authorization server had not got the first one.
    age(&client, &account, 1001).await;
    tokens(&server, "access-2", Some("refresh-2"));
    assert_eq!(token(&client, &account, FIRST).await, "access-2");
    // It had.
    stored.session.as_mut().unwrap().issued_at = unix_now() - 1001;
    store.put_account(&account.key(), &stored).await.unwrap();
    server.answer("/token", 400, &[], r#"{"error":"invalid_grant"}"#);
    let error = client.access_token(&account, FIRST).await.unwrap_err();
    assert!(
        error.needs_sign_in() && error.to_string().contains("interrupted"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_refuses_every_new_token_is_not_given_new_ones_for_ever() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    token(&client, &account, FIRST).await;
    let mut renewals = 0;
    let error = loop {
        tokens(&server, &format!("new-{renewals}"), None);
        match client.access_token(&account, REFUSED).await {
            Ok(_) => renewals += 1,
            Err(error) => break error,
        }
        assert!(renewals < 10);
    };
    assert!(error.needs_sign_in() && renewals == 2, "{error} {renewals}");
}

/// Several connections have the same token, and each of them is told that it has ended.
#[tokio::test]
async fn refusals_of_an_older_token_do_not_count_against_its_successor() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    let old = client.access_token(&account, FIRST).await.unwrap().token;
    tokens(&server, "successor", None);
    for _ in 0..5 {
        let refused = client.access_token_after(&account, REFUSED, Some(old.clone()));
        assert_eq!(refused.await.unwrap().token.expose(), "successor");
    }
}

#[tokio::test]
async fn more_scopes_are_asked_for_together_with_the_old_ones_and_not_for_ever() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    let challenge = |scope: &str| format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
    let asked = |text: String| {
        let (client, account) = (client.clone(), account.clone());
        async move {
            token(&client, &account, FIRST).await;
            let reason = CredentialReason::Refused { challenge: Some(&text) };
            client.access_token(&account, reason).await.unwrap_err()
        }
    };
    tokens(&server, "access-2", None);
    assert!(asked(challenge("write")).await.needs_sign_in());
    let pending = client.begin(&account, &redirect()).await.unwrap();
    assert_eq!(query(pending.url())["scope"], "read write");
    sign_in(&client, &account).await;
    tokens(&server, "access-3", None);
    // The same scope again: once more, because the person may have left it out.
    assert!(asked(challenge("write")).await.needs_sign_in());
    sign_in(&client, &account).await;
    tokens(&server, "access-4", None);
    assert!(matches!(asked(challenge("write")).await, OAuthError::StepUpLimit(_)));
    assert!(asked(challenge("third")).await.needs_sign_in());
    sign_in(&client, &account).await;
    tokens(&server, "access-5", None);
    assert!(matches!(asked(challenge("fourth")).await, OAuthError::StepUpLimit(_)));
}

#[tokio::test]
async fn principals_and_the_board_have_sessions_of_their_own() {
    let server = TestServer::complete().await;
    let client = client();
    let account = |principal: Option<&str>| {
        let mut account = server.account(OAuthConfig::default());
        account.principal = principal.map(Into::into);
        account
    };
    sign_in(&client, &account(Some("alice"))).await;
    assert_eq!(token(&client, &account(Some("alice")), FIRST).await, "access-1");
    for other in [None, Some("bob"), Some("")] {
        assert!(
            client
                .access_token(&account(other), FIRST)
                .await
                .unwrap_err()
                .needs_sign_in()
        );
    }
}

#[tokio::test]
async fn another_authorization_server_gets_neither_the_old_client_nor_the_secret() {
    let (server, other) = (TestServer::complete().await, TestServer::complete().await);
    let client = client();
    let moved = json!({"resource": format!("{}/mcp", server.url), "authorization_servers": [other.url]});
    let account = server.account(OAuthConfig::default());
    sign_in(&client, &account).await;
    let secret = server.account(configured());
    sign_in(&client, &secret).await;
    server.json("/.well-known/oauth-protected-resource/mcp", &moved);
    other.json("/register", &json!({"client_id": "registered-at-the-other"}));
    sign_in(&client, &account).await;
    assert_eq!(other.seen("/token")[0].form["client_id"], "registered-at-the-other");
    let error = client.begin(&secret, &redirect()).await.unwrap_err();
    assert!(error.to_string().contains("not sent to another one"), "{error}");
    assert_eq!(other.seen("/token").len(), 1);
}

#[tokio::test]
async fn a_sign_out_revokes_and_forgets() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    assert_eq!(client.sign_out(&account).await.unwrap(), SignedOut::WasNot);
    sign_in(&client, &account).await;
    assert_eq!(client.sign_out(&account).await.unwrap(), SignedOut::Revoked);
    let revoked: Vec<String> = server
        .seen("/revoke")
        .iter()
        .map(|seen| seen.form["token"].clone())
        .collect();
    assert_eq!(revoked, ["refresh-1", "access-1"]);
    assert!(client.access_token(&account, FIRST).await.unwrap_err().needs_sign_in());
    sign_in(&client, &account).await;
    server.status("/revoke", 503);
    let why = "the authorization server answered with status 503".to_owned();
    assert_eq!(client.sign_out(&account).await.unwrap(), SignedOut::OnlyForgotten(why));
    assert!(client.access_token(&account, FIRST).await.unwrap_err().needs_sign_in());
}

#[tokio::test]
async fn a_client_that_the_authorization_server_forgot_is_registered_anew() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(OAuthConfig::default()));
    sign_in(&client, &account).await;
    server.once("/token", 401, &json!({"error": "invalid_client"}));
    let pending = client.begin(&account, &redirect()).await.unwrap();
    let answer = format!("code=c&state={}", pending.state());
    assert!(client.finish(pending, &answer).await.is_err());
    server.json("/register", &json!({"client_id": "registered-again"}));
    sign_in(&client, &account).await;
    assert_eq!(server.seen("/register").len(), 2);
    assert_eq!(
        server.seen("/token").last().unwrap().form["client_id"],
        "registered-again"
    );
}

#[tokio::test]
async fn no_error_or_debug_output_has_a_token() {
    let server = TestServer::complete().await;
    let (client, account) = (client(), server.account(configured()));
    server.json(
        "/token",
        &json!({"access_token": "c4nary-access", "refresh_token": "c4nary-refresh"}),
    );
    sign_in(&client, &account).await;
    let token = client.access_token(&account, FIRST).await.unwrap();
    let stored = client.store().account(&account.key()).await.unwrap();
    let pending = client.begin(&account, &redirect()).await.unwrap();
    let echo = json!({"error": "invalid_grant", "error_description": "c4nary-refresh and s3cret are bad"});
    server.answer("/token", 400, &[], &echo.to_string());
    age(&client, &account, 4000).await;
    let error = client.access_token(&account, FIRST).await.unwrap_err();
    let text = format!("{token:?} {stored:?} {pending:?} {client:?} {account:?} {error} {error:?}");
    for secret in ["c4nary", "s3cret"] {
        assert!(!text.contains(secret), "{text}");
    }
}
