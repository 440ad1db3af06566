//! Servers with a URL: the transport, headers, credentials and sessions.

use pegboard::{Config, Env, Format, Kind, Pegboard, Reply};
use pegboard_testkit::{Era, FakeServer, Fault, NetHandle, Tool, When};
use serde_json::json;

use crate::support::*;

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .era(Era::Legacy)
        .tool(Tool::new("hello").answers_text("hi"))
}

/// A board with the server at `url` and these settings. The variable `GIVEN` is set.
fn open(url: &str, settings: &str) -> Pegboard {
    let text = format!("[servers.fx]\nurl = '{url}'\n{settings}\n");
    let env = Env::new(|name| (name == "GIVEN").then(|| "from-variable".to_owned()));
    let loaded = Config::from_text(&text, Format::Toml, &env);
    assert_eq!(
        loaded.errors().map(ToString::to_string).collect::<Vec<_>>(),
        [""; 0],
        "{text}"
    );
    Pegboard::open(loaded.config)
}

async fn hello(server: &NetHandle, settings: &str) -> Reply {
    let board = open(&server.url(), settings);
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    board.shutdown().await;
    reply
}

/// The value of a header in the call of a server with these settings.
async fn sent(settings: &str, header: &str) -> Option<String> {
    let server = fake().serve_http().await.unwrap();
    assert_eq!(hello(&server, settings).await.text(), "hi", "{settings}");
    let requests = server.requests();
    let call = requests
        .iter()
        .find(|received| received.method == "tools/call")
        .unwrap();
    call.header(header).map(str::to_owned)
}

#[tokio::test]
async fn a_server_is_reached_at_its_url_by_the_type_of_the_config() {
    let (http, sse) = (fake().serve_http().await.unwrap(), fake().serve_sse().await.unwrap());
    for (server, kind, is_error) in [
        (&http, "http", false),
        (&http, "sse", true),
        (&sse, "sse", false),
        (&sse, "http", true),
    ] {
        let settings = format!("type = '{kind}'\nconnect_timeout = '5s'\nrestart = false");
        let reply = hello(server, &settings).await;
        assert_eq!(
            reply.is_error(),
            is_error,
            "{}: type = {kind}: {}",
            server.url(),
            reply.text()
        );
    }
}

#[tokio::test]
async fn headers_are_sent() {
    assert_eq!(
        sent("headers = { X-Team = 'blue' }", "x-team").await.as_deref(),
        Some("blue")
    );
    let from_variable = sent("env_headers = { X-Team = 'GIVEN' }", "x-team").await;
    assert_eq!(from_variable.as_deref(), Some("from-variable"));
}

#[tokio::test]
async fn credentials_are_sent_as_the_config_names_them() {
    let basic = "auth = { user = 'me', password = 'p@ss' }";
    for (settings, header, expected) in [
        ("bearer_token = 't0ken'", "authorization", Some("Bearer t0ken")),
        ("auth = { bearer = 't0ken' }", "authorization", Some("Bearer t0ken")),
        ("auth = { bearer = 't0ken', type = 'none' }", "authorization", None),
        (
            "auth = { bearer = 't0ken', type = 'api_key' }",
            "x-api-key",
            Some("t0ken"),
        ),
        ("auth = { bearer = 't0ken' }\nauth_type = 'none'", "authorization", None),
        (
            "auth = { bearer = 't0ken' }\nauth_type = 'api_key'",
            "x-api-key",
            Some("t0ken"),
        ),
        (basic, "authorization", Some("Basic bWU6cEBzcw==")),
        ("auth = { api_key = 'k3y' }", "x-api-key", Some("k3y")),
        ("auth = { api_key = 'k3y', header = 'X-Other' }", "x-other", Some("k3y")),
    ] {
        assert_eq!(
            sent(settings, header).await.as_deref(),
            expected,
            "{settings}: {header}"
        );
    }
}

#[tokio::test]
async fn a_status_of_the_config_means_that_the_session_is_gone() {
    let gone = Fault::Status {
        status: 400,
        headers: Vec::new(),
        body: "no such session".to_owned(),
    };
    for (settings, is_found_again, sessions) in [
        ("", false, 1),
        ("session_gone_status = [410]", false, 1),
        ("session_gone_status = [410, 400]", true, 2),
    ] {
        let server = fake().fault_on(When::tool("hello").first(1), gone.clone());
        let server = server.serve_http().await.unwrap();
        let reply = hello(&server, settings).await;
        let is_ok = reply.outcome.kind() == Kind::Ok;
        assert_eq!(is_ok, is_found_again, "{settings}: {}", reply.text());
        assert_eq!(server.count("initialize"), sessions, "{settings}");
    }
}
