//! What callers learn about masked text, and masking policies that change while a board runs.

use pegboard::{
    Config, Pegboard, ServerConfig,
    config::Transport,
    mask::{CustomPattern, Masking},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{
    masking::canary::{CANARY, board},
    support::*,
};

#[tokio::test]
async fn a_reply_counts_what_was_hidden_and_never_says_it() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("t").answers_text(format!("{CANARY} and {CANARY}, postgres://u:p4ssw0rd@h/x")));
    let (board, _handle) = board(&fake);
    let reply = call(&board.toolset(), "fx.t", json!({})).await;
    assert_eq!(
        reply.text(),
        "[MASKED_SECRET] and [MASKED_SECRET], postgres://u:[MASKED_URL_USERINFO_PASSWORD]@h/x"
    );
    assert_eq!(reply.masked, 3);
    let reply = serde_json::to_value(&reply).unwrap();
    assert_eq!(reply["outcome"]["masked"], 3);
    assert_eq!(
        reply["outcome"]["masked_by"],
        json!({"secret": 2, "url_userinfo_password": 1})
    );
}

#[tokio::test]
async fn a_policy_changes_without_a_new_connection() {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("ticket T-4711 of jane@example.org"));
    let with = |masking: Masking| {
        let mut config = Config::default();
        let mut server = process(&fake);
        server.policy.masking = masking;
        config.servers.insert(name("fx"), server);
        config
    };
    let board = Pegboard::open(with(Masking::default()));
    let tools = board.toolset();
    let text = |reply: pegboard::Reply| reply.text();
    assert_eq!(
        text(call(&tools, "fx.t", json!({})).await),
        "ticket T-4711 of jane@example.org"
    );
    let mut masking = Masking::default();
    masking.patterns.push("email".to_owned());
    masking.custom.push(CustomPattern::new(r"T-\d+"));
    let applied = board.apply(with(masking.clone())).await;
    assert_eq!(applied.retuned, [name("fx")]);
    assert_eq!(
        text(call(&tools, "fx.t", json!({})).await),
        "ticket [MASKED] of [MASKED_EMAIL]"
    );
    masking.custom.push(CustomPattern::new("("));
    board.apply(with(masking)).await;
    let reply = call(&tools, "fx.t", json!({})).await;
    assert_contains(&reply.text(), &["REDACTED"]);
    assert!(!reply.text().contains("4711"));
    board.shutdown().await;
}

#[tokio::test]
async fn a_server_put_on_the_board_later_brings_its_secrets() {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("a l4ter-s3cret-v4lue"));
    let (board, _handle) = board(&fake);
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.t", json!({})).await.text(), "a l4ter-s3cret-v4lue");
    let mut endpoint = endpoint("http://127.0.0.1:9/mcp");
    endpoint.auth = pegboard::config::Auth::Bearer(pegboard::Secret::new("l4ter-s3cret-v4lue"));
    let mut server = ServerConfig::new(Transport::http(endpoint));
    server.enabled = false;
    board.connect(name("later"), server).await.unwrap();
    assert_eq!(call(&tools, "fx.t", json!({})).await.text(), "a [MASKED_SECRET]");
}
