//! Whom the gateway offers a sign-in, and to which servers.

use std::time::Duration;

use pegboard::{SignInOptions, State};
#[cfg(unix)]
use pegboard_gateway::Listeners;
use pegboard_testkit::{FakeServer, Tool, oauth::follow_redirect};
use serde_json::{Value, json};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::sign_in::{
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

#[tokio::test]
async fn a_token_for_a_view_sees_its_own_sign_ins_to_the_servers_of_the_view() {
    let site = Site::new().await;
    for who in ["ada", "vera"] {
        let done = site.sign_in(&mut Browser::default(), &site.link(who).await, who).await;
        assert!(done.body.contains("You are signed in"), "{}", done.body);
    }
    // That of all clients without a principal.
    let shared = site.board.sign_in("fx", SignInOptions::default()).await.unwrap();
    let redirected = follow_redirect(shared.url().as_str(), Some("zoe")).await.unwrap();
    shared.finish(&redirected).await.unwrap();
    for (who, expected) in [
        ("olga", vec![json!(null), json!("ada"), json!("vera")]),
        ("vera", vec![json!(null), json!("vera")]),
        ("wim", vec![]),
    ] {
        let (status, document) = site.get(who, "/api/v1/mcp/sign-ins").await;
        assert_eq!(status, 200, "{document}");
        let rows = document["sign_ins"].as_array().unwrap();
        let whose: Vec<Value> = rows.iter().map(|row| row["principal"].clone()).collect();
        assert_eq!(whose, expected, "{who}: {document}");
    }
    site.close().await;
}

/// Browsers connect to addresses. The rights of a process at the socket are those of the user, which no page may borrow.
#[cfg(unix)]
#[tokio::test]
async fn no_sign_in_page_is_served_at_the_local_socket() {
    use std::os::unix::fs::MetadataExt as _;
    let site = Site::open().await;
    let folder = tempfile::tempdir().unwrap();
    let uid = folder.path().metadata().unwrap().uid();
    let path = folder.path().join("socket");
    let listeners = Listeners::default().local(UnixListener::bind(&path).unwrap(), uid);
    let gateway = site.gateway.clone();
    let serving = tokio::spawn(async move { gateway.serve(listeners, std::future::pending()).await });
    for page in ["/signin", "/signin/server/fx", "/signin/callback?state=x&code=y"] {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let host = site.url.port().unwrap();
        let request = format!("GET {page} HTTP/1.1\r\nhost: 127.0.0.1:{host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut at_socket = String::new();
        stream.read_to_string(&mut at_socket).await.unwrap();
        assert!(at_socket.contains("pegboard login"), "{page}: {at_socket}");
        assert!(
            !at_socket.contains("set-cookie") && !at_socket.contains("<form"),
            "{page}: {at_socket}"
        );
        let at_address = send("GET", &site.at(page), &[], "").await;
        assert!(
            !at_address.body.contains("pegboard login"),
            "{page}: {}",
            at_address.body
        );
    }
    serving.abort();
    site.close().await;
}
