//! Whom the gateway offers a sign-in, and to which servers.

use std::time::Duration;

use pegboard::State;
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::{
    browser::{Browser, PATIENCE, send},
    client::{Client, text},
    fixture::{Site, token},
};

#[tokio::test]
async fn a_token_that_may_only_read_gets_no_link() {
    let site = Site::new().await;
    for (path, prompt) in [("/mcp", "fx__greet"), ("/mcp/fx", "greet")] {
        for client in [
            Client::modern_at(&site, path, "dan", json!({})),
            Client::legacy_at(&site, path, "dan", json!({"elicitation": {"url": {}}})).await,
        ] {
            for (method, params) in [
                ("tools/list", json!({})),
                ("prompts/get", json!({"name": prompt})),
                ("resources/read", json!({"uri": "file:///x"})),
                ("resources/list", json!({})),
            ] {
                let answer = client.request(method, params).await.to_string();
                let offers = ["link=", "sign_in", "-32042"];
                assert!(
                    !offers.iter().any(|offer| answer.contains(offer)),
                    "{path} {method}: {answer}"
                );
            }
        }
    }
    site.close().await;
}

#[tokio::test]
async fn a_tool_of_the_server_that_is_called_sign_in_is_called() {
    let fake = FakeServer::new("plain").tool(Tool::new("sign_in").read_only().answers_text("its own"));
    let plain = fake.serve_http().await.unwrap();
    let site = Site::with_settings(&format!("[servers.plain]\nurl = '{}'\n", plain.url())).await;
    // Nothing is connected for this principal yet, so none of its tools is known.
    let client = Client::modern(&site, "ada", json!({}));
    assert_eq!(text(&client.call("plain__sign_in").await), "its own");
    site.close().await;
}

#[tokio::test]
async fn links_of_a_call_and_of_the_api_share_a_visit() {
    let site = Site::new().await;
    let client = Client::modern(&site, "ada", json!({}));
    let offered = client.hello(json!({})).await;
    let of_call = offered["result"]["_meta"]["pegboard/sign_in_url"].as_str().unwrap();
    assert_eq!(of_call, site.link("ada").await, "the same link is given out again");
    site.close().await;
}

#[tokio::test]
async fn the_link_of_a_call_ends_with_its_token() {
    let site = Site::new().await;
    let client = Client::modern(&site, "ada", json!({}));
    let offered = client.hello(json!({})).await;
    let link = offered["result"]["_meta"]["pegboard/sign_in_url"].as_str().unwrap();
    assert!(site.gateway.set_tokens(vec![token("bob")], true));
    let page = Browser::default().open(link).await;
    assert!(page.body.contains("link"), "{}", page.body);
    assert!(!page.body.contains("Sign in to"), "{}", page.body);
    site.close().await;
}

/// A host that answers every request with 403, as a firewall does. Returns its port.
async fn wall() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let answer = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn a_required_server_that_only_refuses_is_not_ready_and_offers_no_sign_in() {
    let port = wall().await;
    let config = format!("[servers.wall]\nurl = 'http://127.0.0.1:{port}/mcp'\nrequired = true\n");
    let site = Site::with_settings(&config).await;
    let refuses = || {
        let rows = site.board.status().servers;
        rows.iter()
            .any(|row| row.name.as_str() == "wall" && row.state == State::NeedsAuth)
    };
    let refused = async {
        while !refuses() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.unwrap();
    let probe = send("GET", &site.at("/readyz"), &[], "").await;
    let ready: Value = serde_json::from_str(&probe.body).unwrap();
    assert_eq!((probe.status, &ready["ready"]), (503, &false.into()), "{ready}");
    let tools = Client::modern(&site, "ada", json!({})).tools().await;
    assert!(!tools.iter().any(|name| name.starts_with("wall")), "{tools:?}");
    site.close().await;
}
