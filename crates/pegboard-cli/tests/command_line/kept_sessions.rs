//! Sessions of clients that speak to a gateway which was restarted: they go on, because what the handshake settled is in their ids.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    gateway::{Served, initialize},
    home::{Home, until},
};

const LIST: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;

fn home(more: &str) -> Home {
    let home = Home::new();
    let tokens = ["ada", "bob"].map(|name| {
        let digest = pegboard::config::TokenDigest::compute(&format!("pgb_{name}"));
        format!("[serve.tokens.{name}]\nsha256 = '{digest}'\n")
    });
    let fake = FakeServer::new("fx").tool(Tool::new("read").read_only().answers_text("read it"));
    home.config(&format!("{}{more}\n{}", tokens.concat(), home.entry("fx", fake, "")));
    home
}

const ADA: (&str, &str) = ("Authorization", "Bearer pgb_ada");
const BOB: (&str, &str) = ("Authorization", "Bearer pgb_bob");

fn restarted(home: &Home, served: Served) -> Served {
    drop(served);
    let served = Served::start(home, &[]);
    until("the server is listed", || {
        let modern = served.send("GET", "/api/v1/mcp/servers", &[ADA], "").message();
        modern["servers"][0]["state"] == "ready"
    });
    served
}

fn list(served: &Served, session: &str, token: (&str, &str)) -> u16 {
    served.post("/mcp", &[token, ("Mcp-Session-Id", session)], LIST).status
}

#[test]
fn a_session_goes_on_after_a_restart_for_its_principal_at_its_endpoint() {
    let home = home("");
    let served = Served::start(&home, &[]);
    let (session, _) = served.initialize("/mcp", &[ADA]);
    let served = restarted(&home, served);
    let params = json!({"name": "fx__read", "arguments": {}});
    let called = served.ask("/mcp", &[ADA], &session, "tools/call", &params);
    assert_eq!(called["result"]["content"][0]["text"], "read it", "{called}");
    assert_eq!(list(&served, &session, BOB), 404, "it is not bob's");
    let at_other = served.post("/mcp/fx", &[ADA, ("Mcp-Session-Id", &session)], LIST);
    assert_eq!(at_other.status, 404, "it was opened elsewhere");
    for at in [0, 31, 32, 33, session.len() - 1] {
        let mut altered = session.clone().into_bytes();
        altered[at] = if altered[at] == b'0' { b'1' } else { b'0' };
        assert_eq!(
            list(&served, std::str::from_utf8(&altered).unwrap(), ADA),
            404,
            "byte {at}"
        );
    }
    assert_eq!(list(&served, &session[..32], ADA), 404, "the secret alone");
    assert_eq!(list(&served, &session, ADA), 200);
}

#[test]
fn a_session_that_its_client_has_ended_stays_so() {
    let home = home("");
    let served = Served::start(&home, &[]);
    let (session, _) = served.initialize("/mcp", &[ADA]);
    let served = restarted(&home, served);
    let end = || {
        served
            .send("DELETE", "/mcp", &[ADA, ("Mcp-Session-Id", &session)], "")
            .status
    };
    assert_eq!(end(), 204, "also one that only its client knew of");
    assert_eq!((list(&served, &session, ADA), end()), (404, 404));
}

/// What a call was answered with by the process that is gone, no one knows.
#[test]
fn a_stream_of_the_process_before_is_gone_and_says_so() {
    let home = home("");
    let served = Served::start(&home, &[]);
    let (session, _) = served.initialize("/mcp", &[ADA]);
    let served = restarted(&home, served);
    let headers = [
        ADA,
        ("Mcp-Session-Id", &*session),
        ("Last-Event-ID", "1-1"),
        ("Accept", "text/event-stream"),
    ];
    let resumed = served.send("GET", "/mcp", &headers, "");
    assert_eq!(resumed.status, 400, "{resumed:?}");
    assert!(resumed.body.contains("may have taken effect"), "{resumed:?}");
}

#[test]
fn a_client_that_says_much_about_itself_has_a_session_of_one_process() {
    let home = home("");
    let served = Served::start(&home, &[]);
    let mut hello: Value = initialize();
    hello["params"]["clientInfo"]["name"] = "x".repeat(2000).into();
    let opened = served.post("/mcp", &[ADA], &hello.to_string());
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(session.len(), 32);
    assert_eq!(list(&served, &session, ADA), 200);
    let served = restarted(&home, served);
    assert_eq!(list(&served, &session, ADA), 404);
}

#[test]
fn the_key_is_that_of_the_config_or_one_that_is_kept() {
    let kept = home("");
    let served = Served::start(&kept, &[]);
    let (session, _) = served.initialize("/mcp", &[ADA]);
    std::fs::remove_file(kept.path(".local/state/pegboard/gateway.key")).unwrap();
    let served = restarted(&kept, served);
    assert_eq!(list(&served, &session, ADA), 404, "sealed with a key that is gone");
    let with_key = home("[serve]\nstate_key = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8='\n");
    let served = Served::start(&with_key, &[]);
    let (session, _) = served.initialize("/mcp", &[ADA]);
    assert!(!with_key.path(".local/state/pegboard/gateway.key").exists());
    assert_eq!(list(&restarted(&with_key, served), &session, ADA), 200);
}

/// Requests that come at once after the restart find one session and not one each.
#[test]
fn many_requests_at_once_go_on_with_one_session() {
    let home = home("[serve]\nmax_sessions = 1\n");
    let served = Served::start(&home, &[]);
    let (session, _) = served.initialize("/mcp", &[ADA]);
    let served = restarted(&home, served);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..16).map(|_| scope.spawn(|| list(&served, &session, ADA))).collect();
        asking.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(statuses, [200; 16]);
    let metrics = served.send("GET", "/metrics", &[ADA], "").body;
    assert!(metrics.contains("pegboard_http_sessions_open 1\n"), "{metrics}");
}
