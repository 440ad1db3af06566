use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// The header and the claims of a proof whose signature verifies under the key in its header.
fn verified(proof: &HeaderValue) -> (Value, Value) {
    let text = proof.to_str().unwrap();
    let decoded = |part: &str| jws::decode(part).unwrap();
    let (message, signature) = text.rsplit_once('.').unwrap();
    let (header, claims) = message.split_once('.').unwrap();
    let header: Value = serde_json::from_slice(&decoded(header)).unwrap();
    let coordinate = |name: &str| decoded(header["jwk"][name].as_str().unwrap());
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(message.as_bytes(), &decoded(signature))
        .unwrap();
    (header, serde_json::from_slice(&decoded(claims)).unwrap())
}

fn claims_of(key: &DpopKey, target: &str) -> Value {
    verified(&key.proof(&Method::POST, &url(target), None).unwrap()).1
}

#[test]
fn a_proof_names_its_request_and_verifies_under_the_public_key_in_it() {
    let key = DpopKeys::default().generate().unwrap();
    let proof = key.proof(
        &Method::DELETE,
        &url("https://me:pw@mcp.example:8443/a?q=1#f"),
        Some("hash"),
    );
    let (header, claims) = verified(&proof.unwrap());
    assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
    assert_eq!(header["jwk"].as_object().unwrap().len(), 4, "no private part");
    assert_eq!(claims["htm"], "DELETE");
    assert_eq!(claims["htu"], "https://mcp.example:8443/a");
    assert_eq!(claims["ath"], "hash");
    assert_eq!(claims["iat"], unix_now());
    assert_eq!(claims.get("nonce"), None);
    let again = claims_of(&key, "https://mcp.example/a");
    assert_ne!(again["jti"], claims["jti"]);
    assert_eq!(again.get("ath"), None);
}

#[test]
fn a_websocket_is_proven_as_the_http_request_that_it_begins_with() {
    let key = DpopKeys::default().generate().unwrap();
    assert_eq!(
        claims_of(&key, "wss://mcp.example/ws?x")["htu"],
        "https://mcp.example/ws"
    );
    assert_eq!(claims_of(&key, "ws://127.0.0.1:9/ws")["htu"], "http://127.0.0.1:9/ws");
}

#[test]
fn the_token_is_hashed_as_in_rfc_9449() {
    let key = DpopKeys::default().generate().unwrap();
    // The example of section 7.1.
    let token = Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
    let proof = TokenProof::new(key.clone(), &token);
    let header = proof.header(&Method::GET, &url("https://resource.example.org/protectedresource"));
    assert_eq!(
        verified(&header.unwrap()).1["ath"],
        "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"
    );
    assert_eq!(proof.key_id(), key.thumbprint());
}

#[test]
fn the_thumbprint_is_that_of_the_public_key() {
    let key = DpopKeys::default().generate().unwrap();
    let (header, _) = verified(&key.proof(&Method::GET, &url("https://a.example/"), None).unwrap());
    let part = |name: &str| header["jwk"][name].as_str().unwrap().to_owned();
    let canonical = format!(
        r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#,
        part("x"),
        part("y")
    );
    assert_eq!(key.thumbprint(), jws::encode(Sha256::digest(canonical)));
}

#[test]
fn a_stored_key_is_the_same_key_and_is_not_shown() {
    let keys = DpopKeys::default();
    let key = keys.generate().unwrap();
    assert!(Arc::ptr_eq(&keys.get(key.stored()).unwrap(), &key));
    assert_eq!(*DpopKeys::default().get(key.stored()).unwrap(), *key);
    assert_ne!(*keys.generate().unwrap(), *key);
    keys.forget(key.stored());
    assert!(!Arc::ptr_eq(&keys.get(key.stored()).unwrap(), &key));
    assert!(!format!("{key:?}{keys:?}").contains(key.stored().expose()));
    for bad in ["", "!", "AAAA"] {
        let error = keys.get(&Secret::new(bad)).unwrap_err();
        assert!(error.contains("sign in again"), "{error}");
    }
}

