//! Redirects: followed only if method, body and credentials may be kept, rejected otherwise. A call that was answered with a redirect may
//! have run.

use pegboard::{
    Kind, Reply, Secret, ServerConfig,
    config::{Auth, Transport},
};
use pegboard_testkit::{Era, Fault, When};
use serde_json::json;

use crate::{fixtures::*, raw, support::*};

fn with_secrets(url: &str) -> ServerConfig {
    let mut endpoint = endpoint(url);
    endpoint.auth = Auth::Bearer(Secret::new("t0ken"));
    endpoint.headers.insert("X-Key".to_owned(), Secret::new("k3y"));
    ServerConfig::new(Transport::http(endpoint))
}

#[tokio::test]
async fn a_redirect_that_keeps_the_request_is_followed_on_the_same_origin() {
    for era in BOTH_ERAS {
        for status in [307, 308] {
            let mut server = fake(era).bearer("t0ken");
            for method in [
                "server/discover",
                "initialize",
                "tools/list",
                "tools/call",
                "GET",
                "DELETE",
            ] {
                let to = "/mcp".to_owned();
                server = server.fault_on(When::method(method).first(1), Fault::Redirect { status, to });
            }
            let fake = server.serve_http().await.unwrap();
            let board = board(with_secrets(&fake.url()));
            let tools = board.toolset();
            assert_greets(&tools, "redirected").await;
            assert_eq!(call(&tools, "fx.echo", json!({"a": "é"})).await.text(), r#"{"a":"é"}"#);
            board.shutdown().await;
            for received in fake.requests() {
                assert_eq!(
                    received.header("authorization"),
                    Some("Bearer t0ken"),
                    "{}",
                    received.method
                );
                assert_eq!(received.header("x-key"), Some("k3y"), "{}", received.method);
            }
            assert_eq!(fake.count("tools/call"), 3);
            assert_eq!(fake.count("DELETE"), if era == Era::Legacy { 2 } else { 0 });
        }
    }
}

/// The server redirects; the target must receive no request.
async fn check_refused(status: u16, to: &str, when: When, other: &raw::Raw) {
    check(status, to, when, other, (refused, Kind::Unavailable)).await;
}

/// The server redirects a call, so its outcome is unknown; the target must receive no request.
async fn check_lost(status: u16, to: &str, other: &raw::Raw) {
    check(status, to, When::tool("hello"), other, (lost, Kind::Transport)).await;
}

async fn check(status: u16, to: &str, when: When, other: &raw::Raw, (ends, kind): (fn(&Reply, Kind) -> String, Kind)) {
    for era in BOTH_ERAS {
        let fault = Fault::Redirect {
            status,
            to: to.to_owned(),
        };
        let fake = fake(era)
            .bearer("t0ken")
            .fault_on(when.clone(), fault)
            .serve_http()
            .await
            .unwrap();
        let reply = hello(&board(with_secrets(&fake.url())).toolset()).await;
        let text = ends(&reply, kind);
        assert!(text.contains("redirect"), "{status} {to}: {text}");
        let hint = reply.outcome.hint().unwrap();
        assert!(hint.contains("credentials are not sent on"), "{hint}");
        assert!(!text.contains("t0ken") && !text.contains("k3y"), "{text}");
    }
    assert!(other.seen().is_empty(), "{status} {to}: {:?}", other.seen());
}

#[tokio::test]
async fn a_redirect_elsewhere_is_refused_and_nobody_there_hears_of_it() {
    let other = raw::serve(|seen| raw::healthy(seen, true)).await;
    let url = other.url("/mcp");
    let by_name = url.replace("127.0.0.1", "localhost");
    let secure = url.replace("http://", "https://");
    for status in [301, 302, 303, 307, 308] {
        for to in [&url, &by_name, &secure] {
            check_refused(status, to, When::always(), &other).await;
        }
    }
    // The same applies in the middle of a session.
    check_lost(307, &url, &other).await;
    check_lost(302, &url, &other).await;
}

#[tokio::test]
async fn a_redirect_that_would_change_the_request_or_goes_in_circles_is_refused() {
    let other = raw::serve(|seen| raw::healthy(seen, true)).await;
    for status in [301, 302, 303] {
        check_refused(status, "/mcp", When::always(), &other).await;
        check_lost(status, "/mcp", &other).await;
    }
    for status in [307, 308] {
        check_refused(status, "/mcp", When::always(), &other).await;
        check_lost(status, "/mcp", &other).await;
    }
}

#[tokio::test]
async fn the_old_transport_follows_no_redirect_elsewhere_either() {
    let other = raw::serve(|seen| raw::healthy(seen, true)).await;
    for status in [302, 307] {
        let fault = Fault::Redirect {
            status,
            to: other.url("/sse"),
        };
        let fake = fake(Era::Legacy)
            .fault_on(When::method("GET"), fault)
            .serve_sse()
            .await
            .unwrap();
        let text = refused(&hello(&board(sse(&fake.url())).toolset()).await, Kind::Unavailable);
        assert!(text.contains("redirect"), "{text}");
        let fault = Fault::Redirect {
            status,
            to: other.url("/messages"),
        };
        let fake = crate::fixtures::fake(Era::Legacy)
            .fault_on(When::tool("hello"), fault)
            .serve_sse()
            .await
            .unwrap();
        lost(&hello(&board(sse(&fake.url())).toolset()).await, Kind::Transport);
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_call_that_is_lost_where_a_redirect_led_may_have_run() {
    let fake = raw::serve(|seen| match (seen.method(), seen.path.as_str()) {
        ("tools/call", "/mcp") => vec![raw::Step::Write(
            b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /next\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                .to_vec(),
        )],
        ("tools/call", _) => vec![raw::Step::Reset],
        _ => raw::healthy(seen, true),
    })
    .await;
    lost(&hello(&board(http(&fake.url("/mcp"))).toolset()).await, Kind::Transport);
    assert_eq!(fake.count("tools/call"), 2, "one request, and one where it led");
}
