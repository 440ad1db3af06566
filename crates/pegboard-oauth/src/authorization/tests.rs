//! The URL for the browser, and which redirects answer it.

use std::sync::Arc;

use super::*;
use crate::{
    client_auth::ClientAuth,
    metadata::{ResourceDpop, ServerMetadata},
    test_server::query,
};
use pegboard_config::OAuthConfig;

const ISSUER: &str = "https://as.example";

fn account() -> OAuthAccount {
    let url = Url::parse("https://mcp.example/mcp").unwrap();
    OAuthAccount::new("fx".parse().unwrap(), url, Arc::default())
}

fn found() -> Discovered {
    Discovered {
        resource: "https://mcp.example/mcp".to_owned(),
        resource_dpop: ResourceDpop::NotSaid,
        resource_scopes: None,
        server: ServerMetadata::at_endpoints(
            ISSUER,
            "https://as.example/authorize?tenant=1",
            "https://as.example/token",
        ),
        is_guessed: false,
    }
}

fn pending(found: Discovered, scopes: &[&str]) -> Result<PendingSignIn, OAuthError> {
    let client = StoredClient {
        id: "me".to_owned(),
        secret: None,
        auth: ClientAuth::None,
    };
    let redirect = RedirectUri::parse("http://127.0.0.1:9/callback").unwrap();
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    PendingSignIn::new(&account(), found, client, &redirect, scopes, false)
}

#[test]
fn the_url_asks_for_a_code_for_one_resource_with_pkce() {
    let pending = pending(found(), &["a", "b"]).unwrap();
    assert_eq!(pending.account().server.as_str(), "fx");
    let mut query = query(pending.url());
    assert_eq!(query.remove("state").as_deref(), Some(pending.state()));
    assert_eq!(query.remove("code_challenge").unwrap().len(), 43);
    let rest: Vec<(&str, &str)> = query
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        rest,
        [
            ("client_id", "me"),
            ("code_challenge_method", "S256"),
            ("redirect_uri", "http://127.0.0.1:9/callback"),
            ("resource", "https://mcp.example/mcp"),
            ("response_type", "code"),
            ("scope", "a b"),
            ("tenant", "1"),
        ]
    );
    assert!(!pending.url().as_str().contains(pending.verifier.expose()));
    assert!(!format!("{pending:?}").contains(pending.verifier.expose()));
}

#[test]
fn parameters_of_the_page_do_not_replace_ours() {
    let mut found = found();
    let page = "https://as.example/authorize?tenant=1&client_id=evil&redirect_uri=https://evil.example&scope=all&state=known&request_uri=urn:x";
    found.server.authorization_endpoint = Some(Url::parse(page).unwrap());
    let pending = pending(found, &["a"]).unwrap();
    let pairs: Vec<(String, String)> = pending.url().query_pairs().into_owned().collect();
    let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let once = names.len();
    names.dedup();
    assert_eq!(names.len(), once, "{}", pending.url());
    assert!(
        !pending.url().as_str().contains("evil") && !names.contains(&"request_uri"),
        "{}",
        pending.url()
    );
    assert_eq!(query(pending.url())["tenant"], "1");
}

#[test]
fn the_page_of_another_authorization_server_is_refused() {
    let mut found = found();
    found.server.authorization_endpoint = Some(Url::parse("https://bank.example/authorize").unwrap());
    let error = pending(found, &[]).unwrap_err().to_string();
    assert!(
        error.contains("https://bank.example/authorize") && error.contains(ISSUER),
        "{error}"
    );
}

#[test]
fn debug_output_does_not_tell_how_to_answer() {
    let pending = pending(found(), &[]).unwrap();
    let text = format!("{pending:?}");
    assert!(text.contains(ISSUER) && !text.contains(pending.state()), "{text}");
}

#[test]
fn a_page_that_is_no_web_page_is_refused() {
    for bad in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "http://as.example/authorize",
        "ssh://as.example/",
    ] {
        let mut found = found();
        found.server.authorization_endpoint = Some(Url::parse(bad).unwrap());
        assert!(pending(found, &[]).is_err(), "{bad}");
    }
}

