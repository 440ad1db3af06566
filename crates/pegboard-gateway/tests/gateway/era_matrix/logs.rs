//! Which client gets which logs, and what servers are told to log.

use pegboard_testkit::Tool;
use serde_json::{Value, json};

use crate::era_matrix::{
    client::{Client, Era},
    fixture::{Fixture, Link, SERVER, server},
    http,
    isolation::{connect, token},
};

async fn set_level(client: &mut Client, level: &str) {
    client.ask("logging/setLevel", json!({ "level": level })).await.result();
}

/// The levels that the server was told, in order.
fn levels(fixture: &Fixture) -> Vec<Value> {
    let received = fixture.server.requests();
    let set = received.iter().filter(|received| received.method == "logging/setLevel");
    set.map(|received| received.params["level"].clone()).collect()
}

async fn until_level(fixture: &Fixture, level: &str) {
    let told = async {
        while levels(fixture).last() != Some(&json!(level)) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let told = tokio::time::timeout(http::PATIENCE, told).await;
    told.unwrap_or_else(|_| panic!("`{level}` is not the last of {:?}", levels(fixture)));
}

async fn leave(fixture: &Fixture, client: Client) {
    let headers = [("mcp-session-id", client.session().expect("a session"))];
    let ended = http::send(&fixture.address, "DELETE", SERVER, &headers, "").await;
    assert!((200..300).contains(&ended.status), "{}", ended.status);
}

#[tokio::test]
async fn the_logs_of_a_call_go_to_the_client_that_made_it() {
    for era in [Era::Legacy, Era::Modern] {
        let fixture = Fixture::new(era).await;
        let mut first = fixture.client(Link::Http, Era::Legacy).await;
        let mut second = fixture.client(Link::Http, Era::Legacy).await;
        for client in [&mut first, &mut second] {
            set_level(client, "debug").await;
        }
        for client in [&mut first, &mut second] {
            let outcome = client.call("log", json!({})).await;
            assert_eq!(client.logged(&outcome, 3).await, ["debug", "warning", "error"]);
        }
        // The events of the general stream are sent in order.
        for client in [&mut first, &mut second] {
            client.call("change_tools", json!({})).await.result();
            client.wait_for("notifications/tools/list_changed").await;
            assert_eq!(client.logs_so_far(), 0);
        }
        fixture.board.shutdown().await;
    }
}

/// Both clients listen to the server while one of them has it log.
#[tokio::test]
async fn the_logs_and_progress_of_a_call_do_not_go_to_a_call_that_runs_beside_it() {
    for upstream in [Era::Legacy, Era::Modern] {
        for era in [Era::Legacy, Era::Modern] {
            let gated = Tool::new("gated").waits_at("gate").answers_text("through");
            let fixture = Fixture::with(server(upstream).tool(gated), |gateway| gateway).await;
            let meta = json!({"progressToken": "mine", "io.modelcontextprotocol/logLevel": "debug"});
            let params = |tool: &str| json!({"name": tool, "arguments": {}, "_meta": meta.clone()});
            let mut first = fixture.client(Link::Http, era).await;
            let mut second = fixture.client(Link::Http, era).await;
            if era == Era::Legacy {
                set_level(&mut first, "debug").await;
                set_level(&mut second, "debug").await;
            }
            let waiting = first.ask("tools/call", params("gated"));
            let beside = async {
                fixture.server.wait_for(&["tools/call"]).await;
                for tool in ["log", "progress"] {
                    let outcome = second.ask("tools/call", params(tool)).await;
                    outcome.result();
                    assert!(!outcome.notifications.is_empty(), "{tool} notifies");
                }
                fixture.server.open_gate("gate");
            };
            let (outcome, ()) = tokio::join!(waiting, beside);
            assert_eq!(outcome.text(), "through");
            assert!(outcome.notifications.is_empty(), "{:?}", outcome.notifications);
            fixture.board.shutdown().await;
        }
    }
}

#[tokio::test]
async fn the_level_of_a_server_is_the_lowest_that_a_client_wants_and_rises_again() {
    for link in [Link::Http, Link::Stdio] {
        let fixture = Fixture::behind(link, server(Era::Legacy), |gateway| gateway).await;
        let mut quiet = fixture.client(Link::Http, Era::Legacy).await;
        set_level(&mut quiet, "error").await;
        quiet.call("echo", json!({})).await.result();
        until_level(&fixture, "error").await;
        let mut loud = fixture.client(Link::Http, Era::Legacy).await;
        set_level(&mut loud, "debug").await;
        loud.call("echo", json!({})).await.result();
        until_level(&fixture, "debug").await;
        leave(&fixture, loud).await;
        until_level(&fixture, "error").await;
        set_level(&mut quiet, "alert").await;
        quiet.call("echo", json!({})).await.result();
        until_level(&fixture, "alert").await;
        leave(&fixture, quiet).await;
        until_level(&fixture, "emergency").await;
        assert_eq!(levels(&fixture), ["error", "debug", "error", "alert", "emergency"]);
        fixture.board.shutdown().await;
    }
}

#[tokio::test]
async fn a_process_of_several_principals_does_not_show_its_logs() {
    for era in [Era::Legacy, Era::Modern] {
        let with_tokens = |gateway: pegboard_gateway::GatewayBuilder| gateway.token(token("ada")).token(token("bob"));
        let fixture = Fixture::behind(Link::Stdio, server(era), with_tokens).await;
        let mut ada = connect(&fixture, "ada", Era::Modern).await;
        let meta = json!({"io.modelcontextprotocol/logLevel": "warning"});
        let log = json!({"name": "log", "arguments": {}, "_meta": meta});
        let alone = ada.ask("tools/call", log.clone()).await;
        assert_eq!(alone.notified("notifications/message").len(), 2);
        let mut bob = connect(&fixture, "bob", Era::Modern).await;
        bob.call("echo", json!({})).await.result();
        for client in [&mut ada, &mut bob] {
            let shared = client.ask("tools/call", log.clone()).await;
            assert!(
                shared.notified("notifications/message").is_empty(),
                "{:?}",
                shared.notifications
            );
        }
        fixture.board.shutdown().await;
    }
}
