//! The upstream of the example: a small MCP server over HTTP whose users have tokens, and notes of their own.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use pegboard::Principal;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

/// The users with their tokens and notes.
const USERS: [(&str, &str, &str); 2] = [
    ("ann", "token-of-ann", "water the plants"),
    ("bob", "token-of-bob", "call the bank"),
];

/// The token of each user.
pub(crate) fn tokens() -> HashMap<Principal, &'static str> {
    USERS.map(|(user, token, _)| (Principal::from(user), token)).into()
}

pub(crate) struct Upstream {
    address: std::net::SocketAddr,
    pub(crate) calls: Arc<Calls>,
}

/// What happens to calls of `watch_notes`, which answers only when there are new notes.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) started: Notify,
    pub(crate) cancelled: Notify,
    pub(crate) new_notes: Notify,
}

impl Upstream {
    /// Serves on a free port until the program ends.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, calls) = (listener.local_addr()?, Arc::<Calls>::default());
        let router = Router::new().route("/mcp", post(take)).with_state(calls.clone());
        tokio::spawn(async { axum::serve(listener, router).await });
        Ok(Self { address, calls })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

async fn take(State(calls): State<Arc<Calls>>, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let Some(notes) = notes_of(&headers) else {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response();
    };
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let result = match (message["method"].as_str(), message["params"]["name"].as_str()) {
        (Some("initialize"), _) => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"},
        }),
        (Some("tools/list"), _) => {
            let tool =
                |name| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
            json!({"tools": [tool("list_notes"), tool("watch_notes")]})
        }
        (Some("tools/call"), Some("list_notes")) => text(notes),
        (Some("tools/call"), Some("watch_notes")) => {
            let new_notes = calls.new_notes.notified();
            calls.started.notify_one();
            new_notes.await;
            text("a new note")
        }
        (Some("notifications/cancelled"), _) => {
            calls.cancelled.notify_one();
            return StatusCode::ACCEPTED.into_response();
        }
        _ if message["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

fn notes_of(headers: &HeaderMap) -> Option<&'static str> {
    let given = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Bearer ")?;
    let mut users = USERS.iter();
    users.find_map(|(_, token, notes)| (*token == given).then_some(*notes))
}
