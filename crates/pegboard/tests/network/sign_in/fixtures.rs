//! An authorization server, a server behind it, and boards that sign in there.

use std::{path::Path, sync::Arc, time::Duration};

use pegboard::{
    Builder, Config, Kind, Outcome, Pegboard, Reply, ServerConfig, SignInOptions, Toolset,
    config::{Auth, OAuthConfig, Transport},
};
use pegboard_testkit::{
    FakeServer, Tool,
    oauth::{AuthorizationServer, IssuerHandle, Protected, follow_redirect},
};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{PATIENCE, call, endpoint, name};

/// An authorization server, an MCP server behind it, and a folder for tokens.
pub(crate) struct Site {
    pub(crate) issuer: IssuerHandle,
    pub(crate) server: Protected,
    pub(crate) folder: TempDir,
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with(AuthorizationServer::new()).await
    }

    pub(crate) async fn with(issuer: AuthorizationServer) -> Self {
        let issuer = issuer.start().await.unwrap();
        let server = issuer.protect(&fake()).await.unwrap();
        Self {
            issuer,
            server,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A board with the server `fx` that finds out everything about sign-in itself.
    pub(crate) fn board(&self) -> Pegboard {
        self.board_with(OAuthConfig::default())
    }

    pub(crate) fn board_with(&self, settings: OAuthConfig) -> Pegboard {
        board_at(&self.server.url(), self.folder.path(), settings)
    }

    /// A board with these servers, all with the URL of the site.
    pub(crate) fn board_of(&self, servers: &[&str]) -> Pegboard {
        self.builder_of(servers).open()
    }

    /// The same before it is opened.
    pub(crate) fn builder_of(&self, servers: &[&str]) -> Builder {
        let mut config = Config::default();
        for server in servers {
            let mut endpoint = endpoint(&self.server.url());
            endpoint.auth = Auth::OAuth(Arc::new(OAuthConfig::default()));
            let server_config = ServerConfig::new(Transport::http(endpoint));
            config.servers.insert(name(server), server_config);
        }
        Pegboard::builder(config).token_store(self.folder.path())
    }

    /// A board on which this user has signed in.
    pub(crate) async fn signed_in(&self, user: &str) -> Pegboard {
        let board = self.board();
        sign_in(&board, user).await;
        board
    }
}

pub(crate) fn fake() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").read_only().answers_text("hi"))
        .tool(Tool::new("publish").answers_text("published"))
}

pub(crate) fn board_at(url: &str, tokens: &Path, settings: OAuthConfig) -> Pegboard {
    let mut endpoint = endpoint(url);
    endpoint.auth = Auth::OAuth(Arc::new(settings));
    let mut config = Config::default();
    config
        .servers
        .insert(name("fx"), ServerConfig::new(Transport::http(endpoint)));
    Pegboard::builder(config).token_store(tokens).open()
}

/// Signs this user in, with a browser that approves at once.
pub(crate) async fn sign_in(board: &Pegboard, user: &str) {
    try_sign_in(board, user).await.unwrap();
}

/// Signs this user in to a server, with a browser that approves at once.
pub(crate) async fn sign_in_to(board: &Pegboard, server: &str, user: &str) {
    sign_in_at(board, server, user).await.unwrap();
}

/// The error of a sign-in, with its causes.
pub(crate) async fn try_sign_in(board: &Pegboard, user: &str) -> Result<(), String> {
    sign_in_at(board, "fx", user).await
}

async fn sign_in_at(board: &Pegboard, server: &str, user: &str) -> Result<(), String> {
    let signing_in = async {
        let pending = board
            .sign_in(&name(server), SignInOptions::default())
            .await
            .map_err(|error| told(&error))?;
        let redirected = follow_redirect(pending.url().as_str(), Some(user))
            .await
            .map_err(|error| error.to_string())?;
        pending.finish(&redirected).await.map_err(|error| told(&error))
    };
    tokio::time::timeout(PATIENCE, signing_in)
        .await
        .expect("a sign-in ends in time")
}

/// An error and its causes.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}

pub(crate) async fn hello(tools: &Toolset) -> Reply {
    call(tools, "fx.hello", json!({})).await
}

#[track_caller]
pub(crate) fn assert_greeted(reply: &Reply) {
    assert_eq!(reply.text(), "hi", "{:?}", reply.outcome);
}

/// Asserts that the call was refused for lack of a sign-in and did not run. Returns its text.
#[track_caller]
pub(crate) fn assert_needs_auth(reply: &Reply) -> String {
    assert!(matches!(reply.outcome, Outcome::Refused(_)), "{:?}", reply.outcome);
    assert_eq!(reply.outcome.kind(), Kind::NeedsAuth, "{:?}", reply.outcome);
    assert!(!reply.outcome.may_have_executed());
    reply.text()
}

/// Calls until the server greets.
pub(crate) async fn until_greeted(tools: &Toolset) {
    let calling = async {
        while hello(tools).await.is_error() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, calling)
        .await
        .expect("the server greets in time");
}

/// The tokens with which the server was called, in order and each once.
pub(crate) fn accepted_subjects(server: &Protected) -> Vec<String> {
    let mut subjects: Vec<String> = server.seen().into_iter().filter_map(|seen| seen.subject).collect();
    subjects.dedup();
    subjects
}
