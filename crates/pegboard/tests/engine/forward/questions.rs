//! Requests of servers that a host passes on to its client as they are.

use std::{pin::Pin, sync::Arc};

use pegboard::{Host, ToolCall, Toolset, forward::Forwarding, host::HostContext, status::Era};
use pegboard_base::sync::Mutex;
use serde_json::{Value, json};

use crate::{forward::raw_server::*, support::*};

/// A token, written in parts so that secret scanners do not report this file.
const TOKEN: &str = concat!("gh", "p_", "sY7bXgSA9f5j34sRwh5yCmX4w0VvG6XqH1hN");

/// A client that answers every request by its method, and records the requests.
#[derive(Clone, Default)]
struct Client {
    name: &'static str,
    asked: Arc<Mutex<Vec<(String, String, Value)>>>,
}

impl Client {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    fn asked(&self) -> Vec<(String, String, Value)> {
        self.asked.lock().clone()
    }
}

impl Host for Client {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn offers_sampling(&self) -> bool {
        true
    }

    fn offers_roots(&self) -> bool {
        true
    }

    fn takes_requests(&self) -> bool {
        true
    }

    fn request<'a>(
        &'a self,
        context: HostContext<'a>,
        method: &'a str,
        params: Value,
    ) -> Pin<Box<dyn Future<Output = Result<Value, (i64, String)>> + Send + 'a>> {
        let call = context.caller.map_or("", |caller| caller.call).to_owned();
        self.asked.lock().push((call, method.to_owned(), params));
        let answer = match method {
            "elicitation/create" => Ok(json!({"action": "accept", "content": {"by": self.name}, "x": 1.5})),
            "sampling/createMessage" => {
                Ok(json!({"role": "assistant", "model": self.name, "content": {"type": "text", "text": "hi"}}))
            }
            "roots/list" => Ok(json!({"roots": [{"uri": format!("file:///{}", self.name), "_meta": {"a": 1}}]})),
            _ => Err((-32601, "no".to_owned())),
        };
        Box::pin(async move { answer })
    }
}

fn questions() -> Vec<(&'static str, Value)> {
    let schema = json!({"type": "object", "properties": {"by": {"type": "string"}}});
    vec![
        (
            "elicitation/create",
            json!({"message": format!("for {TOKEN}?"), "requestedSchema": schema, "extra": {"a": 1.5}, "_meta": {"progressToken": 1, "k": 2}}),
        ),
        (
            "sampling/createMessage",
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 1_000_000}),
        ),
        ("roots/list", json!({})),
    ]
}

/// Checks what the client was asked, and returns what it answered to each question.
fn check_asked(client: &Client, call: &str) {
    let asked = client.asked();
    let methods: Vec<&str> = asked.iter().map(|(_, method, _)| method.as_str()).collect();
    assert_eq!(methods, ["elicitation/create", "sampling/createMessage", "roots/list"]);
    assert!(asked.iter().all(|(of, ..)| of == call), "{asked:?}");
    let form = &asked[0].2;
    assert_eq!(form["message"], "for [MASKED_GITHUB_TOKEN]?");
    assert_eq!((&form["extra"], &form["_meta"]), (&json!({"a": 1.5}), &json!({"k": 2})));
    assert_eq!(asked[1].2["maxTokens"], 4096);
}

