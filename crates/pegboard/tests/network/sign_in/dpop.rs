//! Tokens that are bound to a key of this program (DPoP, RFC 9449). The server and the authorization server check every proof: its signature,
//! method, URL, time, token, and that it is new.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use pegboard::{
    Config, Pegboard, Secret, ServerConfig,
    config::{Auth, ClientKey, Dpop, OAuthConfig, OAuthGrant, TokenExchange, TokenInput, Transport},
};
use pegboard_testkit::{
    Era, Fault, HttpStyle, When, Wire,
    oauth::{Algorithm, AuthFault, AuthorizationServer, Client, DpopSign, Seen, SigningKey},
};
use tokio::time::timeout;

use crate::{
    sign_in::fixtures::{Site, assert_greeted, assert_needs_auth, board_at, fake, hello, sign_in, try_sign_in},
    support::{PATIENCE, endpoint, name},
};

/// A site whose both servers take bound tokens.
async fn binding_site(issuer: AuthorizationServer) -> Site {
    let site = Site::with(issuer.dpop()).await;
    site.server.offers_dpop(DpopSign::Challenge);
    site
}

fn settings(dpop: Dpop) -> OAuthConfig {
    let mut settings = OAuthConfig::default();
    settings.dpop = dpop;
    settings
}

/// The requests to the server with a token, and how many of them it refused.
fn with_token(site: &Site) -> (Vec<Seen>, usize) {
    let seen = site.server.seen().into_iter();
    let (accepted, refused): (Vec<Seen>, Vec<Seen>) = seen
        .filter(|seen| seen.token.is_some())
        .partition(|seen| seen.refused.is_none());
    (accepted, refused.len())
}

/// Asserts that the server has accepted requests, each with a proof of its own, and refused none.
#[track_caller]
fn assert_proven(site: &Site) {
    let (accepted, refused) = with_token(site);
    let proofs: BTreeSet<_> = accepted.iter().filter_map(|seen| seen.proof.clone()).collect();
    assert!(!accepted.is_empty());
    assert_eq!((proofs.len(), refused), (accepted.len(), 0));
}

#[tokio::test]
async fn a_token_is_bound_to_a_key_if_both_servers_take_that() {
    for sign in [DpopSign::Challenge, DpopSign::Metadata, DpopSign::Required] {
        let site = Site::with(AuthorizationServer::new().dpop()).await;
        site.server.offers_dpop(sign);
        let board = site.board();
        assert_needs_auth(&hello(&board.toolset()).await);
        sign_in(&board, "alice").await;
        assert_greeted(&hello(&board.toolset()).await);
        board.shutdown().await;
        assert_proven(&site);
        let asked = site.issuer.requests();
        let authorize = asked.iter().find(|request| request.path == "/authorize").unwrap();
        assert_eq!(authorize.parameter("dpop_jkt").unwrap().len(), 43, "{sign:?}");
    }
}

#[tokio::test]
async fn a_token_is_not_bound_for_a_server_that_does_not_say_that_it_takes_such_tokens() {
    for (dpop, sign) in [
        (Dpop::Auto, DpopSign::None),
        (Dpop::Off, DpopSign::Challenge),
        (Dpop::Off, DpopSign::Metadata),
    ] {
        let site = Site::with(AuthorizationServer::new().dpop()).await;
        site.server.offers_dpop(sign);
        let board = site.board_with(settings(dpop));
        sign_in(&board, "alice").await;
        assert_greeted(&hello(&board.toolset()).await);
        board.shutdown().await;
        assert!(with_token(&site).0.iter().all(|seen| seen.proof.is_none()), "{sign:?}");
        let asked = site.issuer.requests();
        assert!(asked.iter().all(|request| request.header("dpop").is_none()));
    }
}

