//! Access tokens: which are believed, by signature, issuer, audience and time, and what happens when keys rotate or cannot be fetched.

use std::time::Duration;

use pegboard_gateway::Token;
use serde_json::{Value, json};

use crate::http::{
    client::{Http, modern_call, modern_headers},
    door::token,
    issuer::{GATEWAY, Issuer, Mode, call_with, gateway, in_seconds, pass},
    service::start_with,
    signer::{Signer, unsigned, with_secret},
};

const ALGORITHMS: [&str; 9] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
];

#[tokio::test]
async fn a_token_of_each_algorithm_names_the_principal() {
    let signers = ALGORITHMS.map(|algorithm| Signer::new(algorithm, algorithm));
    let issuer = Issuer::start(&signers.each_ref()).await;
    let server = issuer.gateway().await;
    for signer in &signers {
        let token = signer.token(&issuer.claims(&json!({"sub": signer.algorithm})));
        for _ in 0..2 {
            let answer = call_with(&server, &token).await;
            assert_eq!(answer.status, 200, "{} {answer:?}", signer.algorithm);
            assert_eq!(answer.text(), format!("{}#{}", issuer.url, signer.algorithm));
        }
        let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
        parts[1] = signer
            .token(&issuer.claims(&json!({"sub": "root"})))
            .split('.')
            .nth(1)
            .unwrap()
            .to_owned();
        let forged = call_with(&server, &parts.join(".")).await;
        assert_eq!(forged.status, 401, "{}", signer.algorithm);
    }
    assert_eq!(issuer.book().key_requests, 1);
}

