//! What holders of access tokens may do, whose session is whose, and when what they have open ends.

use std::time::{Duration, SystemTime};

use pegboard::config::{OAuthRule, TokenScope};
use serde_json::{Value, json};

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize, modern_call, modern_headers},
    issuer::{GATEWAY, Issuer, call_with, gateway, in_seconds},
    service::Running,
    signer::Signer,
};

fn rule(claim: &str, value: &str, scopes: &[TokenScope]) -> OAuthRule {
    let mut rule = OAuthRule::claim(claim, value);
    rule.scopes = scopes.iter().copied().collect();
    rule
}

async fn issuer() -> (Signer, Issuer) {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    (signer, issuer)
}

fn bearer(signer: &Signer, issuer: &Issuer, more: &Value) -> String {
    format!("Bearer {}", signer.token(&issuer.claims(more)))
}

#[tokio::test]
async fn claims_decide_what_a_client_may_do() {
    let (signer, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.rules = vec![
        rule("groups", "readers", &[TokenScope::Read]),
        rule("scope", "mcp:call", &[TokenScope::Read, TokenScope::Call]),
    ];
    let server = gateway(settings).await;
    for (claims, status, error) in [
        (json!({"scope": "openid mcp:call"}), 200, ""),
        (json!({"groups": ["a", "readers"]}), 403, "insufficient_scope"),
        (
            json!({"groups": ["readers"], "scope": "mcp:call"}),
            403,
            "insufficient_scope",
        ),
        (json!({"groups": ["writers"]}), 403, "insufficient_scope"),
        (json!({}), 403, "insufficient_scope"),
    ] {
        let answer = call_with(&server, &signer.token(&issuer.claims(&claims))).await;
        assert_eq!(answer.status, status, "{claims}");
        let challenge = answer.header("www-authenticate");
        assert!(challenge.contains(error), "{claims}: {challenge}");
        assert_eq!(challenge.contains("error_description="), status == 403, "{challenge}");
        assert_eq!(challenge.contains(r#"scope="mcp:call""#), status == 403, "{challenge}");
    }
}

#[tokio::test]
async fn required_scopes_the_claim_of_the_principal_and_the_audience_are_those_of_the_config() {
    let (signer, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.required_scopes = vec!["mcp".to_owned()];
    settings.scopes_supported = vec!["api://gateway/mcp".to_owned()];
    settings.principal = "email".to_owned();
    settings.audiences = vec!["api://gateway".to_owned()];
    let server = gateway(settings).await;
    let good = json!({"aud": ["x", "api://gateway"], "scp": "mcp", "email": "ada@example.com"});
    let answer = call_with(&server, &signer.token(&issuer.claims(&good))).await;
    assert_eq!(answer.text(), format!("{}#ada@example.com", issuer.url));
    for (name, value, status, error) in [
        ("scp", json!("other"), 403, r#"error="insufficient_scope""#),
        ("aud", json!(GATEWAY), 401, "another audience"),
        ("email", Value::Null, 401, "a claim of the access token"),
    ] {
        let mut claims = good.clone();
        claims[name] = value;
        let answer = call_with(&server, &signer.token(&issuer.claims(&claims))).await;
        let challenge = answer.header("www-authenticate");
        assert_eq!(answer.status, status, "{name}");
        assert!(challenge.contains(error), "{challenge}");
        assert!(challenge.contains(r#"scope="api://gateway/mcp""#), "{challenge}");
    }
}

#[tokio::test]
async fn a_token_for_one_endpoint_opens_no_other() {
    let (signer, issuer) = issuer().await;
    let server = issuer.gateway().await;
    let narrow = signer.token(&issuer.claims(&json!({"aud": format!("{GATEWAY}/mcp/time")})));
    for _ in 0..2 {
        assert_eq!(call_with(&server, &narrow).await.status, 401);
        let bearer = format!("Bearer {narrow}");
        let mut http = Http::connect(server.address).await;
        let headers = [&modern_headers("who")[..], &[("authorization", &*bearer)]].concat();
        let answer = http.ask("POST", "/mcp/time", &headers, &modern_call(1, "who")).await;
        assert_eq!(answer.status, 404, "it is admitted, and this gateway has no servers");
    }
}

/// Opens the general stream of a session.
async fn stream(server: &Running, bearer: &str, session: &str) -> Http {
    let headers = [BOTH, ("authorization", bearer), ("mcp-session-id", session)];
    let mut http = Http::connect(server.address).await;
    let response = http.ask("GET", "/mcp", &headers, "").await;
    assert!(response.is_events(), "{response:?}");
    http
}

#[tokio::test]
async fn a_session_is_its_principals_and_goes_on_with_a_newer_token() {
    let (signer, issuer) = issuer().await;
    let server = issuer.gateway().await;
    let first = bearer(&signer, &issuer, &json!({"jti": "1"}));
    let newer = bearer(&signer, &issuer, &json!({"jti": "2"}));
    let other = bearer(&signer, &issuer, &json!({"sub": "bob"}));
    let mut http = Http::connect(server.address).await;
    let session = initialize(&mut http, "2025-11-25", &[("authorization", &first)]).await;
    for (bearer, status) in [(&first, 200), (&newer, 200), (&other, 404)] {
        let headers = [BOTH, JSON, ("mcp-session-id", &*session), ("authorization", bearer)];
        let answer = http.ask("POST", "/mcp", &headers, &call(1, "echo")).await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn what_was_opened_with_a_token_ends_when_it_expires() {
    let (signer, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.clock_skew = Duration::ZERO;
    let server = gateway(settings).await;
    for seconds in [2, 8] {
        let expires = SystemTime::now() + Duration::from_secs(seconds);
        let exp = in_seconds(i64::try_from(seconds).unwrap());
        let bearer = bearer(&signer, &issuer, &json!({"exp": exp, "sub": format!("s{seconds}")}));
        let mut http = Http::connect(server.address).await;
        let headers = [("authorization", &*bearer)];
        if http.ask("GET", "/sse", &headers, "").await.status == 401 {
            // The machine is so busy that the token has expired already.
            continue;
        }
        assert!(http.event().await.is_some());
        assert_eq!(http.event().await, None);
        assert!(SystemTime::now() + Duration::from_secs(1) >= expires);
        return;
    }
    panic!("no stream could be opened in time");
}

#[tokio::test]
async fn a_newer_token_keeps_open_what_the_older_one_has_opened() {
    let (signer, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.clock_skew = Duration::ZERO;
    let server = gateway(settings).await;
    let short = bearer(&signer, &issuer, &json!({"exp": in_seconds(3)}));
    let mut http = Http::connect(server.address).await;
    let session = initialize(&mut http, "2025-11-25", &[("authorization", &short)]).await;
    let mut events = stream(&server, &short, &session).await;
    let long = signer.token(&issuer.claims(&json!({"exp": in_seconds(300)})));
    assert_eq!(call_with(&server, &long).await.status, 200);
    while call_with(&server, short.strip_prefix("Bearer ").unwrap()).await.status != 401 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.gateway.open_sessions(), 1);
    let notification = pegboard_gateway::Event::ToolsChanged;
    server.probe.events.send(notification).unwrap();
    assert!(events.event().await.is_some(), "the stream is still open");
}

#[tokio::test]
async fn new_rules_end_what_they_do_not_allow_and_nothing_else() {
    let (signer, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.rules = vec![OAuthRule::claim("groups", "a"), OAuthRule::claim("groups", "b")];
    let server = gateway(settings.clone()).await;
    let ada = bearer(&signer, &issuer, &json!({"sub": "ada", "groups": ["a"]}));
    let bob = bearer(&signer, &issuer, &json!({"sub": "bob", "groups": ["b"]}));
    let mut streams = Vec::new();
    for bearer in [&ada, &bob] {
        let mut http = Http::connect(server.address).await;
        let session = initialize(&mut http, "2025-11-25", &[("authorization", bearer)]).await;
        streams.push(stream(&server, bearer, &session).await);
    }
    settings.rules = vec![
        OAuthRule::claim("groups", "a"),
        rule("groups", "b", &[TokenScope::Read]),
    ];
    server.gateway.set_oauth(Some(&settings), Some(GATEWAY));
    assert_eq!(streams[1].event().await, None, "bob may do less now");
    assert_eq!(server.gateway.open_sessions(), 1);
    let bob = bob.strip_prefix("Bearer ").unwrap();
    assert_eq!(call_with(&server, bob).await.status, 403);
    server.probe.events.send(pegboard_gateway::Event::ToolsChanged).unwrap();
    assert!(streams[0].event().await.is_some(), "ada's stream is still open");
    assert_eq!(issuer.book().key_requests, 1, "the keys are still known");
    settings.rules.clear();
    server.gateway.set_oauth(Some(&settings), Some(GATEWAY));
    assert_eq!(streams[0].event().await, None);
    assert_eq!(server.gateway.open_sessions(), 0);
}

#[tokio::test]
async fn a_token_that_is_verified_during_a_reload_is_judged_by_the_new_rules() {
    let (signer, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.rules = vec![OAuthRule::claim("groups", "a"), OAuthRule::claim("groups", "b")];
    let server = gateway(settings.clone()).await;
    let hold = issuer.hold_keys();
    let ada = bearer(&signer, &issuer, &json!({"sub": "ada", "groups": ["a"]}));
    let bob = bearer(&signer, &issuer, &json!({"sub": "bob", "groups": ["b"]}));
    let mut waiting = Vec::new();
    for bearer in [&ada, &bob] {
        let mut http = Http::connect(server.address).await;
        let headers = [&modern_headers("who")[..], &[("authorization", bearer)]].concat();
        http.send("POST", "/mcp", &headers, &modern_call(1, "who")).await;
        waiting.push(http);
    }
    while issuer.book().key_requests == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    settings.rules.pop();
    server.gateway.set_oauth(Some(&settings), Some(GATEWAY));
    drop(hold);
    let mut answers = Vec::new();
    for mut http in waiting {
        answers.push(http.response().await.status);
    }
    assert_eq!(answers, [200, 403]);
    let mut http = Http::connect(server.address).await;
    let session = initialize(&mut http, "2025-11-25", &[("authorization", &ada)]).await;
    let mut events = stream(&server, &ada, &session).await;
    settings.rules.clear();
    server.gateway.set_oauth(Some(&settings), Some(GATEWAY));
    assert_eq!(
        events.event().await,
        None,
        "the new rules know what was opened under them"
    );
}
