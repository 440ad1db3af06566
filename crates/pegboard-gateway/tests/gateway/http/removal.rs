//! A server that a reload removes is gone at once, while its calls in flight complete. What clients have open follows the rules of their view.

use std::{net::SocketAddr, time::Duration};

use futures_util::{SinkExt, StreamExt};
use pegboard::{Config, Env, Format, Pegboard};
use pegboard_gateway::{Gateway, GatewayHost};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{client_async, tungstenite::Message};

use crate::http::client::{BOTH, Http, JSON, call, modern_call, modern_headers, modern_meta, request, text_of};

fn config(text: &str) -> Config {
    Config::from_text(text, Format::Toml, &Env::process()).config
}

async fn serve(text: &str) -> (Pegboard, SocketAddr) {
    let board = Pegboard::builder(config(text)).host(GatewayHost).open();
    let gateway = Gateway::for_board(board.clone()).unwrap().build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { gateway.serve(vec![listener], std::future::pending()).await });
    (board, address)
}

#[tokio::test]
async fn the_endpoint_of_a_removed_server_is_gone_while_its_calls_complete() {
    let fake = FakeServer::new("fs").tool(Tool::new("slow").answers_text("done").after(Duration::from_secs(2)));
    let server = fake.serve_http().await.unwrap();
    let (board, address) = serve(&format!("[servers.fs]\nurl = '{}'\n", server.url())).await;
    let mut http = Http::connect(address).await;
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let response = http
        .ask("POST", "/mcp/fs", &[BOTH, JSON], &request(0, "initialize", &hello))
        .await;
    let session = response.header("mcp-session-id").to_owned();
    let headers = [BOTH, JSON, ("mcp-session-id", &*session)];
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut socket, _) = client_async(format!("ws://{address}/mcp/fs"), stream).await.unwrap();
    let mut running = Http::connect(address).await;
    running.send("POST", "/mcp/fs", &headers, &call(1, "slow")).await;
    server.wait_for("tools/call", 1).await;

    let changed = board.clone();
    let applied = tokio::spawn(async move { changed.apply(config("[servers]\n")).await });
    while board.has_server("fs") {
        tokio::task::yield_now().await;
    }
    for (headers, body) in [
        (&headers[..], call(2, "slow")),
        (&modern_headers("slow"), modern_call(3, "slow")),
    ] {
        let response = http.ask("POST", "/mcp/fs", headers, &body).await;
        assert_eq!(response.status, 404, "{response:?}");
        let detail = response.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("there is no server `fs`"), "{detail}");
    }
    socket.send(Message::text(modern_call(4, "slow"))).await.unwrap();
    let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("server `fs` was removed"), "{message}");
    assert_eq!(text_of(&running.response().await.json()), "done");
    assert_eq!(applied.await.unwrap().removed.len(), 1);
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_stream_follows_its_view_when_the_view_is_narrowed() {
    let fake = || FakeServer::new("f").tool(Tool::new("t"));
    let (a, b) = (fake().serve_http().await.unwrap(), fake().serve_http().await.unwrap());
    let text = |shown: &str| {
        let servers = format!("[servers.a]\nurl = '{}'\n[servers.b]\nurl = '{}'\n", a.url(), b.url());
        format!("[views.v]\nservers = [{shown}]\n{servers}")
    };
    let (board, address) = serve(&text("'a', 'b'")).await;
    board.settle(Duration::from_secs(10)).await;
    let mut http = Http::connect(address).await;
    let mut headers = modern_headers("");
    headers[3].1 = "subscriptions/listen";
    let wanted = json!({"_meta": modern_meta(), "notifications": {"toolsListChanged": true}});
    let body = request(1, "subscriptions/listen", &wanted);
    assert!(http.ask("POST", "/mcp/view/v", &headers[..4], &body).await.is_events());
    let acknowledged = http.event().await.unwrap().json();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    // No server changes, only what the view shows of them.
    board.apply(config(&text("'a'"))).await;
    let changed = http.event().await.unwrap().json();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
}
