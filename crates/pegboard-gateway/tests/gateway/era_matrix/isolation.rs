//! What one principal has is of no use to another, and what clients send to the gateway stays there.

use pegboard_gateway::Token;
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::era_matrix::{
    client::{Client, Era},
    everything_of,
    fixture::{Fixture, Link, SERVER, Upstream, server},
    http,
};

pub(crate) fn token(name: &str) -> Token {
    let sha256 = digest(&SHA256, secret(name).as_bytes());
    Token::new(name, sha256.as_ref().try_into().expect("32 bytes"))
}

pub(crate) fn secret(name: &str) -> String {
    format!("pgb_secret_of_{name}")
}

async fn fixture(era: Era) -> Fixture {
    Fixture::with(server(era), |gateway| gateway.token(token("ada")).token(token("bob"))).await
}

pub(crate) async fn connect(fixture: &Fixture, name: &str, era: Era) -> Client {
    Client::connect_as(&fixture.address, SERVER, era, everything_of(era), Some(&secret(name))).await
}

#[tokio::test]
async fn a_task_id_is_of_no_use_to_another_principal() {
    for era in [Era::Legacy, Era::Modern] {
        let fixture = fixture(era).await;
        let (mut ada, mut bob) = (connect(&fixture, "ada", era).await, connect(&fixture, "bob", era).await);
        let created = ada
            .ask("tools/call", json!({"name": "task", "arguments": {}, "task": {}}))
            .await;
        let result = created.result();
        let id = result["task"]["taskId"]
            .as_str()
            .or(result["taskId"].as_str())
            .expect("a task");
        for method in ["tasks/get", "tasks/cancel"] {
            let refused = bob.ask(method, json!({ "taskId": id })).await;
            assert_eq!(refused.error()["code"], -32602, "{method}");
        }
        // Not even with the server's own id.
        let refused = bob.ask("tasks/get", json!({"taskId": "task-task"})).await;
        assert_eq!(refused.error()["code"], -32602);
        assert_eq!(fixture.server.count("tasks/get"), 0);
        if era == Era::Legacy {
            assert_eq!(bob.ask("tasks/list", json!({})).await.result()["tasks"], json!([]));
        }
        ada.ask("tasks/get", json!({ "taskId": id })).await.result();
        fixture.board.shutdown().await;
    }
}

#[tokio::test]
async fn a_request_state_is_of_no_use_to_another_principal_or_tool() {
    for era in [Era::Legacy, Era::Modern] {
        let fixture = fixture(era).await;
        let (mut ada, mut bob) = (
            connect(&fixture, "ada", Era::Modern).await,
            connect(&fixture, "bob", Era::Modern).await,
        );
        let asked = ada
            .first_message("tools/call", json!({"name": "elicit", "arguments": {}}))
            .await;
        let result = &asked["result"];
        assert_eq!(result["resultType"], "input_required", "{asked}");
        let key = result["inputRequests"]
            .as_object()
            .expect("questions")
            .keys()
            .next()
            .expect("a question");
        let answers = json!({ key: {"action": "accept", "content": {"colour": "stolen"}} });
        let again = |name: &str| json!({"name": name, "arguments": {}, "requestState": result["requestState"], "inputResponses": answers});
        assert_eq!(bob.ask("tools/call", again("elicit")).await.error()["code"], -32602);
        assert_eq!(ada.ask("tools/call", again("echo")).await.error()["code"], -32602);
        assert!(ada.ask("tools/call", again("elicit")).await.text().contains("stolen"));
        fixture.board.shutdown().await;
    }
}

#[tokio::test]
async fn equal_ids_of_two_principals_never_cross() {
    for era in [Era::Legacy, Era::Modern] {
        let fixture = fixture(era).await;
        let (mut ada, mut bob) = (connect(&fixture, "ada", era).await, connect(&fixture, "bob", era).await);
        for round in 0..10 {
            // Both use the same ids of requests.
            let (of_ada, of_bob) = tokio::join!(
                ada.call("echo", json!({"who": "ada", "round": round})),
                bob.call("echo", json!({"who": "bob", "round": round}))
            );
            assert!(of_ada.text().contains("ada") && !of_ada.text().contains("bob"));
            assert!(of_bob.text().contains("bob") && !of_bob.text().contains("ada"));
        }
        let (of_ada, of_bob) = tokio::join!(ada.call("elicit", json!({})), bob.call("elicit", json!({})));
        assert_eq!((of_ada.questions.len(), of_bob.questions.len()), (1, 1));
        fixture.board.shutdown().await;
    }
}

#[tokio::test]
async fn a_session_is_of_no_use_to_another_principal() {
    let fixture = fixture(Era::Legacy).await;
    let ada = connect(&fixture, "ada", Era::Legacy).await;
    let stolen = [
        ("accept", "application/json, text/event-stream".to_owned()),
        ("authorization", format!("Bearer {}", secret("bob"))),
        ("mcp-session-id", ada.session().expect("a session")),
    ];
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let refused = http::send(&fixture.address, "POST", SERVER, &stolen, &list).await;
    assert_eq!(refused.status, 404);
    fixture.board.shutdown().await;
}

#[tokio::test]
async fn no_header_of_a_client_reaches_a_server() {
    for era in [Era::Legacy, Era::Modern] {
        let fixture = Fixture::new(era).await;
        let mut client = Client::connect(&fixture.address, SERVER, Era::Modern, json!({})).await;
        client.more_headers = [
            "authorization",
            "proxy-authorization",
            "cookie",
            "x-api-key",
            "mcp-param-region",
            "x-canary",
            "via",
            "user-agent",
        ]
        .map(|name| (name, "canary-credential".to_owned()))
        .to_vec();
        client.call("echo", json!({"a": 1})).await.result();
        client.ask("tools/list", json!({})).await.result();
        client.ask("resources/read", json!({"uri": "note://1"})).await.result();
        let received = fixture.server.requests();
        assert!(received.iter().any(|request| request.method == "tools/call"));
        for request in received {
            let headers = format!("{:?}", request.headers);
            assert!(!headers.contains("canary"), "{}: {headers}", request.method);
        }
        fixture.board.shutdown().await;
    }
}

#[tokio::test]
async fn only_the_client_that_was_sent_to_a_page_is_told_that_the_user_has_finished() {
    let fixture = Fixture::new(Era::Legacy).await;
    let Upstream::Http(server) = &fixture.server else {
        unreachable!("it is reached over HTTP")
    };
    let mut clients = [
        fixture.client(Link::Http, Era::Legacy).await,
        fixture.client(Link::Http, Era::Legacy).await,
    ];
    clients[0].call("elicit_url", json!({})).await.result();
    clients[1].call("echo", json!({})).await.result();
    let id = json!({"elicitationId": "page"});
    server.notify("notifications/elicitation/complete", id.clone()).await;
    // Both are told this, and in the same order.
    server.notify("notifications/after", json!({})).await;
    for client in &mut clients {
        client.wait_for("notifications/after").await;
    }
    let told = |client: &Client| client.seen_so_far("notifications/elicitation/complete");
    assert_eq!(clients.each_ref().map(told), [vec![id], vec![]]);
    fixture.board.shutdown().await;
}
