//! How often holders of access tokens may call, also after a reload.

use std::time::Duration;

use pegboard::{
    Config, Env, Format, Pegboard,
    config::{OAuthRule, Rate, ServeOAuth},
};
use pegboard_gateway::{Gateway, GatewayHost};
use pegboard_testkit::{FakeServer, NetHandle, Tool};
use serde_json::json;
use tokio::net::TcpListener;

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize},
    issuer::{GATEWAY, Issuer},
    signer::Signer,
};

const HOUR: Duration = Duration::from_secs(3600);

/// A gateway in front of a server whose clients have access tokens.
struct Site {
    gateway: Gateway,
    http: Http,
    _server: NetHandle,
}

impl Site {
    async fn start(settings: ServeOAuth) -> Self {
        let server = FakeServer::new("fx").tool(Tool::new("read").read_only().answers_text("read it"));
        let server = server.serve_http().await.unwrap();
        let config = format!("[servers.fx]\nurl = '{}'\n", server.url());
        let loaded = Config::from_text(&config, Format::Toml, &Env::process());
        let board = Pegboard::builder(loaded.config).host(GatewayHost).open();
        let builder = Gateway::for_board(board).unwrap();
        let gateway = builder.oauth(settings).public_url(GATEWAY).build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = Http::connect(listener.local_addr().unwrap());
        let serving = gateway.clone();
        tokio::spawn(async move { serving.serve(vec![listener], std::future::pending()).await });
        Self {
            http: http.await,
            gateway,
            _server: server,
        }
    }

    /// Calls the tool in a session. Returns the status, and whether the call was refused for its limit.
    async fn call(&mut self, bearer: &str, session: &str) -> (u16, bool) {
        let headers = [BOTH, JSON, ("mcp-session-id", session), ("authorization", bearer)];
        let answer = self.http.ask("POST", "/mcp", &headers, &call(1, "fx__read")).await;
        let body = String::from_utf8_lossy(&answer.body);
        (answer.status, body.contains("limit_exceeded"))
    }
}

fn once_an_hour(claim: &str, value: &str) -> OAuthRule {
    let mut rule = OAuthRule::claim(claim, value);
    rule.rate = Some(Rate::new(1, HOUR));
    rule
}

#[tokio::test]
async fn a_session_that_is_open_takes_the_limits_of_a_reload() {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let mut settings = issuer.settings();
    let mut site = Site::start(settings.clone()).await;
    let bearer = format!("Bearer {}", signer.token(&issuer.claims(&json!({}))));
    let session = initialize(&mut site.http, "2025-11-25", &[("authorization", &bearer)]).await;
    for _ in 0..3 {
        assert_eq!(site.call(&bearer, &session).await, (200, false));
    }
    let free = settings.rules.clone();
    for (rules, is_limited) in [
        (vec![once_an_hour("sub", "ada")], true),
        (free, false),
        (vec![once_an_hour("sub", "ada")], true),
    ] {
        settings.rules = rules;
        site.gateway.set_oauth(Some(&settings), Some(GATEWAY));
        site.call(&bearer, &session).await;
        assert_eq!(site.call(&bearer, &session).await, (200, is_limited));
        assert_eq!(site.gateway.open_sessions(), 1, "it stays open");
    }
}

#[tokio::test]
async fn a_session_is_of_no_use_to_a_token_with_other_limits() {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let mut settings = issuer.settings();
    settings.rules = vec![once_an_hour("groups", "guests"), OAuthRule::for_everyone()];
    let mut site = Site::start(settings).await;
    let bearer = |claims| format!("Bearer {}", signer.token(&issuer.claims(&claims)));
    let (member, guest) = (bearer(json!({})), bearer(json!({"groups": ["guests"]})));
    let session = initialize(&mut site.http, "2025-11-25", &[("authorization", &member)]).await;
    assert_eq!(site.call(&member, &session).await.0, 200);
    assert_eq!(site.call(&guest, &session).await.0, 404);
}
