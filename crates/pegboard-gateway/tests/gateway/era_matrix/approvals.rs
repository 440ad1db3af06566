//! Calls that need approval: the gateway asks the user of the client that makes them.

use serde_json::{Value, json};

use crate::era_matrix::{
    client::{Client, Era},
    fixture::{Fixture, serve, server},
    http,
    isolation::{secret, token},
};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const PATH: &str = "/mcp/view/careful";
/// A secret of the board.
const KEY: &str = "key-a1B2c3D4e5F6g7H8";

struct Careful {
    server: pegboard_testkit::NetHandle,
    board: pegboard::Pegboard,
    address: String,
    serving: tokio::task::AbortHandle,
}

impl Careful {
    /// A view whose calls all need approval, for two principals.
    async fn open() -> Self {
        let server = server(Era::Legacy).serve_http().await.expect("a server");
        let config = format!(
            "[servers.s]\nurl = \"{}\"\nauth = {{ bearer = \"{KEY}\" }}\n[views.careful]\napproval = \"always\"\n",
            server.url()
        );
        let (board, address, serving) = serve(&config, |gateway| gateway.token(token("ada")).token(token("bob"))).await;
        board.settle(http::PATIENCE).await;
        Self {
            server,
            board,
            address,
            serving,
        }
    }

    async fn client(&self, who: &str, era: Era, capabilities: Value) -> Client {
        Client::connect_as(&self.address, PATH, era, capabilities, Some(&secret(who))).await
    }

    async fn able(&self, who: &str, era: Era) -> Client {
        self.client(who, era, json!({"elicitation": {}})).await
    }

    fn executed(&self) -> usize {
        self.server.count("tools/call")
    }

    async fn close(self) {
        self.serving.abort();
        self.board.shutdown().await;
    }
}

/// The params of a call of `echo`.
fn echo(text: &str) -> Value {
    json!({"name": "s__echo", "arguments": {"text": text}})
}

/// Makes a call and answers the question about it. Returns the params of the question, and the response.
async fn call(client: &mut Client, params: Value, answer: &Value) -> (Option<Value>, Value) {
    let (_, mut response) = client.begin("tools/call", params.clone()).await;
    let first = response.next().await.expect("a message");
    if client.era == Era::Legacy {
        if first.get("method").is_none() {
            return (None, first);
        }
        assert_eq!(first["method"], "elicitation/create");
        let answer = json!({"jsonrpc": "2.0", "id": first["id"], "result": answer});
        client.tell(&answer).await;
        return (
            Some(first["params"].clone()),
            response.next().await.expect("a response"),
        );
    }
    if first["result"]["resultType"] != "input_required" {
        return (None, first);
    }
    let questions = first["result"]["inputRequests"].as_object().expect("questions");
    let (key, question) = questions.iter().next().expect("a question");
    let mut again = params;
    again["requestState"] = first["result"]["requestState"].clone();
    again["inputResponses"] = json!({ key: answer });
    let (_, mut response) = client.begin("tools/call", again).await;
    let done = response.next().await.expect("a response");
    (Some(question["params"].clone()), done)
}

fn allow(remember: bool) -> Value {
    json!({"action": "accept", "content": {"allow": true, "remember": remember}})
}

