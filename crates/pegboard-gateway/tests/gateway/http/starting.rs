//! A client that connects while servers are starting.

use pegboard::{Config, Env, Format, Pegboard};
use pegboard_gateway::{Gateway, GatewayHost};
use serde_json::json;
use tokio::net::TcpListener;

use crate::http::client::{BOTH, Http, JSON, request};

#[tokio::test]
async fn the_instructions_do_not_call_a_server_unavailable_that_is_starting() {
    // It accepts the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!("[servers.slow]\nurl = 'http://{}/mcp'\n", silent.local_addr().unwrap());
    let config = Config::from_text(&text, Format::Toml, &Env::process()).config;
    let board = Pegboard::builder(config).host(GatewayHost).open();
    let (accepted, _) = silent.accept().await.unwrap();
    let gateway = Gateway::for_board(board.clone()).unwrap().build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut http = Http::connect(listener.local_addr().unwrap()).await;
    tokio::spawn(async move { gateway.serve(vec![listener], std::future::pending()).await });
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let response = http
        .ask("POST", "/mcp", &[BOTH, JSON], &request(0, "initialize", &hello))
        .await;
    assert_eq!(response.json()["result"]["instructions"], json!(null), "{response:?}");
    drop(accepted);
}
