//! What clients with the scope `admin` change: servers that are added, removed, reconnected, enabled, disabled and listed again.

use std::{future::Future, pin::pin, sync::Arc, task::Poll};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, StatusCode};
use pegboard::{Arguments, Kind, ServerName, State as ServerState, board::NotConnected, toolset::Unavailable};
use pegboard_gateway::Caller;
use serde_json::value::RawValue;

use super::{
    access::Admin,
    body,
    documents::json,
    paths::ServerPath,
    problem::{Problem, SettingError},
    server_settings::{ResolvedServer, ServerSettings, UnresolvedServer},
    servers::document,
    state::ApiState,
};
use pegboard_base::log_event;

use crate::reloads::ChangePermit;

/// `PUT servers/{name}`: connects a server with the settings in the body, or without a body as the config has it.
pub(super) async fn put(
    State(api): State<Arc<ApiState>>,
    Admin(caller): Admin,
    ServerPath(name): ServerPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = body::read_optional(&api, &caller, &headers, body).await?;
    let given = bytes.as_deref().map(given_settings).transpose()?;
    if !api.sees(&caller, name.as_str()) {
        return Err(Problem::forbidden(
            "the token is for one view only, and the server is not part of it",
        ));
    }
    let Some(settings) = api.settings.clone() else {
        return Err(Problem::forbidden("this daemon does not change its servers"));
    };
    // Before the settings are resolved, which reads files that they name.
    if given.is_some() {
        check_may_add(&api, &caller, &name)?;
    }
    let permit = permit(&api, &name).await?;
    let resolved = resolve(settings.clone(), name.clone(), given.clone()).await?;
    log(&caller, "put", &name);
    let is_new = !api.board.has_server(name.as_str());
    let (board, server) = (api.board.clone(), name.clone());
    let connecting = async move {
        let connected = board.connect(server.clone(), resolved.config).await;
        // One that cannot be reached stays on the board and is retried, so it must survive a reload too.
        if matches!(connected, Ok(()) | Err(NotConnected::Unreachable(_))) {
            match given {
                Some(given) if !resolved.is_of_config => settings.keep(&server, &given),
                _ => settings.forget(&server),
            }
        }
        drop(permit);
        connected
    };
    finish(connecting)
        .await?
        .map_err(|error| connect_problem(&name, error))?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &document(&api, &caller, Some(name.as_str()))))
}

/// `DELETE servers/{name}`.
pub(super) async fn delete(
    State(api): State<Arc<ApiState>>,
    Admin(caller): Admin,
    ServerPath(name): ServerPath,
) -> Result<Response, Problem> {
    check_known(&api, &caller, &name)?;
    let permit = permit(&api, &name).await?;
    log(&caller, "delete", &name);
    if let Some(settings) = &api.settings {
        settings.forget(&name);
    }
    let (board, server) = (api.board.clone(), name.clone());
    let disconnecting = async move {
        let mut disconnecting = pin!(board.disconnect(server.as_str()));
        let first = futures_util::poll!(&mut disconnecting);
        // It is removed. A reload need not wait for its calls in flight.
        drop(permit);
        match first {
            Poll::Ready(is_done) => is_done,
            Poll::Pending => disconnecting.await,
        }
    };
    match finish(disconnecting).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Problem::no_server(name.as_str())),
    }
}

/// `POST servers/{name}/reconnect`.
pub(super) async fn reconnect(
    State(api): State<Arc<ApiState>>,
    Admin(caller): Admin,
    ServerPath(name): ServerPath,
) -> Result<Response, Problem> {
    check_known(&api, &caller, &name)?;
    let rows = document(&api, &caller, Some(name.as_str())).servers;
    if rows.iter().all(|row| row.state == ServerState::Disabled) {
        let problem = Problem::new(
            StatusCode::CONFLICT,
            format!("server `{name}` is disabled, so it is not started"),
        );
        let hint = format!("`POST /api/v1/mcp/servers/{name}/enable` enables and starts it");
        return Err(problem.server(name.as_str()).kind(Kind::Unavailable).hint(hint));
    }
    log(&caller, "reconnect", &name);
    let (board, server) = (api.board.clone(), name.clone());
    let is_done = finish(async move { board.reconnect(server.as_str()).await }).await?;
    respond_to_change(&api, &caller, &name, is_done, "it has no instance to restart")
}

/// `POST servers/{name}/enable`.
pub(super) async fn enable(
    State(api): State<Arc<ApiState>>,
    Admin(caller): Admin,
    ServerPath(name): ServerPath,
) -> Result<Response, Problem> {
    check_known(&api, &caller, &name)?;
    log(&caller, "enable", &name);
    let (board, server) = (api.board.clone(), name.clone());
    let is_done = finish(async move { board.enable(server.as_str()).await }).await?;
    let why = "its config is invalid, or the board has no room for it or is closing";
    respond_to_change(&api, &caller, &name, is_done, why)
}

/// `POST servers/{name}/disable`.
pub(super) async fn disable(
    State(api): State<Arc<ApiState>>,
    Admin(caller): Admin,
    ServerPath(name): ServerPath,
) -> Result<Response, Problem> {
    check_known(&api, &caller, &name)?;
    log(&caller, "disable", &name);
    let (board, server) = (api.board.clone(), name.clone());
    let is_done = finish(async move { board.disable(server.as_str()).await }).await?;
    respond_to_change(&api, &caller, &name, is_done, "it is gone")
}

