//! The documents of the API. They are those that the command prints with `-o json`.

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use pegboard::{
    ServerName, Timestamp,
    board::Applied,
    catalog::ListWarning,
    serde_json::{Map, Value},
    status::{QueueStatus, ServerStatus, Warning},
    toolset::Unavailable,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use crate::reloads::{ReloadNote, ReloadState};

/// The state of servers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Status")]
#[non_exhaustive]
pub struct StatusDocument {
    /// One row for each server, with the view or the principal that alone uses it, if any.
    pub servers: Vec<ServerStatus>,
    /// The queues that several servers share.
    pub queues: Vec<QueueStatus>,
    /// Whether every enabled server of the document is healthy.
    pub healthy: bool,
    /// Whether every required server of the board is ready.
    pub ready: bool,
    /// Conditions that an operator should know about.
    pub warnings: Vec<WarningDocument>,
}

/// Conditions that an operator should know about.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Warnings")]
pub(super) struct WarningsDocument {
    /// One for each condition.
    pub(super) warnings: Vec<WarningDocument>,
}

/// A condition that an operator should know about.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Warning")]
#[non_exhaustive]
pub struct WarningDocument {
    /// A stable id for one category and server.
    pub id: String,
    /// `mcp_health`, `definitions`, `config`, `not_connected`, `audit` or `journal`.
    pub category: &'static str,
    /// A one-line message.
    pub message: String,
    /// Details.
    pub details: String,
    /// The server that it is about.
    pub server: Option<ServerName>,
    /// Since when.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

impl From<Warning> for WarningDocument {
    fn from(warning: Warning) -> Self {
        Self {
            id: warning.id,
            category: warning.category,
            message: warning.message,
            details: warning.details,
            server: warning.server,
            created_at: warning.created_at,
        }
    }
}

impl WarningDocument {
    /// The warnings that the newest config, or a part of it, is not in effect.
    pub(super) fn from_reload(state: &ReloadState) -> Vec<Self> {
        let failed = state.failed.iter().map(|failed| Self {
            id: "config:reload".to_owned(),
            category: "config",
            message: failed.message.clone(),
            details: failed.hint.clone().unwrap_or_else(|| failed.message.clone()),
            server: None,
            created_at: failed.at,
        });
        let notes = state.notes.iter().map(|note| Self {
            id: match &note.server {
                Some(server) => format!("config:{}:{server}", note.topic),
                None => format!("config:{}", note.topic),
            },
            category: "config",
            message: match &note.server {
                Some(server) => format!("the new settings of server `{server}` are not in effect"),
                None => "a part of the config is not in effect".to_owned(),
            },
            details: note.message.clone(),
            server: note.server.clone(),
            created_at: state.applied_at,
        });
        failed.chain(notes).collect()
    }

    /// The warning about an `explicit` server that is not connected since the config was applied.
    pub(super) fn from_unconnected(row: &ServerStatus, since: Timestamp) -> Option<Self> {
        let name = &row.name;
        row.awaits_connect.then(|| Self {
            id: format!("not_connected:{name}"),
            category: "not_connected",
            message: format!("server `{name}` is not connected, so its tools are offered to nobody"),
            details: how_to_connect(name),
            server: Some(name.clone()),
            created_at: since,
        })
    }
}

/// What connects an `explicit` server of a daemon.
pub(crate) fn how_to_connect(name: &ServerName) -> String {
    format!(
        "its config says `start = \"explicit\"`: connect it with `POST /api/v1/mcp/servers/{name}/reconnect`, with a command that uses \
         it, such as `pegboard tools --server {name}`, or with a client of `/mcp/{name}`; `start = \"lazy\"` connects it when it is needed"
    )
}

/// A reload that was applied.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reloaded")]
pub(super) struct ReloadedDocument {
    /// When the config was applied.
    #[schemars(with = "String")]
    pub(super) applied_at: Timestamp,
    /// How many reloads were applied since the start.
    pub(super) applied: u64,
    /// How many reloads have failed since the start.
    pub(super) failures: u64,
    /// What the newest reload has changed, and which servers failed.
    pub(super) servers: Applied,
    /// What of the config is not in effect.
    pub(super) notes: Vec<NoteDocument>,
}

/// Something of the config that is not in effect.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReloadNote")]
pub(crate) struct NoteDocument {
    /// `server`, `restart`, `audit` or `tokens`.
    topic: &'static str,
    /// The server that it is about.
    server: Option<ServerName>,
    /// What is not in effect, and what to do.
    message: String,
}

impl From<&ReloadNote> for NoteDocument {
    fn from(note: &ReloadNote) -> Self {
        Self {
            topic: note.topic,
            server: note.server.clone(),
            message: note.message.clone(),
        }
    }
}

/// The tools that the caller sees. It is written by [`Listing`](pegboard::Listing).
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Tools")]
#[expect(dead_code, reason = "describes the JSON of another type")]
pub(super) struct ToolsDocument {
    /// The tools by server, then by name.
    tools: Vec<ToolDocument>,
    /// The servers whose tools are missing.
    unavailable: Vec<Unavailable>,
    /// Problems of the listings, in words.
    warnings: Vec<String>,
    /// Problems of the listings, as data.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ListWarning>,
}

/// A tool. It is written by [`ListedTool`](pegboard::ListedTool).
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Tool")]
#[expect(dead_code, reason = "describes the JSON of another type")]
struct ToolDocument {
    /// The name that models see.
    name: String,
    /// The server.
    server: ServerName,
    /// The tool as its server calls it.
    tool: String,
    title: Option<String>,
    description: Option<String>,
    /// The JSON Schema of the arguments.
    input_schema: Value,
    /// The JSON Schema of the structured result.
    output_schema: Value,
    /// What the server says about the tool.
    annotations: Option<Map<String, Value>>,
    /// Whose tool it is.
    kind: String,
    /// How much harm a call may do.
    risk: String,
}

/// A response with a JSON document.
pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Response {
    match serde_json::to_vec(document) {
        Ok(bytes) => json_bytes(status, bytes),
        Err(error) => {
            let detail = format!("the document cannot be written: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response()
        }
    }
}

/// A response with JSON that is already written.
pub(super) fn json_bytes(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
