//! An authorization server that publishes keys and introspects tokens, and can fail at it.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use pegboard::config::{OAuthRule, ServeOAuth};
use pegboard_base::sync::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::http::{
    client::{Http, Response as Answer, modern_call, modern_headers},
    service::{Running, start_with},
    signer::Signer,
};

/// The URL under which clients reach the gateway.
pub(crate) const GATEWAY: &str = "https://mcp.example.com";

/// How the server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Mode {
    #[default]
    Well,
    /// Status 500.
    Down,
    /// A document without end.
    Huge,
    /// Never.
    Slow,
    /// To another host.
    Redirects,
}

#[derive(Default)]
pub(crate) struct Book {
    pub(crate) keys: Vec<Value>,
    pub(crate) mode: Mode,
    /// What metadata says in place of the truth.
    pub(crate) metadata: Option<Value>,
    /// The requests for keys.
    pub(crate) key_requests: usize,
    /// What is said about opaque tokens.
    pub(crate) opaque: HashMap<String, Value>,
    pub(crate) introspections: usize,
    /// Requests for keys wait for this.
    hold: Option<Arc<tokio::sync::Semaphore>>,
}

/// Lets requests for keys go on when it is dropped.
pub(crate) struct Hold(Arc<tokio::sync::Semaphore>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A running authorization server.
pub(crate) struct Issuer {
    pub(crate) url: String,
    book: Arc<Mutex<Book>>,
    serving: JoinHandle<()>,
}

impl Issuer {
    pub(crate) async fn start(signers: &[&Signer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let book = Book {
            keys: signers.iter().map(|signer| signer.jwk()).collect(),
            ..Book::default()
        };
        let book = Arc::new(Mutex::new(book));
        let url = format!("http://{address}/realm");
        let metadata = json!({"issuer": url, "jwks_uri": format!("http://{address}/keys")});
        let router = Router::new()
            .route(
                "/realm/.well-known/openid-configuration",
                get(|State(book): State<Arc<Mutex<Book>>>| async move {
                    let told = book.lock().metadata.clone();
                    Json(told.unwrap_or(metadata))
                }),
            )
            .route("/keys", get(keys))
            .route("/introspect", post(introspect))
            .with_state(book.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, book, serving }
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    /// Lets requests for keys wait.
    pub(crate) fn hold_keys(&self) -> Hold {
        let hold = Arc::new(tokio::sync::Semaphore::new(0));
        self.book().hold = Some(hold.clone());
        Hold(hold)
    }

    /// The settings of a gateway that trusts this server and admits everyone.
    pub(crate) fn settings(&self) -> ServeOAuth {
        let mut settings = ServeOAuth::new(&self.url);
        settings.rules = vec![OAuthRule::for_everyone()];
        settings
    }

    /// The claims of a good token, and others on top of them.
    pub(crate) fn claims(&self, more: &Value) -> Value {
        let mut claims = json!({"iss": self.url, "sub": "ada", "aud": GATEWAY, "exp": in_seconds(300)});
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }

    /// A gateway that trusts this server.
    pub(crate) async fn gateway(&self) -> Running {
        gateway(self.settings()).await
    }

    pub(crate) fn introspection_url(&self) -> String {
        self.url.replace("/realm", "/introspect")
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn keys(State(book): State<Arc<Mutex<Book>>>) -> Response {
    let (mode, keys, hold) = {
        let mut book = book.lock();
        book.key_requests += 1;
        (book.mode, book.keys.clone(), book.hold.clone())
    };
    if let Some(hold) = hold {
        let _ = hold.acquire().await;
    }
    match mode {
        Mode::Well => Json(json!({"keys": keys})).into_response(),
        Mode::Down => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mode::Huge => Json(json!({"keys": keys, "more": "x".repeat(2 << 20)})).into_response(),
        Mode::Slow => std::future::pending().await,
        Mode::Redirects => (StatusCode::FOUND, [("location", "/realm")]).into_response(),
    }
}

async fn introspect(State(book): State<Arc<Mutex<Book>>>, headers: HeaderMap, form: String) -> Response {
    let mut fields = url::form_urlencoded::parse(form.as_bytes());
    let token = fields.find(|(name, _)| name == "token").unwrap().1.into_owned();
    let (mode, answer) = {
        let mut book = book.lock();
        book.introspections += 1;
        (book.mode, book.opaque.get(&token).cloned())
    };
    // `gate` and `p w`, each encoded as in a form.
    if headers["authorization"] != "Basic Z2F0ZTpwK3c=" {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match mode {
        Mode::Well => Json(answer.unwrap_or(json!({"active": false}))).into_response(),
        Mode::Slow => std::future::pending().await,
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A gateway with these settings.
pub(crate) async fn gateway(settings: ServeOAuth) -> Running {
    start_with(|builder| builder.oauth(settings).public_url(GATEWAY)).await
}

/// The time in so many seconds, as claims have it.
pub(crate) fn in_seconds(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap() + seconds
}

/// Makes a call with a token, on a connection of its own.
pub(crate) async fn call_with(server: &Running, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [&modern_headers("who")[..], &[("authorization", &*bearer)]].concat();
    let mut http = Http::connect(server.address).await;
    http.ask("POST", "/mcp", &headers, &modern_call(1, "who")).await
}

/// Lets this much time pass at once.
pub(crate) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