#[tokio::test]
async fn a_stolen_token_is_of_no_use_without_the_key() {
    let site = binding_site(AuthorizationServer::new()).await;
    let board = site.signed_in("alice").await;
    assert_greeted(&hello(&board.toolset()).await);
    let stolen = with_token(&site).0.pop().unwrap().token.unwrap();
    board.shutdown().await;

    let mut endpoint = endpoint(&site.server.url());
    endpoint.auth = Auth::Bearer(Secret::from(stolen));
    let mut config = Config::default();
    config
        .servers
        .insert(name("fx"), ServerConfig::new(Transport::http(endpoint)));
    let thief = Pegboard::builder(config).open();
    assert_needs_auth(&hello(&thief.toolset()).await);
    thief.shutdown().await;
}

#[tokio::test]
async fn every_kind_of_request_to_the_server_is_proven() {
    let issuer = AuthorizationServer::new().dpop().start().await.unwrap();
    let server = issuer.protect(&fake().era(Era::Legacy)).await.unwrap();
    server.offers_dpop(DpopSign::Metadata);
    let folder = tempfile::tempdir().unwrap();
    // A proof names the URL without its query.
    let url = format!("{}?tenant=1", server.url());
    let board = board_at(&url, folder.path(), OAuthConfig::default());
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&board.toolset()).await);
    let seen = |method: &'static str| timeout(PATIENCE, server.wait_accepted(method, 1));
    seen("GET").await.unwrap();
    board.shutdown().await;
    seen("DELETE").await.unwrap();
    let with_token = server.seen().into_iter().filter(|seen| seen.token.is_some());
    for seen in with_token {
        assert!(seen.proof.is_some() && seen.refused.is_none(), "{}", seen.method);
    }
}

#[tokio::test]
async fn every_transport_proves_its_requests_and_takes_a_nonce() {
    for wire in [Wire::Sse, Wire::WebSocket] {
        let issuer = AuthorizationServer::new().dpop().fault(AuthFault::DpopNonce);
        let issuer = issuer.start().await.unwrap();
        let server = issuer.protect_on(wire, &fake().era(Era::Legacy)).await.unwrap();
        server.offers_dpop(DpopSign::Challenge);
        let folder = tempfile::tempdir().unwrap();
        let mut endpoint = endpoint(&server.url());
        endpoint.auth = Auth::OAuth(Arc::new(OAuthConfig::default()));
        let transport = match wire {
            Wire::Sse => Transport::sse(endpoint),
            _ => Transport::websocket(endpoint),
        };
        let mut config = Config::default();
        config.servers.insert(name("fx"), ServerConfig::new(transport));
        let board = Pegboard::builder(config).token_store(folder.path()).open();
        sign_in(&board, "alice").await;
        assert_greeted(&hello(&board.toolset()).await);
        // The server demands another nonce for the next connection, or for the next message of this one.
        server.rotate_nonces();
        assert_greeted(&hello(&board.toolset()).await);
        assert!(board.reconnect("fx").await);
        assert_greeted(&hello(&board.toolset()).await);
        board.shutdown().await;
        let seen: Vec<Seen> = server.seen().into_iter().filter(|seen| seen.token.is_some()).collect();
        let accepted: Vec<_> = seen.iter().filter(|seen| seen.refused.is_none()).collect();
        let proofs: BTreeSet<_> = accepted.iter().filter_map(|seen| seen.proof.clone()).collect();
        assert!(!accepted.is_empty(), "{wire:?}");
        assert_eq!(proofs.len(), accepted.len(), "{wire:?}: each has a proof of its own");
        assert_eq!(
            issuer.token_requests("refresh_token"),
            0,
            "{wire:?}: a nonce is no reason for another token"
        );
    }
}

#[tokio::test]
async fn a_stream_is_resumed_with_a_proof_of_its_own() {
    let issuer = AuthorizationServer::new().dpop().fault(AuthFault::DpopNonceEachTime);
    let issuer = issuer.start().await.unwrap();
    let style = HttpStyle {
        streams: true,
        event_ids: true,
        retry_ms: Some(20),
        ..HttpStyle::default()
    };
    let fake = fake()
        .era(Era::Legacy)
        .http(style)
        .fault_on(When::tool("hello"), Fault::StreamEndsEarly { resumable: true });
    let server = issuer.protect(&fake).await.unwrap();
    server.offers_dpop(DpopSign::Metadata);
    let folder = tempfile::tempdir().unwrap();
    let board = board_at(&server.url(), folder.path(), OAuthConfig::default());
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&board.toolset()).await);
    let resumed = server
        .requests()
        .into_iter()
        .filter(|received| received.header("last-event-id").is_some());
    let proofs: Vec<_> = resumed
        .filter_map(|received| received.header("dpop").map(str::to_owned))
        .collect();
    assert!(!proofs.is_empty());
    let calls = server.seen().into_iter().filter(|seen| seen.method == "tools/call");
    let of_calls: Vec<_> = calls.filter_map(|seen| seen.proof).collect();
    assert!(proofs.iter().all(|proof| !of_calls.contains(proof)));
    board.shutdown().await;
}