fn text(response: &Value) -> String {
    response["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn a_call_is_made_when_the_user_allows_it() {
    let careful = Careful::open().await;
    for (number, era) in ERAS.into_iter().enumerate() {
        let mut client = careful.able("ada", era).await;
        let (question, response) = call(&mut client, echo("for approval"), &allow(false)).await;
        let question = question.expect("a question");
        let message = question["message"].as_str().expect("a message");
        assert!(message.contains("`s__echo`"), "{message}");
        assert!(message.contains(r#"{"text":"for approval"}"#), "{message}");
        assert_eq!(question["requestedSchema"]["required"], json!(["allow"]));
        assert!(text(&response).contains("for approval"), "{response}");
        assert_eq!(careful.executed(), number + 1);
        // Each call is asked about, whatever its arguments.
        let (again, _) = call(&mut client, echo("for approval"), &json!({"action": "decline"})).await;
        assert!(again.is_some());
        assert_eq!(careful.executed(), number + 1);
    }
    careful.close().await;
}

#[tokio::test]
async fn a_call_is_not_made_unless_the_user_says_yes() {
    let careful = Careful::open().await;
    for era in ERAS {
        let mut client = careful.able("ada", era).await;
        for answer in [
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
            json!({"action": "accept", "content": {"allow": false}}),
        ] {
            let (question, response) = call(&mut client, echo("never"), &answer).await;
            assert!(question.is_some());
            assert_eq!(response["result"]["isError"], true, "{response}");
            assert!(text(&response).contains("was not approved: the user"), "{response}");
        }
    }
    assert_eq!(careful.executed(), 0);
    careful.close().await;
}

#[tokio::test]
async fn an_approval_is_for_the_arguments_that_were_shown() {
    let careful = Careful::open().await;
    let mut client = careful.able("ada", Era::Modern).await;
    let (_, mut asked) = client.begin("tools/call", echo("shown")).await;
    let asked = asked.next().await.expect("a result");
    let questions = asked["result"]["inputRequests"].as_object().expect("questions");
    let key = questions.keys().next().expect("a question");
    let approved = |mut params: Value| {
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({ key: allow(true) });
        params
    };
    let mut stranger = careful.able("bob", Era::Modern).await;
    for (client, params) in [(&mut client, echo("changed")), (&mut stranger, echo("shown"))] {
        let refused = client.ask("tools/call", approved(params)).await;
        assert_eq!(refused.error()["code"], -32602);
    }
    assert_eq!(careful.executed(), 0);
    // An answer that comes before the question is none.
    let mut early = echo("changed");
    early["inputResponses"] = json!({ key: allow(true) });
    let (_, mut asked_again) = client.begin("tools/call", early).await;
    let asked_again = asked_again.next().await.expect("a result");
    assert_eq!(asked_again["result"]["resultType"], "input_required", "{asked_again}");
    assert_eq!(careful.executed(), 0);
    let done = client.ask("tools/call", approved(echo("shown"))).await;
    assert!(done.text().contains("shown"));
    assert_eq!(careful.executed(), 1);
    careful.close().await;
}

#[tokio::test]
async fn a_remembered_approval_is_for_the_same_principal_only() {
    for era in ERAS {
        let careful = Careful::open().await;
        let mut ada = careful.able("ada", era).await;
        assert!(call(&mut ada, echo("one"), &allow(true)).await.0.is_some());
        let (question, response) = call(&mut ada, echo("two"), &json!({})).await;
        assert!(question.is_none() && text(&response).contains("two"), "{response}");
        let mut bob = careful.able("bob", era).await;
        let (question, _) = call(&mut bob, echo("three"), &json!({"action": "decline"})).await;
        assert!(question.is_some());
        assert_eq!(careful.executed(), 2);
        careful.close().await;
    }
}

/// At the local socket this path runs calls that were approved elsewhere.
#[tokio::test]
async fn calls_that_were_approved_elsewhere_are_not_taken_at_an_address() {
    let fixture = Fixture::new(Era::Legacy).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
    }});
    let headers = [("accept", "application/json, text/event-stream".to_owned())];
    for (path, status) in [("/mcp/s", 200), ("/approved/mcp/s", 404)] {
        let response = http::send(&fixture.address, "POST", path, &headers, &call.to_string()).await;
        assert_eq!(response.status, status, "{path}");
    }
    fixture.board.shutdown().await;
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_why_its_call_is_refused() {
    let careful = Careful::open().await;
    for era in ERAS {
        for capabilities in [json!({}), json!({"sampling": {}}), json!({"elicitation": {"url": {}}})] {
            let mut client = careful.client("ada", era, capabilities).await;
            let (question, response) = call(&mut client, echo("never"), &json!({})).await;
            assert!(question.is_none());
            assert_eq!(response["result"]["isError"], true, "{response}");
            let text = text(&response);
            assert!(text.contains("does not declare the capability `elicitation`"), "{text}");
            assert!(text.contains("`approval` of the view"), "{text}");
        }
    }
    assert_eq!(careful.executed(), 0);
    careful.close().await;
}

#[tokio::test]
async fn an_approval_that_one_client_leaves_open_holds_up_no_other() {
    let careful = Careful::open().await;
    let mut first = careful.able("ada", Era::Modern).await;
    let (_, mut asked) = first.begin("tools/call", echo("left")).await;
    let asked = asked.next().await.expect("a result");
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut second = careful.able("ada", Era::Modern).await;
    let (question, response) = call(&mut second, echo("mine"), &allow(false)).await;
    assert!(question.is_some() && text(&response).contains("mine"), "{response}");
    careful.close().await;
}

#[tokio::test]
async fn the_arguments_are_shown_masked_and_bounded() {
    let careful = Careful::open().await;
    let mut client = careful.able("ada", Era::Modern).await;
    for (arguments, hidden) in [
        (KEY.to_owned(), KEY.to_owned()),
        ("x".repeat(10_000), "x".repeat(2_001)),
    ] {
        let (question, _) = call(&mut client, echo(&arguments), &json!({"action": "decline"})).await;
        let message = question.expect("a question")["message"].to_string();
        assert!(!message.contains(&hidden), "{message}");
    }
    careful.close().await;
}
