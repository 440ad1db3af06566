//! Proofs of possession (DPoP, RFC 9449), checked as an authorization server and a protected server do.

use std::{
    collections::{HashSet, VecDeque},
    sync::Mutex,
};

use axum::{
    http::{HeaderValue, header},
    response::Response,
};
use serde_json::Value;

use super::{
    books::now_seconds,
    fault::AuthFault,
    issuer::Issuer,
    jws::{challenge_of, header_of, random_text, verify},
};
use crate::server::lock;

/// How far the time of a proof may be off, in seconds.
const WINDOW: u64 = 300;
/// With a new nonce in each response, so many of the newest ones are accepted: responses may overtake each other.
const NONCES: usize = 4;

/// How a protected server says that it takes tokens that are bound to a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DpopSign {
    /// Not at all.
    #[default]
    None,
    /// Its challenge has the scheme `DPoP`.
    Challenge,
    /// Its metadata lists the algorithms of proofs.
    Metadata,
    /// Its metadata requires it, and it refuses other tokens.
    Required,
}

/// Why a proof is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadProof {
    pub(super) error: &'static str,
    pub(super) why: String,
}

/// What a proof must be for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a str,
    pub(super) token: Option<&'a str>,
}

/// The proofs that one server has accepted, and its nonces.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    ids: Mutex<HashSet<String>>,
    /// The newest is the last.
    nonces: Mutex<VecDeque<String>>,
}

impl Proofs {
    /// Checks a proof and returns the thumbprint of its key.
    pub(super) fn check(&self, issuer: &Issuer, proof: &str, wanted: Wanted<'_>) -> Result<String, BadProof> {
        if issuer.has(&AuthFault::DpopRefusesProofs) {
            return Err(invalid("as the test asked"));
        }
        let (claims, thumbprint) = verify_proof(proof).map_err(|why| invalid(&why))?;
        judge(&claims, wanted, clock(issuer)).map_err(|why| invalid(&why))?;
        if !lock(&self.ids).insert(claims["jti"].to_string()) {
            return Err(invalid("the proof was used before"));
        }
        let each_time = issuer.has(&AuthFault::DpopNonceEachTime);
        if each_time || issuer.has(&AuthFault::DpopNonce) {
            let nonces = lock(&self.nonces);
            let accepted = if each_time { NONCES } else { 1 };
            let mut newest = nonces.iter().rev().take(accepted);
            if !newest.any(|nonce| claims["nonce"] == nonce.as_str()) {
                return Err(BadProof {
                    error: "use_dpop_nonce",
                    why: format!("not one of the newest nonces: {}", claims["nonce"]),
                });
            }
        }
        Ok(thumbprint)
    }

    /// Accepts no nonce of before any more.
    pub(super) fn rotate(&self) {
        lock(&self.nonces).clear();
    }

    /// Adds the nonce that the client has to use, and the time of this server if it is not the right one.
    pub(super) fn stamp(&self, issuer: &Issuer, is_refusal: bool, response: &mut Response) {
        if issuer.has(&AuthFault::DpopNonceEachTime) || (is_refusal && issuer.has(&AuthFault::DpopNonce)) {
            let nonce = self.next_nonce(issuer.has(&AuthFault::DpopNonceEachTime));
            if let Ok(nonce) = HeaderValue::from_str(&nonce) {
                response.headers_mut().insert("dpop-nonce", nonce);
            }
        }
        let now = clock(issuer);
        if now != now_seconds() {
            let time = jiff::Timestamp::from_second(now.try_into().unwrap_or_default()).unwrap_or_default();
            let text = time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            if let Ok(date) = HeaderValue::from_str(&text) {
                response.headers_mut().insert(header::DATE, date);
            }
        }
    }

    fn next_nonce(&self, each_time: bool) -> String {
        let mut nonces = lock(&self.nonces);
        if nonces.is_empty() || each_time {
            nonces.push_back(random_text("nonce-"));
        }
        if nonces.len() > NONCES {
            nonces.pop_front();
        }
        nonces.back().cloned().unwrap_or_default()
    }
}

/// The time of the issuer and its servers.
fn clock(issuer: &Issuer) -> u64 {
    let ahead = issuer.fault(|fault| match fault {
        AuthFault::ClockAhead(seconds) => Some(*seconds),
        _ => None,
    });
    now_seconds() + ahead.unwrap_or(0)
}

