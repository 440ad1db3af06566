//! A gateway with a server that needs a sign-in, and one that does not.

use pegboard::{Config, Env, Format, Pegboard, config::TokenDigest};
use pegboard_daemon::{Daemon, Reloads};
use pegboard_gateway::{Gateway, GatewayHost, Scope, Scopes, Token};
use pegboard_testkit::{
    FakeServer, NetHandle, Tool,
    oauth::{AuthorizationServer, IssuerHandle, Protected},
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};
use url::Url;

use crate::sign_in::browser::{Browser, Page, send};

pub(crate) struct Site {
    pub(crate) issuer: IssuerHandle,
    pub(crate) server: Protected,
    pub(crate) board: Pegboard,
    pub(crate) gateway: Gateway,
    pub(crate) url: Url,
    serving: JoinHandle<()>,
    _open: NetHandle,
}

/// Tokens with which clients come to the gateway. `cleo` sees the view `narrow` only, `dan` may only read, and `olga` may do everything; so may
/// `vera` in the view `dotted`, and `wim` in the view `narrow`.
pub(crate) const CLIENTS: [&str; 7] = ["ada", "bob", "cleo", "dan", "olga", "vera", "wim"];

impl Site {
    /// A gateway whose clients have tokens.
    pub(crate) async fn new() -> Self {
        Self::with(&CLIENTS, "").await
    }

    /// The same with more settings.
    pub(crate) async fn with_settings(settings: &str) -> Self {
        Self::with(&CLIENTS, settings).await
    }

    /// A gateway that is ready only if the server is that needs a sign-in.
    pub(crate) async fn required() -> Self {
        Self::build(&CLIENTS, "required = true", "").await
    }

    /// A gateway without tokens.
    pub(crate) async fn open() -> Self {
        Self::with(&[], "").await
    }

    /// The same with more settings.
    pub(crate) async fn open_with(settings: &str) -> Self {
        Self::with(&[], settings).await
    }

    async fn with(clients: &[&str], settings: &str) -> Self {
        Self::build(clients, "", settings).await
    }

    async fn build(clients: &[&str], of_server: &str, settings: &str) -> Self {
        let issuer = AuthorizationServer::new().start().await.unwrap();
        let fake = FakeServer::new("fx").tool(Tool::new("hello").read_only().answers_text("hi"));
        let server = issuer.protect(&fake).await.unwrap();
        let open = FakeServer::new("open").tool(Tool::new("peek").read_only().answers_text("seen"));
        let open = open.serve_http().await.unwrap();
        let config = format!(
            "[servers.fx]\nurl = '{}'\n{of_server}\n[servers.open]\nurl = '{}'\nauth = {{ bearer = 'fixed' }}\n[views.narrow]\nservers = ['open']\n\
             [views.dotted]\nservers = ['fx']\nnaming = 'dot'\n{settings}",
            server.url(),
            open.url()
        );
        let loaded = Config::from_text(&config, Format::Toml, &Env::process());
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let board = Pegboard::builder(loaded.config).host(GatewayHost).open();
        let builder = Gateway::for_board(board.clone()).unwrap();
        let daemon = Daemon::new(board.clone(), Reloads::new().0).with_sign_in_links(builder.sign_in_links());
        let builder = builder.fallback(daemon.router());
        let builder = clients.iter().fold(builder, |builder, name| builder.token(token(name)));
        let gateway = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let serving = {
            let gateway = gateway.clone();
            tokio::spawn(async move { gateway.serve(vec![listener], std::future::pending()).await.unwrap() })
        };
        Self {
            issuer,
            server,
            board,
            gateway,
            url: Url::parse(&url).unwrap(),
            serving,
            _open: open,
        }
    }

    pub(crate) fn at(&self, path: &str) -> Url {
        self.url.join(path).unwrap()
    }

    /// Gets a document with the token of a client.
    pub(crate) async fn get(&self, who: &str, path: &str) -> (u16, Value) {
        let authorization = format!("Bearer {}", secret(who));
        let page = send("GET", &self.at(path), &[("authorization", &authorization)], "").await;
        (page.status, serde_json::from_str(&page.body).unwrap())
    }

    /// Sends a request of a client with its token.
    pub(crate) async fn post(&self, who: &str, path: &str, body: &str) -> (u16, Value) {
        let authorization = format!("Bearer {}", secret(who));
        let headers = [
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
        ];
        let page = send("POST", &self.at(path), &headers, body).await;
        (page.status, serde_json::from_str(&page.body).unwrap())
    }

    /// Calls the tool of the server that needs a sign-in. Returns the text of the reply.
    pub(crate) async fn hello(&self, who: &str) -> String {
        let (_, reply) = self.post(who, "/api/v1/mcp/call", r#"{"name": "fx.hello"}"#).await;
        reply["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether the server refuses that call until the person signs in.
    pub(crate) async fn needs_sign_in(&self, who: &str) -> bool {
        let (_, reply) = self.post(who, "/api/v1/mcp/call", r#"{"name": "fx.hello"}"#).await;
        reply["outcome"]["kind"] == "needs_auth"
    }

    /// The link that a client gets for its user.
    pub(crate) async fn link(&self, who: &str) -> String {
        let (status, document) = self.post(who, "/api/v1/mcp/servers/fx/signin", "").await;
        assert_eq!(status, 200, "{document}");
        assert!(
            document["expires_in_s"].as_u64().is_some_and(|left| left <= 600),
            "{document}"
        );
        document["url"].as_str().unwrap().to_owned()
    }

    /// Signs a person in with a link. Returns the last page.
    pub(crate) async fn sign_in(&self, browser: &mut Browser, link: &str, user: &str) -> Page {
        let consent = browser.open(link).await;
        assert_eq!(consent.status, 200, "{}", consent.body);
        let leaving = browser.submit(&consent, "sign-in").await;
        assert_eq!(leaving.status, 200, "{}", leaving.body);
        browser.open(&format!("{}&login_hint={user}", leaving.refresh())).await
    }

    pub(crate) async fn close(self) {
        self.serving.abort();
        self.board.shutdown().await;
    }
}

pub(crate) fn secret(who: &str) -> String {
    format!("pgb_{who}")
}

pub(crate) fn token(who: &str) -> Token {
    let token = Token::new(who, TokenDigest::compute(&secret(who)).to_bytes());
    match who {
        "cleo" => token.view("narrow"),
        "olga" => token.scopes(Scopes::ALL),
        "vera" => token.scopes(Scopes::ALL).view("dotted"),
        "wim" => token.scopes(Scopes::ALL).view("narrow"),
        "dan" => token.scopes([Scope::Read].into_iter().collect()),
        _ => token,
    }
}
