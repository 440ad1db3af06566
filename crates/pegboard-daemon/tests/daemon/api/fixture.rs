//! A board with two servers behind a gateway, and the tokens of its clients.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::{Request, Response};
use pegboard::{Config, Env, Format, Pegboard, config::TokenDigest};
use pegboard_daemon::{Daemon, ReloadRequests, Reloads};
use pegboard_gateway::{Gateway, GatewayHost, Scope, Token};
use pegboard_testkit::{FakeServer, Fault, NetHandle, Tool, When};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

/// The limit on every wait. Only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How long a gateway waits for its calls at the end.
const DRAIN: Duration = Duration::from_millis(50);

/// The path of the API.
pub(crate) const API: &str = "/api/v1/mcp";

/// A client, by its token. `Nobody` sends none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Nobody,
    /// May read.
    Read,
    /// May call.
    Call,
    /// May change what runs.
    Admin,
    /// May do everything, in the view `other`.
    Other,
    /// May read and call.
    Client,
    /// May do everything.
    Operator,
    /// The same principal, with another token that may only read.
    Lesser,
}

impl Who {
    const WITH_TOKEN: [Self; 7] = [
        Self::Read,
        Self::Call,
        Self::Admin,
        Self::Other,
        Self::Client,
        Self::Operator,
        Self::Lesser,
    ];

    pub(crate) fn token(self) -> String {
        format!("pgb_{self:?}")
    }

    pub(crate) fn scopes(self) -> Vec<Scope> {
        match self {
            Self::Nobody => Vec::new(),
            Self::Read | Self::Lesser => vec![Scope::Read],
            Self::Call => vec![Scope::Call],
            Self::Admin => vec![Scope::Admin],
            Self::Other | Self::Operator => Scope::ALL.to_vec(),
            Self::Client => vec![Scope::Read, Scope::Call],
        }
    }

    pub(crate) fn config(self) -> Token {
        let digest = TokenDigest::compute(&self.token());
        let principal = match self {
            Self::Lesser => format!("{:?}", Self::Operator),
            who => format!("{who:?}"),
        };
        let token = Token::new(&principal, digest.to_bytes()).scopes(self.scopes().into_iter().collect());
        match self {
            Self::Other => token.view("other"),
            _ => token,
        }
    }
}

pub(crate) struct Fixture {
    pub(crate) board: Pegboard,
    pub(crate) gateway: Gateway,
    pub(crate) fx: NetHandle,
    pub(crate) stop: CancellationToken,
    pub(crate) reloads: Reloads,
    pub(crate) requests: Option<ReloadRequests>,
    pub(crate) other: NetHandle,
}

fn fx() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(Tool::new("fail").fails_with("no"))
        .tool(
            Tool::new("steps")
                .progress(3, Duration::from_millis(1))
                .answers_text("done"),
        )
        .tool(
            Tool::new("add")
                .schema(
                    serde_json::json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
                )
                .answers_text("added"),
        )
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers)
        .resource("fx://note", "read it")
        .prompt("greet", "read it")
        .streams()
}

impl Fixture {
    /// A gateway that needs tokens.
    pub(crate) async fn new() -> Self {
        Self::with("", &Who::WITH_TOKEN).await
    }

    /// A gateway that needs tokens, with more settings.
    pub(crate) async fn with_settings(settings: &str) -> Self {
        Self::with(settings, &Who::WITH_TOKEN).await
    }

    /// A gateway that needs no tokens.
    pub(crate) async fn open(settings: &str) -> Self {
        Self::with(settings, &[]).await
    }

    async fn with(settings: &str, tokens: &[Who]) -> Self {
        let fx = fx().serve_http().await.unwrap();
        let other = FakeServer::new("other").tool(Tool::new("peek").read_only().answers_text("seen"));
        let other = other.serve_http().await.unwrap();
        let config = format!(
            "{settings}\n[views.other]\nservers = ['other']\n[servers.fx]\nurl = '{}'\n[servers.other]\nurl = '{}'\n\
             [servers.away]\nurl = 'http://127.0.0.1:1/mcp'\nstart = 'lazy'\n",
            fx.url(),
            other.url()
        );
        let loaded = Config::from_text(&config, Format::Toml, &Env::process());
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let board = Pegboard::builder(loaded.config).host(GatewayHost).open();
        let (reloads, requests) = Reloads::new();
        let stop = CancellationToken::new();
        let builder = Gateway::for_board(board.clone()).unwrap().drain_time(DRAIN);
        let daemon = Daemon::new(board.clone(), reloads.clone())
            .with_monitor(builder.monitor())
            .stop_with(stop.clone());
        let builder = builder.fallback(daemon.router());
        let builder = tokens.iter().fold(builder, |builder, who| builder.token(who.config()));
        tokio::time::timeout(PATIENCE, board.settle(Duration::from_secs(10)))
            .await
            .unwrap();
        Self {
            board,
            gateway: builder.build(),
            fx,
            stop,
            reloads,
            requests: Some(requests),
            other,
        }
    }

    /// Sends a request. Dropping the future is a client that goes away.
    pub(crate) async fn send(
        &self,
        who: Who,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if who != Who::Nobody {
            request = request.header("authorization", format!("Bearer {}", who.token()));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.gateway.router().call(request).await.unwrap()
    }

    pub(crate) async fn get(&self, who: Who, path: &str) -> (u16, String) {
        read(self.send(who, "GET", path, &[], "").await).await
    }

    pub(crate) async fn post(&self, who: Who, path: &str, body: &str) -> (u16, String) {
        let headers = [("content-type", "application/json")];
        read(self.send(who, "POST", path, &headers, body).await).await
    }
}

/// The status and the whole body.
pub(crate) async fn read(response: Response<Body>) -> (u16, String) {
    let status = response.status().as_u16();
    let body = tokio::time::timeout(PATIENCE, to_bytes(response.into_body(), 16 << 20)).await;
    (status, String::from_utf8(body.unwrap().unwrap().to_vec()).unwrap())
}

#[track_caller]
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
