//! What a daemon answers to the commands of its user, beside MCP.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, Request},
    http::StatusCode,
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
    routing::get,
};
use pegboard::{Arguments, Kind, Outcome, Pegboard, ToolCall};
use pegboard_daemon::Daemon;
use pegboard_gateway::{LocalClient, Monitor};
use serde_json::json;

use crate::logging::ServerLogs;

use super::{
    hello::Identified,
    journal::Untold,
    overview::{DaemonReport, ServerCount},
    refusal::Refusal,
};

/// How long the servers may take that are asked for a tool. The command has just asked them.
const REFUSAL_TIME: Duration = Duration::from_secs(2);

/// How long a command waits for a reload that it asked for before it goes on beside it. Servers on this machine are mostly replaced within that time.
const RELOAD_PATIENCE: Duration = Duration::from_millis(500);

/// The longest that a command waits here for a server that a reload changes. The server's own limits pass earlier.
const SETTLE_TIME: Duration = Duration::from_secs(60);

/// The routes under `/local`. They answer only at the local socket.
pub(crate) fn router(
    identified: Identified,
    daemon: Daemon,
    untold: Option<Arc<Untold>>,
    logs: ServerLogs,
    monitor: Monitor,
) -> Router {
    let (described, counted) = (identified.clone(), daemon.clone());
    let report = async move || Json(report(&described, &counted, &monitor));
    let (reloaded, reloads) = (identified.clone(), daemon.reloads().clone());
    let reload = async move || {
        let under_way = async {
            tokio::time::sleep(RELOAD_PATIENCE).await;
            reloaded.is_applying().await;
        };
        // A config that cannot be applied leaves the one before in effect, which is what the command reads from the answer. One whose servers take
        // their time is named in the answer.
        tokio::select! {
            _ = reloads.request() => {}
            () = under_way => {}
        }
        Json(reloaded.hello())
    };
    let settling = identified.clone();
    let settled = async move |Path(server): Path<String>| {
        // The command is told by the server itself what it waits for then.
        let _ = tokio::time::timeout(SETTLE_TIME, settling.settles(&server)).await;
    };
    let hello = async move || Json(identified.hello());
    let reported = daemon.clone();
    let status = async move || {
        let mut status = reported.status();
        if let Some(untold) = untold {
            status["unfinished"] = json!(untold.calls());
            untold.mark_shown();
        }
        Json(status)
    };
    let signed_in = daemon.clone();
    let sign_ins = async move || {
        signed_in.board().follow_sign_ins().await;
        Json(match signed_in.sign_ins().await {
            Ok(document) => document,
            Err(error) => json!({"error": error.to_string()}),
        })
    };
    let refusal = async move |Path(tool): Path<String>| Json(refusal(daemon.board(), &tool).await);
    let logs = async move |Path((server, number)): Path<(String, u64)>| Json(logs.after(&server, number));
    Router::new()
        .route("/local/hello", get(hello))
        .route("/local/daemon", get(report))
        .route("/local/reload", get(reload))
        .route("/local/settled/{server}", get(settled))
        .route("/local/status", get(status))
        .route("/local/logs/{server}/{number}", get(logs))
        .route("/local/sign-ins", get(sign_ins))
        .route("/local/refusals/{tool}", get(refusal))
        .route_layer(from_fn(only_at_the_socket))
}

/// What `pegboard daemon` shows of this daemon.
fn report(identified: &Identified, daemon: &Daemon, monitor: &Monitor) -> DaemonReport {
    let status = daemon.status();
    let servers = status["servers"].as_array().map_or(&[][..], Vec::as_slice);
    let ready = servers.iter().filter(|server| server["state"] == "ready").count();
    DaemonReport {
        hello: identified.hello(),
        servers: ServerCount {
            ready,
            total: servers.len(),
        },
        // Without the one that asks.
        clients: monitor.read().connections.clients.saturating_sub(1),
    }
}

/// Answers requests that come from an address as if there were nothing.
async fn only_at_the_socket(request: Request, next: Next) -> Response {
    match request.extensions().get::<LocalClient>() {
        Some(_) => next.run(request).await,
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Why a tool that a command does not see cannot be called. The call is recorded as any other, and cannot run: its arguments are unusable.
async fn refusal(board: &Pegboard, tool: &str) -> Refusal {
    let call = ToolCall::new(tool).arguments(NoArguments).timeout(REFUSAL_TIME);
    let reply = board.toolset().call(call).await;
    let failure = match reply.outcome {
        Outcome::Refused(failure) if failure.kind != Kind::InvalidArguments => Some(failure),
        _ => None,
    };
    Refusal {
        failure,
        server: reply.server,
        tool: reply.tool,
    }
}

/// Arguments with which no tool can be called.
struct NoArguments;

impl TryFrom<NoArguments> for Arguments {
    type Error = String;

    fn try_from(_: NoArguments) -> Result<Self, String> {
        Err("the command did not see this tool".to_owned())
    }
}
