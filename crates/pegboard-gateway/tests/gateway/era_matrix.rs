//! Clients and servers of both eras in all four combinations, with a real wire on both sides of the gateway.

mod approvals;
mod board;
mod client;
mod fixture;
mod followed_eras;
mod http;
mod isolation;
mod logs;
mod mirrored;
mod questions;
mod slow_clients;
mod tasks;

use serde_json::{Value, json};

use crate::era_matrix::{
    client::{Client, Era},
    fixture::{Fixture, Link, SERVER, server},
};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const LINKS: [Link; 2] = [Link::Http, Link::Stdio];

/// How often a resource is changed until its subscriber must have been told.
const MAX_CHANGES: usize = 40;

/// The capabilities of a client that can answer everything.
fn everything_of(era: Era) -> Value {
    let mut capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
    if era == Era::Modern {
        capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    }
    capabilities
}

/// Runs a check for each combination of client and server, with each of their links.
async fn in_all_combinations(check: impl AsyncFn(&Fixture, Client)) {
    for (era, behind) in pairs() {
        let fixture = Fixture::behind(behind, server(era), |gateway| gateway).await;
        for (client, link) in pairs() {
            announce((client, link), (era, behind));
            check(&fixture, fixture.client(link, client).await).await;
        }
        fixture.board.shutdown().await;
    }
}

fn pairs() -> impl Iterator<Item = (Era, Link)> {
    ERAS.into_iter().flat_map(|era| LINKS.map(|link| (era, link)))
}

/// Names the combination that is checked, for the output of a failure.
#[expect(clippy::print_stderr, reason = "it is the output of a test")]
fn announce(client: (Era, Link), server: (Era, Link)) {
    eprintln!("client {client:?}, server {server:?}");
}

#[tokio::test]
async fn a_call_returns_the_servers_result() {
    in_all_combinations(async |_, mut client| {
        let outcome = client.call("echo", json!({"a": [1, "ü"]})).await;
        let echoed: Value = serde_json::from_str(&outcome.text()).unwrap();
        assert_eq!(echoed, json!({"a": [1, "ü"]}));
        let unknown = client.call("nothing", json!({})).await;
        assert_eq!(unknown.error()["code"], -32602);
    })
    .await;
}

#[tokio::test]
async fn a_user_answers_what_a_server_asks() {
    in_all_combinations(async |_, mut client| {
        let outcome = client.call("elicit", json!({})).await;
        assert_eq!(outcome.questions, ["elicitation/create"]);
        assert!(outcome.text().contains("green"), "{}", outcome.text());
    })
    .await;
}

#[tokio::test]
async fn a_clients_model_answers_what_a_server_asks() {
    in_all_combinations(async |_, mut client| {
        let outcome = client.call("sample", json!({"prompt": "a word"})).await;
        assert_eq!(outcome.questions, ["sampling/createMessage"]);
        assert!(outcome.text().contains("forty-two"), "{}", outcome.text());
    })
    .await;
}

#[tokio::test]
async fn a_server_learns_the_clients_roots() {
    in_all_combinations(async |_, mut client| {
        let outcome = client.call("roots", json!({})).await;
        assert_eq!(outcome.questions, ["roots/list"]);
        assert!(outcome.text().contains("file:///work"), "{}", outcome.text());
    })
    .await;
}

#[tokio::test]
async fn a_modern_client_is_told_which_capability_it_lacks() {
    let fixture = Fixture::new(Era::Legacy).await;
    for (tool, required) in [("sample", json!({"sampling": {}})), ("roots", json!({"roots": {}}))] {
        for capabilities in [json!({}), json!({"elicitation": {}})] {
            let mut client = Client::connect(&fixture.address, SERVER, Era::Modern, capabilities).await;
            let outcome = client.call(tool, json!({"prompt": "a word"})).await;
            let error = outcome.error();
            assert_eq!(
                (&error["code"], &error["data"]["requiredCapabilities"]),
                (&json!(-32021), &required)
            );
        }
    }
    let mut able = Client::connect(&fixture.address, SERVER, Era::Modern, everything_of(Era::Modern)).await;
    assert!(able.call("roots", json!({})).await.text().contains("file:///work"));
    fixture.board.shutdown().await;
}

