//! Questions of a server that several clients share.

use pegboard_testkit::FakeServer;
use serde_json::{Value, json};

use crate::{
    client::{Client, Era},
    fixture::{SERVER, serve, server},
    http,
};

/// The config of a server that runs as a process, which all clients share.
fn process(fake: &FakeServer) -> String {
    let (program, args) = fake.command();
    format!("[servers.s]\ncommand = {}\nargs = {}\n", json!(program), json!(args))
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
