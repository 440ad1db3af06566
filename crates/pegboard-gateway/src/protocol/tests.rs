//! What both eras mean, as tests against a service in memory.

#![expect(clippy::needless_pass_by_value, reason = "`json!` is written in the call")]

mod bounds;
mod legacy;
mod modern;
mod questions_legacy;
mod questions_modern;
mod service;
mod subscriptions;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use pegboard::Principal;
use pegboard_protocol::{Version, code};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{
    Endpoint, Limits, Message, Outgoing, Peer, Request, RpcError, RunStep, Running, Sealer, Wire, message::Incoming,
    parse,
};
use crate::door::Caller;
use service::TestService;

const MODERN: &str = Version::LATEST_MODERN.as_str();

/// An endpoint with the test service.
struct Rig {
    endpoint: Arc<Endpoint>,
    service: Arc<TestService>,
}

/// A legacy session, or a connection.
struct Session {
    endpoint: Arc<Endpoint>,
    peer: Arc<Peer>,
    outbox: mpsc::Receiver<Outgoing>,
}

fn rig() -> Rig {
    rig_with(Limits::default())
}

fn rig_with(limits: Limits) -> Rig {
    let service = Arc::new(TestService::default());
    let sealer = Arc::new(Sealer::with_key(&[7; 32]));
    let endpoint = Endpoint::new("/mcp", service.clone(), sealer, limits);
    Rig { endpoint, service }
}

fn message(value: &Value) -> Message {
    match parse(&Bytes::from(value.to_string())) {
        Ok(Incoming::One(message)) => message,
        other => panic!("{value}: {other:?}"),
    }
}

fn request(id: u64, method: &str, params: Value) -> Request {
    match message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})) {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn call(id: u64, tool: &str, arguments: Value) -> Request {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

/// The params of a modern request of a client that answers every question.
fn with_meta(mut params: Value) -> Value {
    params["_meta"] = meta(json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    params
}

fn modern(id: u64, method: &str, params: Value) -> Request {
    request(id, method, with_meta(params))
}

fn json_of(message: Outgoing) -> Value {
    serde_json::from_slice(&message.into_bytes()).unwrap()
}

/// The next step, which must be ready soon. Paused time makes the limit cheap.
async fn step(running: &mut Running) -> RunStep {
    timeout(Duration::from_secs(3600), running.next())
        .await
        .expect("the request yields nothing")
}

/// The next message, before the response.
async fn next_message(running: &mut Running) -> Value {
    match step(running).await {
        RunStep::Message(message) => json_of(message),
        RunStep::Done(done) => panic!("done: {:?}", done.map(json_of)),
    }
}

/// All messages and the response.
async fn run(mut running: Running) -> (Vec<Value>, Option<Value>) {
    let mut messages = Vec::new();
    loop {
        match step(&mut running).await {
            RunStep::Message(message) => messages.push(json_of(message)),
            RunStep::Done(response) => return (messages, response.map(json_of)),
        }
    }
}

/// The response alone.
async fn response(running: Result<Running, RpcError>) -> Value {
    let (messages, response) = run(running.unwrap()).await;
    assert_eq!(messages, Vec::<Value>::new());
    response.unwrap()
}

fn code(running: Result<Running, RpcError>) -> i64 {
    running
        .map(|running| panic!("{running:?} was accepted"))
        .unwrap_err()
        .code
}

/// A caller with all scopes.
fn caller(principal: Option<&str>) -> Caller {
    Caller {
        principal: principal.map(Principal::new),
        ..Caller::default()
    }
}

impl Rig {
    fn modern(&self, principal: Option<&str>, request: Request) -> Result<Running, RpcError> {
        self.endpoint.start_modern(&caller(principal), request, Wire::Pipe)
    }

    fn connect(&self) -> Session {
        let (peer, outbox) = self.endpoint.open(&Caller::default());
        Session {
            endpoint: self.endpoint.clone(),
            peer,
            outbox,
        }
    }

    /// A session after its handshake.
    async fn session(&self, version: &str, capabilities: Value) -> Session {
        let session = self.connect();
        let hello = json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"},
        });
        let welcome = response(session.start(request(0, "initialize", hello))).await;
        assert_eq!(welcome["result"]["protocolVersion"], version);
        session.tell("notifications/initialized", json!({}));
        session
    }
}

impl Session {
    fn start(&self, request: Request) -> Result<Running, RpcError> {
        self.endpoint.start(&self.peer, request, Wire::Pipe)
    }

    fn tell(&self, method: &str, params: Value) {
        match message(&json!({"jsonrpc": "2.0", "method": method, "params": params})) {
            Message::Notification(notification) => self.peer.handle_notification(notification),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&self, id: &Value, result: Value) {
        match message(&json!({"jsonrpc": "2.0", "id": id, "result": result})) {
            Message::Response { id, outcome } => self.peer.handle_response(&id, outcome),
            other => panic!("{other:?}"),
        }
    }

    async fn next_in_outbox(&mut self) -> Value {
        let message = timeout(Duration::from_secs(3600), self.outbox.recv())
            .await
            .expect("the outbox stays empty");
        json_of(message.expect("the outbox has ended"))
    }
}
