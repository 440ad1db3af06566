//! Tokens without a person: the client's own, and those that are exchanged for the token of a caller.

use std::time::{Duration, SystemTime};

use super::{
    super::*,
    {FIRST, age, configured, token, tokens},
};
use crate::{
    clock::unix_now,
    test_server::{TestServer, client, redirect},
    token_store::TokenStore,
};
use pegboard_client::credential::CallerToken;
use pegboard_config::{JwtBearer, OAuthGrant, TokenExchange, TokenInput};
use pegboard_mask::{KnownSecrets, Masking, ServerMasker};

#[tokio::test]
async fn client_credentials_need_no_person_and_are_renewed() {
    let server = TestServer::complete().await;
    let mut settings = configured();
    settings.grant = OAuthGrant::ClientCredentials;
    let (client, account) = (client(), server.account(settings));
    tokens(&server, "access-1", None);
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
    assert_eq!(token(&client, &account, FIRST).await, "access-1");
    let seen = server.seen("/token");
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].form["grant_type"], "client_credentials");
    assert!(seen[0].headers["authorization"].to_str().unwrap().starts_with("Basic "));
    age(&client, &account, 801).await;
    tokens(&server, "access-2", None);
    let documents = server.paths().len();
    assert_eq!(token(&client, &account, FIRST).await, "access-2");
    assert_eq!(server.paths().len(), documents + 1, "the authorization server is known");
    age(&client, &account, 900).await;
    server.status("/token", 500);
    assert_eq!(token(&client, &account, FIRST).await, "access-2", "still valid");
    assert!(matches!(
        client.begin(&account, &redirect()).await,
        Err(OAuthError::Setting(_))
    ));
}

#[tokio::test]
async fn the_callers_token_is_exchanged_for_each_principal() {
    let server = TestServer::complete().await;
    let mut settings = configured();
    settings.grant = OAuthGrant::TokenExchange(TokenExchange::new(TokenInput::Caller));
    let client = client();
    let subject = |name: &str, seconds| {
        Some(CallerToken {
            token: Secret::new(format!("{name}-inbound")),
            expires: SystemTime::now() + Duration::from_secs(seconds),
            generation: 1,
        })
    };
    let mut anywhere = server.account(settings.clone());
    anywhere.subject = subject("eve", 600);
    let error = client.access_token(&anywhere, FIRST).await.unwrap_err();
    assert!(matches!(error, OAuthError::Setting(_)), "{error}");
    assert_eq!(
        server.seen("/token").len(),
        0,
        "the server names where the token would go"
    );
    settings.issuer = Some(server.url.clone());
    for name in ["alice", "bob"] {
        let mut account = server.account(settings.clone());
        account.principal = Some(name.into());
        assert!(matches!(
            client.access_token(&account, FIRST).await,
            Err(OAuthError::Setting(_))
        ));
        account.subject = subject(name, 600);
        tokens(&server, &format!("{name}-upstream"), None);
        assert_eq!(token(&client, &account, FIRST).await, format!("{name}-upstream"));
    }
    let subjects: Vec<String> = server
        .seen("/token")
        .iter()
        .map(|seen| seen.form["subject_token"].clone())
        .collect();
    assert_eq!(subjects, ["alice-inbound", "bob-inbound"]);
}

#[tokio::test]
async fn what_a_callers_token_was_exchanged_for_ends_with_it() {
    let server = TestServer::complete().await;
    let mut settings = configured();
    settings.grant = OAuthGrant::TokenExchange(TokenExchange::new(TokenInput::Caller));
    settings.issuer = Some(server.url.clone());
    let mut account = server.account(settings);
    account.principal = Some("alice".into());
    account.subject = Some(CallerToken {
        token: Secret::new("inbound"),
        expires: SystemTime::UNIX_EPOCH + Duration::from_secs(unix_now() + 30),
        generation: 1,
    });
    tokens(&server, "upstream", Some("never-used"));
    let client = client();
    let token = client.access_token(&account, FIRST).await.unwrap();
    assert!(token.valid_for <= Duration::from_secs(24), "{token:?}");
    assert_eq!(
        client.store().account(&account.key()).await,
        Ok(None),
        "it is in memory only"
    );
    let stored = client.store_of(&account).account(&account.key()).await.unwrap();
    let session = stored.unwrap().session.unwrap();
    assert!(session.expires_at() <= unix_now() + 30, "the response said 1,000 s");
    assert_eq!(session.refresh_token, None);
}

#[tokio::test]
async fn another_token_of_a_caller_is_exchanged_by_itself_and_a_forgotten_one_again() {
    let server = TestServer::complete().await;
    let mut settings = configured();
    settings.grant = OAuthGrant::TokenExchange(TokenExchange::new(TokenInput::Caller));
    settings.issuer = Some(server.url.clone());
    let with = |inbound: &str, generation| {
        let mut account = server.account(settings.clone());
        account.principal = Some("alice".into());
        account.subject = Some(CallerToken {
            token: Secret::new(inbound),
            expires: SystemTime::now() + Duration::from_secs(600),
            generation,
        });
        account
    };
    let client = client();
    let (reads, writes) = (with("reads", 1), with("writes", 2));
    tokens(&server, "for-reading", None);
    assert_eq!(token(&client, &reads, FIRST).await, "for-reading");
    tokens(&server, "for-writing", None);
    assert_eq!(token(&client, &writes, FIRST).await, "for-writing");
    assert_eq!(token(&client, &reads, FIRST).await, "for-reading");
    assert_eq!(token(&client, &with("newer", 1), FIRST).await, "for-reading");
    tokens(&server, "once-more", None);
    client.forget_exchanged(&reads);
    assert_eq!(token(&client, &reads, FIRST).await, "once-more");
    assert_eq!(token(&client, &writes, FIRST).await, "for-writing");
    let exchanged = server.seen("/token");
    let subjects: Vec<&str> = exchanged.iter().map(|seen| &*seen.form["subject_token"]).collect();
    assert_eq!(subjects, ["reads", "writes", "reads"]);
}

#[tokio::test]
async fn what_is_read_from_a_file_is_masked_in_the_messages_of_servers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let input = || TokenInput::File(file.clone());
    for grant in [
        OAuthGrant::TokenExchange(TokenExchange::new(input())),
        OAuthGrant::JwtBearer(JwtBearer::new(input())),
    ] {
        let server = TestServer::complete().await;
        let mut settings = configured();
        settings.grant = grant;
        settings.issuer = Some(server.url.clone());
        let secrets = KnownSecrets::default();
        let client = OAuthClient::new(TokenStore::in_memory(), secrets.clone());
        let account = server.account(settings);
        let masker = ServerMasker::new(&Masking::default(), secrets);
        for subject in ["f1rst-canary", "s3cond-canary"] {
            assert_eq!(masker.text(subject), subject);
            std::fs::write(&file, format!("{subject}\n")).unwrap();
            tokens(&server, "access", None);
            token(&client, &account, FIRST).await;
            assert!(!masker.text(&format!("I got {subject}.")).contains(subject));
            age(&client, &account, 801).await;
        }
        assert_eq!(server.seen("/token").len(), 2, "the file is read again");
    }
}