#[test]
fn only_the_answer_to_this_sign_in_is_taken() {
    let pending = pending(found(), &[]).unwrap();
    let state = pending.state();
    let url = "http://127.0.0.1:9/callback";
    for good in [
        format!("{url}?code=c&state={state}"),
        format!("  {url}?state={state}&code=c#fragment \n"),
        format!("{url}?code=c&state={state}&iss=https://as.example"),
        format!("code=c&state={state}"),
        format!("?code=c&state={state}"),
        format!("/callback?code=c&state={state}"),
    ] {
        assert_eq!(pending.code(&good).unwrap().expose(), "c", "{good}");
    }
    for (bad, why) in [
        (format!("{url}?code=c"), "no `state`"),
        (format!("{url}?code=c&state=other"), "another sign-in"),
        (format!("{url}?code=c&state={state}&state=x"), "twice"),
        (format!("{url}?code=c&code=d&state={state}"), "twice"),
        (format!("{url}?state={state}"), "no code"),
        (format!("{url}?code=&state={state}"), "no code"),
        (
            format!("http://127.0.0.1:8/callback?code=c&state={state}"),
            "not the redirect address",
        ),
        (
            format!("http://127.0.0.1:9/other?code=c&state={state}"),
            "not the redirect address",
        ),
        (
            format!("https://evil.example/callback?code=c&state={state}"),
            "not the redirect address",
        ),
        (
            format!("{url}?code=c&state={state}&iss=https://evil.example"),
            "another authorization server",
        ),
        (
            format!("{url}?code=c&state={state}&iss=https://as.example/"),
            "another authorization server",
        ),
        (
            format!("{url}?code=c&state={state}&iss=HTTPS://as.example"),
            "another authorization server",
        ),
        (format!("code={}&state={state}", "x".repeat(MAX_REDIRECT)), "too long"),
    ] {
        let error = pending.code(&bad).unwrap_err().to_string();
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn a_server_that_always_names_itself_must_do_so() {
    let mut found = found();
    found.server.sends_iss = true;
    let pending = pending(found, &[]).unwrap();
    let state = pending.state();
    assert!(pending.code(&format!("code=c&state={state}")).is_err());
    assert!(
        pending
            .code(&format!("error=access_denied&state={state}"))
            .unwrap_err()
            .to_string()
            .contains("does not name")
    );
    assert!(
        pending
            .code(&format!("code=c&state={state}&iss=https%3A%2F%2Fas.example"))
            .is_ok()
    );
}

#[test]
fn a_refusal_is_told_and_only_if_it_answers_this_sign_in() {
    let pending = pending(found(), &[]).unwrap();
    let error = pending.code(&format!(
        "error=access_denied&error_description=no%1b&state={}",
        pending.state()
    ));
    let refusal = Refusal::new("access_denied (no\\u{1b})").code(Some("access_denied".to_owned()));
    assert_eq!(error, Err(OAuthError::Denied(refusal)));
    assert!(matches!(
        pending.code("error=access_denied&state=x"),
        Err(OAuthError::Redirect(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_sign_in_that_takes_too_long_is_over() {
    let pending = pending(found(), &[]).unwrap();
    let answer = format!("code=c&state={}", pending.state());
    tokio::time::advance(PENDING_TIMEOUT).await;
    assert!(pending.code(&answer).is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(pending.code(&answer).unwrap_err().to_string().contains("too long"));
}

#[test]
fn scopes_come_from_the_config_the_challenge_or_the_resource() {
    let list = |scopes: &[&str]| scopes.iter().map(|scope| (*scope).to_owned()).collect::<Vec<_>>();
    let check = |configured: &[&str],
                 challenge: &[&str],
                 is_step_up,
                 listed: Option<&[&str]>,
                 server: &[&str],
                 expected: &[&str]| {
        let mut account = account();
        account.settings = Arc::new(OAuthConfig {
            scopes: list(configured),
            ..OAuthConfig::default()
        });
        let mut found = found();
        found.resource_scopes = listed.map(list);
        found.server.scopes = Some(list(server));
        let challenge = StoredChallenge {
            scopes: list(challenge),
            resource_metadata: None,
            is_step_up,
            offers_dpop: false,
        };
        assert_eq!(choose_scopes(&account, &challenge, &found), list(expected));
    };
    check(&["c"], &["x"], false, Some(&["l"]), &[], &["c"]);
    check(&["c"], &["x"], true, Some(&["l"]), &[], &["c", "x"]);
    check(&[], &["x", "y"], false, Some(&["l"]), &[], &["x", "y"]);
    check(&[], &[], false, Some(&["l", "m"]), &["s"], &["l", "m"]);
    check(&[], &[], false, None, &["s"], &[]);
    check(
        &[],
        &["x"],
        false,
        None,
        &["s", "offline_access"],
        &["x", "offline_access"],
    );
    check(&[], &[], false, None, &["offline_access"], &[]);
}
