//! Scopes: those that a server asks for, more of them later, and servers that never have enough.

use pegboard_testkit::oauth::{AuthFault, AuthorizationServer};
use serde_json::json;

use crate::{
    sign_in::fixtures::{Site, assert_greeted, assert_needs_auth, hello, sign_in, try_sign_in},
    support::call,
};

/// The scopes of the authorization requests, in order.
fn asked_scopes(site: &Site) -> Vec<String> {
    let requests = site.issuer.requests().into_iter();
    requests
        .filter(|request| request.path == "/authorize")
        .map(|request| request.parameter("scope").unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn the_scope_of_the_challenge_is_asked_for() {
    let site = Site::new().await;
    site.server.challenges_for("read");
    let board = site.board();
    assert_needs_auth(&hello(&board.toolset()).await);
    sign_in(&board, "alice").await;
    assert_eq!(asked_scopes(&site), ["read"]);
    board.shutdown().await;
}

#[tokio::test]
async fn a_tool_that_needs_more_asks_for_the_scopes_of_before_too() {
    let site = Site::new().await;
    site.server.challenges_for("read");
    site.server.tool_needs_scope("publish", "write");
    let board = site.board();
    let tools = board.toolset();
    assert_needs_auth(&hello(&tools).await);
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&tools).await);

    assert_needs_auth(&call(&tools, "fx.publish", json!({})).await);
    sign_in(&board, "alice").await;
    let asked = asked_scopes(&site).pop().unwrap();
    let mut asked: Vec<&str> = asked.split(' ').collect();
    asked.sort_unstable();
    assert_eq!(asked, ["read", "write"]);
    assert_eq!(call(&tools, "fx.publish", json!({})).await.text(), "published");
    assert_greeted(&hello(&tools).await);
    board.shutdown().await;
}

#[tokio::test]
async fn a_server_that_never_has_enough_scopes_is_not_asked_for_ever() {
    let site = Site::with(AuthorizationServer::new().fault(AuthFault::InsufficientScope("write".to_owned()))).await;
    let board = site.board();
    let tools = board.toolset();
    let mut sign_ins = 0;
    for _ in 0..6 {
        assert!(hello(&tools).await.is_error());
        if try_sign_in(&board, "alice").await.is_err() {
            break;
        }
        sign_ins += 1;
    }
    // Without a person no number of refusals makes token requests.
    assert_eq!(site.issuer.count("/token"), sign_ins);
    assert!(site.server.seen().len() < 60, "{}", site.server.seen().len());
    board.shutdown().await;
}
