//! The toolsets of callers: each has the rights, the limits and the view of its own token, also after a reload.

use std::{collections::BTreeSet, time::Duration};

use axum::body::Body;
use http::Request;
use pegboard::{
    Config, Env, Format, Pegboard,
    config::{OAuthRule, Rate, ServeOAuth, TokenDigest},
};
use pegboard_daemon::{Daemon, Reloads};
use pegboard_gateway::{Gateway, GatewayHost};
use pegboard_testkit::{
    FakeServer, Tool,
    oauth::{AuthorizationServer, Client},
};
use tower_service::Service as _;

use crate::api::fixture::{API, Fixture, Who, json, read};

/// Calls a tool. Returns the status and the kind of the reply.
async fn call(gateway: &Gateway, token: &str, tool: &str) -> (u16, String) {
    let request = Request::post(format!("{API}/call"))
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {token}"));
    let body = format!(r#"{{"name": "{tool}"}}"#);
    let request = request.body(Body::from(body)).unwrap();
    let (status, text) = read(gateway.router().call(request).await.unwrap()).await;
    let kind = json(&text)["outcome"]["kind"].as_str().unwrap_or(&text).to_owned();
    (status, kind)
}

/// Clients of one user with other rights have tokens of their own at a server that exchanges them.
#[tokio::test]
async fn a_caller_has_the_rights_and_the_limits_of_its_own_token() {
    let settings = AuthorizationServer::new().client(Client::new("gateway").secret("of-the-gateway"));
    let issuer = settings.start().await.unwrap();
    let fake = ["first", "second"]
        .into_iter()
        .fold(FakeServer::new("wiki"), |fake, tool| {
            fake.tool(Tool::new(tool).read_only().answers_text("seen"))
        });
    let wiki = issuer.protect(&fake).await.unwrap();
    let config = format!(
        "[servers.wiki]\nurl = '{}'\n[servers.wiki.oauth]\ngrant = 'token_exchange'\nissuer = '{}'\nclient_id = 'gateway'\n\
         client_secret = 'of-the-gateway'\n",
        wiki.url(),
        issuer.url()
    );
    let loaded = Config::from_text(&config, Format::Toml, &Env::process());
    assert_eq!(loaded.problems, []);
    let board = Pegboard::builder(loaded.config).host(GatewayHost).open();
    let daemon = Daemon::new(board.clone(), Reloads::new().0);
    let mut settings = ServeOAuth::new(issuer.url());
    settings.audiences = vec!["api://gateway".to_owned()];
    let mut seldom = OAuthRule::claim("scope", "seldom");
    seldom.rate = Some(Rate::new(1, Duration::from_secs(3600)));
    settings.rules = vec![seldom, OAuthRule::for_everyone()];
    let gateway = Gateway::for_board(board.clone()).unwrap().fallback(daemon.router());
    let gateway = gateway.oauth(settings).build();
    let token = |scope: &str| {
        let mut claims = issuer.claims("ada", "api://gateway");
        claims["scope"] = scope.into();
        issuer.sign(&claims)
    };
    let ok = || (200, "ok".to_owned());
    for (scope, tool) in [("read", "first"), ("read write", "second"), ("read", "first")] {
        assert_eq!(
            call(&gateway, &token(scope), &format!("wiki.{tool}")).await,
            ok(),
            "{scope}"
        );
    }
    let tokens_of = |tool: &str| -> BTreeSet<String> {
        let seen = wiki.seen().into_iter();
        seen.filter(|seen| seen.tool.as_deref() == Some(tool))
            .filter_map(|seen| seen.token)
            .collect()
    };
    let (first, second) = (tokens_of("first"), tokens_of("second"));
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(
        first, second,
        "a caller never uses what another one's token was exchanged for"
    );
    // Its user has called three times already, without a limit.
    let (status, _) = call(&gateway, &token("seldom"), "wiki.first").await;
    let limited = call(&gateway, &token("seldom"), "wiki.first").await;
    assert_eq!((limited.0, status == 200 || status == 429), (429, true), "{limited:?}");
    assert_eq!(
        call(&gateway, &token("read"), "wiki.first").await,
        ok(),
        "that of another token"
    );
    board.shutdown().await;
}

#[tokio::test]
async fn a_reload_changes_the_view_and_the_limits_of_a_caller_that_is_known() {
    let fixture = Fixture::new().await;
    let sees = async |server: &str| {
        let (status, text) = fixture.get(Who::Other, &format!("{API}/tools")).await;
        assert_eq!(status, 200, "{text}");
        text.contains(&format!("\"server\":\"{server}\""))
    };
    let client = Who::Client.token();
    assert!(sees("other").await && !sees("fx").await);
    for _ in 0..2 {
        assert_eq!(call(&fixture.gateway, &client, "fx.read").await.0, 200);
    }
    let apply = async |more: &str| {
        let (fx, other) = (fixture.fx.url(), fixture.other.url());
        let config = format!(
            "[views.other]\nservers = ['fx']\n[servers.fx]\nurl = '{fx}'\n[servers.other]\nurl = '{other}'\n{more}"
        );
        let loaded = Config::from_text(&config, Format::Toml, &Env::process());
        assert_eq!(loaded.problems, []);
        fixture.board.apply(loaded.config).await;
    };
    apply("").await;
    assert!(!sees("other").await && sees("fx").await);
    let digest = TokenDigest::compute(&client);
    apply(&format!("[serve.tokens.Client]\nsha256 = '{digest}'\nrate = '1/h'\n")).await;
    call(&fixture.gateway, &client, "fx.read").await;
    assert_eq!(call(&fixture.gateway, &client, "fx.read").await.0, 429);
}
