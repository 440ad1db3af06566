//! Sign-in at authorization servers that others wrote.

use pegboard::{Config, Kind, Pegboard, ServerConfig, SignInOptions, SignedOut, config::Transport};
use pegboard_testkit::oauth::follow_redirect;
use serde_json::json;

use crate::{peer::*, support::*};

#[tokio::test]
async fn the_authorization_server_of_the_python_sdk_is_signed_in_to() {
    signed_in_to(&Listening::python_sdk_oauth().await).await;
}

#[tokio::test]
async fn the_authorization_server_of_fastmcp_is_signed_in_to() {
    signed_in_to(&Listening::fastmcp_oauth().await).await;
}

/// Nothing but the URL is configured. The sign-in outlives the program, and ends with a sign-out.
async fn signed_in_to(server: &Listening) {
    let tokens = tempfile::tempdir().unwrap();
    let open = || {
        let mut config = Config::default();
        config
            .servers
            .insert(name("fx"), ServerConfig::new(Transport::http(server.endpoint())));
        Pegboard::builder(config).token_store(tokens.path()).open()
    };
    let sum = async |board: &Pegboard| call(&board.toolset(), "fx.add", json!({"a": 2, "b": 3})).await;

    let board = open();
    assert_eq!(sum(&board).await.outcome.kind(), Kind::NeedsAuth);
    let pending = board.sign_in("fx", SignInOptions::default()).await.unwrap();
    let redirected = follow_redirect(pending.url().as_str(), None).await.unwrap();
    pending.finish(&redirected).await.unwrap();
    assert_eq!(sum(&board).await.text(), "5");
    board.shutdown().await;

    let board = open();
    assert_eq!(sum(&board).await.text(), "5");
    // Both servers refuse a revocation whose form has no secret, so that it is sent again with one.
    assert_eq!(board.sign_out("fx").await.unwrap(), SignedOut::Revoked);
    assert_eq!(sum(&board).await.outcome.kind(), Kind::NeedsAuth);
    board.shutdown().await;
}