async fn call_as(tools: Toolset, id: &'static str) {
    tools
        .forward_call(ToolCall::new("fx.t").id(id), &Forwarding::new())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_handshake_asks_the_client_of_the_call() {
    let (server, alice, board_host) = (RawServer::new(Era::Legacy), Client::new("alice"), Client::new("board"));
    let board = server.board_with(in_process_settings(), board_host.clone(), |_| None);
    let tools = board.toolset_with(whole().host(alice.clone()));
    let calling = tokio::spawn(call_as(tools, "call-a"));
    server.wait_for("tools/call", 1).await;
    let capabilities = server.received("initialize")[0]["params"]["capabilities"].clone();
    assert_eq!(capabilities["roots"], json!({"listChanged": true}));
    let mut answers = Vec::new();
    for (method, params) in questions() {
        let question = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        server.say(question).await;
        answers.push(server.answer_to(method).await["result"].clone());
    }
    assert_eq!(
        answers[0],
        json!({"action": "accept", "content": {"by": "alice"}, "x": 1.5})
    );
    assert_eq!(answers[1]["model"], "alice");
    assert_eq!(
        answers[2],
        json!({"roots": [{"uri": "file:///alice", "_meta": {"a": 1}}]})
    );
    check_asked(&alice, "call-a");
    assert_eq!(board_host.asked(), []);
    calling.abort();
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_handshake_asks_the_client_in_rounds() {
    let (server, alice) = (RawServer::new(Era::Modern), Client::new("alice"));
    let board = server.board(|message| {
        let responses = &message["params"]["inputResponses"];
        if responses.is_null() {
            let requests = questions().into_iter().map(|(method, params)| {
                let key = format!("{}", method.len() % 7 + usize::from(method.starts_with("samp")) * 10);
                (
                    format!("{}{key}", &method[..1]),
                    json!({"method": method, "params": params}),
                )
            });
            let requests: serde_json::Map<String, Value> = requests.collect();
            return result(json!({"resultType": "input_required", "inputRequests": requests}).to_string());
        }
        result(json!({"content": [], "structuredContent": responses}).to_string())
    });
    let tools = board.toolset_with(whole().host(alice.clone()));
    let call = ToolCall::new("fx.t").id("call-a");
    let done = json_of(tools.forward_call(call, &Forwarding::new()).await);
    let done: Value = serde_json::from_str(&done).unwrap();
    let answers: Vec<&Value> = done["structuredContent"].as_object().unwrap().values().collect();
    assert!(
        answers.contains(&&json!({"action": "accept", "content": {"by": "alice"}, "x": 1.5})),
        "{answers:?}"
    );
    assert!(answers.contains(&&json!({"roots": [{"uri": "file:///alice", "_meta": {"a": 1}}]})));
    let mut asked = alice.asked();
    asked.sort_by(|one, two| one.1.cmp(&two.1));
    assert_eq!(asked.len(), 3);
    let declared = &server.received("tools/call")[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared["roots"], json!({}));
    board.shutdown().await;
}

/// What is rejected for other hosts is not passed on either.
#[tokio::test(start_paused = true)]
async fn forms_that_ask_for_passwords_and_a_flood_of_samples_reach_no_client() {
    let (server, alice) = (RawServer::new(Era::Legacy), Client::new("alice"));
    let board = server.board_with(in_process_settings(), alice.clone(), |_| None);
    let calling = tokio::spawn(call_as(board.toolset_with(whole()), "call-a"));
    server.wait_for("tools/call", 1).await;
    let schema = json!({"type": "object", "properties": {"password": {"type": "string"}}});
    let params = json!({"message": "your password", "requestedSchema": schema});
    server
        .say(json!({"jsonrpc": "2.0", "id": "form", "method": "elicitation/create", "params": params}))
        .await;
    assert_eq!(server.answer_to("form").await["error"]["code"], -32602);
    let params = questions()[1].1.clone();
    for number in 0..12 {
        let id = format!("sample-{number}");
        server
            .say(json!({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": params}))
            .await;
        let answer = server.answer_to(&id).await;
        assert_eq!(answer.get("result").is_some(), number < 10, "{number}: {answer}");
    }
    assert_eq!(alice.asked().len(), 10);
    calling.abort();
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn two_clients_with_calls_in_flight_are_not_mixed_up() {
    let (server, alice, bob) = (RawServer::new(Era::Legacy), Client::new("alice"), Client::new("bob"));
    let board = server.board_with(in_process_settings(), Client::new("board"), |_| None);
    let first = tokio::spawn(call_as(board.toolset_with(whole().host(alice.clone())), "call-a"));
    let second = tokio::spawn(call_as(board.toolset_with(whole().host(bob.clone())), "call-b"));
    server.wait_for("tools/call", 2).await;
    for (method, params) in questions() {
        server
            .say(json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
            .await;
        assert_eq!(server.answer_to(method).await["error"]["code"], -32603, "{method}");
    }
    assert_eq!((alice.asked().len(), bob.asked().len()), (0, 0));
    first.abort();
    second.abort();
    board.shutdown().await;
}