#[tokio::test]
async fn a_token_that_proves_nothing_is_refused_and_told_why() {
    let (rsa, curve) = (Signer::new("RS256", "rsa"), Signer::new("ES256", "curve"));
    let stranger = Signer::new("ES256", "curve");
    let issuer = Issuer::start(&[&rsa, &curve]).await;
    let server = issuer.gateway().await;
    let good = issuer.claims(&json!({}));
    let public = rsa.jwk()["n"].as_str().unwrap().to_owned();
    let hs256 = json!({"alg": "HS256", "kid": "rsa"});
    let cases: [(String, &str); 15] = [
        (unsigned("none", &good), "an algorithm that is not accepted"),
        (unsigned("RS256", &good), "signature of the access token is wrong"),
        (
            with_secret(public.as_bytes(), &hs256, &good),
            "an algorithm that is not accepted",
        ),
        (
            with_secret(public.as_bytes(), &json!({"alg": "RS256", "kid": "rsa"}), &good),
            "signature",
        ),
        (stranger.token(&good), "signature of the access token is wrong"),
        (
            rsa.token_with(&json!({"alg": "ES256", "kid": "rsa"}), &good),
            "does not publish",
        ),
        (
            curve.token_with(&json!({"alg": "RS256", "kid": "rsa"}), &good),
            "signature",
        ),
        (
            rsa.token_with(&json!({"alg": "RS256", "kid": "rsa", "crit": ["b64"]}), &good),
            "critical header",
        ),
        (
            rsa.token_with(&json!({"alg": "RS256", "kid": "rsa", "typ": "logout+jwt"}), &good),
            "another type",
        ),
        (
            rsa.token(&issuer.claims(&json!({"iss": "https://evil.example"}))),
            "an issuer that is not accepted",
        ),
        (
            rsa.token(&issuer.claims(&json!({"aud": "https://other.example"}))),
            "another audience",
        ),
        (
            rsa.token(&issuer.claims(&json!({"exp": in_seconds(-61)}))),
            "has expired",
        ),
        (
            rsa.token(&issuer.claims(&json!({"nbf": in_seconds(90)}))),
            "not valid yet",
        ),
        (
            rsa.token(&issuer.claims(&json!({"sub": Value::Null}))),
            "a claim of the access token",
        ),
        (
            rsa.token(&issuer.claims(&json!({"padding": "x".repeat(20_000)}))),
            "longer than 16 KiB",
        ),
    ];
    for (token, why) in &cases {
        let answer = call_with(&server, token).await;
        let challenge = answer.header("www-authenticate");
        assert_eq!(answer.status, 401, "{why}");
        assert!(challenge.contains(r#"error="invalid_token""#), "{challenge}");
        assert!(challenge.contains(why), "{why}: {challenge}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(why), "{answer:?}");
    }
    assert_eq!(call_with(&server, &rsa.token(&good)).await.status, 200);
}

#[tokio::test]
async fn a_key_is_found_without_its_id_and_only_allowed_algorithms_count() {
    let (rsa, curve) = (Signer::new("PS256", "rsa"), Signer::new("ES256", "curve"));
    let issuer = Issuer::start(&[&rsa, &curve]).await;
    let mut settings = issuer.settings();
    settings.algorithms = [pegboard::config::JwtAlgorithm::Es256].into();
    let server = gateway(settings).await;
    let claims = issuer.claims(&json!({}));
    let anonymous = curve.token_with(&json!({"alg": "ES256"}), &claims);
    assert_eq!(call_with(&server, &anonymous).await.status, 200);
    assert_eq!(call_with(&server, &rsa.token(&claims)).await.status, 401);
}

#[tokio::test]
async fn the_clocks_may_differ_by_as_much_as_the_config_says() {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let mut settings = issuer.settings();
    settings.clock_skew = Duration::from_secs(300);
    let (patient, strict) = (gateway(settings).await, issuer.gateway().await);
    let token = signer.token(&issuer.claims(&json!({"exp": in_seconds(-120)})));
    assert_eq!(call_with(&patient, &token).await.status, 200);
    assert_eq!(call_with(&strict, &token).await.status, 401);
}

#[tokio::test]
async fn new_keys_are_fetched_when_a_token_names_one_and_old_ones_count_no_more() {
    let (old, new) = (Signer::new("ES256", "old"), Signer::new("ES256", "new"));
    let issuer = Issuer::start(&[&old]).await;
    let server = issuer.gateway().await;
    let claims = issuer.claims(&json!({}));
    assert_eq!(call_with(&server, &old.token(&claims)).await.status, 200);
    let unknown = call_with(&server, &new.token(&claims)).await;
    assert_eq!(unknown.status, 401);
    assert!(unknown.header("www-authenticate").contains("does not publish"));
    issuer.book().keys = vec![new.jwk()];
    assert_eq!(issuer.book().key_requests, 1, "they were fetched a moment ago");
    pass(Duration::from_secs(31)).await;
    assert_eq!(call_with(&server, &new.token(&claims)).await.status, 200);
    assert_eq!(issuer.book().key_requests, 2);
    let withdrawn = call_with(&server, &old.token(&claims)).await;
    assert_eq!(withdrawn.status, 401, "it was verified with a key that is gone");
}

#[tokio::test]
async fn a_known_token_and_its_streams_end_when_its_key_is_withdrawn() {
    let (old, new) = (Signer::new("ES256", "old"), Signer::new("ES256", "new"));
    let issuer = Issuer::start(&[&old, &new]).await;
    let server = issuer.gateway().await;
    let lost = old.token(&issuer.claims(&json!({"sub": "ada"})));
    let good = new.token(&issuer.claims(&json!({"sub": "bob"})));
    let bearer = format!("Bearer {lost}");
    let mut stream = Http::connect(server.address).await;
    let answer = stream.ask("GET", "/sse", &[("authorization", &*bearer)], "").await;
    assert_eq!(answer.status, 200);
    assert!(stream.event().await.is_some());
    issuer.book().keys = vec![new.jwk()];
    assert_eq!(call_with(&server, &lost).await.status, 200, "the keys are not old yet");
    // Nobody brings another token: requests with known ones find that the keys are old.
    pass(Duration::from_secs(3601)).await;
    while call_with(&server, &lost).await.status != 401 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(call_with(&server, &good).await.status, 200);
    pass(Duration::from_secs(61)).await;
    assert_eq!(stream.event().await, None, "nobody has sent a request on it");
}

#[tokio::test]
async fn old_keys_are_used_for_a_day_while_the_issuer_does_not_answer() {
    let signer = Signer::new("ES256", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.gateway().await;
    let token = signer.token(&issuer.claims(&json!({})));
    assert_eq!(call_with(&server, &token).await.status, 200);
    issuer.book().mode = Mode::Down;
    pass(Duration::from_secs(24 * 3600)).await;
    assert_eq!(call_with(&server, &token).await.status, 200);
    pass(Duration::from_secs(3600)).await;
    let answer = call_with(&server, &token).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"), "{answer:?}");
    issuer.book().mode = Mode::Well;
    pass(Duration::from_secs(31)).await;
    assert_eq!(call_with(&server, &token).await.status, 200);
}

#[tokio::test]
async fn a_key_that_may_be_new_is_neither_good_nor_bad_while_keys_cannot_be_fetched() {
    let (known, new) = (Signer::new("ES256", "known"), Signer::new("ES256", "new"));
    let issuer = Issuer::start(&[&known]).await;
    let server = issuer.gateway().await;
    let claims = issuer.claims(&json!({}));
    assert_eq!(call_with(&server, &known.token(&claims)).await.status, 200);
    issuer.book().mode = Mode::Down;
    issuer.book().keys.push(new.jwk());
    pass(Duration::from_secs(31)).await;
    for _ in 0..2 {
        let answer = call_with(&server, &new.token(&claims)).await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, "1"), "{answer:?}");
        assert_eq!(answer.header("www-authenticate"), "");
    }
    assert_eq!(
        issuer.book().key_requests,
        2,
        "the second one does not ask again at once"
    );
    issuer.book().mode = Mode::Well;
    pass(Duration::from_secs(31)).await;
    assert_eq!(call_with(&server, &new.token(&claims)).await.status, 200);
}

#[tokio::test]
async fn what_is_no_access_token_is_refused() {
    let signer = Signer::new("ES256", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.gateway().await;
    let mut settings = issuer.settings();
    settings.id_tokens = true;
    let lenient = gateway(settings).await;
    let general = json!({"alg": "ES256", "kid": "a", "typ": "JWT"});
    let access = json!({"alg": "ES256", "kid": "a", "typ": "at+jwt"});
    for (header, claims, strictly, leniently) in [
        (&general, json!({}), 200, 200),
        (&general, json!({"typ": "Bearer", "token_use": "access"}), 200, 200),
        (&general, json!({"nonce": "n"}), 401, 200),
        (&general, json!({"at_hash": "h"}), 401, 200),
        (&access, json!({"nonce": "n"}), 200, 200),
        (&access, json!({"token_use": "id"}), 401, 200),
        (&general, json!({"typ": "ID"}), 401, 200),
        (&general, json!({"typ": "Refresh"}), 401, 401),
        (&access, json!({"cnf": {"jkt": "x"}}), 401, 401),
        (&access, json!({"cnf": null}), 401, 401),
    ] {
        let token = signer.token_with(header, &issuer.claims(&claims));
        let answer = call_with(&server, &token).await;
        assert_eq!(answer.status, strictly, "{header} {claims}");
        assert_eq!(call_with(&lenient, &token).await.status, leniently, "{header} {claims}");
        if strictly == 401 {
            let challenge = answer.header("www-authenticate");
            assert!(
                challenge.contains("another type") || challenge.contains("bound to a key"),
                "{challenge}"
            );
        }
    }
    let twice = issuer
        .claims(&json!({}))
        .to_string()
        .replacen('{', r#"{"sub":"root","#, 1);
    let answer = call_with(&server, &signer.token_of(&general, &twice)).await;
    assert_eq!(answer.status, 401);
    assert!(
        answer.header("www-authenticate").contains("no well-formed JWT"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn while_keys_cannot_be_fetched_the_old_ones_are_used() {
    let signer = Signer::new("ES256", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.gateway().await;
    issuer.book().mode = Mode::Down;
    let token = signer.token(&issuer.claims(&json!({})));
    let first = call_with(&server, &token).await;
    assert_eq!((first.status, first.header("retry-after")), (503, "1"), "{first:?}");
    assert_eq!(first.header("www-authenticate"), "", "the token may be a good one");
    issuer.book().mode = Mode::Well;
    pass(Duration::from_secs(6)).await;
    assert_eq!(call_with(&server, &token).await.status, 200);
    for mode in [Mode::Down, Mode::Huge, Mode::Redirects] {
        issuer.book().mode = mode;
        pass(Duration::from_secs(2 * 3600)).await;
        let other = signer.token(&issuer.claims(&json!({"jti": format!("{mode:?}")})));
        assert_eq!(call_with(&server, &other).await.status, 200, "{mode:?}");
    }
}

#[tokio::test]
async fn keys_without_end_elsewhere_or_of_another_issuer_are_not_taken() {
    let signer = Signer::new("ES256", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let token = signer.token(&issuer.claims(&json!({})));
    for mode in [Mode::Huge, Mode::Redirects] {
        issuer.book().mode = mode;
        assert_eq!(call_with(&issuer.gateway().await, &token).await.status, 503, "{mode:?}");
    }
    issuer.book().mode = Mode::Well;
    let keys = issuer.url.replace("/realm", "/keys");
    for metadata in [
        json!({"issuer": "https://evil.example", "jwks_uri": keys}),
        json!({"issuer": format!("{}/", issuer.url), "jwks_uri": keys}),
        json!({"issuer": issuer.url, "jwks_uri": "http://keys.example.com/"}),
        json!({"issuer": issuer.url, "jwks_uri": "file:///etc/passwd"}),
        json!({"issuer": issuer.url}),
    ] {
        issuer.book().metadata = Some(metadata.clone());
        assert_eq!(
            call_with(&issuer.gateway().await, &token).await.status,
            503,
            "{metadata}"
        );
    }
    let mut settings = issuer.settings();
    settings.jwks_url = Some(keys);
    assert_eq!(
        call_with(&gateway(settings).await, &token).await.status,
        200,
        "metadata is not needed"
    );
}

#[tokio::test]
async fn keys_that_never_come_hold_nobody_up_for_ever() {
    let signer = Signer::new("ES256", "a");
    let issuer = Issuer::start(&[&signer]).await;
    issuer.book().mode = Mode::Slow;
    let server = issuer.gateway().await;
    let token = signer.token(&issuer.claims(&json!({})));
    let bearer = format!("Bearer {token}");
    let headers = [&modern_headers("who")[..], &[("authorization", &*bearer)]].concat();
    let (mut first, mut second) = (Http::connect(server.address).await, Http::connect(server.address).await);
    for http in [&mut first, &mut second] {
        http.send("POST", "/mcp", &headers, &modern_call(1, "who")).await;
    }
    while issuer.book().key_requests == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    pass(Duration::from_secs(11)).await;
    for mut http in [first, second] {
        assert_eq!(http.response().await.status, 503);
    }
    assert_eq!(issuer.book().key_requests, 1, "both have waited for one fetch");
}

#[tokio::test]
async fn ten_thousand_random_tokens_cause_one_fetch_of_keys() {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.gateway().await;
    let mut http = Http::connect(server.address).await;
    let claims = issuer.claims(&json!({}));
    let began = tokio::time::Instant::now();
    for number in 0..10_000 {
        let token = match number % 4 {
            0 => unsigned("EdDSA", &claims),
            1 => format!("opaque-{number}"),
            2 => with_secret(b"x", &json!({"alg": "ES256", "kid": format!("{number}")}), &claims),
            _ => with_secret(b"x", &json!({"alg": "EdDSA", "kid": "a", "n": number}), &claims),
        };
        let bearer = format!("Bearer {token}");
        let headers = [&modern_headers("who")[..], &[("authorization", &*bearer)]].concat();
        let answer = http.ask("POST", "/mcp", &headers, &modern_call(1, "who")).await;
        assert_eq!(answer.status, 401, "{number}");
    }
    // A key that is not known may be looked for again after half a minute, which a busy machine needs for this.
    let allowed = 1 + usize::try_from(began.elapsed().as_secs()).unwrap() / 30;
    let made = issuer.book().key_requests;
    assert!((1..=allowed).contains(&made), "{made} of {allowed}");
    assert_eq!(call_with(&server, &signer.token(&claims)).await.status, 200);
}

#[tokio::test]
async fn a_token_counts_in_the_header_only() {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.gateway().await;
    let token = signer.token(&issuer.claims(&json!({})));
    let mut http = Http::connect(server.address).await;
    for path in [format!("/mcp?access_token={token}"), format!("/mcp?token={token}")] {
        let answer = http
            .ask("POST", &path, &modern_headers("who"), &modern_call(1, "who"))
            .await;
        assert_eq!(answer.status, 401);
        assert!(!answer.header("www-authenticate").contains("invalid_token"));
    }
}

#[tokio::test]
async fn tokens_of_the_config_work_beside_access_tokens() {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let own: Token = token("alice", "pgb_alice");
    let server = start_with(|builder| builder.oauth(issuer.settings()).public_url(GATEWAY).token(own)).await;
    assert_eq!(call_with(&server, "pgb_alice").await.text(), "alice");
    let token = signer.token(&issuer.claims(&json!({})));
    assert_eq!(call_with(&server, &token).await.text(), format!("{}#ada", issuer.url));
    assert_eq!(call_with(&server, "pgb_bob").await.status, 401);
    server.gateway.set_oauth(None, None);
    assert_eq!(call_with(&server, &token).await.status, 401);
    assert_eq!(call_with(&server, "pgb_alice").await.status, 200);
}

#[tokio::test]
async fn clients_are_led_to_the_authorization_server() {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    let mut settings = issuer.settings();
    settings.required_scopes = vec!["mcp".to_owned()];
    let server = start_with(|builder| builder.oauth(settings.clone()).public_url(GATEWAY)).await;
    let mut http = Http::connect(server.address).await;
    for path in ["/mcp", "/mcp/time", "/mcp/view/coding", "/sse", "/time/sse"] {
        let answer = http.ask("GET", path, &[], "").await;
        let metadata = format!("{GATEWAY}/.well-known/oauth-protected-resource{path}");
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(
            answer.header("www-authenticate"),
            format!(r#"Bearer realm="pegboard", scope="mcp", resource_metadata="{metadata}""#)
        );
        let path = metadata.strip_prefix(GATEWAY).unwrap();
        let document = http.ask("GET", path, &[("host", "mcp.example.com")], "").await;
        assert_eq!(document.status, 200, "{path}");
        assert_eq!(document.header("content-type"), "application/json");
        let resource = metadata.replace("/.well-known/oauth-protected-resource", "");
        let expected = json!({
            "resource": resource, "authorization_servers": [issuer.url], "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"], "resource_name": "Pegboard",
        });
        assert_eq!(document.json(), expected);
    }
    let whole = http.ask("GET", "/.well-known/oauth-protected-resource", &[], "").await;
    assert_eq!(whole.json()["resource"], GATEWAY);
    for (method, path, host, status) in [
        ("POST", "/mcp", "localhost", 405),
        ("GET", "/secret", "localhost", 404),
        ("GET", "/mcp", "evil.example", 403),
    ] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let answer = http.ask(method, &path, &[("host", host)], "").await;
        assert_eq!(answer.status, status, "{method} {path} {host}");
    }
    server.gateway.set_oauth(Some(&settings), None);
    let answer = http.ask("GET", "/mcp", &[("host", "localhost:1234")], "").await;
    let challenge = answer.header("www-authenticate");
    assert!(challenge.contains("http://localhost:1234/.well-known/"), "{challenge}");
}
