//! What holders of tokens are admitted to, by their claims.

use pegboard::config::TokenScope;
use serde_json::json;

use super::*;

const ISSUER: &str = "https://login.example.com";
const BASE: &str = "https://mcp.example.com";

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)
}

fn claims(more: &Value) -> Claims {
    let mut claims = json!({"iss": ISSUER, "sub": "ada", "aud": BASE, "exp": 1_000_100});
    for (name, value) in more.as_object().unwrap() {
        match value {
            Value::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    Claims::parse(claims.to_string().as_bytes(), true).unwrap()
}

fn settings() -> ServeOAuth {
    let mut settings = ServeOAuth::new(ISSUER);
    settings.rules = vec![OAuthRule::for_everyone()];
    settings
}

fn admit(settings: ServeOAuth, more: &Value) -> Result<Admission, TokenFault> {
    Policy::new(settings, Some(BASE)).authorize(&claims(more), now())
}

#[test]
fn a_token_is_refused_by_issuer_audience_time_and_subject() {
    for (more, fault) in [
        (json!({"iss": "https://evil.example"}), TokenFault::Issuer),
        (json!({"iss": "https://login.example.com/"}), TokenFault::Issuer),
        (json!({"iss": ["https://login.example.com"]}), TokenFault::Issuer),
        (json!({"iss": null}), TokenFault::Issuer),
        (json!({"aud": "https://other.example"}), TokenFault::Audience),
        (
            json!({"aud": "https://mcp.example.com.evil.example"}),
            TokenFault::Audience,
        ),
        (json!({"aud": []}), TokenFault::Audience),
        (json!({"aud": null}), TokenFault::Audience),
        (json!({"exp": 999_939}), TokenFault::Expired),
        (json!({"exp": null}), TokenFault::Claim),
        (json!({"exp": "1000100"}), TokenFault::Claim),
        (json!({"nbf": 1_000_061}), TokenFault::NotYet),
        (json!({"iat": 1_000_061}), TokenFault::NotYet),
        (json!({"sub": null}), TokenFault::Claim),
        (json!({"sub": ""}), TokenFault::Claim),
        (json!({"sub": 7}), TokenFault::Claim),
        (json!({"sub": "a\nb"}), TokenFault::Claim),
        (json!({"sub": "x".repeat(256)}), TokenFault::Claim),
    ] {
        assert_eq!(admit(settings(), &more), Err(fault), "{more}");
    }
    for more in [
        json!({}),
        json!({"exp": 999_941}),
        json!({"nbf": 1_000_059, "iat": 1_000_059}),
        json!({"aud": ["https://other.example", "https://mcp.example.com/"]}),
        json!({"aud": "https://mcp.example.com/mcp"}),
    ] {
        assert!(admit(settings(), &more).is_ok(), "{more}");
    }
}

#[test]
fn equal_subjects_of_two_issuers_are_two_principals() {
    let mut settings = settings();
    settings.issuers.push("https://other.example".to_owned());
    let ada = admit(settings.clone(), &json!({})).unwrap();
    let other = admit(settings.clone(), &json!({"iss": "https://other.example"})).unwrap();
    assert_eq!(ada.principal.as_str(), "https://login.example.com#ada");
    assert_ne!(ada.principal, other.principal);
    settings.principal = "email".to_owned();
    let by_mail = admit(settings, &json!({"email": "ada@example.com"})).unwrap();
    assert_eq!(by_mail.principal.as_str(), "https://login.example.com#ada@example.com");
}

#[test]
fn the_first_rule_that_matches_decides() {
    let mut ops = OAuthRule::claim("groups", "sre");
    ops.scopes = [TokenScope::Read, TokenScope::Call, TokenScope::Admin].into();
    let mut view = OAuthRule::claim("realm_access.roles", "dev");
    view.view = Some("coding".to_owned());
    let mut reader = OAuthRule::claim("scope", "mcp:read");
    reader.scopes = [TokenScope::Read].into();
    let mut settings = settings();
    settings.rules = vec![ops, view, reader];
    let of = |claims: Value| admit(settings.clone(), &claims).map(|admission| (admission.view, admission.scopes));
    let read: Scopes = [Scope::Read].into_iter().collect();
    assert_eq!(of(json!({"groups": ["a", "sre"]})), Ok((None, Scopes::ALL)));
    assert_eq!(
        of(json!({"groups": ["a"], "realm_access": {"roles": ["dev"]}})),
        Ok((Some("coding".into()), Scopes::DEFAULT))
    );
    assert_eq!(of(json!({"scope": "openid mcp:read"})), Ok((None, read)));
    for none in [
        json!({}),
        json!({"groups": "sr"}),
        json!({"groups": {"sre": true}}),
        json!({"scope": "mcp:reader"}),
        json!({"groups": "a sre"}),
    ] {
        assert_eq!(of(none.clone()), Err(TokenFault::NoRule), "{none}");
    }
}

#[test]
fn every_required_scope_is_needed() {
    let mut settings = settings();
    settings.required_scopes = vec!["mcp".to_owned(), "tools".to_owned()];
    for (claims, admitted) in [
        (json!({"scope": "tools mcp x"}), true),
        (json!({"scp": ["mcp", "tools"]}), true),
        (json!({"scp": "mcp tools"}), true),
        (json!({"scope": "mcp", "scp": "tools"}), true),
        (json!({"scope": "mcp"}), false),
        (json!({"scope": "mcptools"}), false),
        (json!({}), false),
    ] {
        let outcome = admit(settings.clone(), &claims).map(drop);
        let expected = if admitted { Ok(()) } else { Err(TokenFault::Scope) };
        assert_eq!(outcome, expected, "{claims}");
    }
}

#[test]
fn a_token_for_one_path_opens_no_other() {
    let one = admit(
        settings(),
        &json!({"aud": [format!("{BASE}/mcp/github"), format!("{BASE}/time/sse")]}),
    )
    .unwrap();
    for (path, expected) in [
        ("/mcp/github", true),
        ("/mcp/github/", true),
        ("/time/sse", true),
        ("/time/messages", true),
        ("/mcp", false),
        ("/mcp/githu", false),
        ("/mcp/github2", false),
        ("/github/sse", false),
        ("/api/v1/mcp/servers", false),
    ] {
        let outcome = if expected { Ok(()) } else { Err(TokenFault::Audience) };
        assert_eq!(one.check_path(path).map_err(|refused| refused.fault), outcome, "{path}");
    }
    let mut configured = settings();
    configured.audiences = vec!["api://gateway".to_owned()];
    assert_eq!(admit(configured.clone(), &json!({})), Err(TokenFault::Audience));
    let whole = admit(configured, &json!({"aud": "api://gateway"})).unwrap();
    assert!(whole.check_path("/mcp/github").is_ok());
}

#[test]
fn a_token_without_an_expiry_is_admitted_only_by_its_server() {
    let Value::Object(fields) = json!({"active": true, "sub": "ada", "aud": BASE}) else {
        unreachable!()
    };
    let claims = Claims::from_introspection(fields, ISSUER);
    let admission = Policy::new(settings(), Some(BASE)).authorize(&claims, now()).unwrap();
    assert_eq!(admission.expires, now() + WITHOUT_EXPIRY);
}
