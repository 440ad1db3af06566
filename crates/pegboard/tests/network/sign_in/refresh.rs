//! Tokens that end: expiry, rotation, revocation, and authorization servers that fail.

use std::time::Duration;

use futures_util::future::join_all;
use pegboard::SignInOptions;
use pegboard_testkit::oauth::{AuthFault, AuthorizationServer};

use crate::{
    sign_in::fixtures::{Site, assert_greeted, assert_needs_auth, hello, sign_in, until_greeted},
    support::PATIENCE,
};

#[tokio::test]
async fn an_expired_token_is_renewed_without_a_person() {
    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    for renewals in 1..=2 {
        site.issuer.expire_access_tokens();
        assert_greeted(&hello(&tools).await);
        assert_eq!(site.issuer.token_requests("refresh_token"), renewals);
    }
    assert_eq!(site.issuer.count("/authorize"), 1);
    // Each refresh token was used once.
    assert_eq!(site.issuer.reuses(), 0);
    board.shutdown().await;
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let site = Site::with(AuthorizationServer::new().lifetime(Duration::from_secs(5))).await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    let calling = async {
        while site.issuer.token_requests("refresh_token") == 0 {
            assert_greeted(&hello(&tools).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, calling).await.unwrap();
    // The server never saw a token that had ended.
    let refused = site
        .server
        .seen()
        .into_iter()
        .filter(|seen| seen.token.is_some() && seen.refused.is_some());
    assert_eq!(refused.count(), 0);
    board.shutdown().await;
}

#[tokio::test]
async fn a_refresh_token_that_is_not_replaced_is_kept() {
    let site = Site::with(AuthorizationServer::new().keeps_refresh_tokens()).await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    for _ in 0..2 {
        site.issuer.expire_access_tokens();
        assert_greeted(&hello(&tools).await);
    }
    assert_eq!(site.issuer.token_requests("refresh_token"), 2);
    board.shutdown().await;
}

#[tokio::test]
async fn without_a_refresh_token_a_person_is_asked_when_the_token_ends() {
    let site = Site::with(AuthorizationServer::new().without_refresh()).await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    site.issuer.expire_access_tokens();
    assert_needs_auth(&hello(&tools).await);
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&tools).await);
    board.shutdown().await;
}

#[tokio::test]
async fn a_revoked_session_asks_for_a_sign_in_once() {
    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    site.issuer.revoke_sessions();
    assert_needs_auth(&hello(&tools).await);
    assert_needs_auth(&hello(&tools).await);
    // The refresh token is known to be dead after its first refusal.
    assert_eq!(site.issuer.token_requests("refresh_token"), 1);
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&tools).await);
    board.shutdown().await;
}

#[tokio::test]
async fn one_failure_of_the_token_endpoint_asks_no_person() {
    let faults = [
        AuthFault::TokenStatus(500),
        AuthFault::TokenStatus(503),
        AuthFault::TokenErrorWith200("temporarily_unavailable"),
        AuthFault::TokenError("temporarily_unavailable"),
    ];
    // At the same time, because each waits for the next try.
    join_all(faults.map(async |fault| {
        let site = Site::new().await;
        let board = site.signed_in("alice").await;
        let tools = board.toolset();
        assert_greeted(&hello(&tools).await);
        site.issuer.add_fault_times(1, fault.clone());
        site.issuer.expire_access_tokens();
        until_greeted(&tools).await;
        assert_eq!(site.issuer.count("/authorize"), 1, "{fault:?}");
        board.shutdown().await;
    }))
    .await;
}

#[tokio::test]
async fn a_valid_token_is_used_on_while_renewals_fail() {
    let site = Site::with(AuthorizationServer::new().lifetime(Duration::from_secs(20))).await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    site.issuer.add_fault(AuthFault::TokenStatus(500));
    // Another process reads a token that is not old yet, and does not need the authorization server.
    let second = site.board();
    assert_greeted(&hello(&tools).await);
    assert_greeted(&hello(&second.toolset()).await);
    assert_eq!(site.issuer.token_requests("refresh_token"), 0);
    second.shutdown().await;
    board.shutdown().await;
}

#[tokio::test]
async fn a_token_without_a_lifetime_is_used_until_it_is_refused() {
    let site = Site::with(AuthorizationServer::new().fault(AuthFault::NoExpiresIn)).await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    site.issuer.expire_access_tokens();
    assert_greeted(&hello(&tools).await);
    assert_eq!(site.issuer.token_requests("refresh_token"), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn a_token_endpoint_that_hangs_costs_a_bounded_time() {
    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    site.issuer.add_fault_times(1, AuthFault::TokenHangs);
    site.issuer.expire_access_tokens();
    let refused = tokio::time::timeout(Duration::from_secs(90), hello(&tools))
        .await
        .unwrap();
    if refused.is_error() {
        until_greeted(&tools).await;
    }
    assert_eq!(site.issuer.count("/authorize"), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn a_session_outlives_the_program() {
    let site = Site::new().await;
    site.signed_in("alice").await.shutdown().await;
    let board = site.board();
    assert_greeted(&hello(&board.toolset()).await);
    assert_eq!(site.issuer.count("/authorize"), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn a_client_that_the_issuer_forgot_is_registered_again() {
    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    let client = site.issuer.issued().pop().unwrap().client;
    site.issuer.forget_client(&client);
    site.issuer.expire_access_tokens();
    let tools = board.toolset();
    assert_needs_auth(&hello(&tools).await);
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&tools).await);
    assert_eq!(site.issuer.count("/register"), 2);
    board.shutdown().await;
}

#[tokio::test]
async fn a_new_registration_replaces_those_of_all_redirect_addresses() {
    let site = Site::new().await;
    let board = site.board();
    let begin = async |redirect: &str, is_new: bool| {
        let mut options = SignInOptions::default().redirect_uri(format!("http://127.0.0.1:1/{redirect}"));
        if is_new {
            options = options.new_client();
        }
        let pending = board.sign_in("fx", options).await.unwrap();
        let client = pending.url().query_pairs().find(|(name, _)| name == "client_id");
        client.unwrap().1.into_owned()
    };
    let (first, second) = (begin("a", false).await, begin("b", false).await);
    assert_ne!(first, second);
    assert_eq!(begin("b", false).await, second, "it is kept");
    let anew = begin("a", true).await;
    assert_ne!(anew, first);
    assert_eq!(begin("a", false).await, anew);
    assert_ne!(begin("b", false).await, second);
    board.shutdown().await;
}