/// `POST servers/{name}/refresh`.
pub(super) async fn refresh(
    State(api): State<Arc<ApiState>>,
    Admin(caller): Admin,
    ServerPath(name): ServerPath,
) -> Result<Response, Problem> {
    check_known(&api, &caller, &name)?;
    log(&caller, "refresh", &name);
    let is_done = api.board.refresh(name.as_str());
    respond_to_change(&api, &caller, &name, is_done, "it is not connected")
}

/// The settings of a body, which must be an object.
fn given_settings(bytes: &[u8]) -> Result<String, Problem> {
    let given: Box<RawValue> = body::parse(bytes)?;
    let invalid = |detail: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
    if !given.get().starts_with('{') {
        return Err(invalid(
            "the body must be an object with the settings of the server".to_owned(),
        ));
    }
    // Doubled keys are refused: two readers could choose different values.
    let checked: Result<Arguments, _> = serde_json::from_str(given.get());
    match checked {
        Ok(_) => Ok(given.get().to_owned()),
        Err(error) => Err(invalid(error.to_string())),
    }
}

async fn resolve(
    settings: Arc<dyn ServerSettings>,
    name: ServerName,
    given: Option<String>,
) -> Result<ResolvedServer, Problem> {
    let server = name.clone();
    // The config may be on a slow disk.
    let resolved = tokio::task::spawn_blocking(move || settings.resolve(&server, given.as_deref())).await;
    match resolved.map_err(|error| join_problem(&error))? {
        Ok(resolved) => Ok(resolved),
        Err(UnresolvedServer::Unknown) => {
            let problem = Problem::no_server(name.as_str());
            Err(problem.hint("send its settings as a JSON object"))
        }
        Err(UnresolvedServer::Invalid(problems)) => {
            let errors = problems.into_iter().map(|problem| SettingError {
                field: problem.field,
                message: problem.message,
                hint: problem.hint,
            });
            let problem = Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "the settings of the server have errors",
            );
            Err(problem.server(name.as_str()).errors(errors.collect()))
        }
        Err(UnresolvedServer::ConfigBroken(why)) => Err(Problem::new(StatusCode::CONFLICT, why).server(name.as_str())),
    }
}

/// Refuses a server that the config does not have, unless the operator allows such servers.
fn check_may_add(api: &ApiState, caller: &Caller, name: &ServerName) -> Result<(), Problem> {
    if caller.view().is_some() {
        return Err(Problem::forbidden("the token is for one view only, so it adds no servers").server(name.as_str()));
    }
    if api.board.gateway_settings().serve.allow_new_servers {
        return Ok(());
    }
    let problem = Problem::forbidden("servers with settings other than those of the config are not allowed");
    Err(problem
        .server(name.as_str())
        .hint("the operator sets `serve.allow_new_servers = true`"))
}

/// Waits for a reload that runs. One that reads the config before a change and applies it afterwards would undo the change.
async fn permit(api: &ApiState, name: &ServerName) -> Result<ChangePermit, Problem> {
    let busy = |_| {
        let detail = "the config is being reloaded, which takes long; nothing was changed";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).server(name.as_str())
    };
    api.reloads.change().await.map_err(busy)
}

/// Leaves a trace of who changes what.
fn log(caller: &Caller, change: &str, server: &ServerName) {
    let principal = caller.principal().map(tracing::field::display);
    tracing::info!(name: log_event::SERVER_CHANGED, change, %server, principal, "server changed over the API");
}

fn check_known(api: &ApiState, caller: &Caller, name: &ServerName) -> Result<(), Problem> {
    match api.board.has_server(name.as_str()) && api.sees(caller, name.as_str()) {
        true => Ok(()),
        false => Err(Problem::no_server(name.as_str())),
    }
}

fn connect_problem(name: &ServerName, error: NotConnected) -> Problem {
    let detail = error.to_string();
    match error {
        NotConnected::Unreachable(outage) | NotConnected::NotReplaced(outage) => unreachable_server(detail, outage),
        NotConnected::Closing => Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail),
        _ => Problem::new(StatusCode::CONFLICT, detail).server(name.as_str()),
    }
}

fn unreachable_server(detail: String, outage: Unavailable) -> Problem {
    let problem = Problem::new(StatusCode::BAD_GATEWAY, detail).server(outage.server.as_str());
    let problem = problem.kind(Kind::Unavailable);
    match outage.hint {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

fn respond_to_change(
    api: &ApiState,
    caller: &Caller,
    name: &ServerName,
    is_done: bool,
    why_not: &str,
) -> Result<Response, Problem> {
    if is_done {
        return Ok(json(StatusCode::OK, &document(api, caller, Some(name.as_str()))));
    }
    if !api.board.has_server(name.as_str()) {
        return Err(Problem::no_server(name.as_str()));
    }
    let detail = format!("server `{name}` was not changed: {why_not}");
    Err(Problem::new(StatusCode::CONFLICT, detail).server(name.as_str()))
}

/// Runs a change of the board to its end, even if the client goes away meanwhile. The limits of the server bound it.
async fn finish<T: Send + 'static>(change: impl Future<Output = T> + Send + 'static) -> Result<T, Problem> {
    tokio::spawn(change).await.map_err(|error| join_problem(&error))
}

fn join_problem(error: &tokio::task::JoinError) -> Problem {
    let detail = format!("the change was not completed: {error}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).kind(Kind::Internal)
}