#[test]
fn each_origin_has_its_own_nonce_which_every_response_replaces() {
    let key = DpopKeys::default().generate().unwrap();
    let (a, b) = (url("https://a.example/mcp"), url("https://b.example/token"));
    let learn = |url: &Url, status: StatusCode, nonce: &str| key.learn(url, status, &headers(&[("dpop-nonce", nonce)]));
    assert!(learn(&a, StatusCode::UNAUTHORIZED, "a1"));
    assert!(learn(&b, StatusCode::BAD_REQUEST, "b1"));
    assert_eq!(claims_of(&key, "https://a.example/other")["nonce"], "a1");
    assert_eq!(claims_of(&key, "https://b.example/token")["nonce"], "b1");
    // One that succeeded need not be sent again.
    assert!(!learn(&a, StatusCode::OK, "a2"));
    assert_eq!(claims_of(&key, "https://a.example/mcp")["nonce"], "a2");
    assert!(!key.learn(&a, StatusCode::UNAUTHORIZED, &HeaderMap::new()));
    assert!(!learn(&a, StatusCode::UNAUTHORIZED, &"x".repeat(2000)));
    assert_eq!(claims_of(&key, "https://a.example/mcp")["nonce"], "a2");
    assert_eq!(claims_of(&key, "https://c.example/").get("nonce"), None);
}

#[test]
fn what_is_known_of_origins_is_bounded() {
    let key = DpopKeys::default().generate().unwrap();
    for n in 0..100 {
        let response = headers(&[("dpop-nonce", "n")]);
        key.learn(&url(&format!("https://h{n}.example/")), StatusCode::OK, &response);
    }
    assert_eq!(claims_of(&key, "https://h0.example/").get("nonce"), None);
    assert_eq!(claims_of(&key, "https://h99.example/")["nonce"], "n");
}

#[test]
fn the_clock_of_a_server_that_refuses_is_followed() {
    let key = DpopKeys::default().generate().unwrap();
    let at = |seconds: i64| {
        let time = jiff::Timestamp::from_second(unix_now().cast_signed() + seconds).unwrap();
        time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    };
    let target = url("https://a.example/mcp");
    let learn = |status, seconds| key.learn(&target, status, &headers(&[("date", &at(seconds))]));
    let ahead = || claims_of(&key, target.as_str())["iat"].as_u64().unwrap().cast_signed() - unix_now().cast_signed();
    assert!(!learn(StatusCode::OK, 4000));
    assert_eq!(ahead(), 0);
    assert!(learn(StatusCode::UNAUTHORIZED, 4000));
    assert!((3999..=4001).contains(&ahead()), "{}", ahead());
    assert!(learn(StatusCode::UNAUTHORIZED, -4000));
    assert!((-4001..=-3999).contains(&ahead()), "{}", ahead());
    assert!(!learn(StatusCode::UNAUTHORIZED, 1));
    assert_eq!(ahead(), 0);
    assert!(!key.learn(&target, StatusCode::UNAUTHORIZED, &headers(&[("date", "soon")])));
}

#[test]
fn only_a_refused_proof_is_a_reason_to_send_the_request_again() {
    let key = DpopKeys::default().generate().unwrap();
    let proof = TokenProof::new(key, &Secret::new("t"));
    let again = |status: StatusCode, challenge: &str| {
        let response = headers(&[("dpop-nonce", "n"), ("www-authenticate", challenge)]);
        proof.learn(&url("https://a.example/mcp"), status, &response)
    };
    let wants_nonce = r#"Bearer, DPoP error="use_dpop_nonce", algs="ES256""#;
    assert!(again(StatusCode::UNAUTHORIZED, wants_nonce));
    assert!(again(StatusCode::UNAUTHORIZED, r#"DPoP error="invalid_dpop_proof""#));
    assert!(!again(StatusCode::UNAUTHORIZED, r#"DPoP error="invalid_token""#));
    assert!(!again(StatusCode::FORBIDDEN, wants_nonce));
    assert!(!again(StatusCode::OK, wants_nonce));
}
