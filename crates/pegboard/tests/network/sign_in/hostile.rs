//! Servers and authorization servers that lie, and what they never get.

use std::time::Duration;

use pegboard::{Secret, config::OAuthConfig};
use pegboard_testkit::{
    oauth::{AuthFault, AuthorizationServer, Client, IssuerHandle},
    refused_address,
};
use tokio::time::Instant;

use crate::sign_in::fixtures::{Site, assert_greeted, assert_needs_auth, fake, hello, sign_in, try_sign_in};

/// Expects that a sign-in fails before the browser is sent anywhere.
async fn refused_before_the_browser(fault: AuthFault) -> String {
    let site = Site::with(AuthorizationServer::new().fault(fault.clone())).await;
    let board = site.board();
    assert_needs_auth(&hello(&board.toolset()).await);
    let error = try_sign_in(&board, "alice").await.unwrap_err();
    assert_eq!(site.issuer.count("/authorize"), 0, "{fault:?}: {error}");
    assert_eq!(site.issuer.count("/token"), 0, "{fault:?}: {error}");
    board.shutdown().await;
    error
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    let error = refused_before_the_browser(AuthFault::MetadataIssuer("https://elsewhere.example".to_owned())).await;
    assert!(error.contains("issuer"), "{error}");
}

#[tokio::test]
async fn a_resource_of_another_is_not_signed_in_to() {
    let error = refused_before_the_browser(AuthFault::ResourceOf("https://bank.example/mcp".to_owned())).await;
    assert!(error.contains("https://bank.example/mcp"), "{error}");
}

#[tokio::test]
async fn metadata_that_is_no_metadata_is_refused() {
    for fault in [
        AuthFault::MetadataHtml,
        AuthFault::MetadataOtherTypes,
        AuthFault::MetadataHuge(8 << 20),
        AuthFault::MetadataStatus(500),
    ] {
        refused_before_the_browser(fault).await;
    }
}

#[tokio::test]
async fn slow_metadata_ends_the_sign_in_in_time() {
    let began = Instant::now();
    refused_before_the_browser(AuthFault::MetadataSlow(600_000)).await;
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[tokio::test]
async fn metadata_does_not_redirect_to_another_host() {
    let other = AuthorizationServer::new().start().await.unwrap();
    let to = format!("{}/.well-known/oauth-authorization-server", other.url());
    refused_before_the_browser(AuthFault::MetadataRedirect(to)).await;
    assert_eq!(other.requests(), []);
}

#[tokio::test]
async fn a_token_request_is_not_redirected() {
    let other = AuthorizationServer::new().start().await.unwrap();
    let site =
        Site::with(AuthorizationServer::new().fault(AuthFault::TokenRedirect(format!("{}/token", other.url())))).await;
    let board = site.board();
    try_sign_in(&board, "alice").await.unwrap_err();
    assert_eq!(other.requests(), []);
    board.shutdown().await;
}

#[tokio::test]
async fn endpoints_at_addresses_that_only_this_network_has_are_not_used() {
    let nowhere = refused_address().await.unwrap();
    for url in [
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://10.0.0.1/token".to_owned(),
        "file:///etc/passwd".to_owned(),
        "javascript:alert(1)".to_owned(),
        format!("http://user:pass@{nowhere}/token"),
    ] {
        for endpoint in ["token_endpoint", "authorization_endpoint"] {
            let fault = AuthFault::MetadataEndpoint(endpoint, url.clone());
            let site = Site::with(AuthorizationServer::new().fault(fault)).await;
            let board = site.board();
            let error = try_sign_in(&board, "alice").await.unwrap_err();
            assert!(!error.contains("refused the connection"), "{endpoint} {url}: {error}");
            assert_eq!(site.issuer.count("/token"), 0, "{endpoint} {url}: {error}");
            board.shutdown().await;
        }
    }
}

/// Expects that the redirect is refused and no code is sent to any token endpoint.
async fn redirect_refused(site: &Site, other: Option<&IssuerHandle>) -> String {
    let board = site.board();
    let error = try_sign_in(&board, "alice").await.unwrap_err();
    assert_eq!(site.issuer.count("/token"), 0, "{error}");
    assert_eq!(other.map_or(0, |other| other.count("/token")), 0);
    assert_needs_auth(&hello(&board.toolset()).await);
    board.shutdown().await;
    error
}

#[tokio::test]
async fn a_redirect_by_another_issuer_is_a_mix_up() {
    let other = AuthorizationServer::new().start().await.unwrap();
    let fault = AuthFault::CallbackIssuer(Some(other.url().to_owned()));
    let site = Site::with(AuthorizationServer::new().fault(fault)).await;
    let error = redirect_refused(&site, Some(&other)).await;
    assert!(error.contains("another authorization server"), "{error}");
}

#[tokio::test]
async fn a_page_of_another_issuer_is_not_opened_unless_redirects_name_theirs() {
    // The other one sends no `iss`, so that its redirect would not tell the mix-up.
    let other = AuthorizationServer::new().without_iss().start().await.unwrap();
    let page = format!("{}/authorize?client_id=known-there", other.url());
    let fault = || AuthFault::MetadataEndpoint("authorization_endpoint", page.clone());
    let site = Site::with(AuthorizationServer::new().without_iss().fault(fault())).await;
    let error = redirect_refused(&site, Some(&other)).await;
    assert!(error.contains("page of another"), "{error}");
    assert_eq!(other.requests(), []);
    // With the promise the browser may go there, and the redirect is refused for lack of the right issuer.
    let site = Site::with(AuthorizationServer::new().fault(fault())).await;
    redirect_refused(&site, Some(&other)).await;
}

#[tokio::test]
async fn an_issuer_that_promises_to_name_itself_must() {
    let site = Site::with(AuthorizationServer::new().fault(AuthFault::CallbackIssuer(None))).await;
    redirect_refused(&site, None).await;
}

#[tokio::test]
async fn a_redirect_with_another_state_is_refused() {
    let site = Site::with(AuthorizationServer::new().fault(AuthFault::CallbackState("forged".to_owned()))).await;
    let error = redirect_refused(&site, None).await;
    assert!(error.contains("state"), "{error}");
}

#[tokio::test]
async fn a_person_who_refuses_is_told_so() {
    let site = Site::with(AuthorizationServer::new().fault(AuthFault::CallbackError("access_denied"))).await;
    let error = redirect_refused(&site, None).await;
    assert!(error.contains("access_denied"), "{error}");
}

#[tokio::test]
async fn a_token_for_another_audience_ends_in_needs_auth_and_no_loop() {
    let fault = AuthFault::Audience("https://elsewhere.example/mcp".to_owned());
    let site = Site::with(AuthorizationServer::new().fault(fault)).await;
    let board = site.board();
    let _ = try_sign_in(&board, "alice").await;
    assert_needs_auth(&hello(&board.toolset()).await);
    assert!(site.issuer.count("/token") < 5, "{}", site.issuer.count("/token"));
    board.shutdown().await;
}

#[tokio::test]
async fn tokens_that_end_at_once_cause_no_loop() {
    let site = Site::with(AuthorizationServer::new().fault(AuthFault::ExpiredAtOnce)).await;
    let board = site.board();
    let _ = try_sign_in(&board, "alice").await;
    assert!(hello(&board.toolset()).await.is_error());
    assert!(site.issuer.count("/token") < 5, "{}", site.issuer.count("/token"));
    board.shutdown().await;
}

#[tokio::test]
async fn a_server_that_moves_to_another_issuer_gets_nothing_of_the_old_one() {
    let site = Site::new().await;
    let board = site.board();
    let tools = board.toolset();
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&tools).await);

    let thief = AuthorizationServer::new().start().await.unwrap();
    thief.take_over(&site.server);
    assert_needs_auth(&hello(&tools).await);
    let _ = try_sign_in(&board, "alice").await;
    let _ = hello(&tools).await;
    for issued in site.issuer.issued() {
        for request in thief.requests() {
            assert!(
                !request.contains(&issued.value),
                "{:?} was sent to {}",
                issued.kind,
                request.path
            );
            assert!(
                !request.contains(&issued.client),
                "the client id was sent to {}",
                request.path
            );
        }
    }
    board.shutdown().await;
}

