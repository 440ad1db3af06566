//! A web service with many users and one board: a toolset per request, credentials per user, cancellation when a client disconnects, and
//! graceful shutdown.
//!
//! `cargo run --example axum_service` starts the service with an upstream MCP server and two clients (`clients.rs`), shows what happens and exits.
//! `cargo run --example axum_service -- 127.0.0.1:8080` serves until Ctrl-C:
//! `curl -X POST -H 'authorization: Bearer ann-session' -d '{}' http://127.0.0.1:8080/tools/list_notes`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod clients;
mod upstream;

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    routing::post,
};
use pegboard::{
    BoxFuture, Config, Credential, Credentials, Kind, Pegboard, Principal, ServerConfig, ServerName, ToolCall, View,
    config::{Endpoint, Start, Transport},
    credential::{CredentialError, CredentialRequest},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use upstream::Upstream;

/// How long calls in flight may take after the service has stopped accepting requests.
const DRAIN: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let upstream = Upstream::start().await?;
    let stop = CancellationToken::new();
    let Some(address) = std::env::args().nth(1) else {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let service = tokio::spawn(serve(listener, upstream.url(), stop.clone()));
        clients::run(&url, &upstream, &stop).await?;
        return service.await?;
    };
    let listener = TcpListener::bind(&address).await.with_context(|| address.clone())?;
    let signal = stop.clone();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        signal.cancel();
    });
    println!("serving on {address}");
    serve(listener, upstream.url(), stop).await
}

/// Runs the service until `stop`, then lets requests complete and ends the servers.
async fn serve(listener: TcpListener, notes: String, stop: CancellationToken) -> anyhow::Result<()> {
    let mut notes = ServerConfig::new(Transport::auto(Endpoint::new(&notes)?));
    // It has no connection of its own, only those of users, which are opened when they are needed.
    notes.start = Start::Lazy;
    let mut config = Config::default();
    config.servers.insert(ServerName::parse("notes")?, notes);
    let board = Pegboard::open(config);
    let service = Service {
        board: board.clone(),
        sessions: Arc::new([("ann-session", "ann"), ("bob-session", "bob"), ("eve-session", "eve")].into()),
        tokens: Arc::new(Tokens(upstream::tokens())),
    };
    let router = Router::new()
        .route("/tools/{tool}", post(call_tool))
        .with_state(service);

    // axum stops accepting connections and waits for the requests in flight. Then nothing calls the board any more.
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await?;
    let is_idle = board.drain(DRAIN).await;
    board.shutdown().await;
    println!("the service has ended; all calls were completed: {is_idle}");
    Ok(())
}

/// The state of the service. Clones share one board.
#[derive(Clone)]
struct Service {
    board: Pegboard,
    /// The user of each session of this service. A real one asks its database.
    sessions: Arc<HashMap<&'static str, &'static str>>,
    /// One provider for all requests, so that the requests of one user share connections.
    tokens: Arc<Tokens>,
}

impl Service {
    fn user(&self, headers: &HeaderMap) -> Option<Principal> {
        let session = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let user = self.sessions.get(session.strip_prefix("Bearer ")?)?;
        Some(Principal::from(*user))
    }
}

/// Calls one tool for the user of the request. If the client disconnects, axum drops this future, and with it the call: the upstream
/// server is told that it was cancelled.
async fn call_tool(
    State(service): State<Service>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, Json<Value>) {
    let Some(user) = service.user(&headers) else {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": "sign in first"})));
    };
    // A toolset per request: it is cheap, because connections and catalogs are shared by all requests of one user.
    let view = View::new().principal(user).credentials(service.tokens.clone());
    let tools = service.board.toolset_with(view);
    let call = ToolCall::new(format!("notes.{tool}")).text(body);
    let reply = tools.call(call.timeout(Duration::from_secs(30))).await;

    let body = if reply.is_error() { "error" } else { "result" };
    (status(reply.outcome.kind()), Json(json!({ body: reply.text() })))
}

/// The status code for each kind of outcome.
fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Ok => StatusCode::OK,
        Kind::ToolError | Kind::InvalidArguments => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::UnknownTool => StatusCode::NOT_FOUND,
        Kind::NotPermitted | Kind::NeedsAuth => StatusCode::FORBIDDEN,
        Kind::LimitExceeded => StatusCode::TOO_MANY_REQUESTS,
        Kind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Kind::Unavailable | Kind::RestartInProgress | Kind::RestartFailed => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// The tokens with which users reach the upstream server. A real service keeps them in a vault and refreshes them here.
struct Tokens(HashMap<Principal, &'static str>);

impl Credentials for Tokens {
    fn credential<'a>(&'a self, request: CredentialRequest<'a>) -> BoxFuture<'a, Result<Credential, CredentialError>> {
        Box::pin(async move {
            let user = request.principal.ok_or("only users have tokens")?;
            let token = self.0.get(user);
            let token = token.ok_or_else(|| CredentialError::new(format!("{user} has not connected their notes")))?;
            Ok(Credential::bearer(token).valid_for(Duration::from_secs(300)))
        })
    }
}