#[tokio::test]
async fn several_rounds_of_questions_follow_each_other() {
    in_all_combinations(async |_, mut client| {
        let outcome = client.call("interview", json!({})).await;
        assert_eq!(outcome.questions, ["elicitation/create", "sampling/createMessage"]);
        assert!(outcome.text().contains("green") && outcome.text().contains("forty-two"));
    })
    .await;
}

#[tokio::test]
async fn progress_comes_under_the_clients_token() {
    in_all_combinations(async |_, mut client| {
        let params = json!({"name": "progress", "arguments": {}, "_meta": {"progressToken": "mine"}});
        let outcome = client.ask("tools/call", params).await;
        let progress = outcome.notified("notifications/progress");
        assert!(!progress.is_empty(), "{:?}", outcome.notifications);
        assert!(
            progress.iter().all(|report| report["progressToken"] == "mine"),
            "{progress:?}"
        );
        outcome.result();
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_on_the_server() {
    for (era, behind) in pairs() {
        for (client, link) in pairs() {
            announce((client, link), (era, behind));
            let fixture = Fixture::behind(behind, server(era), |gateway| gateway).await;
            let mut client = fixture.client(link, client).await;
            let slow = json!({"name": "slow", "arguments": {}, "_meta": {"progressToken": 1}});
            let started = fixture.server.wait_for(&["tools/call"]);
            client.cancel("tools/call", slow, started).await;
            let noticed = ["$cancelled", "$closed", "notifications/cancelled"];
            fixture.server.wait_for(&noticed).await;
            fixture.board.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_changed_list_is_told_and_listed() {
    in_all_combinations(async |_, mut client| {
        client.listen(json!({"toolsListChanged": true})).await;
        let names = async |client: &mut Client| -> Vec<Value> {
            let listed = client.ask("tools/list", json!({})).await;
            let tools = listed.result()["tools"].as_array().unwrap().iter();
            tools.map(|tool| tool["name"].clone()).collect()
        };
        let before = names(&mut client).await;
        client.call("change_tools", json!({})).await.result();
        client.wait_for("notifications/tools/list_changed").await;
        assert_ne!(
            names(&mut client).await.contains(&json!("guest")),
            before.contains(&json!("guest"))
        );
    })
    .await;
}

#[tokio::test]
async fn an_update_of_a_resource_is_told_to_its_subscribers() {
    in_all_combinations(async |_, mut client| {
        if client.era == Era::Legacy {
            client
                .ask("resources/subscribe", json!({"uri": "note://1"}))
                .await
                .result();
        } else {
            client.listen(json!({"resourceSubscriptions": ["note://1"]})).await;
        }
        let mut texts = (0..MAX_CHANGES).map(|number| format!("text {number}"));
        // A modern client's subscription is acknowledged before the server confirms it, so the first change may come too early.
        let (update, text) = loop {
            let text = texts.next().expect("one of many changes is told");
            client.call("change_resource", json!({ "text": text })).await.result();
            if let Some(update) = client.wait_briefly_for("notifications/resources/updated").await {
                break (update, text);
            }
            assert_eq!(
                client.era,
                Era::Modern,
                "a legacy subscription holds once it is confirmed"
            );
        };
        assert_eq!(update["uri"], "note://1");
        let read = client.ask("resources/read", json!({"uri": "note://1"})).await;
        assert_eq!(read.result()["contents"][0]["text"], json!(text));
    })
    .await;
}

#[tokio::test]
async fn logs_come_from_the_clients_level_on() {
    in_all_combinations(async |_, mut client| {
        let levels: Vec<Value> = match client.era {
            Era::Legacy => {
                client
                    .ask("logging/setLevel", json!({"level": "warning"}))
                    .await
                    .result();
                let outcome = client.call("log", json!({})).await;
                client.logged(&outcome, 2).await
            }
            Era::Modern => {
                let meta = json!({"io.modelcontextprotocol/logLevel": "warning"});
                let params = json!({"name": "log", "arguments": {}, "_meta": meta});
                let outcome = client.ask("tools/call", params).await;
                let messages = outcome.notified("notifications/message");
                messages.iter().map(|message| message["level"].clone()).collect()
            }
        };
        assert_eq!(levels, ["warning", "error"]);
    })
    .await;
}
