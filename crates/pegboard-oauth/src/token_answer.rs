//! Reads the response of a token endpoint, leniently: real servers differ from the specification in many small ways.

use http::HeaderValue;
use serde_json::{Map, Value};

use super::{challenge, metadata::clip, stored::DEFAULT_LIFETIME};
use pegboard_base::secret::Secret;

/// The longest code of an error that is shown.
const MAX_CODE: usize = 64;
/// The codes of RFC 6749, 8693 and 8628, which are no secrets whatever was sent.
const KNOWN_CODES: [&str; 10] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
    "server_error",
    "temporarily_unavailable",
    "slow_down",
];
/// This many characters of a secret are enough to leave a text out.
const SECRET_PART: usize = 8;

/// A successful response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenAnswer {
    pub(super) access_token: Secret,
    /// Whether the access token is bound to the key of the request's proof.
    pub(super) is_bound: bool,
    pub(super) refresh_token: Option<Secret>,
    /// How long the access token is valid, in seconds.
    pub(super) lifetime: u64,
    /// The granted scopes; `None` if the response does not name them.
    pub(super) scopes: Option<Vec<String>>,
}

/// Why a token request gave no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    /// The server says why, with a code of RFC 6749.
    Error { code: String, text: String },
    /// The response is no token response.
    Malformed(String),
    /// The response is none of an authorization server: something else answers in its place, such as a firewall.
    NoAnswer(String),
}

impl TokenAnswer {
    /// Reads a response. `sent` are the secrets of the request: a description that repeats one of them is left out of the error.
    pub(super) fn parse(status: u16, body: &[u8], sent: &[&str]) -> Result<Self, TokenRefusal> {
        let Some(fields) = fields(body) else {
            return Err(TokenRefusal::NoAnswer(format!("status {status} and no JSON object")));
        };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let Some(access_token) = text("access_token").filter(|_| status < 400) else {
            return Err(refusal(status, &fields, sent));
        };
        if HeaderValue::from_str(access_token).is_err() {
            return Err(TokenRefusal::Malformed(
                "the access token has characters that a header cannot carry".to_owned(),
            ));
        }
        let is_bound = text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("dpop"));
        match text("token_type") {
            // `N_A` is the type of an exchanged token that is not an access token (RFC 8693).
            Some(kind) if !is_bound && !["bearer", "n_a"].iter().any(|known| kind.eq_ignore_ascii_case(known)) => {
                return Err(TokenRefusal::Malformed(format!(
                    "the authorization server issued a token of the type {}, which this program cannot use",
                    clip(kind)
                )));
            }
            _ => {}
        }
        Ok(Self {
            access_token: Secret::new(access_token),
            is_bound,
            refresh_token: text("refresh_token").map(Secret::new),
            lifetime: fields.get("expires_in").and_then(seconds).unwrap_or(DEFAULT_LIFETIME),
            scopes: fields.get("scope").and_then(scopes),
        })
    }
}

/// A JSON object, or a form: the default of some servers.
fn fields(body: &[u8]) -> Option<Map<String, Value>> {
    if let Ok(fields) = serde_json::from_slice(body) {
        return Some(fields);
    }
    let is_form = body.starts_with(b"access_token=") || body.starts_with(b"error=");
    let pair = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
        (name.into_owned(), Value::String(value.into_owned()))
    };
    is_form.then(|| url::form_urlencoded::parse(body).map(pair).collect())
}

/// Why a response is no success, without a text that repeats one of the secrets in `sent`.
pub(super) fn refusal(status: u16, fields: &Map<String, Value>, sent: &[&str]) -> TokenRefusal {
    let Some(code) = fields.get("error").and_then(Value::as_str) else {
        return TokenRefusal::Malformed(format!(
            "the token endpoint answered with status {status} and neither a token nor an error"
        ));
    };
    // Codes are words such as `invalid_grant`, or URLs.
    let is_code = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    let is_safe = |text: &&str| !sent.iter().any(|secret| repeats(text, secret));
    let is_shown = code.len() <= MAX_CODE && code.chars().all(is_code) && is_safe(&code);
    let code = match KNOWN_CODES.contains(&code) || is_shown {
        true => code.to_owned(),
        false => "an error without a usable code".to_owned(),
    };
    let description = fields.get("error_description").and_then(Value::as_str).filter(is_safe);
    let text = match description {
        Some(description) => format!("{code} ({})", clip(description)),
        None => code.clone(),
    };
    TokenRefusal::Error { code, text }
}

/// Whether a text has a part of a secret that is long enough to be of use.
fn repeats(text: &str, secret: &str) -> bool {
    let (text, secret) = (text.as_bytes(), secret.as_bytes());
    let part = secret.len().min(SECRET_PART);
    part > 0
        && text.len() >= part
        && secret
            .windows(part)
            .any(|part| text.windows(part.len()).any(|found| found == part))
}

