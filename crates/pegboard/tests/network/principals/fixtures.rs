//! Principals with tokens, and a server that tells who called.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
};

use pegboard::{
    Config, Credential, Credentials, Pegboard, Reply, ServerConfig, ServerName, View,
    credential::{CredentialError, CredentialRequest},
};
use pegboard_testkit::{Era, FakeServer, Received, Tool};
use serde_json::Value;

use crate::support::*;

/// A new secret for every token, so that a token is never the same twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The token of one principal. A server sees its owner before the first `.`: the principal, and its rights after a `:` if it has several tokens.
pub(crate) struct Token {
    owner: &'static str,
    covers_processes: bool,
    is_named: bool,
    secret: u64,
}

impl Token {
    pub(crate) fn of(owner: &'static str) -> Self {
        Self {
            owner,
            covers_processes: false,
            is_named: true,
            secret: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Also for the environment of processes.
    pub(crate) fn for_processes(owner: &'static str) -> Self {
        Self {
            covers_processes: true,
            ..Self::of(owner)
        }
    }

    /// Does not say what it allows, so no other token stands for it.
    pub(crate) fn unnamed(self) -> Self {
        Self {
            is_named: false,
            ..self
        }
    }
}

impl Credentials for Token {
    fn covers(&self, _: &ServerName, is_process: bool) -> bool {
        !is_process || self.covers_processes
    }

    fn identity(&self) -> Option<String> {
        self.is_named.then(|| self.owner.to_owned())
    }

    fn credential<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        assert_eq!(
            request.principal.map(AsRef::as_ref),
            Some(principal(self.owner)),
            "the wrong one is asked"
        );
        let token = format!("{}.secret-token-{:08}", self.owner, self.secret);
        Box::pin(async move { Ok(Credential::bearer(&token).env("CALLER_TOKEN", token)) })
    }
}

/// A server whose tools tell who called.
pub(crate) fn fake(era: Era) -> FakeServer {
    FakeServer::new("fx")
        .era(era)
        .tool(Tool::new("whoami").read_only().shows_caller())
        .tool(Tool::new("act").shows_caller())
}

/// A server that caches results.
pub(crate) fn caching(mut server: ServerConfig) -> ServerConfig {
    server.policy.trust = true;
    server.policy.cache = Some(secs(60));
    server
}

pub(crate) fn config(server: ServerConfig) -> Config {
    let mut config = Config::default();
    config.servers.insert(name("fx"), server);
    config
}

pub(crate) fn board_of(server: ServerConfig) -> Pegboard {
    Pegboard::builder(config(server))
        .without_jitter()
        .without_breaker()
        .open()
}

/// The principal of a token's owner.
pub(crate) fn principal(owner: &str) -> &str {
    owner.split(':').next().unwrap_or_default()
}

/// A view of a principal with a fresh token.
pub(crate) fn of(owner: &'static str) -> View {
    with(Token::of(owner))
}

/// A view of a token's principal.
pub(crate) fn with(token: Token) -> View {
    View::new().principal(principal(token.owner)).credentials(token)
}

/// What the server told about a call.
pub(crate) fn told(reply: &Reply) -> Value {
    let text = reply.text();
    let text = unfenced(&text);
    let json = text.get(text.find('{').unwrap_or(0)..=text.rfind('}').unwrap_or(0));
    serde_json::from_str(json.unwrap_or_default()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The owner of the token in a request.
pub(crate) fn token_owner(request: &Received) -> &str {
    let token = request.header("authorization").unwrap_or_default();
    token
        .trim_start_matches("Bearer ")
        .split('.')
        .next()
        .unwrap_or_default()
}
