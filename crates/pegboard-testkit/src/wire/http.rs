//! Streamable HTTP in both eras: one path for POST, GET and DELETE.

mod headers;
mod reply;
mod session;

pub(crate) use session::Sessions;

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use pegboard_protocol::{
    code, header,
    method::{self, notification},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::session::Session;
use super::peer::{Peer, add_headers, header_map, is_stubborn, received_entry};
use crate::{
    answer::{self, Act},
    fault::Fault,
    log::Received,
    play::Stage,
    script::{Era, Refusal, Script},
    server::Server,
};

/// The capacity of a stream's output queue.
const QUEUE: usize = 64;

pub(crate) fn router(server: &Arc<Server>, sessions: &Arc<Sessions>, dead: &CancellationToken) -> Router {
    let app = App {
        server: Arc::clone(server),
        sessions: Arc::clone(sessions),
        dead: dead.clone(),
    };
    let methods = post(take_post).get(take_get).delete(take_delete);
    Router::new()
        .route("/mcp", methods)
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

#[derive(Debug, Clone)]
struct App {
    server: Arc<Server>,
    sessions: Arc<Sessions>,
    dead: CancellationToken,
}

impl App {
    /// A client whose output goes to the streams of its requests only.
    fn peer(&self) -> Peer {
        let (unused, _) = mpsc::channel(1);
        Peer::new(Stage::new(Arc::clone(&self.server), unused, self.dead.clone()))
    }

    /// The session of a legacy request; a new one for `initialize`. `Err` is the response that refuses the request.
    fn session(
        &self,
        script: &Script,
        headers: &HeaderMap,
        faults: &[Fault],
        message: &Value,
    ) -> Result<Arc<Session>, Box<Response>> {
        let method = &message["method"];
        let is_new = method == method::INITIALIZE || script.http.stateless;
        // A script with its own refusal of discovery must see the request; otherwise the missing session is reported first.
        let is_probe = method == method::SERVER_DISCOVER
            && script.on_discover
                != Refusal::Error {
                    code: code::METHOD_NOT_FOUND,
                };
        if is_new || is_probe || script.era == Era::Modern {
            return Ok(Arc::new(Session::new(self.peer())));
        }
        headers::check_legacy(script, headers).map_err(|text| Box::new(refusal(400, code::SERVER_ERROR, &text)))?;
        self.find_session(headers, faults)
    }

    fn find_session(&self, headers: &HeaderMap, faults: &[Fault]) -> Result<Arc<Session>, Box<Response>> {
        let Some(id) = headers::session_id(headers) else {
            let text = "Bad Request: Mcp-Session-Id header is required";
            return Err(Box::new(refusal(400, code::SERVER_ERROR, text)));
        };
        if faults.contains(&Fault::SessionGone) {
            self.sessions.close(&id);
        }
        self.sessions
            .get(&id)
            .ok_or_else(|| Box::new(refusal(404, code::SESSION_NOT_FOUND, "Session not found")))
    }
}

async fn take_post(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(response) = foreign(&app.server.script(), &headers) {
        return response;
    }
    let Ok(mut message) = serde_json::from_slice::<Value>(&body) else {
        let params = String::from_utf8_lossy(&body).into_owned().into();
        let headers = header_map(&headers);
        app.server.receive(Received {
            method: "$invalid".into(),
            params,
            headers,
            ..Received::default()
        });
        return refusal(400, code::PARSE_ERROR, "Parse error");
    };
    app.server.receive(received_entry(&message, header_map(&headers)));
    add_headers(&mut message, &header_map(&headers));
    let script = app.server.script();
    let method = message["method"].as_str().unwrap_or_default();
    let faults = app.server.faults(&script, method, &message["params"]);
    if let Some(response) = refuse_early(&script, &headers, &faults) {
        return response;
    }
    if !headers::accepts(&headers, "application/json") || !headers::accepts(&headers, "text/event-stream") {
        return refusal(
            406,
            code::SERVER_ERROR,
            "Not Acceptable: accept application/json and text/event-stream",
        );
    }
    let modern = answer::is_modern(&script, &message);
    let session = if modern {
        if let Err(text) = headers::check_modern(&script, &headers, &message) {
            let error = json!({ "code": code::HEADER_MISMATCH, "message": text });
            return json_response(400, &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
        }
        Arc::new(Session::new(app.peer()))
    } else {
        match app.session(&script, &headers, &faults, &message) {
            Ok(session) => session,
            Err(response) => return *response,
        }
    };
    let post = Post {
        script: &script,
        faults: &faults,
        message: &message,
        modern,
    };
    answer_post(&app, &post, session).await
}

/// A parsed POST.
#[derive(Debug)]
struct Post<'a> {
    script: &'a Script,
    faults: &'a [Fault],
    message: &'a Value,
    modern: bool,
}

async fn answer_post(app: &App, post: &Post<'_>, session: Arc<Session>) -> Response {
    let Post {
        script,
        faults,
        message,
        modern,
    } = *post;
    let Some(method) = message["method"].as_str() else {
        session.peer.stage.pass_on_answer(message.clone());
        return StatusCode::ACCEPTED.into_response();
    };
    let acts = answer::answer(script, faults, message);
    let (frames, mut outgoing) = mpsc::channel(QUEUE);
    let stage = session.peer.stage.on(frames);
    if message.get("id").is_none() {
        if method == notification::CANCELLED {
            session.peer.cancel(&message["params"]["requestId"]);
        }
        session.peer.run(stage, &Value::Null, acts, true);
        tokio::spawn(async move { while outgoing.recv().await.is_some() {} });
        return StatusCode::ACCEPTED.into_response();
    }
    let opens = method == method::INITIALIZE
        && acts
            .iter()
            .any(|act| matches!(act, Act::Answer(answer) if answer["result"].is_object()));
    let status = if modern || script.era == Era::Modern {
        status(&acts)
    } else {
        200
    };
    let style = reply::Style::choose(script, faults, &acts);
    let stubborn = is_stubborn(script, faults);
    if modern && !stubborn {
        session.peer.run_until_closed(stage, &message["id"], acts);
    } else {
        session.peer.run(stage, &message["id"], acts, stubborn);
    }
    let mut response = reply::respond(&app.server, &session, style, faults, outgoing).await;
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    }
    let chosen = faults.iter().find_map(|fault| match fault {
        Fault::SessionId { id } => Some(id.clone()),
        _ => None,
    });
    let id = if opens && !script.http.stateless {
        Some(app.sessions.open(chosen, session))
    } else {
        chosen
    };
    if let Some(Ok(id)) = id.map(|id| HeaderValue::from_bytes(id.as_bytes())) {
        response.headers_mut().insert(header::SESSION_ID, id);
    }
    response
}

async fn take_get(State(app): State<App>, headers: HeaderMap) -> Response {
    let (script, faults) = match begin(&app.server, "GET", &headers) {
        Ok(begun) => begun,
        Err(response) => return *response,
    };
    if script.era == Era::Modern || script.http.no_get_stream {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    if !headers::accepts(&headers, "text/event-stream") {
        return refusal(406, code::SERVER_ERROR, "Not Acceptable: accept text/event-stream");
    }
    let session = match app.find_session(&headers, &faults) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    let last = headers.get(header::LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    if let Some(last) = last {
        return match session.resume(last) {
            Some(events) => reply::event_stream(Body::from_stream(events)),
            None => refusal(400, code::SERVER_ERROR, "Bad Request: unknown Last-Event-ID"),
        };
    }
    let (frames, outgoing) = mpsc::channel(QUEUE);
    app.server.listen(frames, session.peer.stage.audience());
    reply::notices(&script, &session, &faults, outgoing)
}

async fn take_delete(State(app): State<App>, headers: HeaderMap) -> Response {
    let (script, faults) = match begin(&app.server, "DELETE", &headers) {
        Ok(begun) => begun,
        Err(response) => return *response,
    };
    if script.era == Era::Modern || script.http.stateless {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    match app.find_session(&headers, &faults) {
        Ok(session) => {
            session.peer.end();
            app.sessions.close(&headers::session_id(&headers).unwrap_or_default());
            StatusCode::OK.into_response()
        }
        Err(response) => *response,
    }
}

/// Logs a GET or DELETE request and picks its faults. `Err` is the response of a fault or of a missing bearer token.
pub(super) fn begin(
    server: &Server,
    method: &str,
    headers: &HeaderMap,
) -> Result<(Arc<Script>, Vec<Fault>), Box<Response>> {
    server.receive(Received {
        method: method.into(),
        headers: header_map(headers),
        ..Received::default()
    });
    let script = server.script();
    if let Some(response) = foreign(&script, headers) {
        return Err(Box::new(response));
    }
    let faults = server.faults(&script, method, &Value::Null);
    match refuse_early(&script, headers, &faults) {
        Some(response) => Err(Box::new(response)),
        None => Ok((script, faults)),
    }
}

/// The response to a request for another host or from a page of another host, if the script refuses those.
fn foreign(script: &Script, headers: &HeaderMap) -> Option<Response> {
    let refused = script.http.local_only && !headers::are_local(headers);
    refused.then(|| (StatusCode::FORBIDDEN, "Host or Origin is not this computer").into_response())
}

/// The response to a request that is refused before its message is looked at.
pub(super) fn refuse_early(script: &Script, headers: &HeaderMap, faults: &[Fault]) -> Option<Response> {
    if let Some(response) = reply::instead(faults) {
        return Some(response);
    }
    if let Some(token) = &script.bearer
        && headers
            .get(AUTHORIZATION)
            .is_none_or(|value| value != &format!("Bearer {token}"))
    {
        let challenge = [(WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")];
        return Some((StatusCode::UNAUTHORIZED, challenge).into_response());
    }
    None
}

/// The HTTP status of a modern response.
fn status(acts: &[Act]) -> u16 {
    let code = acts.iter().find_map(|act| match act {
        Act::Answer(answer) => Some((answer["error"]["code"].as_i64()?, answer["error"]["message"].as_str()?)),
        _ => None,
    });
    match code {
        Some((code::METHOD_NOT_FOUND, _)) => 404,
        Some((code, _)) if code::refuses_modern_request(code) => 400,
        Some((code::INVALID_PARAMS, message)) if message.contains("_meta") => 400,
        _ => 200,
    }
}

fn refusal(status: u16, code: i64, message: &str) -> Response {
    let error = json!({ "code": code, "message": message });
    json_response(status, &json!({ "jsonrpc": "2.0", "id": null, "error": error }))
}

fn json_response(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
