//! Header templates: values of views in the headers of a server.

use pegboard::{Config, Env, Format, Kind, Pegboard, View};
use pegboard_testkit::{Era, NetHandle};
use serde_json::json;

use crate::{principals::fixtures::*, support::*};

async fn board() -> (Pegboard, NetHandle) {
    let server = fake(Era::Legacy).serve_http().await.unwrap();
    let text = format!(
        "[servers.fx]\nurl = '{}'\nstart = 'lazy'\nheaders = {{ X-Tenant = 't-{{{{TENANT}}}}', X-Session = '{{{{SESSION_ID}}}}', X-For = '{{{{PRINCIPAL}}}}' }}\n",
        server.url()
    );
    let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    (Pegboard::open(loaded.config), server)
}

#[tokio::test]
async fn each_view_sends_its_own_values() {
    let (board, server) = board().await;
    let views = [
        View::new().name("one").variable("TENANT", "north").principal("alice"),
        View::new().name("two").variable("TENANT", "south").principal("alice"),
        View::new().name("three").variable("SESSION_ID", "chosen"),
    ];
    for view in views.map(|view| board.toolset_with(view)) {
        assert_eq!(call(&view, "fx.act", json!({})).await.outcome.kind(), Kind::Ok);
    }
    let requests = server.requests();
    let sent: Vec<_> = requests
        .iter()
        .filter(|request| request.method == "tools/call")
        .map(|request| ["x-tenant", "x-session", "x-for"].map(|name| request.header(name)))
        .collect();
    assert_eq!(
        sent,
        [
            [Some("t-north"), Some("one"), Some("alice")],
            [Some("t-south"), Some("two"), Some("alice")],
            [None, Some("chosen"), None],
        ]
    );
    board.shutdown().await;
}

#[tokio::test]
async fn the_board_itself_omits_headers_with_variables() {
    let (board, server) = board().await;
    board.settle(PATIENCE).await;
    let requests = server.requests();
    assert!(!requests.is_empty());
    for request in requests {
        assert_eq!(
            ["x-tenant", "x-session", "x-for"].map(|name| request.header(name)),
            [None; 3]
        );
    }
    board.shutdown().await;
}

#[tokio::test]
async fn a_value_that_cannot_be_sent_fails_the_calls_of_that_view_only() {
    let (board, _server) = board().await;
    let bad = board.toolset_with(View::new().variable("TENANT", "two\r\nlines: x"));
    let reply = call(&bad, "fx.act", json!({})).await;
    assert_contains(&reply.text(), &["header `X-Tenant` cannot be sent"]);
    let good = board.toolset_with(View::new().variable("TENANT", "north"));
    assert_eq!(call(&good, "fx.act", json!({})).await.outcome.kind(), Kind::Ok);
    board.shutdown().await;
}
