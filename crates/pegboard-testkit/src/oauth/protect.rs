//! An MCP server that accepts only the tokens of its authorization server.

use std::{
    collections::HashMap,
    io,
    ops::Deref,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use pegboard_protocol::method;
use serde_json::{Value, json};

use super::{
    books::Grant,
    dpop::{DpopSign, Proofs, Wanted},
    fault::AuthFault,
    issuer::Issuer,
    metadata::padded_response,
    record::{AuthRequest, Record, Seen},
    reply::{html, json_response, read},
};
use crate::{
    fake::FakeServer,
    server::{Server, lock},
    wire::net::{NetHandle, Wire},
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The limit on the body of a request.
const BODY_LIMIT: usize = 64 << 20;

/// An MCP server on a loopback port, behind an authorization server. It stops when the handle is dropped.
#[derive(Debug)]
pub struct Protected {
    handle: NetHandle,
    guard: Arc<Guard>,
}

impl Protected {
    pub(super) async fn start(issuer: &Arc<Issuer>, wire: Wire, fake: &FakeServer) -> io::Result<Self> {
        let guard = Arc::new(Guard {
            issuer: Mutex::new(Arc::clone(issuer)),
            url: Mutex::default(),
            needs: Mutex::default(),
            tool_needs: Mutex::default(),
            challenge_scope: Mutex::default(),
            dpop: Mutex::default(),
            proofs: Proofs::default(),
            metadata: Record::default(),
            seen: Record::default(),
        });
        let server = Server::new(fake.script().clone())?;
        let wrapped = Arc::clone(&guard);
        let wrap = move |router: Router| {
            let outer = Router::new()
                .route(WELL_KNOWN, axum::routing::get(metadata))
                .route(&format!("{WELL_KNOWN}/mcp"), axum::routing::get(metadata))
                .route(&format!("{WELL_KNOWN}/sse"), axum::routing::get(metadata))
                .with_state(Arc::clone(&wrapped));
            outer.merge(router.layer(middleware::from_fn_with_state(Arc::clone(&wrapped), check)))
        };
        let handle = NetHandle::start_behind(server, wire, "127.0.0.1:0", Some(Arc::new(wrap))).await?;
        // A WebSocket begins with a request of HTTP, and is a resource of HTTP.
        *lock(&guard.url) = handle.url().replacen("ws://", "http://", 1);
        Ok(Self { handle, guard })
    }

    /// Refuses tokens without this scope with 403, and asks for it.
    pub fn needs_scope(&self, scope: &str) {
        lock(&self.guard.needs).push(scope.to_owned());
    }

    /// Refuses calls of this tool without this scope with 403, and asks for it.
    pub fn tool_needs_scope(&self, tool: &str, scope: &str) {
        lock(&self.guard.tool_needs).insert(tool.to_owned(), scope.to_owned());
    }

    /// Names these scopes in the challenge of 401.
    pub fn challenges_for(&self, scope: &str) {
        *lock(&self.guard.challenge_scope) = Some(scope.to_owned());
    }

    /// Says in this way that it takes tokens that are bound to a key. Such tokens are accepted in any case.
    pub fn offers_dpop(&self, sign: DpopSign) {
        *lock(&self.guard.dpop) = sign;
    }

    /// Accepts no nonce of before any more.
    pub fn rotate_nonces(&self) {
        self.guard.proofs.rotate();
    }

    pub(super) fn set_issuer(&self, issuer: Arc<Issuer>) {
        *lock(&self.guard.issuer) = issuer;
    }

    /// All requests to the MCP endpoint, with their tokens.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.guard.seen.all()
    }

    /// Returns once this many requests with this JSON-RPC method came with an accepted token. It has no timeout of its own.
    pub async fn wait_accepted(&self, method: &str, count: usize) {
        let wanted = |seen: &Seen| seen.method == method && seen.refused.is_none();
        self.guard.seen.wait_for(count, wanted).await;
    }

    /// Returns once this many requests were refused. It has no timeout of its own.
    pub async fn wait_refused(&self, count: usize) {
        self.guard.seen.wait_for(count, |seen| seen.refused.is_some()).await;
    }

    /// The requests for the metadata of the resource.
    #[must_use]
    pub fn metadata_requests(&self) -> Vec<AuthRequest> {
        self.guard.metadata.all()
    }
}

impl Deref for Protected {
    type Target = NetHandle;

    fn deref(&self) -> &NetHandle {
        &self.handle
    }
}

#[derive(Debug)]
struct Guard {
    issuer: Mutex<Arc<Issuer>>,
    /// Set once the port is known, before the first request.
    url: Mutex<String>,
    needs: Mutex<Vec<String>>,
    tool_needs: Mutex<HashMap<String, String>>,
    challenge_scope: Mutex<Option<String>>,
    dpop: Mutex<DpopSign>,
    proofs: Proofs,
    metadata: Record<AuthRequest>,
    seen: Record<Seen>,
}

impl Guard {
    fn issuer(&self) -> Arc<Issuer> {
        Arc::clone(&lock(&self.issuer))
    }

    /// Accepts a token, or returns the status, the error and the scope of the challenge.
    fn judge(
        &self,
        request: &Presented,
        tool: Option<&str>,
    ) -> Result<Grant, (u16, Option<&'static str>, Option<String>)> {
        let issuer = self.issuer();
        let Some(token) = request.token.as_deref() else {
            return Err((401, None, lock(&self.challenge_scope).clone()));
        };
        if issuer.has(&AuthFault::RefusesTokens) {
            return Err((401, Some("invalid_token"), None));
        }
        let resource = lock(&self.url).clone();
        let Ok(grant) = issuer.judge(token, Some(&resource)) else {
            return Err((401, Some("invalid_token"), lock(&self.challenge_scope).clone()));
        };
        self.check_proof(&issuer, &grant, request)?;
        let always = issuer.fault(|fault| match fault {
            AuthFault::InsufficientScope(scope) => Some(scope.clone()),
            _ => None,
        });
        let has = |scope: &String| grant.scope.split(' ').any(|held| held == scope);
        let missing = lock(&self.needs).iter().find(|scope| !has(scope)).cloned();
        let for_tool = tool
            .and_then(|tool| lock(&self.tool_needs).get(tool).cloned())
            .filter(|scope| !has(scope));
        match always.or(missing).or(for_tool) {
            Some(scope) => Err((403, Some("insufficient_scope"), Some(scope))),
            None => Ok(grant),
        }
    }

    /// Checks that a bound token comes with a proof of its key, and another one without.
    fn check_proof(
        &self,
        issuer: &Issuer,
        grant: &Grant,
        request: &Presented,
    ) -> Result<(), (u16, Option<&'static str>, Option<String>)> {
        let refused = |error: &'static str| Err((401, Some(error), None));
        match (&grant.key, &request.proof) {
            (None, _) if *lock(&self.dpop) == DpopSign::Required => refused("invalid_token"),
            (None, _) if request.is_dpop => refused("invalid_token"),
            (None, _) => Ok(()),
            (Some(_), None) => refused("invalid_token"),
            (Some(_), Some(_)) if !request.is_dpop => refused("invalid_token"),
            (Some(key), Some(proof)) => {
                let wanted = Wanted {
                    method: &request.method,
                    url: &self.at(&request.path),
                    token: request.token.as_deref(),
                };
                match self.proofs.check(issuer, proof, wanted) {
                    Ok(proven) if proven == *key => Ok(()),
                    Ok(_) => refused("invalid_dpop_proof"),
                    Err(bad) => refused(bad.error),
                }
            }
        }
    }

    /// The URL of a path of the server.
    fn at(&self, path: &str) -> String {
        let url = lock(&self.url);
        let host = url.rfind('/').unwrap_or(url.len());
        format!("{}{path}", &url[..host])
    }

    fn refuse(&self, status: u16, error: Option<&'static str>, scope: Option<&str>) -> Response {
        let code = StatusCode::from_u16(status).unwrap_or(StatusCode::UNAUTHORIZED);
        let mut response = code.into_response();
        if self.issuer().has(&AuthFault::NoChallenge) {
            return response;
        }
        let path = lock(&self.url).rsplit('/').next().unwrap_or_default().to_owned();
        let place = self.at(&format!("{WELL_KNOWN}/{path}"));
        let is_dpop = *lock(&self.dpop) == DpopSign::Challenge || error.is_some_and(|error| error.contains("dpop"));
        let scheme = if is_dpop { "DPoP algs=\"ES256\"," } else { "Bearer" };
        let mut challenge = format!("{scheme} resource_metadata=\"{place}\"");
        for (name, value) in [("error", error), ("scope", scope)] {
            if let Some(value) = value {
                challenge.push_str(&format!(", {name}=\"{value}\""));
            }
        }
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Serves the metadata of the protected resource.
async fn metadata(State(guard): State<Arc<Guard>>, request: Request) -> Response {
    if let Some(request) = read(request).await {
        guard.metadata.push(request);
    }
    let issuer = guard.issuer();
    let slow = issuer.fault(|fault| match fault {
        AuthFault::ResourceSlow(ms) => Some(*ms),
        _ => None,
    });
    if let Some(ms) = slow {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if issuer.has(&AuthFault::ResourceHtml) {
        return html(200);
    }
    let resource = issuer.fault(|fault| match fault {
        AuthFault::ResourceOf(resource) => Some(resource.clone()),
        _ => None,
    });
    let named = issuer.fault(|fault| match fault {
        AuthFault::ResourceIssuer(named) => Some(named.clone()),
        _ => None,
    });
    let mut body = json!({
        "resource": resource.unwrap_or_else(|| lock(&guard.url).clone()),
        "authorization_servers": [named.unwrap_or_else(|| issuer.url.clone())],
        "scopes_supported": issuer.settings.scopes,
        "bearer_methods_supported": ["header"],
    });
    match *lock(&guard.dpop) {
        DpopSign::None | DpopSign::Challenge => {}
        DpopSign::Metadata => body["dpop_signing_alg_values_supported"] = json!(["ES256"]),
        DpopSign::Required => body["dpop_bound_access_tokens_required"] = true.into(),
    }
    let more = issuer.fault(|fault| match fault {
        AuthFault::ResourceHuge(bytes) => Some(*bytes),
        _ => None,
    });
    match more {
        Some(bytes) => padded_response(&body, bytes),
        None => json_response(200, &body),
    }
}

/// Lets a request through to the fake server if its token is good.
async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let presented = Presented::read(&parts);
    let tool = message["params"]["name"]
        .as_str()
        .filter(|_| message["method"] == method::TOOLS_CALL);
    let verdict = guard.judge(&presented, tool);
    guard.seen.push(Seen {
        method: message["method"].as_str().unwrap_or(parts.method.as_str()).to_owned(),
        tool: tool.map(str::to_owned),
        subject: verdict.as_ref().ok().map(|grant| grant.subject.clone()),
        refused: verdict.as_ref().err().map(|(status, ..)| *status),
        token: presented.token,
        proof: presented.proof,
    });
    let is_refusal = verdict.is_err();
    let mut response = match verdict {
        Ok(_) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Err((status, error, scope)) => guard.refuse(status, error, scope.as_deref()),
    };
    let issuer = guard.issuer();
    if issuer.settings.binds_tokens() {
        guard.proofs.stamp(&issuer, is_refusal, &mut response);
    }
    response
}

/// How a request says who sends it.
struct Presented {
    method: String,
    path: String,
    token: Option<String>,
    is_dpop: bool,
    proof: Option<String>,
}

impl Presented {
    fn read(parts: &Parts) -> Self {
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let authorization = text("authorization").and_then(|value| value.split_once(' '));
        let token = authorization.filter(|(scheme, _)| ["Bearer", "DPoP"].contains(scheme));
        Self {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            token: token.map(|(_, token)| token.to_owned()),
            is_dpop: token.is_some_and(|(scheme, _)| scheme == "DPoP"),
            proof: text("dpop").map(str::to_owned),
        }
    }
}