#[tokio::test]
async fn the_key_outlives_the_program_and_renews_the_token() {
    let site = binding_site(AuthorizationServer::new()).await;
    site.signed_in("alice").await.shutdown().await;
    let board = site.board();
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    assert_proven(&site);
    // The authorization server takes the refresh token with a proof of the same key only.
    for renewals in 1..=2 {
        site.issuer.expire_access_tokens();
        assert_greeted(&hello(&tools).await);
        assert_eq!(site.issuer.token_requests("refresh_token"), renewals);
    }
    assert_eq!(site.issuer.count("/authorize"), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn a_nonce_that_is_demanded_is_sent_with_the_next_attempt() {
    let site = binding_site(AuthorizationServer::new().fault(AuthFault::DpopNonce)).await;
    let board = site.board();
    sign_in(&board, "alice").await;
    assert_eq!(site.issuer.token_requests("authorization_code"), 2);
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    // An attempt to connect that the sign-in overtakes can be refused as well.
    let refused = with_token(&site).1;
    assert!((1..=2).contains(&refused), "{refused} requests were refused");
    assert_greeted(&hello(&tools).await);
    assert_eq!(with_token(&site).1, refused, "the nonce is kept");

    // Requests that are refused at once do not rely on each other.
    site.server.rotate_nonces();
    for reply in join_all((0..8).map(|_| hello(&tools))).await {
        assert_greeted(&reply);
    }
    site.server.rotate_nonces();
    assert_greeted(&hello(&tools).await);
    // None of that was taken for a refused token.
    assert_eq!(site.issuer.token_requests("refresh_token"), 0);

    site.issuer.rotate_nonces();
    site.issuer.expire_access_tokens();
    assert_greeted(&hello(&tools).await);
    assert_eq!(site.issuer.token_requests("refresh_token"), 2);
    assert_eq!(site.issuer.reuses(), 0);
    board.shutdown().await;
}

#[tokio::test]
async fn every_response_replaces_the_nonce() {
    let site = binding_site(AuthorizationServer::new().fault(AuthFault::DpopNonceEachTime)).await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    // Only the first one did not know any, and an attempt to connect that the sign-in overtook.
    let refused = with_token(&site).1;
    assert!((1..=2).contains(&refused), "{refused} requests were refused");
    for _ in 0..20 {
        assert_greeted(&hello(&tools).await);
    }
    assert_eq!(with_token(&site).1, refused);
    board.shutdown().await;
}

#[tokio::test]
async fn grants_without_a_person_are_proven_too() {
    let (key, idp) = (
        SigningKey::generate(Algorithm::Es256, "k1"),
        SigningKey::generate(Algorithm::Es256, "idp"),
    );
    let issuer = AuthorizationServer::new()
        .fault(AuthFault::DpopNonce)
        .trusts(idp.public_jwk())
        .client(Client::new("robot").key(key.public_jwk()));
    let site = binding_site(issuer).await;
    site.server.offers_dpop(DpopSign::Metadata);
    let subject = idp.sign("JWT", &site.issuer.claims("carol", site.issuer.url()));
    let exchange = TokenExchange::new(TokenInput::Value(Secret::from(subject)));
    for grant in [OAuthGrant::ClientCredentials, OAuthGrant::TokenExchange(exchange)] {
        let mut settings = settings(Dpop::Required);
        settings.grant = grant;
        settings.issuer = Some(site.issuer.url().to_owned());
        settings.client_id = Some("robot".to_owned());
        settings.private_key = Some(ClientKey::new(Secret::from(key.private_pem())));
        let board = site.board_with(settings);
        let tools = board.toolset();
        assert_greeted(&hello(&tools).await);
        site.issuer.expire_access_tokens();
        assert_greeted(&hello(&tools).await);
        board.shutdown().await;
    }
    assert!(with_token(&site).0.iter().all(|seen| seen.proof.is_some()));
    // An assertion is for one request, so the attempt with a nonce has another one.
    let requests = site.issuer.requests();
    let assertions: Vec<_> = requests
        .iter()
        .filter_map(|request| request.parameter("client_assertion"))
        .collect();
    let different: BTreeSet<_> = assertions.iter().collect();
    assert_eq!(different.len(), assertions.len());
}

#[tokio::test]
async fn a_grant_without_a_person_is_bound_once_the_server_asks_for_it() {
    let issuer = AuthorizationServer::new().client(Client::new("robot").secret("s"));
    let site = binding_site(issuer).await;
    site.server.offers_dpop(DpopSign::Challenge);
    site.issuer.add_fault_times(1, AuthFault::RefusesTokens);
    let mut settings = OAuthConfig::default();
    settings.grant = OAuthGrant::ClientCredentials;
    settings.client_id = Some("robot".to_owned());
    settings.client_secret = Some(Secret::from("s"));
    let board = site.board_with(settings);
    assert_greeted(&hello(&board.toolset()).await);
    board.shutdown().await;
    assert!(with_token(&site).0.iter().all(|seen| seen.proof.is_some()));
}

#[tokio::test]
async fn a_token_that_is_not_bound_is_used_unless_a_bound_one_is_required() {
    for (dpop, is_taken) in [(Dpop::Auto, true), (Dpop::Required, false)] {
        let site = binding_site(AuthorizationServer::new().fault(AuthFault::DpopIgnored)).await;
        let board = site.board_with(settings(dpop));
        let signed_in = try_sign_in(&board, "alice").await;
        if is_taken {
            signed_in.unwrap();
            assert_greeted(&hello(&board.toolset()).await);
        } else {
            let error = signed_in.unwrap_err();
            assert!(error.contains("not bound") && error.contains("oauth.dpop"), "{error}");
            assert_needs_auth(&hello(&board.toolset()).await);
        }
        board.shutdown().await;
    }
}

#[tokio::test]
async fn a_token_that_is_bound_unasked_is_refused() {
    let site = Site::with(AuthorizationServer::new().fault(AuthFault::DpopUnasked)).await;
    let board = site.board();
    let error = try_sign_in(&board, "alice").await.unwrap_err();
    assert!(error.contains("bound to a key"), "{error}");
    board.shutdown().await;
}

#[tokio::test]
async fn a_token_of_another_setting_is_not_used() {
    let site = binding_site(AuthorizationServer::new()).await;
    site.signed_in("alice").await.shutdown().await;
    for dpop in [Dpop::Required, Dpop::Off] {
        let board = site.board_with(settings(dpop));
        assert_needs_auth(&hello(&board.toolset()).await);
        board.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_refuses_every_proof_is_not_asked_for_ever() {
    let site = binding_site(AuthorizationServer::new()).await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    site.issuer.add_fault(AuthFault::DpopRefusesProofs);
    let before = with_token(&site).1;
    assert!(hello(&tools).await.is_error());
    let attempts = with_token(&site).1 - before;
    assert!((1..=10).contains(&attempts), "{attempts}");
    assert_eq!(site.issuer.count("/authorize"), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn proofs_follow_the_clock_of_a_server_that_is_ahead() {
    let site = binding_site(AuthorizationServer::new().fault(AuthFault::ClockAhead(4000))).await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    // An attempt to connect that the sign-in overtakes may have been refused as well.
    let refused = with_token(&site).1;
    assert!((1..=2).contains(&refused), "{refused}");
    assert_greeted(&hello(&tools).await);
    assert_eq!(with_token(&site).1, refused);
    assert_eq!(site.issuer.token_requests("refresh_token"), 0);
    board.shutdown().await;
}
