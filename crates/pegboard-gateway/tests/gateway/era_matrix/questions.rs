//! Questions beyond tool calls, and between clients that share a server.

use pegboard_testkit::{FakeServer, Question, Tool};
use serde_json::{Value, json};

use crate::era_matrix::{
    client::{Client, Era},
    everything_of,
    fixture::{Fixture, SERVER, serve, server},
    http,
};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// The config of a server that runs as a process, which all clients share.
pub(crate) fn process(fake: &FakeServer) -> String {
    let (program, args) = fake.command();
    format!("[servers.s]\ncommand = {}\nargs = {}\n", json!(program), json!(args))
}

/// A server whose resource, prompt and completion ask for a colour.
fn asking(era: Era) -> FakeServer {
    let form = json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]});
    let questions = json!([[Question::form("colour", "Which colour?", form)]]);
    server(era)
        .resources([json!({"uri": "note://asks", "name": "asks", "text": "asked", "questions": questions})])
        .prompts([
            json!({"name": "favourite", "arguments": [{"name": "what"}], "text": "Your favourite:",
            "completions": {"what": ["paint"]}, "questions": questions, "completionQuestions": questions}),
        ])
}

/// Reads, gets and completes at the server `s` of a gateway, and expects one question each.
async fn check_all(address: &str, path: &str, era: Era) {
    let mut client = Client::connect(address, path, era, everything_of(era)).await;
    let prompt = if path == "/mcp" { "s__favourite" } else { "favourite" };
    let completion = json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": "what", "value": "p"}});
    for (method, params) in [
        ("resources/read", json!({"uri": "note://asks"})),
        ("prompts/get", json!({"name": prompt})),
        ("completion/complete", completion),
    ] {
        let outcome = client.ask(method, params).await;
        assert_eq!(outcome.questions, ["elicitation/create"], "{method} at {path}");
        let answered = outcome.result().to_string();
        assert!(answered.contains("green"), "{method} at {path}: {answered}");
    }
}

#[tokio::test]
async fn reading_getting_and_completing_may_need_input() {
    for of_server in ERAS {
        let fixture = Fixture::with(asking(of_server), |gateway| gateway).await;
        fixture.board.settle(http::PATIENCE).await;
        for era in ERAS {
            for path in ["/mcp", SERVER] {
                check_all(&fixture.address, path, era).await;
            }
        }
        fixture.board.shutdown().await;
    }
}

#[tokio::test]
async fn reading_getting_and_completing_may_need_input_of_a_process() {
    for of_server in ERAS {
        let (board, address, serving) = serve(&process(&asking(of_server)), |gateway| gateway).await;
        board.settle(http::PATIENCE).await;
        for era in ERAS {
            check_all(&address, "/mcp", era).await;
        }
        serving.abort();
        board.shutdown().await;
    }
}

/// The state of a read or a prompt is good for the same request only.
#[tokio::test]
async fn the_state_of_a_read_is_of_no_use_to_another_request() {
    let fixture = Fixture::with(asking(Era::Modern), |gateway| gateway).await;
    fixture.board.settle(http::PATIENCE).await;
    let mut client = Client::connect(&fixture.address, "/mcp", Era::Modern, everything_of(Era::Modern)).await;
    let (_, mut asked) = client.begin("resources/read", json!({"uri": "note://asks"})).await;
    let asked = asked.next().await.expect("a result");
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    let answers = json!({"colour": {"action": "accept", "content": {"colour": "green"}}});
    let stolen = json!({"name": "s__favourite", "requestState": state, "inputResponses": answers});
    assert_eq!(client.ask("prompts/get", stolen).await.error()["code"], -32602);
    let same = json!({"uri": "note://asks", "requestState": state, "inputResponses": answers});
    assert!(
        client
            .ask("resources/read", same)
            .await
            .result()
            .to_string()
            .contains("green")
    );
    fixture.board.shutdown().await;
}

/// The server does not say for which of the two calls it asks.
#[tokio::test]
async fn an_abandoned_question_does_not_hold_up_a_client_that_answers_none() {
    let (board, address, serving) = serve(&process(&server(Era::Legacy)), |gateway| gateway).await;
    board.settle(http::PATIENCE).await;
    let able = json!({"elicitation": {}});
    let mut first = Client::connect(&address, SERVER, Era::Modern, able).await;
    let elicit = json!({"name": "elicit", "arguments": {}});
    let (_, mut asked) = first.begin("tools/call", elicit.clone()).await;
    let asked: Value = asked.next().await.expect("a result");
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut second = Client::connect(&address, SERVER, Era::Modern, json!({})).await;
    let refused = second.call("elicit", json!({})).await;
    assert_eq!(refused.error()["code"], -32021, "{}", refused.response);
    // The first goes on where it was.
    let mut answered = elicit;
    answered["requestState"] = asked["result"]["requestState"].clone();
    let questions = asked["result"]["inputRequests"].as_object().expect("questions");
    let key = questions.keys().next().expect("a question");
    answered["inputResponses"] = json!({ key: {"action": "accept", "content": {"colour": "late"}} });
    assert!(first.ask("tools/call", answered).await.text().contains("late"));
    serving.abort();
    board.shutdown().await;
}

/// The server does not say for which call it asks, so that its calls must not overlap.
#[tokio::test]
async fn every_question_of_a_shared_process_finds_its_client_if_calls_run_one_by_one() {
    let config = process(&server(Era::Legacy)) + "serial = true\n";
    let (board, address, serving) = serve(&config, |gateway| gateway).await;
    board.settle(http::PATIENCE).await;
    let calls = (0..6).map(|number| {
        let address = address.clone();
        async move {
            let era = ERAS[number % 2];
            let mut client = Client::connect(&address, SERVER, era, everything_of(era)).await;
            let outcome = client.call("elicit", json!({})).await;
            assert_eq!(outcome.questions, ["elicitation/create"], "{}", outcome.response);
            assert!(outcome.text().contains("green"), "{}", outcome.response);
        }
    });
    futures_util::future::join_all(calls).await;
    serving.abort();
    board.shutdown().await;
}

/// What SDKs say when a tool sends a question in the era that has none.
#[tokio::test]
async fn a_tool_that_cannot_ask_in_the_newest_era_is_told_with_the_setting() {
    let said =
        "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests.";
    let tools = [
        Tool::new("fails").fails_with(said),
        Tool::new("refuses").refuses(-32600, said),
        Tool::new("other").fails_with("no such file"),
    ];
    for (of_server, is_told) in [(Era::Modern, true), (Era::Legacy, false)] {
        let fake = tools.iter().cloned().fold(server(of_server), FakeServer::tool);
        let fixture = Fixture::with(fake, |gateway| gateway).await;
        for era in ERAS {
            let mut client = Client::connect(&fixture.address, SERVER, era, everything_of(era)).await;
            for tool in ["fails", "refuses"] {
                let response = client.call(tool, json!({})).await.response.to_string();
                assert!(response.contains("has no back-channel"), "{response}");
                // For legacy clients the older era was tried.
                assert_eq!(
                    response.contains("servers.s.era"),
                    is_told && era == Era::Modern,
                    "{era:?} {tool}: {response}"
                );
            }
            let other = client.call("other", json!({})).await.response.to_string();
            assert!(!other.contains("hint:"), "{other}");
        }
        fixture.board.shutdown().await;
    }
}
