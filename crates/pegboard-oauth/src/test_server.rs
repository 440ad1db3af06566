//! A small authorization server and protected resource, for the unit tests of this room.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

use super::{account::OAuthAccount, client::OAuthClient, redirect_uri::RedirectUri, token_store::TokenStore};
use pegboard_base::sync::Mutex;
use pegboard_config::OAuthConfig;
use pegboard_mask::KnownSecrets;

/// What a request to the server was.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) form: BTreeMap<String, String>,
    pub(super) json: Value,
}

/// Answers each path with what the test has set, and keeps the requests.
#[derive(Debug, Clone)]
pub(super) struct TestServer {
    pub(super) url: String,
    shared: Arc<Shared>,
}

/// Status, headers and body.
type Answer = (u16, Vec<(&'static str, String)>, String);

#[derive(Debug, Default)]
struct Shared {
    answers: Mutex<HashMap<String, Answer>>,
    /// Answers that are given once, before the others.
    once: Mutex<HashMap<String, Vec<(u16, String)>>>,
    seen: Mutex<Vec<Seen>>,
    /// While it is locked, the token endpoint does not answer.
    hold: tokio::sync::Mutex<()>,
}

impl TestServer {
    /// A server without any answer.
    pub(super) async fn empty() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let app = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, shared }
    }

    /// A resource at `/mcp` and its authorization server, with registration, revocation, refresh tokens and PKCE.
    pub(super) async fn complete() -> Self {
        let server = Self::empty().await;
        let url = server.url.clone();
        server.json(
            "/.well-known/oauth-protected-resource/mcp",
            &json!({
                "resource": format!("{url}/mcp"), "authorization_servers": [url], "scopes_supported": ["read"],
            }),
        );
        server.json("/.well-known/oauth-authorization-server", &server.metadata());
        server.json("/register", &json!({"client_id": "registered"}));
        server.status("/revoke", 200);
        server.json(
            "/token",
            &json!({"access_token": "access-1", "refresh_token": "refresh-1", "expires_in": 1000, "token_type": "Bearer"}),
        );
        server
    }

    pub(super) fn metadata(&self) -> Value {
        let url = &self.url;
        json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "registration_endpoint": format!("{url}/register"),
            "revocation_endpoint": format!("{url}/revoke"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        })
    }

    pub(super) fn json(&self, path: &str, body: &Value) {
        self.answer(path, 200, &[], &body.to_string());
    }

    pub(super) fn status(&self, path: &str, status: u16) {
        self.answer(path, status, &[], "");
    }

    pub(super) fn answer(&self, path: &str, status: u16, headers: &[(&'static str, String)], body: &str) {
        let answer = (status, headers.to_vec(), body.to_owned());
        self.shared.answers.lock().insert(path.to_owned(), answer);
    }

    /// Answers the next request to `path` with `body`, before the other answers count again.
    pub(super) fn once(&self, path: &str, status: u16, body: &Value) {
        let mut once = self.shared.once.lock();
        once.entry(path.to_owned())
            .or_default()
            .push((status, body.to_string()));
    }

    /// The requests to a path.
    pub(super) fn seen(&self, path: &str) -> Vec<Seen> {
        let seen = self.shared.seen.lock();
        seen.iter().filter(|seen| seen.path == path).cloned().collect()
    }

    /// The paths of all requests, in order.
    pub(super) fn paths(&self) -> Vec<String> {
        let seen = self.shared.seen.lock();
        seen.iter().map(|seen| seen.path.clone()).collect()
    }

    /// Keeps the token endpoint from answering until the result is dropped.
    pub(super) async fn hold(&self) -> impl Drop + use<'_> {
        self.shared.hold.lock().await
    }

    /// The account of a server at `/mcp`.
    pub(super) fn account(&self, settings: OAuthConfig) -> OAuthAccount {
        let url = Url::parse(&format!("{}/mcp", self.url)).unwrap();
        OAuthAccount::new("fx".parse().unwrap(), url, Arc::new(settings))
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let path = head.uri.path().to_owned();
    let is_form = head
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == "application/x-www-form-urlencoded");
    let form = match is_form {
        true => url::form_urlencoded::parse(&body).into_owned().collect(),
        false => BTreeMap::new(),
    };
    shared.seen.lock().push(Seen {
        path: path.clone(),
        headers: head.headers,
        form,
        json: serde_json::from_slice(&body).unwrap_or_default(),
    });
    if head.method == Method::POST && path == "/token" {
        drop(shared.hold.lock().await);
    }
    let once = {
        let mut once = shared.once.lock();
        once.get_mut(&path)
            .filter(|answers| !answers.is_empty())
            .map(|answers| answers.remove(0))
    };
    if let Some((status, body)) = once {
        return (StatusCode::from_u16(status).unwrap(), body).into_response();
    }
    let found = shared.answers.lock().get(&path).cloned();
    let Some((status, headers, body)) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
    for (name, value) in headers {
        response.headers_mut().append(name, value.parse().unwrap());
    }
    response
}

pub(super) fn redirect() -> RedirectUri {
    RedirectUri::parse("http://127.0.0.1:9/callback").unwrap()
}

/// The parameters of a URL.
pub(super) fn query(url: &Url) -> BTreeMap<String, String> {
    url.query_pairs().into_owned().collect()
}

/// Signs in to an account, as a person who agrees to everything.
pub(super) async fn sign_in(client: &OAuthClient, account: &OAuthAccount) {
    let pending = client.begin(account, &redirect()).await.unwrap();
    let answer = format!("code=the-code&state={}", pending.state());
    client.finish(pending, &answer).await.unwrap();
}

/// A client with a store in memory.
pub(super) fn client() -> OAuthClient {
    OAuthClient::new(TokenStore::in_memory(), KnownSecrets::default())
}