fn invalid(why: &str) -> BadProof {
    BadProof {
        error: "invalid_dpop_proof",
        why: why.to_owned(),
    }
}

/// The claims of a proof, and the thumbprint of the key that signed it.
fn verify_proof(proof: &str) -> Result<(Value, String), String> {
    let header = header_of(proof).ok_or("not a compact JWS")?;
    if header["typ"] != "dpop+jwt" || header["alg"] != "ES256" {
        return Err(format!("not a proof with ES256: {header}"));
    }
    let mut key = header["jwk"].clone();
    if !key.is_object() || key["kty"] != "EC" || key["crv"] != "P-256" || !key["d"].is_null() {
        return Err("the proof has no public key".into());
    }
    let part = |name: &str| key[name].as_str().unwrap_or_default().to_owned();
    let (x, y) = (part("x"), part("y"));
    key["alg"] = "ES256".into();
    let claims = verify(proof, &[key])?;
    let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
    // The hash of a PKCE challenge is that of a thumbprint too.
    Ok((claims, challenge_of(&canonical)))
}

fn judge(claims: &Value, wanted: Wanted<'_>, now: u64) -> Result<(), String> {
    if claims["htm"] != wanted.method {
        return Err(format!("the proof is for the method {}", claims["htm"]));
    }
    if claims["htu"] != wanted.url {
        return Err(format!("the proof is for {}", claims["htu"]));
    }
    if claims["iat"].as_u64().is_none_or(|made| made.abs_diff(now) > WINDOW) {
        return Err(format!("the proof is of {}, and now is {now}", claims["iat"]));
    }
    if claims["jti"].as_str().is_none_or(|id| id.len() < 16) {
        return Err("the proof has no random id".into());
    }
    let hash = wanted.token.map_or(Value::Null, |token| challenge_of(token).into());
    if claims["ath"] != hash {
        return Err("the proof is for another access token".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::jws::{Algorithm, SigningKey},
        *,
    };

    const WANTED: Wanted<'static> = Wanted {
        method: "POST",
        url: "http://127.0.0.1:9/mcp",
        token: Some("t"),
    };

    fn claims() -> Value {
        json!({
            "htm": "POST", "htu": WANTED.url, "iat": 1000, "jti": "0123456789abcdef", "ath": challenge_of("t"),
        })
    }

    #[test]
    fn a_proof_is_good_for_its_request_only() {
        assert_eq!(judge(&claims(), WANTED, 1300), Ok(()));
        for (name, other) in [
            ("htm", json!("GET")),
            ("htu", json!("http://127.0.0.1:9/mcp?x=1")),
            ("htu", json!("http://127.0.0.1:9/other")),
            ("iat", json!(999)),
            ("iat", json!(1601)),
            ("iat", Value::Null),
            ("jti", json!("short")),
            ("ath", json!(challenge_of("other"))),
            ("ath", Value::Null),
        ] {
            let mut claims = claims();
            claims[name] = other.clone();
            assert!(judge(&claims, WANTED, 1300).is_err(), "{name} {other}");
        }
        let without_token = Wanted { token: None, ..WANTED };
        assert!(judge(&claims(), without_token, 1000).is_err());
    }

    #[test]
    fn the_key_of_a_proof_is_the_one_that_signed_it() {
        let (key, other) = (
            SigningKey::generate(Algorithm::Es256, "k"),
            SigningKey::generate(Algorithm::Es256, "k"),
        );
        let public = |key: &SigningKey| {
            let jwk = key.public_jwk();
            json!({"kty": "EC", "crv": "P-256", "x": jwk["x"], "y": jwk["y"]})
        };
        let header = |jwk: Value, kind: &str| json!({"typ": kind, "alg": "ES256", "jwk": jwk});
        let good = key.sign_with_header(&header(public(&key), "dpop+jwt"), &claims());
        let (found, thumbprint) = verify_proof(&good).expect("signed by its key");
        assert_eq!((found, thumbprint.len()), (claims(), 43));
        let mut private = public(&key);
        private["d"] = "x".into();
        for bad in [
            header(public(&other), "dpop+jwt"),
            header(public(&key), "JWT"),
            header(private, "dpop+jwt"),
            header(Value::Null, "dpop+jwt"),
        ] {
            assert!(verify_proof(&key.sign_with_header(&bad, &claims())).is_err(), "{bad}");
        }
    }
}