/// A number of seconds, as a number or as text. One that is not positive says nothing.
fn seconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_u64().or_else(|| to_whole_seconds(number.as_f64()?)),
        Value::String(text) => text
            .trim()
            .parse()
            .ok()
            .or_else(|| to_whole_seconds(text.trim().parse().ok()?)),
        _ => None,
    };
    seconds.filter(|seconds| *seconds > 0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be positive and small"
)]
fn to_whole_seconds(seconds: f64) -> Option<u64> {
    (1.0..1e12).contains(&seconds).then_some(seconds as u64)
}

/// Scopes as a string or a list. An empty one says that none were granted.
fn scopes(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(challenge::scopes(text)),
        Value::Array(list) => {
            let mut scopes = Vec::new();
            challenge::add_scopes(&mut scopes, list.iter().filter_map(Value::as_str));
            Some(scopes)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetime(expires_in: &str) -> u64 {
        let body = format!(r#"{{"access_token":"t","expires_in":{expires_in}}}"#);
        TokenAnswer::parse(200, body.as_bytes(), &[]).unwrap().lifetime
    }

    #[test]
    fn the_lifetime_is_read_in_every_form_and_an_hour_without_one() {
        for (text, expected) in [
            ("60", 60),
            ("\"60\"", 60),
            ("60.9", 60),
            ("\" 60.0 \"", 60),
            ("0", 3600),
            ("-5", 3600),
            ("null", 3600),
            ("\"soon\"", 3600),
            ("1e300", 3600),
        ] {
            assert_eq!(lifetime(text), expected, "{text}");
        }
        assert_eq!(
            TokenAnswer::parse(200, br#"{"access_token":"t"}"#, &[])
                .unwrap()
                .lifetime,
            3600
        );
    }

    #[test]
    fn scopes_and_types_are_read_in_every_form() {
        for body in [
            r#"{"access_token":"t","token_type":"bearer","scope":"a b","refresh_token":"r"}"#,
            r#"{"access_token":"t","token_type":"BEARER","scope":["a","b"],"refresh_token":"r"}"#,
            "access_token=t&scope=a+b&refresh_token=r&token_type=bearer",
        ] {
            let answer = TokenAnswer::parse(200, body.as_bytes(), &[]).unwrap();
            assert_eq!(
                answer.scopes.as_deref(),
                Some(&["a".to_owned(), "b".to_owned()][..]),
                "{body}"
            );
            assert_eq!(
                (answer.access_token.expose(), answer.refresh_token.unwrap().expose()),
                ("t", "r")
            );
        }
    }

    #[test]
    fn an_error_is_one_with_any_status() {
        for (status, body) in [
            (400, r#"{"error":"invalid_grant"}"#),
            (200, r#"{"error":"invalid_grant"}"#),
            (200, "error=invalid_grant"),
            (400, r#"{"error":"invalid_grant","access_token":"t"}"#),
        ] {
            let refusal = TokenAnswer::parse(status, body.as_bytes(), &[]).unwrap_err();
            let expected = TokenRefusal::Error {
                code: "invalid_grant".to_owned(),
                text: "invalid_grant".to_owned(),
            };
            assert_eq!(refusal, expected, "{status} {body}");
        }
    }

    #[test]
    fn what_is_no_token_response_is_malformed() {
        for body in ["", "<html>", "[]"] {
            let refusal = TokenAnswer::parse(200, body.as_bytes(), &[]).unwrap_err();
            assert!(matches!(refusal, TokenRefusal::NoAnswer(_)), "{body}");
        }
        for body in [
            "{}",
            r#"{"access_token":""}"#,
            r#"{"access_token":5}"#,
            r#"{"access_token":"a\nb"}"#,
            r#"{"access_token":"t","token_type":"mac"}"#,
        ] {
            let refusal = TokenAnswer::parse(200, body.as_bytes(), &[]).unwrap_err();
            assert!(matches!(refusal, TokenRefusal::Malformed(_)), "{body}");
        }
    }

    #[test]
    fn an_error_does_not_repeat_what_was_sent() {
        let body = br#"{"error":"invalid_grant","error_description":"token s3cret is old\u001b[2J"}"#;
        let TokenRefusal::Error { text, .. } = TokenAnswer::parse(400, body, &["s3cret"]).unwrap_err() else {
            panic!("no error")
        };
        assert_eq!(text, "invalid_grant");
        let TokenRefusal::Error { text, .. } = TokenAnswer::parse(400, body, &[]).unwrap_err() else {
            panic!("no error")
        };
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_code_is_a_word_and_no_part_of_a_secret() {
        let shown = |code: &str| {
            let body = serde_json::json!({"error": code}).to_string();
            match TokenAnswer::parse(400, body.as_bytes(), &["the-secret-of-the-client", "pin"]) {
                Err(TokenRefusal::Error { text, .. }) => text,
                other => panic!("{other:?}"),
            }
        };
        for code in ["invalid_grant", "urn:example:no", "AADSTS70008"] {
            assert_eq!(shown(code), code);
        }
        let long = "x".repeat(65);
        for code in [
            "the-secret-of-the-client",
            "got:secret-of-the:end",
            "a pin",
            "pin",
            "a b",
            "a\u{1b}[2Jb",
            &long,
        ] {
            assert_eq!(shown(code), "an error without a usable code", "{code:?}");
        }
    }
}