#[tokio::test]
async fn a_secret_without_an_issuer_stays_at_the_first_one_even_after_a_sign_out() {
    let site = Site::with(AuthorizationServer::new().client(Client::new("robot").secret("hunter2-of-the-robot"))).await;
    let mut settings = OAuthConfig::default();
    settings.client_id = Some("robot".to_owned());
    settings.client_secret = Some(Secret::from("hunter2-of-the-robot"));
    let board = site.board_with(settings.clone());
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&board.toolset()).await);
    board.sign_out("fx").await.unwrap();
    board.shutdown().await;

    let thief = AuthorizationServer::new().start().await.unwrap();
    thief.take_over(&site.server);
    let board = site.board_with(settings);
    let error = try_sign_in(&board, "alice").await.unwrap_err();
    assert!(
        error.contains(thief.url()) && error.contains(site.issuer.url()),
        "{error}"
    );
    assert!(
        thief
            .requests()
            .iter()
            .all(|request| !request.contains("hunter2-of-the-robot"))
    );
    assert_eq!(thief.count("/token"), 0);
    board.shutdown().await;
}

#[tokio::test]
async fn a_key_in_the_url_of_a_server_is_told_to_nobody_else() {
    let site = Site::new().await;
    let url = format!("{}?api_key=c4nary-key", site.server.url());
    let board = crate::sign_in::fixtures::board_at(&url, site.folder.path(), OAuthConfig::default());
    let pending = board.sign_in("fx", pegboard::SignInOptions::default()).await.unwrap();
    assert!(!pending.url().as_str().contains("c4nary"), "{}", pending.url());
    drop(pending);
    sign_in(&board, "alice").await;
    assert!(site.issuer.requests().iter().all(|request| !request.contains("c4nary")));
    assert!(!crate::sign_in::canary::is_in_files(site.folder.path(), "c4nary"));
    board.shutdown().await;
}

#[tokio::test]
async fn a_token_goes_to_no_other_server() {
    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    assert_greeted(&hello(&board.toolset()).await);
    board.shutdown().await;
    // The same store and name, another server of the same issuer.
    let other = site.issuer.protect(&fake()).await.unwrap();
    let board = crate::sign_in::fixtures::board_at(&other.url(), site.folder.path(), OAuthConfig::default());
    assert_needs_auth(&hello(&board.toolset()).await);
    assert!(other.seen().iter().all(|seen| seen.token.is_none()));
    board.shutdown().await;
}
